"""Decompose the score of a pattern into components that are ranked apart and merged.

Each objective that is a weighted sum comes apart into sequences of events that it names; one that is not, but rises
with each event's own part, is a part as a whole. Parts are ranked by themselves and the best of all are merged (the
top-k merge module of the CPR thesis, section 3.3). Parts of two objectives may name the same events: then their paths
go together only if those events are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from streamsift.logical import bound as b
from streamsift.physical.detect import PLACE
from streamsift.physical.plan import (
    Alternative,
    Component,
    JoinPlan,
    LinearScore,
    MergePlan,
    Pair,
    PathPlan,
    Refused,
    Step,
    linear_score,
    monotone_objectives,
)

ALONE = b.Merge("MIN", 1)
INSTANTS = (b.Kind.TIMESTAMP, b.Kind.DATE)
Before = frozenset[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Steps with a score of their own: a weighted sum, or an objective that is none; it counts `scale` times."""

    steps: tuple[int, ...]
    sum: int
    score: LinearScore | b.BoundObjective
    scale: Fraction


def merge_plan(alternative: Alternative) -> MergePlan | Refused:
    """The plan, or what rules it out."""
    ranking = alternative.query.ranking
    assert ranking is not None
    before = _precedence(alternative)
    if any(step.filters for step in alternative.steps):
        return Refused("a predicate compares no two events")
    pieces: list[_Piece] = []
    constants: list[float] = []
    groups: list[int] = []
    taken = 0
    for group, merge in enumerate(ranking.merges):
        objectives = ranking.objectives[taken : taken + merge.count]
        taken += merge.count
        for together, scale in _sums(objectives, merge):
            found = _pieces(alternative, before, together, scale, len(groups))
            if isinstance(found, Refused):
                return found
            pieces += found[0]
            constants.append(found[1])
            groups.append(group)
    pieces = _with_the_rest(alternative, before, pieces)
    if not {step for piece in pieces for step in piece.steps} >= set(range(len(alternative.steps))):
        return Refused("no objective speaks of an event, and none that one speaks of is in order with it")
    if len(pieces) < 2:
        return Refused("there is one part")
    components = tuple(_component(alternative, piece) for piece in pieces)
    return MergePlan(
        alternative,
        components,
        tuple(constants),
        tuple(groups),
        tuple(merge.function for merge in ranking.merges),
        tuple(sorted(before)),
        _key(alternative, components),
    )


def _sums(
    objectives: tuple[b.BoundObjective, ...], merge: b.Merge
) -> Iterator[tuple[tuple[b.BoundObjective, ...], Fraction]]:
    """What is added up before MIN or MAX is taken: all objectives of SUM and AVG, else each alone."""
    if merge.function in ("SUM", "AVG"):
        yield objectives, Fraction(1, len(objectives) if merge.function == "AVG" else 1)
    else:
        yield from (((objective,), Fraction(1)) for objective in objectives)


def _pieces(
    alternative: Alternative, before: Before, objectives: tuple[b.BoundObjective, ...], scale: Fraction, number: int
) -> tuple[list[_Piece], float] | Refused:
    """The parts of objectives that are added up, and the constant beside them."""
    step_of = {step.variable: number for number, step in enumerate(alternative.steps)}
    linear = tuple(o for o in objectives if _linear((o,)) is not None)
    found: list[_Piece] = []
    constant = Fraction(0)
    if linear:
        score = _linear(linear)
        if score is None:
            return Refused("the score of a part is no weighted sum")
        constant = score.constant * scale
        chains = _chains(sorted({step_of[term.column.variable] for term in score.terms}), before)
        if len(chains) > 1 and any(term.column.kind in INSTANTS for term in score.terms):
            return Refused("a span of time goes from one part to another")
        for chain in chains:
            own = tuple(t for t in score.terms if step_of[t.column.variable] in chain)
            found.append(_Piece(tuple(chain), number, replace(score, terms=own, constant=Fraction(0)), scale))
    for objective in objectives:
        if objective in linear:
            continue
        chains = _chains(sorted({step_of[v] for v in objective.expression.variables}), before)
        if monotone_objectives(b.Ranking((objective,), (ALONE,), 1)) is None:
            return Refused("the score of a part does not rise with each event's own part")
        if len(chains) != 1:
            return Refused("the events of a part have no one order")
        found.append(_Piece(tuple(chains[0]), number, objective, scale))
    return found, float(constant)


def _linear(objectives: tuple[b.BoundObjective, ...]) -> LinearScore | None:
    return linear_score(b.Ranking(objectives, (b.Merge("SUM", len(objectives)),), 1))


def _chains(steps: Sequence[int], before: Before) -> list[list[int]]:
    """The steps as sequences, as few as meet the eye."""
    chains: list[list[int]] = []
    for step in steps:
        chain = next((chain for chain in chains if (chain[-1], step) in before), None)
        if chain is None:
            chains.append([step])
        else:
            chain.append(step)
    return chains


def _with_the_rest(alternative: Alternative, before: Before, pieces: list[_Piece]) -> list[_Piece]:
    """Steps that no objective names go with the first part that is in order with them."""
    found = list(pieces)
    for step in range(len(alternative.steps)):
        if any(step in piece.steps for piece in found):
            continue
        for number, piece in enumerate(found):
            if all((min(step, other), max(step, other)) in before for other in piece.steps):
                found[number] = replace(piece, steps=tuple(sorted((*piece.steps, step))))
                break
    return found


def _precedence(alternative: Alternative) -> Before:
    """Which step comes before which, by all that `after` implies."""
    before: set[tuple[int, int]] = set()
    for number, step in enumerate(alternative.steps):
        for earlier in step.after:
            before |= {(earlier, number), *((first, number) for first, last in before if last == earlier)}
    return frozenset(before)


# --- parts as plans ----------------------------------------------------------------------------------------------


def _component(alternative: Alternative, piece: _Piece) -> Component:
    query = alternative.query
    assert query.ranking is not None
    if isinstance(piece.score, LinearScore):
        inside = _inside(alternative, piece.steps)
        keys = _keys(inside)
        paths = PathPlan(inside, piece.score, keys, inside.pairs_beyond(keys))
        return Component(piece.steps, paths, piece.sum, float(piece.scale))
    own = b.Ranking((piece.score,), (ALONE,), query.ranking.limit)
    inside = _inside(replace(alternative, query=replace(query, ranking=own)), piece.steps)
    objectives = monotone_objectives(own)
    assert objectives is not None
    return Component(piece.steps, JoinPlan(inside, objectives), piece.sum, float(piece.scale))


def _inside(alternative: Alternative, steps: tuple[int, ...]) -> Alternative:
    """The steps as a sequence of their own, with what they ask of each other."""
    place = {step: number for number, step in enumerate(steps)}

    def moved(number: int) -> Step:
        step = alternative.steps[number]
        lookup, pairs = (
            tuple(replace(pair, earlier=place[pair.earlier]) for pair in found if pair.earlier in place)
            for found in (step.lookup, step.pairs)
        )
        after = (place[number] - 1,) if place[number] else ()
        return replace(step, after=after, lookup=lookup, pairs=pairs, reads=())

    return Alternative(alternative.query, tuple(map(moved, steps)), ())


def _keys(inside: Alternative) -> tuple[str, ...]:
    """The columns that are equal in all steps."""
    linked: dict[str, set[int]] = {}
    for number, step in enumerate(inside.steps):
        for pair in step.compared:
            column = pair.same_column
            # Each step is tied to the one bound first, so what is not tied to an earlier one stays alone.
            if column is not None and (pair.earlier == 0 or pair.earlier in linked.get(column, ())):
                linked.setdefault(column, {0}).add(number)
    return tuple(column for column, steps in linked.items() if len(steps) == len(inside.steps))


# --- what links parts --------------------------------------------------------------------------------------------


def _key(alternative: Alternative, components: tuple[Component, ...]) -> tuple[tuple[int, b.Column], ...]:
    """For each part a step and its column that must be equal in all of them; empty if nothing links them all."""
    shared = set.intersection(*(set(component.steps) for component in components))
    if shared:
        event = b.Column(alternative.steps[min(shared)].variable, PLACE, b.Kind.INTEGER)
        return tuple((min(shared), event) for _ in components)
    classes: list[set[tuple[int, b.Column]]] = []
    for number, step in enumerate(alternative.steps):
        for pair in step.compared:
            match pair:
                case Pair(op="=", earlier_side=b.Column() as left, this_side=b.Column() as right):
                    sides = {(pair.earlier, left), (number, right)}
                    touched = [known for known in classes if known & sides]
                    classes = [known for known in classes if not known & sides]
                    classes.append(sides.union(*touched))
    for known in classes:
        of_part = [[side for side in known if side[0] in component.steps] for component in components]
        if all(of_part):
            return tuple(min(found, key=lambda side: (side[0], side[1].name)) for found in of_part)
    return ()
