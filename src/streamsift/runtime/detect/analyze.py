"""A detection plan and events in, a report of what a run built out: trees, slices, groups, expected and actual rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import exp, factorial, prod

import numpy as np

from streamsift.language.printer import print_quantifier
from streamsift.physical.detect import CostModel
from streamsift.physical.explain import draw, names_of
from streamsift.physical.plan import Alternative, DetectPlan, MaximalGroup, PlanShape, Tree
from streamsift.physical.plan import FixedGroup as Choice
from streamsift.runtime.detect.adaptive import AdaptiveSearch, Chosen
from streamsift.runtime.detect.relations import Relations
from streamsift.runtime.detect.run import CHUNK_MATCHES, group_matches
from streamsift.runtime.detect.statistics import Measure
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.events import Events


def analyze(plan: DetectPlan, events: Events) -> Iterator[str]:
    """Runs the plan and tells, tree by tree, what was expected of each node and what it built."""
    for number, alternative in enumerate(plan.alternatives, start=1):
        if len(plan.alternatives) > 1:
            yield f"alternative {number}"
        expected: float | None = None
        if alternative.negations and plan.choices.plan in (PlanShape.AUTO, PlanShape.LEFT):
            yield "one depth-first search decides negations on the way: it builds no rows but the matches"
        elif alternative.steps:
            positive = Alternative(alternative.query, alternative.steps, ())
            places = candidates(positive, events)
            if events.width < 0 or not all(part.size for part in places):
                yield "no match: a step has no event"
                continue
            search = AdaptiveSearch(positive, events, places, plan.choices, CHUNK_MATCHES)
            yield from _report(search)
            expected = _expected(search.log, range(len(positive.steps)))
        if alternative.groups is not None:
            yield from _groups(alternative, events, plan, expected)


def _report(search: AdaptiveSearch) -> Iterator[str]:
    parts: dict[tuple[Tree, bool], list[Chosen]] = {}
    for _ in search.matches():
        pass
    for chosen in search.log:
        parts.setdefault((chosen.tree, chosen.condensed), []).append(chosen)
    for (tree, condensed), chosen_parts in parts.items():
        count = len(chosen_parts)
        yield f"{count} slice{'s' if count > 1 else ''}" + (", condensed" if condensed else "")
        yield from draw(tree, names_of(search.alternative), partial(_rows, chosen_parts), "  ")


def _rows(parts: Sequence[Chosen], steps: tuple[int, ...]) -> str:
    """What was expected of a node, and what it built."""
    built = sum(chosen.rows.get(frozenset(steps), 0) for chosen in parts)
    is_built = any(frozenset(steps) in chosen.rows for chosen in parts)
    return f"expected {_expected(parts, steps):,.0f} rows" + (f", built {built:,}" if is_built else "")


def _expected(parts: Sequence[Chosen], steps: Sequence[int]) -> float:
    return sum(CostModel(chosen.statistics).rows(steps) * chosen.share for chosen in parts)


def _groups(alternative: Alternative, events: Events, plan: DetectPlan, singles: float | None) -> Iterator[str]:
    """The node above the joins: matches, and the elements of each Kleene variable in them.

    Expected by rates and window alone: n single events cut a window into n equal parts on average, and a group lies in
    one of them. Without single events, or with negations on the way, nothing is expected.
    """
    assert alternative.groups is not None
    groups: list[Choice | MaximalGroup] = [*alternative.groups.chosen, *alternative.groups.growing]
    matches, elements = 0, np.zeros(len(groups), np.int64)
    for found in group_matches(alternative, events, plan.choices):
        matches += len(found)
        for number, group in enumerate(groups):
            if isinstance(group, Choice):
                elements[number] += group.size * len(found)
            else:
                elements[number] += found.sizes[number - len(alternative.groups.chosen)].sum()
    in_part = [_in_part(alternative, events, group) for group in groups]
    rows = None if singles is None else singles * prod(map(_choices, groups, in_part))
    yield "groups" + _told(rows, matches, "rows")
    for group, mean, built in zip(groups, in_part, elements, strict=True):
        variable = plan.query.variables[group.variable]
        assert variable.quantifier is not None
        expected = None if rows is None else rows * _size(group, mean)
        yield f"  {variable.name}{print_quantifier(variable.quantifier)}" + _told(expected, int(built), "elements")


def _told(expected: float | None, built: int, what: str) -> str:
    return f"  built {built:,} {what}" if expected is None else f"  expected {expected:,.0f} {what}, built {built:,}"


def _in_part(alternative: Alternative, events: Events, group: Choice | MaximalGroup) -> float:
    """How many elements a part of a window holds, on average, whatever they are compared with."""
    assert alternative.groups is not None
    singles = len(alternative.steps) if isinstance(group, Choice) else alternative.groups.count_singles
    elements = Alternative(alternative.query, (group.step,), ())
    (places,) = candidates(elements, events)
    measure = Measure(elements, events, (places,), Relations(Alternative(alternative.query, (), ())))
    return places.size / max(1, events.rank.size) * measure.width() / max(1, singles)


def _choices(group: Choice | MaximalGroup, mean: float) -> float:
    """How many groups there are for one match of single events: of Poisson numbers of elements."""
    if isinstance(group, Choice):
        return mean**group.size / factorial(group.size)
    return 1.0 if group.may_be_empty else 1.0 - exp(-mean)


def _size(group: Choice | MaximalGroup, mean: float) -> float:
    """How many elements a group has."""
    if isinstance(group, Choice):
        return group.size
    return mean / max(_choices(group, mean), 1e-9)
