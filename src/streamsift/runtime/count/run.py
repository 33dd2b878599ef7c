"""An aggregation plan and events in, the result rows out, as record batches.

Every branch gives sets of matches with the stamps between which they count. Where one branch has one key per group,
those are the totals of the group already; else they are painted on a canvas, which adds them up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import BoundQuery, Column, Expr, Operation
from streamsift.physical.plan import AggregatePlan, Alternative, Branch, Strategy
from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64
from streamsift.runtime.count.by_key import KeyTotals, count_branch, loads_of
from streamsift.runtime.count.group_measures import totals_of_groups
from streamsift.runtime.count.measures import Measures, measures_of
from streamsift.runtime.count.operations import lay_out
from streamsift.runtime.count.output import Groups, Timeline, aggregate_schema, groups_of, result_batch, result_rows
from streamsift.runtime.count.pairs import index_of, paint_pairs
from streamsift.runtime.count.range_totals import Canvas, Leaves
from streamsift.runtime.detect import group_matches, match_places
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.stamps import Clock, clock_of
from streamsift.runtime.matches import GroupValues
from streamsift.runtime.resources import found_matches


def aggregate(
    plan: AggregatePlan, events: Events, wanted: Callable[[Clock, Int64], Bool] | None = None
) -> Iterator[pa.RecordBatch]:
    """The result rows, ordered by time and then by group; of a stream only those whose stamps are `wanted`."""
    query = plan.query
    if events.rank.size == 0 or events.width < 0:
        return
    clock = clock_of(query, events)
    groups = groups_of(query, events, clock)
    measures, decoders = measures_of(query, plan.alternatives, events)
    with np.errstate(over="ignore", invalid="ignore"):  # integers may wrap: the doubles beside them tell
        timeline = timeline_of(plan, events, clock, groups, measures)
    rows = result_rows(query, clock, timeline, decoders, lambda: relevant_stamps(plan, events, clock))
    if wanted is not None:
        rows = rows.at(np.flatnonzero(wanted(clock, rows.stamp)))
    if rows.stamp.size:
        yield result_batch(query, aggregate_schema(query), events, clock, groups, rows, decoders)


def timeline_of(
    plan: AggregatePlan,
    events: Events,
    clock: Clock,
    groups: Groups,
    measures: Measures,
    count: CountKeys = count_branch,
) -> Timeline:
    """The totals of each group over time; `count` gives those of each key of a branch that is counted by keys."""
    only = plan.branches[0]
    if len(plan.branches) == 1 and only.strategy in _BY_KEY and set(only.keys) == set(plan.query.group_by):
        with_leaving = clock.is_ticking or _shows_changes(plan.query)
        return count(only, events, clock, groups, measures, with_leaving).by_group()
    canvas = Canvas(_leaves(plan, events, clock, groups), measures.of_matches(plan.alternatives[0], _NO_PLACES))
    for branch in plan.branches:
        match branch.strategy:
            case Strategy.DETECT if branch.alternative.groups is not None:
                _paint_groups(canvas, plan, branch.alternative, events, clock, groups, measures)
            case Strategy.DETECT:
                _paint_matches(canvas, plan, branch.alternative, events, clock, groups, measures)
            case Strategy.PAIRS:
                _paint_pairs(canvas, branch, events, clock, groups, measures)
            case _:
                paint_keys(canvas, count(branch, events, clock, groups, measures, True))
    return Timeline(
        canvas.leaves.group, canvas.leaves.stamp, canvas.ends[: canvas.leaves.group.size], canvas.finished()
    )


_BY_KEY = (Strategy.PREFIX, Strategy.SEM, Strategy.TWO_STACK)  # they give the totals of each key
CountKeys = Callable[[Branch, Events, Clock, Groups, Measures, bool], KeyTotals]
_NO_PLACES = np.empty((64, 0), np.int32)


def _leaves(plan: AggregatePlan, events: Events, clock: Clock, groups: Groups) -> Leaves:
    """Where totals may change: at the events that can be in a match, and when they leave if that can be seen."""
    found: list[Int32] = []
    for alternative in plan.alternatives:
        own = alternative.groups.own_steps() if alternative.groups is not None else ()
        found += candidates(Alternative(alternative.query, (*alternative.steps, *own), ()), events)
    places = together(found, events)
    at, stamps = [groups.of_place[places]], [clock.shown[places]]
    if clock.is_ticking or _shows_changes(plan.query):
        at.append(groups.of_place[places])
        stamps.append(clock.leaves(places))
    return Leaves.of(np.concatenate(at), np.concatenate(stamps))


def _shows_changes(query: BoundQuery) -> bool:
    return query.emit.name == "CHANGES"


def _counts(clock: Clock, groups: Groups, first: Int32, last: Int32) -> Bool:
    """Which matches, from their first places to their last, are in a group and seen by some row of the result."""
    keep = groups.of_place[first] >= 0
    if clock.unit_of is not None:
        keep &= clock.shown[last] < clock.leaves(last)
    return keep


def _paint_matches(
    canvas: Canvas,
    plan: AggregatePlan,
    alternative: Alternative,
    events: Events,
    clock: Clock,
    groups: Groups,
    measures: Measures,
) -> None:
    """Detects, then aggregates: a chunk of matches at a time."""
    enter, leave = _leaves_of_places(canvas, events, clock, groups)
    for places in match_places(alternative, events, plan.detection.choices):
        first, last = places.min(axis=0), places.max(axis=0)
        keep = _counts(clock, groups, first, last)
        if not keep.all():
            places, first, last = places[:, keep], first[keep], last[keep]
        found_matches(last.size)
        canvas.paint(enter[last], leave[first], measures.of_matches(alternative, places), np.ones(last.size, np.bool_))


def _paint_groups(
    canvas: Canvas,
    plan: AggregatePlan,
    alternative: Alternative,
    events: Events,
    clock: Clock,
    groups: Groups,
    measures: Measures,
) -> None:
    """The same for matches with groups: a group counts with all its elements."""
    assert alternative.groups is not None
    enter, leave = _leaves_of_places(canvas, events, clock, groups)
    for found in group_matches(alternative, events, plan.detection.choices):
        bound = found.events()
        first, last = bound.min(axis=0), bound.max(axis=0)
        keep = _counts(clock, groups, first, last)
        values = GroupValues(alternative.query, alternative.groups, events, found.only(keep))
        first, last = first[keep], last[keep]
        found_matches(last.size)
        totals = totals_of_groups(measures, values)
        canvas.paint(enter[last], leave[first], totals, np.ones(last.size, np.bool_))


def _paint_pairs(
    canvas: Canvas, branch: Branch, events: Events, clock: Clock, groups: Groups, measures: Measures
) -> None:
    layout = lay_out(branch, events, clock, groups)
    enter, leave = _leaves_of_places(canvas, events, clock, groups)
    index = index_of(branch, layout, events)
    paint_pairs(canvas, layout, index, loads_of(branch, measures), events.window is not None, enter, leave)


def _leaves_of_places(canvas: Canvas, events: Events, clock: Clock, groups: Groups) -> tuple[Int64, Int64]:
    """For each place the leaf that first counts a match that ends there, and the first not to count one begun there."""
    everywhere = np.arange(events.rank.size, dtype=np.int32)
    enter = canvas.leaves.index(groups.of_place, clock.shown)
    return enter, canvas.leaves.index(groups.of_place, clock.leaves(everywhere))


def paint_keys(canvas: Canvas, keys: KeyTotals) -> None:
    """The totals of each key count from their stamp to the key's next."""
    enter = canvas.leaves.index(keys.group, keys.stamp)
    following = np.append(enter[1:], 0)
    last = np.append(keys.key[1:] != keys.key[:-1], True)
    ends_of_groups = np.searchsorted(canvas.leaves.group, keys.group, side="right")
    canvas.paint(enter, np.where(last, ends_of_groups, following), keys.totals, keys.ends)


def relevant_stamps(plan: AggregatePlan, events: Events, clock: Clock) -> Int64:
    """The stamps of relevant places, ascending, each once."""
    found = clock.shown[relevant_places(plan, events)]
    return found[np.append(True, found[1:] != found[:-1])] if found.size else found


def relevant_places(plan: AggregatePlan, events: Events) -> Int32:
    """Where rows of EMIT CHANGES may come: at every row of a class of the pattern that passes its local predicates.

    A row without a key is in no match, but it shows that time has passed.
    """
    found: list[Int32] = []
    for alternative in plan.alternatives:
        steps = tuple(
            replace(step, local=tuple(p for p in step.local if not _asks_for_key(p)))
            for step in alternative.all_steps()
        )
        found += candidates(Alternative(replace(alternative.query, partition_by=()), steps, ()), events)
    return together(found, events)


def together(parts: list[Int32], events: Events) -> Int32:
    """The places that are in any part, ascending, each once."""
    found = np.zeros(events.rank.size, np.bool_)
    for places in parts:
        found[places] = True
    return np.flatnonzero(found).astype(np.int32)


def _asks_for_key(predicate: Expr) -> bool:
    """Whether it is what GROUP BY or PARTITION BY ask of a single variable: it stands where the column is named."""
    match predicate:
        case Operation(op="not", operands=(Operation(op="is_null", operands=(Column() as key,)),)):
            return key.span == predicate.span
        case Operation(op="=", operands=(Column() as key, Column())):
            return key.span == predicate.span
    return False
