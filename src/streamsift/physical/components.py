"""A pattern whose objectives speak of disjoint parts of it in, those parts as sequences of their own out.

Each part is ranked by itself; the best of all parts are merged (the top-k merge module of the CPR thesis, section 3.3).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from streamsift.logical import bound as b
from streamsift.logical.expressions import variables_of
from streamsift.physical.linear import linear_score
from streamsift.physical.plan import Alternative, Component, MergePlan, PathPlan, Step


@dataclass(frozen=True, slots=True)
class _Part:
    """Objectives that are merged before anything else."""

    objectives: tuple[b.Objective, ...]
    merge: b.Merge


def merge_plan(alternative: Alternative) -> MergePlan | str:
    """The plan, or what rules it out."""
    query = alternative.query
    assert query.ranking is not None
    parts, function = _parts(query.ranking)
    before = _precedence(alternative)
    owners = _owners(alternative, parts)
    if owners is None:
        return "the objectives speak of the same events"
    if len(parts) < 2:
        return "there is one objective"
    if query.window is not None and query.update is None:
        return "without UPDATE no window holds all parts together"
    components = []
    for number, part in enumerate(parts):
        steps = tuple(step for step, owner in enumerate(owners) if owner == number)
        if any((one, two) not in before for one, two in pairwise(steps)):
            return "the events of a part have no one order"
        ranking = b.Ranking(part.objectives, (part.merge,), query.ranking.limit)
        score = linear_score(ranking)
        if score is None:
            return "the score of a part is no weighted sum"
        inside = _inside(alternative, steps)
        if any(step.filters for step in inside.steps):
            return "a part has a predicate that compares no two events"
        compared = tuple((n, pair) for n, step in enumerate(inside.steps) for pair in (*step.lookup, *step.pairs))
        components.append(Component(steps, PathPlan(inside, score, (), compared), ranking))
    return MergePlan(alternative, tuple(components), function, tuple(sorted(before)))


def _parts(ranking: b.Ranking) -> tuple[list[_Part], str]:
    """What is merged last, and how."""
    if len(ranking.merges) > 1:
        parts, taken = [], 0
        for merge in ranking.merges:
            parts.append(_Part(ranking.objectives[taken : taken + merge.count], merge))
            taken += merge.count
        return parts, "MIN"
    return [_Part((o,), b.Merge("MIN", 1)) for o in ranking.objectives], ranking.merges[0].function


def _owners(alternative: Alternative, parts: list[_Part]) -> list[int] | None:
    """For each step the part that has it; a step that none names goes with its neighbour. None if two name it."""
    step_of = {step.variable: number for number, step in enumerate(alternative.steps)}
    owners = [-1] * len(alternative.steps)
    for number, part in enumerate(parts):
        named = {variable for objective in part.objectives for variable in variables_of(objective.expression)}
        if not named or not named <= step_of.keys() or any(owners[step_of[v]] not in (-1, number) for v in named):
            return None
        for variable in named:
            owners[step_of[variable]] = number
    for step, owner in enumerate(owners):
        if owner < 0 and step:
            owners[step] = owners[step - 1]
    first = next((owner for owner in owners if owner >= 0), -1)
    return None if first < 0 else [first if owner < 0 else owner for owner in owners]


def _precedence(alternative: Alternative) -> frozenset[tuple[int, int]]:
    """Which step comes before which, by all that `after` implies."""
    before: set[tuple[int, int]] = set()
    for number, step in enumerate(alternative.steps):
        for earlier in step.after:
            before |= {(earlier, number), *((first, number) for first, last in before if last == earlier)}
    return frozenset(before)


def _inside(alternative: Alternative, steps: tuple[int, ...]) -> Alternative:
    """The steps as a sequence of their own, with what they ask of each other."""
    place = {step: number for number, step in enumerate(steps)}

    def moved(number: int) -> Step:
        step = alternative.steps[number]
        lookup, pairs = (
            tuple(replace(pair, earlier=place[pair.earlier]) for pair in found if pair.earlier in place)
            for found in (step.lookup, step.pairs)
        )
        own = not set(step.reads) - place.keys()
        return replace(
            step,
            after=(place[number] - 1,) if place[number] else (),
            lookup=lookup,
            pairs=pairs,
            filters=step.filters if own else (),
            reads=(),
        )

    return Alternative(alternative.query, tuple(map(moved, steps)), ())
