"""Compute which past rows a later result may still read.

UPDATE n EVENTS has a tick after every n-th row of a partition, counted from the start of the stream. Its rows are
evicted in multiples of n, so that the retained rows always begin right after a tick.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import BoundQuery, BoundWindow, WindowKind
from streamsift.physical.stream import StateWindow, StreamPlan
from streamsift.runtime.arrays.dtypes import NO_LIMIT, Bool, Int32, Int64
from streamsift.runtime.arrays.grouping import positions_in_group
from streamsift.runtime.events.prepare import prepare
from streamsift.runtime.events.times import window_width
from streamsift.runtime.expressions.codes import group_codes
from streamsift.runtime.expressions.columns import contiguous
from streamsift.runtime.state import ArrivalStore, EventStore, KeyedVectors, the_only_key
from streamsift.runtime.stream.watermark import INT64, Tick, after, before, earlier, first_open, following, is_real


@dataclass(frozen=True, slots=True)
class Retention:
    """How far back results read, in time or in rows of a partition, and how long they wait (`delay`)."""

    widths: tuple[Tick, ...]  # of consecutive time windows
    rows: int  # of count windows; 0 if there is none
    keys: tuple[str, ...]  # the partition of count windows
    delay: tuple[Tick, ...]  # from the time of a row to its finalizing time; empty for count windows
    is_endless: bool = False  # no window: every event is read

    def needed(self, store: EventStore, bound: Tick | None) -> int | Bool:
        """Return the rows that results after `bound` read: a mask, or the first row of a suffix."""
        if self.is_endless or bound is None:
            return store.first
        if not self.rows:
            horizon = earlier(bound, *self.widths)
            return store.first + int(np.searchsorted(store.ticks, store.ticks.dtype.type(horizon)))
        groups, count = partitions_of(store.events.whole(), self.keys)
        return self._last_rows(groups, count, positions_in_group(groups, count), store.ticks <= bound)

    def needed_since(self, bound: Tick) -> Tick | None:
        """Return the earliest time that results after `bound` read; None if they read the last rows of partitions."""
        return None if self.rows else earlier(bound, *self.widths)

    def needed_rows(self, store: ArrivalStore, bound: Tick) -> Bool:
        """Return a mask of the rows that results after `bound` read; the rows are as they came."""
        whole = store.events.whole()
        groups, count = partitions_of(whole, self.keys)
        order = store.time_order(whole, store.ticks)
        position = np.empty(order.size, np.int64)
        position[order] = positions_in_group(groups[order], count)
        has_passed = store.ticks <= bound
        return self._last_rows(groups, count, position, has_passed)

    def _last_rows(self, groups: Int32, count: int, position: Int32 | Int64, has_passed: Bool) -> Bool:
        # Rows of no partition are in no window; a tick of UPDATE does not count them either.
        passed = np.bincount(groups[(groups >= 0) & has_passed], minlength=count)
        needed: Bool = (groups >= 0) & (position >= passed[groups] - self.rows)
        return needed

    def next_closing(self, store: ArrivalStore, passed: Tick) -> Tick | None:
        """Return the first time after `passed` that closes a window of a waiting match; None if all are closed."""
        first = store.earliest(before(first_open(passed, self.delay[0])))
        return None if first is None else after(np.array([first]), self.delay[0])[0].item()

    def expiry(self, tick: Tick) -> Tick | None:
        """Return the first time at which a row can be evicted; None if no time allows that."""
        if self.is_endless or self.rows:
            return None
        last = after(np.array([tick]), *self.widths)[0].item()
        return min(following(last), INT64.max) if isinstance(last, int) else following(last)


def retention_of(stream: StreamPlan) -> Retention:
    """Return how far back later results of a plan read."""
    query = stream.plan.query
    if query.window is None:
        return Retention((), 0, (), (), is_endless=True)
    reasons, ((statement, keys), *definitions) = stream.state_windows, stream.windows
    if statement.kind is WindowKind.COUNT:
        length = sum(int(window.length) for window, _ in stream.windows)
        return Retention((), min((len(reasons) + 2 * bool(definitions)) * length, NO_LIMIT), keys, ())
    width = width_of(query, statement)
    inner = tuple(width_of(query, window) for window, _ in definitions)
    waits = StateWindow.WAITING in reasons
    delay = (width, *inner) if waits else ()
    return Retention((*delay, *(width,) * (len(reasons) - waits), *inner), 0, (), delay)


def width_of(query: BoundQuery, window: BoundWindow) -> Tick:
    """Return the width of a time window in units of the time column."""
    width = window_width(window, prepare(query, query.schema.empty_table()).unit)
    return float(width) if is_real(query) else int(width)


class RowCounts:
    """The number of rows that each partition has had since the start of the stream."""

    def __init__(self, schema: pa.Schema, keys: tuple[str, ...], step: int) -> None:
        self.keys, self.step = keys, step
        self.vectors = KeyedVectors(pa.schema([schema.field(key) for key in keys]), whole=1, real=0)

    def add(self, rows: pa.Table) -> None:
        """Count new rows."""
        groups, count = partitions_of(rows, self.keys)
        more = np.bincount(groups[groups >= 0], minlength=count)
        present = np.flatnonzero(more)
        numbers = self._numbers(rows, groups, count)[present]
        whole = self.vectors.whole[numbers] + more[present, None]
        self.vectors.set(numbers, whole, self.vectors.real[numbers])

    def needed(self, store: EventStore, rows: int) -> Bool:
        """Return a mask of the last `rows` rows of each partition, extended back to the preceding tick."""
        table = store.events.whole()
        groups, count = partitions_of(table, self.keys)
        had = self.vectors.whole[self._numbers(table, groups, count), 0]
        evicted = had - np.bincount(groups[groups >= 0], minlength=count)
        first = np.maximum(had - rows, 0) // self.step * self.step - evicted  # by position among those in the store
        needed: Bool = (groups >= 0) & (positions_in_group(groups, count) >= first[groups])
        return needed

    def _numbers(self, rows: pa.Table, groups: Int32, count: int) -> Int64:
        """Return the key number of each partition that has rows; 0 for the others."""
        numbers = np.zeros(count, np.int64)
        grouped = np.flatnonzero(groups >= 0)
        present, first = np.unique(groups[grouped], return_index=True)
        if present.size:
            keys = rows.select(self.keys).take(pa.array(grouped[first])) if self.keys else the_only_key(1)
            numbers[present] = self.vectors.numbers(keys)
        return numbers


def partitions_of(rows: pa.Table, keys: tuple[str, ...]) -> tuple[Int32, int]:
    """Return the partition of each row (-1: none) and the number of partitions, at least 1."""
    if not keys:
        return np.zeros(rows.num_rows, np.int32), 1
    (groups,), count = group_codes([[contiguous(rows.column(key))] for key in keys])
    return groups, max(count, 1)
