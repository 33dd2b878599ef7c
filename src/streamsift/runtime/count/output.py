"""Convert totals of groups over time to the result rows of AGG: choose which are printed, and write their columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from streamsift.language.syntax import Emit
from streamsift.logical.bound import TIME, BoundQuery
from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64
from streamsift.runtime.count.groups import AggregateInput, Timeline
from streamsift.runtime.count.measures import Decoder, aggregate_type
from streamsift.runtime.events.stamps import Clock
from streamsift.runtime.events.times import time_type
from streamsift.runtime.events.update_ticks import tick_type
from streamsift.runtime.expressions.codes import codes
from streamsift.runtime.expressions.columns import nulls, take
from streamsift.runtime.resources import FEWER_TICKS, reserve


def aggregate_schema(query: BoundQuery) -> pa.Schema:
    """Return the columns: `time`, the GROUP BY columns, the aggregates."""
    fields = [pa.field("time", tick_type(query) if query.update else time_type(query))]
    for name, column in zip(query.group_names, query.group_by, strict=True):
        fields.append(pa.field(name, query.schema.field(column).type))
    for aggregate in query.aggregates:
        kind = None if aggregate.column is None else _column_type(query, aggregate.column)
        fields.append(pa.field(aggregate.name, aggregate_type(query, aggregate, kind)))
    return pa.schema(fields)


def _column_type(query: BoundQuery, column: str) -> pa.DataType:
    return time_type(query) if column == TIME else query.schema.field(column).type


# --- which rows are printed ----------------------------------------------------------------------------------------


def result_rows(
    query: BoundQuery,
    clock: Clock,
    timeline: Timeline,
    decoders: Sequence[Decoder],
    relevant_stamps: Callable[[], Int64],
) -> Timeline:
    """Return the rows to print, ordered by (stamp, group)."""
    if clock.is_ticking:
        rows = _at_each_tick(timeline)
    elif query.emit is Emit.CHANGES:
        rows = _at_changes(timeline, decoders, relevant_stamps())
    else:
        rows = timeline if timeline.ends.all() else timeline.at(np.flatnonzero(timeline.ends))
    if query.group_by or clock.unit_of is not None:
        rows = rows.at(np.argsort(rows.stamp, kind="stable"))  # within a stamp the groups ascend already
    return rows


def _at_each_tick(timeline: Timeline) -> Timeline:
    """Repeat totals for every tick until the next change, where there is a match."""
    last = _is_last(timeline.group, timeline.stamp)
    timeline = timeline.at(np.flatnonzero(last))
    following = np.append(timeline.stamp[1:], 0)
    same_group = np.append(timeline.group[1:] == timeline.group[:-1], False)
    shown = np.flatnonzero(same_group & (timeline.totals.reals[:, 0] > 0))
    lengths = following[shown] - timeline.stamp[shown]
    row_bytes = 3 * (32 + 8 * sum(block.shape[1] for block in timeline.totals))
    reserve(int(lengths.astype(np.float64).sum()) * row_bytes, "a row for each tick of UPDATE", FEWER_TICKS)
    rows = timeline.at(np.repeat(shown, lengths))
    offsets = np.arange(rows.stamp.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return Timeline(rows.group, rows.stamp + offsets, rows.ends, rows.totals)


def _at_changes(timeline: Timeline, decoders: Sequence[Decoder], relevant: Int64) -> Timeline:
    """Return the rows where a match ends, and at the first relevant event after totals changed."""
    place = np.searchsorted(relevant, timeline.stamp)
    visible = np.flatnonzero(place < relevant.size)
    timeline, stamp = timeline.at(visible), relevant[place[visible]]
    last = _is_last(timeline.group, stamp)
    ended = np.add.reduceat(timeline.ends, _starts(last)) > 0 if last.size else last
    timeline = Timeline(timeline.group, stamp, timeline.ends, timeline.totals).at(np.flatnonzero(last))
    changed = ended.copy()
    if timeline.stamp.size > 1:
        follows = timeline.group[1:] == timeline.group[:-1]
        for decode in decoders:
            changed[1:] |= follows & _differs(decode(timeline.totals))
    return timeline.at(np.flatnonzero(changed))


def _is_last(group: Int32, stamp: Int64) -> Bool:
    """Return whether the next entry has another group or stamp."""
    found = np.ones(group.size, np.bool_)
    found[:-1] = (group[1:] != group[:-1]) | (stamp[1:] != stamp[:-1])
    return found


def _starts(last: Bool) -> Int64:
    return np.append(0, np.flatnonzero(last)[:-1] + 1)


def _differs(values: pa.Array) -> Bool:
    """Return whether each value but the first differs from the one before; NaN equals NaN, and is no null."""
    (found,) = codes([values])
    different = found[1:] != found[:-1]
    missing = nulls(values)
    return different if missing is None else different | (missing[1:] != missing[:-1])


# --- as what -------------------------------------------------------------------------------------------------------


def result_batch(
    query: BoundQuery, schema: pa.Schema, given: AggregateInput, rows: Timeline, decoders: Sequence[Decoder]
) -> pa.RecordBatch:
    events = given.events
    of_groups = pa.array(events.rows_at(given.groups.first_place[rows.group]))
    columns = [take(events.columns.whole(name), of_groups) for name in query.group_by]
    return as_batch(schema, given.clock, columns, rows, decoders)


def as_batch(
    schema: pa.Schema, clock: Clock, of_groups: Sequence[pa.Array], rows: Timeline, decoders: Sequence[Decoder]
) -> pa.RecordBatch:
    """Return the rows; their columns of GROUP BY are given."""
    arrays = [clock.times(rows.stamp), *of_groups, *(decode(rows.totals) for decode in decoders)]
    cast = [a if a.type == field.type else a.cast(field.type) for a, field in zip(arrays, schema, strict=True)]
    return pa.RecordBatch.from_arrays(cast, schema=schema)
