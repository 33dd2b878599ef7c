"""Retain the events that later results may read, in the order of the stream, and write them as chunks.

Events wait until the watermark passes them. They are then appended in the order (time, order, arrival). Rows that no
result needs are evicted. A chunk holds the events pushed between two writes and is dropped with its last event.

Contract: loading the chunks that `changes` returned, in any order, restores the store, except that evicted events of
chunks still in use come back (tests/runtime/stream/test_engine.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa

from streamsift.errors import BadInputError
from streamsift.logical.bound import Binding
from streamsift.runtime.arrays.dtypes import Bool, Int64, Times
from streamsift.runtime.arrays.growing import ColumnBuffer, TableBuffer
from streamsift.runtime.events.times import ticks_of
from streamsift.runtime.expressions.codes import codes
from streamsift.runtime.expressions.columns import contiguous, gatherable
from streamsift.runtime.state.format import chunk_bytes
from streamsift.runtime.state.key_index import KeyIndex

HOLDS_EVENTS = "events"
Relevant = Callable[[pa.Table], Bool]


class EventStore:
    """The retained events. Rows are numbered from the start of the stream; `first` is the first retained row."""

    def __init__(
        self, schema: pa.Schema, binding: Binding, relevant: Relevant | None, keys: tuple[str, ...] = ()
    ) -> None:
        """Create an empty store.

        `relevant` returns which events affect results (None: all). `keys` are the columns of the key index.
        """
        self.schema, self.binding, self._relevant = gatherable(schema), binding, relevant
        self.index = KeyIndex(keys) if keys else None
        self.first = 0
        self.events = TableBuffer(self.schema)
        is_real = ticks_of(pa.array([], schema.field(binding.time).type), binding).dtype == np.float64
        self._ticks, self._chunks = ColumnBuffer(np.float64 if is_real else np.int64), ColumnBuffer(np.int64)
        self._waiting: list[tuple[pa.Table, Times, Int64]] = []  # with each event's chunk number
        self._unsaved: list[pa.Table] = []
        self._next_chunk = 0
        self._needed_rows: dict[int, int] = {}  # of each chunk
        self._written: set[int] = set()
        self._dropped: list[int] = []

    # --- in ---
    def push(self, events: pa.Table, passed: int | float | None) -> int:
        """Add events, drop the late ones, and return how many were late."""
        if not events.schema.equals(self.schema):
            events = events.select(self.schema.names).cast(self.schema)
        if self.binding.order is not None and (missing := events.column(self.binding.order).null_count):
            raise BadInputError(f"{missing:,} rows have no usable order in `{self.binding.order}`")
        late, ticks = 0, self._ticks_of(events)
        if ticks.dtype == np.float64 and (missing := int(np.isnan(ticks).sum())):
            raise BadInputError(f"{missing:,} rows have no usable time in `{self.binding.time}`")
        if passed is not None:
            in_time = ticks > passed
            late = int((~in_time).sum())
            events = events.filter(pa.array(in_time)) if late else events
        if self._relevant is not None and events.num_rows:
            keep = self._relevant(events)
            events = events if keep.all() else events.filter(pa.array(keep))
        if events.num_rows:
            self._unsaved.append(events)
            self._wait(events, self._next_chunk)
        return late

    def _wait(self, events: pa.Table, chunk: int) -> None:
        self._waiting.append((events, self._ticks_of(events), np.full(events.num_rows, chunk, np.int64)))
        self._needed_rows[chunk] = self._needed_rows.get(chunk, 0) + events.num_rows

    def _ticks_of(self, events: pa.Table) -> Times:
        return ticks_of(contiguous(events.column(self.binding.time)), self.binding)

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

    def _append(self, events: pa.Table, ticks: Times, chunks: Int64) -> None:
        self.events.append(events)
        self._ticks.append(ticks)
        self._chunks.append(chunks)
        if self.index is not None:
            self.index.append(events)

    def _order(self, events: pa.Table, ticks: Times, rows: Int64) -> Int64:
        if self.binding.order is None:
            return np.argsort(ticks[rows], kind="stable")
        (order,) = codes([contiguous(events.column(self.binding.order).take(pa.array(rows)))])
        return np.lexsort((order, ticks[rows]))

    # --- out ---
    @property
    def rows(self) -> int:
        return int(self._ticks.values.size)

    @property
    def ticks(self) -> Times:
        """Return the times of the rows, ascending."""
        return self._ticks.values

    @property
    def waiting_rows(self) -> int:
        return sum(ticks.size for _, ticks, _ in self._waiting)

    @property
    def nbytes(self) -> int:
        side = self._ticks.values.nbytes + self._chunks.values.nbytes
        return int(self.events.nbytes + side + sum(table.nbytes for table, _, _ in self._waiting))

    def earliest_waiting(self) -> int | float | None:
        return min((ticks.min().item() for _, ticks, _ in self._waiting), default=None)

    # --- dropping ---
    def drop_before(self, row: int) -> None:
        """Evict the rows before this one."""
        count = min(row - self.first, self.rows)
        if count > 0:
            self._release(self._chunks.values[:count])
            self._drop(count)
            self.first += count

    def keep(self, needed: Bool) -> None:
        """Evict the rows that are not needed, wherever they are, and renumber the rest."""
        if needed.all():
            return
        events, ticks, chunks = self.events.take(np.flatnonzero(needed)), self.ticks, self._chunks.values
        self._release(chunks[~needed])
        kept = events, ticks[needed], chunks[needed]
        self._drop(self.rows)
        self._append(*kept)

    def _drop(self, count: int) -> None:
        for column in (self.events, self._ticks, self._chunks, self.index):
            if column is not None:
                column.drop(count)

    def _release(self, chunks: Int64) -> None:
        for chunk, count in zip(*(part.tolist() for part in np.unique(chunks, return_counts=True)), strict=True):
            self._needed_rows[chunk] -= count
            if not self._needed_rows[chunk]:
                del self._needed_rows[chunk]
                if chunk in self._written:
                    self._written.remove(chunk)
                    self._dropped.append(chunk)

    # --- writing and reading ---
    def changes(self) -> tuple[dict[int, bytes], tuple[int, ...]]:
        """Return the chunk of events pushed since the last call, and the numbers of chunks to delete."""
        added, dropped = {}, tuple(self._dropped)
        if self._next_chunk in self._needed_rows:
            added[self._next_chunk] = chunk_bytes(HOLDS_EVENTS, pa.concat_tables(self._unsaved))
            self._written.add(self._next_chunk)
        if self._unsaved:
            self._next_chunk += 1
        self._unsaved, self._dropped = [], []
        return added, dropped

    def discard_changes(self) -> None:
        """Forget pending changes, after loading a state that already contains them."""
        assert not self._unsaved
        self._dropped = []

    def reserve(self) -> int:
        """Reserve a chunk number for content other than events."""
        assert not self._unsaved
        self._next_chunk += 1
        return self._next_chunk - 1

    @property
    def next_chunk(self) -> int:
        return self._next_chunk

    def load(self, chunks: Iterable[tuple[int, pa.Table]], next_chunk: int, passed: int | float | None) -> None:
        for number, table in sorted(chunks, key=lambda chunk: chunk[0]):
            self._wait(table.cast(self.schema), number)
            self._written.add(number)
        self._next_chunk = next_chunk
        if passed is not None:
            self.arrive(passed)
