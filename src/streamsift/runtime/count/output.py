"""Totals of groups over time in, the result rows of AGG out: which of them are printed, and as what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streamsift.language.syntax import Emit
from streamsift.logical.bound import TIME, BoundQuery
from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64
from streamsift.runtime.count.measures import Decoder, Totals, aggregate_type
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.stamps import Clock
from streamsift.runtime.events.times import time_type
from streamsift.runtime.events.update_ticks import tick_type
from streamsift.runtime.expressions.codes import codes, group_codes
from streamsift.runtime.expressions.columns import nulls, take
from streamsift.runtime.resources import FEWER_TICKS, reserve


def aggregate_schema(query: BoundQuery) -> pa.Schema:
    """`time`, the GROUP BY columns, the aggregates."""
    fields = [pa.field("time", tick_type(query) if query.update else time_type(query))]
    for name, column in zip(query.group_names, query.group_by, strict=True):
        fields.append(pa.field(name, query.schema.field(column).type))
    for aggregate in query.aggregates:
        kind = None if aggregate.column is None else _column_type(query, aggregate.column)
        fields.append(pa.field(aggregate.name, aggregate_type(query, aggregate, kind)))
    return pa.schema(fields)


def _column_type(query: BoundQuery, column: str) -> pa.DataType:
    return time_type(query) if column == TIME else query.schema.field(column).type


# --- groups --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of GROUP BY; where each partition has its own ticks, of both."""

    of_place: Int32  # [places]; -1 for a row that is in no group
    first_place: Int32  # [groups] a place of each


def groups_of(query: BoundQuery, events: Events, clock: Clock) -> Groups:
    of_place = np.zeros(events.rank.size, np.int32)
    if not query.group_by and clock.unit_of is None:
        return Groups(of_place, of_place[:1])
    if query.group_by:
        (of_place,), _ = group_codes([[events.columns.at(name, events.rows)] for name in query.group_by])
    if clock.unit_of is not None:
        pairs = of_place.astype(np.int64) * (int(clock.unit_of.max(initial=0)) + 1) + clock.unit_of
        keep = (of_place >= 0) & (clock.unit_of >= 0)
        of_place = np.where(keep, np.unique(pairs, return_inverse=True)[1], -1).astype(np.int32)
    first = np.zeros(int(of_place.max(initial=-1)) + 1, np.int32)
    known = np.flatnonzero(of_place >= 0)[::-1]
    first[of_place[known]] = known
    return Groups(of_place, first)


# --- which rows are printed ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Timeline:
    """The totals of each group, from a stamp until its next; ordered by (group, stamp)."""

    group: Int32
    stamp: Int64
    ends: Bool  # a match ends there
    totals: Totals

    def at(self, rows: np.ndarray) -> Timeline:
        return Timeline(self.group[rows], self.stamp[rows], self.ends[rows], self.totals.at(rows))


def result_rows(
    query: BoundQuery,
    clock: Clock,
    timeline: Timeline,
    decoders: Sequence[Decoder],
    relevant_stamps: Callable[[], Int64],
) -> Timeline:
    """The rows to print, ordered by (stamp, group)."""
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
    """Totals repeated for every tick until the next change, where there is a match."""
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
    """Rows where a match ends, and at the first relevant event after totals changed."""
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
    """Whether the next entry has another group or stamp."""
    found = np.ones(group.size, np.bool_)
    found[:-1] = (group[1:] != group[:-1]) | (stamp[1:] != stamp[:-1])
    return found


def _starts(last: Bool) -> Int64:
    return np.append(0, np.flatnonzero(last)[:-1] + 1)


def _differs(values: pa.Array) -> Bool:
    """Whether each value but the first differs from the one before; NaN equals NaN, and is no null."""
    (found,) = codes([values])
    different = found[1:] != found[:-1]
    missing = nulls(values)
    return different if missing is None else different | (missing[1:] != missing[:-1])


# --- as what -------------------------------------------------------------------------------------------------------


def result_batch(
    query: BoundQuery,
    schema: pa.Schema,
    events: Events,
    clock: Clock,
    groups: Groups,
    rows: Timeline,
    decoders: Sequence[Decoder],
) -> pa.RecordBatch:
    of_groups = pa.array(events.rows_at(groups.first_place[rows.group]))
    columns = [take(events.columns.whole(name), of_groups) for name in query.group_by]
    return as_batch(schema, clock, columns, rows, decoders)


def as_batch(
    schema: pa.Schema, clock: Clock, of_groups: Sequence[pa.Array], rows: Timeline, decoders: Sequence[Decoder]
) -> pa.RecordBatch:
    """Rows whose columns of GROUP BY are known."""
    arrays = [clock.times(rows.stamp), *of_groups, *(decode(rows.totals) for decode in decoders)]
    cast = [a if a.type == field.type else a.cast(field.type) for a, field in zip(arrays, schema, strict=True)]
    return pa.RecordBatch.from_arrays(cast, schema=schema)
