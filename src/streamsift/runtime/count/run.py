"""Run an aggregation plan on events and return the result rows as record batches.

Every branch returns totals of sets of matches with the stamps between which they are valid. If the plan has one branch
and its keys are the groups, these are the totals of the groups. Otherwise `RangeTotals` sums them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from streamsift.language.syntax import Emit
from streamsift.physical.plan import AggregatePlan, Alternative, Branch, Strategy
from streamsift.runtime.arrays.dtypes import Int32, Int64
from streamsift.runtime.count.by_key import count_branch
from streamsift.runtime.count.groups import AggregateInput, KeyTotals, Timeline
from streamsift.runtime.count.output import Wanted, result_batch, union
from streamsift.runtime.count.pairs import count_pairs
from streamsift.runtime.count.range_totals import RangeTotals
from streamsift.runtime.detect import find_matches
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.events import Events
from streamsift.runtime.matches import GroupValues
from streamsift.runtime.resources import add_to_match_count

_BY_KEY = (Strategy.PREFIX, Strategy.SEM, Strategy.TWO_STACK)  # strategies that return the totals of each key
CountKeys = Callable[[Branch, AggregateInput, bool], KeyTotals]


def aggregate(plan: AggregatePlan, events: Events, wanted: Wanted | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the result rows, ordered by time and then by group; on a stream, only rows with `wanted` stamps."""
    if events.rank.size == 0 or events.width < 0:
        return
    given = AggregateInput.of(plan.query, plan.alternatives, events)
    with np.errstate(over="ignore", invalid="ignore"):  # integers may wrap; the doubles detect it
        timeline = timeline_of(plan, given)
    if (batch := result_batch(plan, given, timeline, wanted)) is not None:
        yield batch


def timeline_of(plan: AggregatePlan, given: AggregateInput, count: CountKeys = count_branch) -> Timeline:
    """Return the totals of each group over time; `count` returns the totals of each key of a branch."""
    only = plan.branches[0]
    if len(plan.branches) == 1 and only.strategy in _BY_KEY and set(only.keys) == set(plan.query.group_by):
        return count(only, given, _shows_falls(plan, given))
    totals = RangeTotals(*_leaves(plan, given), given.measures.shape)
    for branch in plan.branches:
        match branch.strategy:
            case Strategy.DETECT:
                _add_matches(totals, plan, branch.alternative, given)
            case Strategy.PAIRS:
                count_pairs(totals, branch, given, *_leaves_of_places(totals, given))
            case _:
                totals.add_keys(count(branch, given, True))
    return totals.timeline()


def _shows_falls(plan: AggregatePlan, given: AggregateInput) -> bool:
    """Return True if a result row may show that totals fall because a match leaves the window."""
    return given.clock.is_ticking or plan.query.emit is Emit.CHANGES


def _leaves(plan: AggregatePlan, given: AggregateInput) -> tuple[Int32, Int64]:
    """Return the groups and stamps at which totals can change: where candidate events occur and, if shown, leave."""
    events, clock = given.events, given.clock
    parts: list[Int32] = []
    for alternative in plan.alternatives:
        elements = alternative.groups.own_steps() if alternative.groups is not None else ()
        parts += candidates(Alternative(alternative.query, (*alternative.steps, *elements), ()), events)
    places = union(parts, events)
    groups, stamps = given.group_of[places], clock.shown[places]
    if _shows_falls(plan, given):
        groups, stamps = np.append(groups, groups), np.append(stamps, clock.leaves(places))
    return groups, stamps


def _add_matches(totals: RangeTotals, plan: AggregatePlan, alternative: Alternative, given: AggregateInput) -> None:
    """Detect matches and add them to the totals chunk by chunk. Matches without a group or result row are skipped."""
    enter, leave = _leaves_of_places(totals, given)
    for matches in find_matches(alternative, given.events, plan.detection.choices):
        places = matches.events()
        first, last = places.min(axis=0), places.max(axis=0)
        keep = given.group_of[first] >= 0
        if given.clock.unit_of is not None:
            keep &= given.clock.shown[last] < given.clock.leaves(last)
        if not keep.all():
            matches, first, last = matches.only(keep), first[keep], last[keep]
        add_to_match_count(last.size)
        values = GroupValues(alternative.query, alternative, given.events, matches)
        measured = given.measures.of_matches(matches, values)
        totals.add(enter[last], leave[first], measured, np.ones(last.size, np.bool_))


def _leaves_of_places(totals: RangeTotals, given: AggregateInput) -> tuple[Int64, Int64]:
    """Return for each place the first leaf of a match that ends there, and the end leaf of one that begins there."""
    everywhere, of_place = np.arange(given.events.rank.size, dtype=np.int32), given.group_of
    enter = totals.index(of_place, given.clock.shown)
    return enter, totals.index(of_place, given.clock.leaves(everywhere))
