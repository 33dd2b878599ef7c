"""Retain the events that later results may read.

`EventStore` is for rows that wait for the watermark: events are appended in the order (time, order, arrival) once the
watermark has passed them. `ArrivalStore` is for matches, which can be final before that: events are appended as they
arrive. Rows that no result needs are evicted.

Contract: loading the chunks of the log, in any order, restores a store, except that evicted events of chunks still in
use come back (tests/runtime/stream/test_engine.py).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numba import njit

from streamsift.runtime.arrays.dtypes import Bool, Int64, Times
from streamsift.runtime.arrays.grouping import distinct
from streamsift.runtime.arrays.growing import ColumnBuffer, TableBuffer
from streamsift.runtime.expressions.codes import codes
from streamsift.runtime.expressions.columns import contiguous
from streamsift.runtime.state.event_log import EventLog
from streamsift.runtime.state.key_index import KeyIndex, key_hashes

MIN_COMPACTED = 1 << 10  # rows of an ArrivalStore below which it is not compacted


class RetainedEvents:
    """Rows of events, numbered from the start of the stream; `first` is the first retained row."""

    def __init__(self, log: EventLog, keys: tuple[str, ...] = ()) -> None:
        """Create an empty store; `keys` are the columns of the key index."""
        self.log, self.binding = log, log.binding
        self.index = KeyIndex(keys) if keys else None
        self.first = 0
        self.events = TableBuffer(log.schema)
        self._ticks, self._chunks = ColumnBuffer(np.float64 if log.is_real else np.int64), ColumnBuffer(np.int64)

    @property
    def rows(self) -> int:
        return int(self._ticks.values.size)

    @property
    def ticks(self) -> Times:
        """Return the times of the rows."""
        return self._ticks.values

    @property
    def nbytes(self) -> int:
        return int(self.events.nbytes + self._ticks.values.nbytes + self._chunks.values.nbytes)

    def _append(self, events: pa.Table, ticks: Times, chunks: Int64) -> None:
        self.events.append(events)
        self._ticks.append(ticks)
        self._chunks.append(chunks)
        if self.index is not None:
            self.index.append(events)

    def drop_before(self, row: int) -> None:
        """Evict the rows before this one."""
        count = min(row - self.first, self.rows)
        if count > 0:
            self.log.release(self._chunks.values[:count])
            self._drop(count)
            self.first += count

    def keep(self, needed: Bool) -> None:
        """Evict the rows that are not needed, wherever they are, and renumber the rest."""
        if needed.all():
            return
        events, ticks, chunks = self.events.take(np.flatnonzero(needed)), self.ticks, self._chunks.values
        self.log.release(chunks[~needed])
        kept = events, ticks[needed], chunks[needed]
        self._drop(self.rows)
        self._append(*kept)

    def _drop(self, count: int) -> None:
        for column in (self.events, self._ticks, self._chunks, self.index):
            if column is not None:
                column.drop(count)

    def time_order(self, events: pa.Table, ticks: Times) -> Int64:
        """Return the rows of a table in the order (time, order, row)."""
        if self.binding.order is None:
            return np.argsort(ticks, kind="stable")
        (order,) = codes([contiguous(events.column(self.binding.order))])
        return np.lexsort((order, ticks))


class EventStore(RetainedEvents):
    """Events in time order, up to the watermark; the others wait."""

    def __init__(self, log: EventLog, keys: tuple[str, ...] = ()) -> None:
        super().__init__(log, keys)
        self._waiting: list[tuple[pa.Table, Times, Int64]] = []  # with each event's chunk number

    def add(self, events: pa.Table, chunk: int) -> None:
        """Add events that the watermark has not passed."""
        self._waiting.append((events, self.log.ticks_of(events), np.full(events.num_rows, chunk, np.int64)))

    def load(self, chunks: list[tuple[int, pa.Table]], passed: int | float | None) -> None:
        """Add events of a saved state."""
        for number, events in chunks:
            self.add(events, number)
        if passed is not None:
            self.arrive(passed)

    def arrive(self, now: int | float | None) -> int:
        """Append the events that the watermark has passed, in order; return the row number of the first."""
        begin = self.first + self.rows
        if not self._waiting:
            return begin
        events = pa.concat_tables([table for table, _, _ in self._waiting])
        ticks, chunks = (np.concatenate([part[i] for part in self._waiting]) for i in (1, 2))
        self._waiting = []
        come = np.flatnonzero(ticks <= now) if now is not None else np.arange(ticks.size)
        if come.size < ticks.size:
            rest = np.flatnonzero(ticks > now)
            self._waiting = [(events.take(pa.array(rest)), ticks[rest], chunks[rest])]
        if come.size:
            come = come[self._order(events, ticks, come)]
            in_order = come.size == ticks.size and bool((come[1:] > come[:-1]).all())
            events = events.combine_chunks() if in_order else events.take(pa.array(come))
            self._append(events, ticks[come], chunks[come])
        return begin

    def _order(self, events: pa.Table, ticks: Times, rows: Int64) -> Int64:
        return self.time_order(events if self.binding.order is None else events.take(pa.array(rows)), ticks[rows])

    @property
    def waiting_rows(self) -> int:
        return sum(ticks.size for _, ticks, _ in self._waiting)

    @property
    def nbytes(self) -> int:
        return super().nbytes + int(sum(table.nbytes for table, _, _ in self._waiting))

    def earliest_waiting(self) -> int | float | None:
        return min((ticks.min().item() for _, ticks, _ in self._waiting), default=None)


class ArrivalStore(RetainedEvents):
    """Events in order of arrival. Rows from `arrived` on are new: no search has read them yet."""

    def __init__(self, log: EventLog, keys: tuple[str, ...] = ()) -> None:
        super().__init__(log, keys)
        self.arrived = 0
        self.greatest_searched: int | float | None = None  # the latest time of a row that is not new, or was evicted
        self._compact_at = MIN_COMPACTED

    @property
    def new_rows(self) -> int:
        return self.first + self.rows - self.arrived

    def add(self, events: pa.Table, chunk: int) -> None:
        """Append events, which are new."""
        self._append(events, self.log.ticks_of(events), np.full(events.num_rows, chunk, np.int64))

    def load(self, chunks: list[tuple[int, pa.Table]], passed: int | float | None, new_rows: int | None = None) -> None:
        """Append events of a saved state; the last `new_rows` of them are new.

        None means that a version wrote it that waited for the watermark: events that it has not passed are new.
        """
        for number, events in chunks:
            self.add(events, number)
        if new_rows is not None:
            self.arrived = self.first + self.rows - new_rows
        elif passed is not None:
            order = np.argsort(self.ticks > passed, kind="stable")
            rows = self.events.whole().take(pa.array(order)), self.ticks[order], self._chunks.values[order]
            self._drop(self.rows)
            self._append(*rows)
            self.arrived = self.first + int(np.count_nonzero(self.ticks <= passed))

        self._note(self.ticks[: self.arrived - self.first])

    def _note(self, searched: Times) -> None:
        if searched.size:
            latest = searched.max().item()
            self.greatest_searched = latest if self.greatest_searched is None else max(latest, self.greatest_searched)

    def settle(self) -> None:
        """Note that all rows have been searched."""
        self._note(self.ticks[self.arrived - self.first :])
        self.arrived = self.first + self.rows

    def evict(self, older_than: int | float, at_once: bool = False) -> None:
        """Evict rows with earlier times: those in front, and all others at once or when the store has doubled."""
        self.drop_before(self.first + int(leading_below(self.ticks, older_than)))
        if at_once or self.is_full:
            self.keep(self.ticks >= older_than)

    @property
    def is_full(self) -> bool:
        """Return True if the store has doubled since all its rows were needed."""
        return self.rows > self._compact_at

    def keep(self, needed: Bool) -> None:
        new = int(np.count_nonzero(needed[self.arrived - self.first :]))
        super().keep(needed)
        self.arrived = self.first + self.rows - new
        self._compact_at = max(2 * self.rows, MIN_COMPACTED)

    def rows_sharing(self, events: pa.Table) -> Int64:
        """Return the rows, from 0, that share a key with some events; all rows if that is unknown."""
        rows: Int64 | None = None
        if self.index is not None:
            rows = self.index.rows_with(distinct(key_hashes(events, self.index.columns)), self.rows)
        return np.arange(self.rows) if rows is None else rows

    def rows_between(self, low: int | float | None, high: int | float | None) -> Int64:
        """Return the rows, from 0, with times after `low` and not after `high`; None is the beginning or the end."""
        ticks = self.ticks
        inside = np.ones(ticks.size, np.bool_) if low is None else ticks > low
        return np.flatnonzero(inside if high is None else inside & (ticks <= high))

    def earliest(self, after: int | float | None = None) -> int | float | None:
        """Return the earliest time after the given one; None if there is none."""
        ticks = self.ticks if after is None else self.ticks[self.ticks > after]
        return ticks.min().item() if ticks.size else None


@njit(cache=True, nogil=True)
def leading_below(ticks: Times, bound: int | float) -> int:
    """Return how many entries in front are below the bound."""
    count = 0
    while count < ticks.size and ticks[count] < bound:
        count += 1
    return count
