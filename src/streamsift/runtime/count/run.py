"""Run an aggregation plan on events and return the result rows as record batches.

Every branch gives sets of matches with the stamps between which they count. If one branch has one key per group, those
are the totals of the group already; else `RangeTotals` adds them up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from streamsift.language.syntax import Emit
from streamsift.logical.bound import Column, Expr, Operation
from streamsift.physical.plan import AggregatePlan, Alternative, Branch, Strategy
from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64
from streamsift.runtime.count.by_key import count_branch
from streamsift.runtime.count.group_measures import totals_of_groups
from streamsift.runtime.count.groups import AggregateInput, KeyTotals, Timeline, groups_of
from streamsift.runtime.count.measures import Totals, measures_of
from streamsift.runtime.count.operations import keys_of_places, lay_out
from streamsift.runtime.count.output import aggregate_schema, result_batch, result_rows
from streamsift.runtime.count.pairs import count_pairs, index_of
from streamsift.runtime.count.prefix_tree import loads_of
from streamsift.runtime.count.range_totals import Leaves, RangeTotals
from streamsift.runtime.detect import group_matches, match_places
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.stamps import Clock, clock_of
from streamsift.runtime.matches import GroupValues
from streamsift.runtime.resources import found_matches

_BY_KEY = (Strategy.PREFIX, Strategy.SEM, Strategy.TWO_STACK)  # they give the totals of each key
CountKeys = Callable[[Branch, AggregateInput, bool], KeyTotals]


def aggregate(
    plan: AggregatePlan, events: Events, wanted: Callable[[Clock, Int64], Bool] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the result rows, ordered by time and then by group; of a stream only those whose stamps are `wanted`."""
    query = plan.query
    if events.rank.size == 0 or events.width < 0:
        return
    clock = clock_of(query, events)
    measures, decoders = measures_of(query, plan.alternatives, events)
    given = AggregateInput(events, clock, groups_of(query, events, clock), measures)
    with np.errstate(over="ignore", invalid="ignore"):  # integers may wrap: the doubles beside them show it
        timeline = timeline_of(plan, given)
    rows = result_rows(query, clock, timeline, decoders, lambda: relevant_stamps(plan, events, clock))
    if wanted is not None:
        rows = rows.at(np.flatnonzero(wanted(clock, rows.stamp)))
    if rows.stamp.size:
        yield result_batch(query, aggregate_schema(query), given, rows, decoders)


def timeline_of(plan: AggregatePlan, given: AggregateInput, count: CountKeys = count_branch) -> Timeline:
    """Return the totals of each group over time; `count` gives those of each key of a branch counted by keys."""
    only = plan.branches[0]
    if len(plan.branches) == 1 and only.strategy in _BY_KEY and set(only.keys) == set(plan.query.group_by):
        return count(only, given, _shows_falls(plan, given)).by_group()
    totals = RangeTotals(_leaves(plan, given), given.measures.shape)
    for branch in plan.branches:
        match branch.strategy:
            case Strategy.DETECT:
                _add_matches(totals, plan, branch.alternative, given)
            case Strategy.PAIRS:
                layout = lay_out(branch, given, keys_of_places(branch, given))
                loads = loads_of(given.measures, [step.variable for step in branch.alternative.steps])
                index = index_of(branch, layout, given.events)
                has_window = given.events.window is not None
                count_pairs(totals, layout, index, loads, has_window, *_leaves_of_places(totals, given))
            case _:
                totals.add_keys(count(branch, given, True))
    return totals.timeline()


def _shows_falls(plan: AggregatePlan, given: AggregateInput) -> bool:
    """Return True if a result row may show that totals fall because a match leaves the window."""
    return given.clock.is_ticking or plan.query.emit is Emit.CHANGES


def _leaves(plan: AggregatePlan, given: AggregateInput) -> Leaves:
    """Return where totals may change: at the events that can be in a match, and when they leave if that is shown."""
    events, clock = given.events, given.clock
    parts: list[Int32] = []
    for alternative in plan.alternatives:
        own = alternative.groups.own_steps() if alternative.groups is not None else ()
        parts += candidates(Alternative(alternative.query, (*alternative.steps, *own), ()), events)
    places = _union(parts, events)
    groups = given.groups.of_place[places]
    if not _shows_falls(plan, given):
        return Leaves.of(groups, clock.shown[places])
    return Leaves.of(np.append(groups, groups), np.append(clock.shown[places], clock.leaves(places)))


def _add_matches(totals: RangeTotals, plan: AggregatePlan, alternative: Alternative, given: AggregateInput) -> None:
    """Detect matches, then add them up, a chunk at a time."""
    enter, leave = _leaves_of_places(totals, given)
    for first, last, measured in _measured_matches(plan, alternative, given):
        found_matches(last.size)
        totals.add(enter[last], leave[first], measured, np.ones(last.size, np.bool_))


def _measured_matches(
    plan: AggregatePlan, alternative: Alternative, given: AggregateInput
) -> Iterator[tuple[Int32, Int32, Totals]]:
    """Yield the first places of matches, their last ones and their measures; Kleene groups count with all elements."""
    events, measures = given.events, given.measures
    if alternative.groups is not None:
        for matches in group_matches(alternative, events, plan.detection.choices):
            places = matches.events()
            first, last = places.min(axis=0), places.max(axis=0)
            keep = _counts(given, first, last)
            values = GroupValues(alternative.query, alternative.groups, events, matches.only(keep))
            yield first[keep], last[keep], totals_of_groups(measures, values)
        return
    for places in match_places(alternative, events, plan.detection.choices):
        first, last = places.min(axis=0), places.max(axis=0)
        keep = _counts(given, first, last)
        if not keep.all():
            places, first, last = places[:, keep], first[keep], last[keep]
        yield first, last, measures.of_matches(alternative, places)


def _counts(given: AggregateInput, first: Int32, last: Int32) -> Bool:
    """Return which matches, from their first places to their last, are in a group and shown by some result row."""
    keep = given.groups.of_place[first] >= 0
    if given.clock.unit_of is not None:
        keep &= given.clock.shown[last] < given.clock.leaves(last)
    return keep


def _leaves_of_places(totals: RangeTotals, given: AggregateInput) -> tuple[Int64, Int64]:
    """Return for each place the first leaf that counts a match that ends there, and the first that does not count one
    that begins there."""
    everywhere, of_place = np.arange(given.events.rank.size, dtype=np.int32), given.groups.of_place
    enter = totals.leaves.index(of_place, given.clock.shown)
    return enter, totals.leaves.index(of_place, given.clock.leaves(everywhere))


# --- relevant events -------------------------------------------------------------------------------------------------


def relevant_stamps(plan: AggregatePlan, events: Events, clock: Clock) -> Int64:
    """Return the stamps of relevant places, ascending, each once."""
    found = clock.shown[relevant_places(plan, events)]
    return found[np.append(True, found[1:] != found[:-1])] if found.size else found


def relevant_places(plan: AggregatePlan, events: Events) -> Int32:
    """Return where rows of EMIT CHANGES may come: at every row of a class of the pattern that passes its local
    predicates. A row without a key is in no match, but it shows that time has passed."""
    parts: list[Int32] = []
    for alternative in plan.alternatives:
        steps = tuple(
            replace(step, local=tuple(p for p in step.local if not _asks_for_key(p)))
            for step in alternative.all_steps()
        )
        parts += candidates(Alternative(replace(alternative.query, partition_by=()), steps, ()), events)
    return _union(parts, events)


def _union(parts: list[Int32], events: Events) -> Int32:
    """Return the places that are in any part, ascending, each once."""
    found = np.zeros(events.rank.size, np.bool_)
    for places in parts:
        found[places] = True
    return np.flatnonzero(found).astype(np.int32)


def _asks_for_key(predicate: Expr) -> bool:
    """Return True if it is what GROUP BY or PARTITION BY ask of a single variable: it stands where the column does."""
    match predicate:
        case Operation(op="not", operands=(Operation(op="is_null", operands=(Column() as key,)),)):
            return key.span == predicate.span
        case Operation(op="=", operands=(Column() as key, Column())):
            return key.span == predicate.span
    return False
