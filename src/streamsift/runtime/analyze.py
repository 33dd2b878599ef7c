"""A detection plan and events in, a report of what its joins did out: trees, slices, expected and actual rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from streamsift.physical.choices import PlanShape
from streamsift.physical.cost import CostModel
from streamsift.physical.describe_joins import draw, names_of
from streamsift.physical.plan import Alternative, DetectPlan
from streamsift.physical.shapes import Tree
from streamsift.runtime.adaptive import AdaptiveSearch, Chosen
from streamsift.runtime.candidates import candidates
from streamsift.runtime.detect import CHUNK_MATCHES
from streamsift.runtime.events import Events
from streamsift.runtime.own_windows import with_own_windows


def analyze(plan: DetectPlan, events: Events) -> Iterator[str]:
    """Runs the plan and tells, tree by tree, what was expected of each node and what it built."""
    events = with_own_windows(plan.query, events)
    for number, alternative in enumerate(plan.alternatives, start=1):
        if len(plan.alternatives) > 1:
            yield f"alternative {number}"
        if alternative.negations and plan.choices.plan in (PlanShape.AUTO, PlanShape.LEFT):
            yield "one depth-first search decides negations on the way: it builds no rows but the matches"
            continue
        positive = Alternative(alternative.query, alternative.steps, ())
        places = candidates(positive, events)
        if events.width < 0 or not all(part.size for part in places):
            yield "no match: a step has no event"
            continue
        yield from _report(AdaptiveSearch(positive, events, places, plan.choices, CHUNK_MATCHES))


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


def _rows(parts: list[Chosen], steps: tuple[int, ...]) -> str:
    """What was expected of a node, and what it built."""
    expected = sum(CostModel(chosen.statistics).rows(steps) * chosen.share for chosen in parts)
    built = sum(chosen.rows.get(frozenset(steps), 0) for chosen in parts)
    is_built = any(frozenset(steps) in chosen.rows for chosen in parts)
    return f"expected {expected:,.0f} rows" + (f", built {built:,}" if is_built else "")
