"""Convert totals over time to the result rows of AGG: select the rows to print, and build their columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from streamsift.language.syntax import Emit
from streamsift.logical.bound import TIME, BoundQuery, Column, Expr, Operation
from streamsift.physical.plan import Alternative, Plan
from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64
from streamsift.runtime.count.groups import AggregateInput, Timeline, is_last
from streamsift.runtime.count.measures import Decoder, aggregate_type
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.stamps import Clock
from streamsift.runtime.events.times import time_type
from streamsift.runtime.events.update_ticks import tick_type
from streamsift.runtime.expressions.codes import codes
from streamsift.runtime.expressions.columns import nulls, take
from streamsift.runtime.resources import FEWER_TICKS, reserve

Wanted = Callable[[Clock, Int64], Bool]  # return a mask of the stamps that get a row


def aggregate_schema(query: BoundQuery) -> pa.Schema:
    """Return the result schema: `time`, the GROUP BY columns, the aggregates."""
    fields = [pa.field("time", tick_type(query) if query.update else time_type(query))]
    for name, column in zip(query.group_names, query.group_by, strict=True):
        fields.append(pa.field(name, query.schema.field(column).type))
    for aggregate in query.aggregates:
        kind = None
        if aggregate.column is not None:
            kind = time_type(query) if aggregate.column == TIME else query.schema.field(aggregate.column).type
        fields.append(pa.field(aggregate.name, aggregate_type(aggregate, kind)))
    return pa.schema(fields)


def result_batch(
    plan: Plan,
    given: AggregateInput,
    timeline: Timeline,
    wanted: Wanted | None = None,
    keys_of: Callable[[Int32], Sequence[pa.Array]] | None = None,
) -> pa.RecordBatch | None:
    """Return the result rows, ordered by time and then by group; None if there are no rows.

    `keys_of` returns the GROUP BY columns of groups, for a timeline whose group numbers differ from those of `given`.
    """
    query, clock, events = plan.query, given.clock, given.events
    rows = _printed(plan, given, timeline)
    if wanted is not None:
        rows = rows.at(np.flatnonzero(wanted(clock, rows.stamp)))
    if not rows.stamp.size:
        return None
    if keys_of is None:
        of_groups = pa.array(events.rows_at(given.first_of_group[rows.group]))
        keys: Sequence[pa.Array] = [take(events.columns.whole(name), of_groups) for name in query.group_by]
    else:
        keys = keys_of(rows.group)
    schema = aggregate_schema(query)
    arrays = [clock.times(rows.stamp), *keys, *(decode(rows.totals) for decode in given.decoders)]
    cast = [a if a.type == field.type else a.cast(field.type) for a, field in zip(arrays, schema, strict=True)]
    return pa.RecordBatch.from_arrays(cast, schema=schema)


# --- which rows are printed ----------------------------------------------------------------------------------------


def _printed(plan: Plan, given: AggregateInput, timeline: Timeline) -> Timeline:
    """Return the rows to print, ordered by (stamp, group)."""
    query, clock = plan.query, given.clock
    if clock.is_ticking:
        rows = _at_each_tick(timeline)
    elif query.emit is Emit.CHANGES:
        stamps = clock.shown[relevant_places(plan, given.events)]  # ascending
        rows = _at_changes(timeline, given.decoders, stamps[np.diff(stamps, prepend=-1) > 0])
    else:
        rows = timeline if timeline.ends.all() else timeline.at(np.flatnonzero(timeline.ends))
    if query.group_by or clock.unit_of is not None:
        rows = rows.at(np.argsort(rows.stamp, kind="stable"))  # stable: groups stay in ascending order
    return rows


def _at_each_tick(timeline: Timeline) -> Timeline:
    """Return a row for every tick at which there is a match: each total is repeated until the next change."""
    timeline = timeline.at(is_last(timeline.group, timeline.stamp))
    following = np.append(timeline.stamp[1:], 0)
    same_group = np.append(timeline.group[1:] == timeline.group[:-1], False)
    shown = np.flatnonzero(same_group & (timeline.totals.reals[:, 0] > 0))
    lengths = following[shown] - timeline.stamp[shown]
    row_bytes = 3 * (32 + 8 * sum(block.shape[1] for block in timeline.totals))
    reserve(int(lengths.astype(np.float64).sum()) * row_bytes, "a row for each tick of UPDATE", FEWER_TICKS)
    rows = timeline.at(np.repeat(shown, lengths))
    offsets = np.arange(rows.stamp.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return replace(rows, stamp=rows.stamp + offsets)


def _at_changes(timeline: Timeline, decoders: Sequence[Decoder], relevant: Int64) -> Timeline:
    """Return a row at each stamp at which a match ends, and at the first relevant event after a change of totals."""
    place = np.searchsorted(relevant, timeline.stamp)
    visible = np.flatnonzero(place < relevant.size)
    timeline, stamp = timeline.at(visible), relevant[place[visible]]
    last = np.flatnonzero(is_last(timeline.group, stamp))
    changed = np.add.reduceat(timeline.ends, np.append(0, last[:-1] + 1)) > 0 if last.size else timeline.ends
    timeline = replace(timeline, stamp=stamp).at(last)
    if last.size > 1:
        follows = timeline.group[1:] == timeline.group[:-1]
        for decode in decoders:
            changed[1:] |= follows & _differs(decode(timeline.totals))
    return timeline.at(np.flatnonzero(changed))


def _differs(values: pa.Array) -> Bool:
    """Return for each value but the first whether it differs from the one before; NaN equals NaN, but not null."""
    (ordered,) = codes([values])
    different = ordered[1:] != ordered[:-1]
    missing = nulls(values)
    return different if missing is None else different | (missing[1:] != missing[:-1])


# --- relevant events -------------------------------------------------------------------------------------------------


def relevant_places(plan: Plan, events: Events) -> Int32:
    """Return the places at which EMIT CHANGES may print a row: events of the pattern that pass their local predicates.

    Events without a key are included: they are in no match, but they advance time.
    """
    parts: list[Int32] = []
    for alternative in plan.alternatives:
        steps = tuple(
            replace(step, local=tuple(p for p in step.local if not _requires_key(p)))
            for step in alternative.all_steps()
        )
        parts += candidates(Alternative(replace(alternative.query, partition_by=()), steps, ()), events)
    return union(parts, events)


def union(parts: Iterable[Int32], events: Events) -> Int32:
    """Return the sorted distinct places of all parts."""
    is_in_any = np.zeros(events.rank.size, np.bool_)
    for places in parts:
        is_in_any[places] = True
    return np.flatnonzero(is_in_any).astype(np.int32)


def _requires_key(predicate: Expr) -> bool:
    """Return True if the predicate was added for GROUP BY or PARTITION BY: its span is that of the key column."""
    match predicate:
        case Operation(op="not", operands=(Operation(op="is_null", operands=(Column() as key,)),)):
            return key.span == predicate.span
        case Operation(op="=", operands=(Column() as key, Column())):
            return key.span == predicate.span
    return False
