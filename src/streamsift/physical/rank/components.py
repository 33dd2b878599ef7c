"""Decompose the score of a pattern into components that are ranked separately and merged.

An objective that is a weighted sum decomposes into sequences of the events that it reads. Any other objective is one
component if it is monotone in each event's contribution. The best matches of each component are merged (the top-k merge
module of the CPR thesis, section 3.3). If components of two objectives read the same variable, their matches are joined
on its event.
"""

from __future__ import annotations

from collections.abc import Sequence
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
Before = set[tuple[int, int]]  # pairs of steps (earlier, later)
Objectives = tuple[b.BoundObjective, ...]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Steps with their own score, a weighted sum or another objective, multiplied by `scale`."""

    steps: tuple[int, ...]
    sum: int
    score: LinearScore | b.BoundObjective
    scale: Fraction


def merge_plan(alternative: Alternative) -> MergePlan | Refused:
    """Return the plan, or the reason why a merge does not apply."""
    ranking = alternative.query.ranking
    assert ranking is not None
    if any(step.filters for step in alternative.steps):
        return Refused("a predicate does not compare two events")
    before = _precedence(alternative)
    pieces: list[_Piece] = []
    constants: list[float] = []
    groups: list[int] = []
    rest = ranking.objectives
    for group, merge in enumerate(ranking.merges):
        objectives, rest = rest[: merge.count], rest[merge.count :]
        # SUM and AVG add all their objectives before MIN or MAX applies.
        sums = [objectives] if merge.function in ("SUM", "AVG") else [(objective,) for objective in objectives]
        scale = Fraction(1, len(objectives) if merge.function == "AVG" else 1)
        for together in sums:
            decomposed = _pieces(alternative, before, together, scale, len(groups))
            if isinstance(decomposed, Refused):
                return decomposed
            pieces += decomposed[0]
            constants.append(decomposed[1])
            groups.append(group)
    _add_unnamed(alternative, before, pieces)
    if not {step for piece in pieces for step in piece.steps} >= set(range(len(alternative.steps))):
        return Refused("an event that no objective reads has no fixed order with any component")
    if len(pieces) < 2:
        return Refused("the score has one component")
    components = tuple(_component(alternative, piece, ranking.limit) for piece in pieces)
    return MergePlan(
        alternative,
        components,
        tuple(constants),
        tuple(groups),
        tuple(merge.function for merge in ranking.merges),
        tuple(sorted(before)),
        _key(alternative, components),
    )


def _pieces(
    alternative: Alternative, before: Before, objectives: Objectives, scale: Fraction, number: int
) -> tuple[list[_Piece], float] | Refused:
    """Return the pieces of objectives that are added to one sum, and its constant."""
    step_of = {step.variable: number for number, step in enumerate(alternative.steps)}
    linear = tuple(objective for objective in objectives if _linear((objective,)) is not None)
    pieces: list[_Piece] = []
    constant = Fraction(0)
    if linear:
        score = _linear(linear)
        if score is None:
            return Refused("the score of a component is not a weighted sum")
        constant = score.constant * scale
        chains = _chains({step_of[term.column.variable] for term in score.terms}, before)
        if len(chains) > 1 and any(term.column.kind in INSTANTS for term in score.terms):
            return Refused("a time difference spans two components")
        for chain in chains:
            terms = tuple(term for term in score.terms if step_of[term.column.variable] in chain)
            pieces.append(_Piece(tuple(chain), number, replace(score, terms=terms, constant=Fraction(0)), scale))
    for objective in objectives:
        if objective in linear:
            continue
        chains = _chains({step_of[v] for v in objective.expression.variables}, before)
        if monotone_objectives(b.Ranking((objective,), (ALONE,), 1)) is None:
            return Refused("the score of a component is not monotone in each event's contribution")
        if len(chains) != 1:
            return Refused("the events of a component have no fixed order")
        pieces.append(_Piece(tuple(chains[0]), number, objective, scale))
    return pieces, float(constant)


def _linear(objectives: Objectives) -> LinearScore | None:
    return linear_score(b.Ranking(objectives, (b.Merge("SUM", len(objectives)),), 1))


def _chains(steps: set[int], before: Before) -> list[list[int]]:
    """Split the steps greedily into few sequences."""
    chains: list[list[int]] = []
    for step in sorted(steps):
        chain = next((chain for chain in chains if (chain[-1], step) in before), None)
        if chain is None:
            chains.append([step])
        else:
            chain.append(step)
    return chains


def _add_unnamed(alternative: Alternative, before: Before, pieces: list[_Piece]) -> None:
    """Add each step that no objective reads to the first piece with which it has a fixed order."""
    for step in range(len(alternative.steps)):
        if any(step in piece.steps for piece in pieces):
            continue
        for number, piece in enumerate(pieces):
            if all((min(step, other), max(step, other)) in before for other in piece.steps):
                pieces[number] = replace(piece, steps=tuple(sorted((*piece.steps, step))))
                break


def _precedence(alternative: Alternative) -> Before:
    """Return all pairs of steps with a fixed order, the transitive closure of `after`."""
    before: Before = set()
    for number, step in enumerate(alternative.steps):
        for earlier in step.after:
            before |= {(earlier, number), *((first, number) for first, last in before if last == earlier)}
    return before


# --- components as plans -----------------------------------------------------------------------------------------


def _component(alternative: Alternative, piece: _Piece, limit: int) -> Component:
    inside = _inside(alternative, piece.steps)
    if isinstance(piece.score, LinearScore):
        keys = inside.joining_columns()
        paths = PathPlan(inside, piece.score, keys, inside.pairs_beyond(keys))
        return Component(piece.steps, paths, piece.sum, float(piece.scale))
    ranking = b.Ranking((piece.score,), (ALONE,), limit)
    objectives = monotone_objectives(ranking)
    assert objectives is not None
    joined = JoinPlan(replace(inside, query=replace(inside.query, ranking=ranking)), objectives)
    return Component(piece.steps, joined, piece.sum, float(piece.scale))


def _inside(alternative: Alternative, steps: Sequence[int]) -> Alternative:
    """Return the steps as a separate sequence with the predicates between them."""
    place = {step: number for number, step in enumerate(steps)}

    def moved(pairs: tuple[Pair, ...]) -> tuple[Pair, ...]:
        return tuple(replace(pair, earlier=place[pair.earlier]) for pair in pairs if pair.earlier in place)

    def renumbered(step: Step, number: int) -> Step:
        after = (number - 1,) if number else ()
        return replace(step, after=after, lookup=moved(step.lookup), pairs=moved(step.pairs), reads=())

    inside = tuple(renumbered(alternative.steps[step], number) for step, number in place.items())
    return Alternative(alternative.query, inside, ())


# --- what links components ---------------------------------------------------------------------------------------


def _key(alternative: Alternative, components: tuple[Component, ...]) -> tuple[tuple[int, b.Column], ...]:
    """Return a step and a column for each component, equal in all of them; empty if nothing links all components."""
    shared = set.intersection(*(set(component.steps) for component in components))
    if shared:
        event = b.Column(alternative.steps[min(shared)].variable, PLACE, b.Kind.INTEGER)
        return tuple((min(shared), event) for _ in components)
    classes: list[set[tuple[int, b.Column]]] = []
    for number, pair in alternative.pairs_beyond(()):
        match pair:
            case Pair(op="=", earlier_side=b.Column() as left, this_side=b.Column() as right):
                sides = {(pair.earlier, left), (number, right)}
                touched = [equal for equal in classes if equal & sides]
                classes = [*(equal for equal in classes if not equal & sides), sides.union(*touched)]
    for equal in classes:
        of_component = [[side for side in equal if side[0] in component.steps] for component in components]
        if all(of_component):
            return tuple(min(sides, key=lambda side: (side[0], side[1].name)) for sides in of_component)
    return ()
