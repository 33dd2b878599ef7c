"""Run a detection plan and report its trees, slices and groups with expected and actual rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import exp, factorial, prod

import numpy as np

from streamsift.language.printer import print_quantifier
from streamsift.physical.detect import CostModel
from streamsift.physical.explain import draw, names_of
from streamsift.physical.plan import Alternative, DetectPlan, FixedGroup, MaximalGroup, SearchBy, Tree, search_by
from streamsift.runtime.detect.adaptive import AdaptiveSearch, SlicePart
from streamsift.runtime.detect.run import CHUNK_MATCHES, group_matches
from streamsift.runtime.detect.statistics import window_places
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.events import Events


def analyze(plan: DetectPlan, events: Events) -> Iterator[str]:
    """Run the plan and yield a report: for each tree, the expected and actual rows of each node."""
    for number, alternative in enumerate(plan.alternatives, start=1):
        if len(plan.alternatives) > 1:
            yield f"alternative {number}"
        expected: float | None = None
        if search_by(alternative, plan.choices) is SearchBy.NESTED:
            yield "one depth-first search that checks negations as it goes: builds no rows other than matches"
        elif alternative.steps:
            positive = Alternative(alternative.query, alternative.steps, ())
            places = candidates(positive, events)
            if events.width < 0 or not all(part.size for part in places):
                yield "no match: a step has no candidate"
                continue
            search = AdaptiveSearch(positive, events, places, plan.choices, CHUNK_MATCHES)
            yield from _report(search)
            expected = _expected(search.log, range(len(positive.steps)))
        if alternative.groups is not None:
            yield from _groups(alternative, events, plan, expected)


def _report(search: AdaptiveSearch) -> Iterator[str]:
    parts: dict[tuple[Tree, bool], list[SlicePart]] = {}
    for _ in search.matches():
        pass
    for part in search.log:
        parts.setdefault((part.tree, part.condensed), []).append(part)
    for (tree, condensed), alike in parts.items():
        count = len(alike)
        yield f"{count} slice{'s' if count > 1 else ''}" + (", condensed" if condensed else "")
        yield from draw(tree, names_of(search.alternative), partial(_rows, alike), "  ")


def _rows(parts: Sequence[SlicePart], steps: tuple[int, ...]) -> str:
    """Return the expected and actual rows of a node."""
    built = sum(part.rows.get(frozenset(steps), 0) for part in parts)
    is_built = any(frozenset(steps) in part.rows for part in parts)
    return f"expected {_expected(parts, steps):,.0f} rows" + (f", built {built:,}" if is_built else "")


def _expected(parts: Sequence[SlicePart], steps: Sequence[int]) -> float:
    return sum(CostModel(part.statistics).rows(steps) * part.share for part in parts)


def _groups(alternative: Alternative, events: Events, plan: DetectPlan, singles: float | None) -> Iterator[str]:
    """Report the node above the joins: matches, and the elements of each Kleene variable in them.

    Expected numbers follow from rates and the window alone: n single events split a window into n equal parts on
    average, and a group lies in one of them. There is no estimate without single events, or with negations.
    """
    assert alternative.groups is not None
    groups: list[FixedGroup | MaximalGroup] = [*alternative.groups.chosen, *alternative.groups.growing]
    matches, elements = 0, np.zeros(len(groups), np.int64)
    sizes = np.array([group.size for group in alternative.groups.chosen], np.int64)
    for part in group_matches(alternative, events, plan.choices):
        matches += len(part)
        elements += np.concatenate([sizes * len(part), part.sizes.sum(axis=1)])
    in_part = [_in_part(alternative, events, group) for group in groups]
    rows = None if singles is None else singles * prod(map(_choices, groups, in_part))
    yield "groups" + _built(rows, matches, "rows")
    for group, mean, built in zip(groups, in_part, elements, strict=True):
        variable = plan.query.variables[group.variable]
        assert variable.quantifier is not None
        expected = None if rows is None else rows * _size(group, mean)
        yield f"  {variable.name}{print_quantifier(variable.quantifier)}" + _built(expected, int(built), "elements")


def _built(expected: float | None, built: int, what: str) -> str:
    return f"  built {built:,} {what}" if expected is None else f"  expected {expected:,.0f} {what}, built {built:,}"


def _in_part(alternative: Alternative, events: Events, group: FixedGroup | MaximalGroup) -> float:
    """Return the average number of elements in a part of a window, before comparisons."""
    assert alternative.groups is not None
    singles = len(alternative.steps) if isinstance(group, FixedGroup) else alternative.groups.count_singles
    (places,) = candidates(Alternative(alternative.query, (group.step,), ()), events)
    return places.size / max(1, events.rank.size) * window_places(events) / max(1, singles)


def _choices(group: FixedGroup | MaximalGroup, mean: float) -> float:
    """Return the expected number of groups per match of single events, if the number of elements is Poisson."""
    if isinstance(group, FixedGroup):
        return mean**group.size / factorial(group.size)
    return 1.0 if group.may_be_empty else 1.0 - exp(-mean)


def _size(group: FixedGroup | MaximalGroup, mean: float) -> float:
    """Return the expected number of elements in a group."""
    if isinstance(group, FixedGroup):
        return group.size
    return mean / max(_choices(group, mean), 1e-9)
