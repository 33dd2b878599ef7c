"""Admit events to the state, and write them as chunks.

A chunk holds the events pushed between two writes. Several stores can hold the rows of a chunk; it is dropped when none
of them needs any of its rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from streamsift.errors import BadInputError
from streamsift.logical.bound import Binding
from streamsift.runtime.arrays.dtypes import Bool, Int64, Times
from streamsift.runtime.events.times import ticks_of
from streamsift.runtime.expressions.columns import contiguous, gatherable
from streamsift.runtime.state.format import chunk_bytes

HOLDS_EVENTS = "events"
Relevant = Callable[[pa.Table], Bool]


class EventLog:
    """The events of an engine as chunks, and how many of their rows are needed."""

    def __init__(self, schema: pa.Schema, binding: Binding) -> None:
        self.schema, self.binding = gatherable(schema), binding
        self.is_real = self.ticks_of(self.schema.empty_table()).dtype == np.float64
        self._unsaved: list[pa.Table] = []
        self._next_chunk = 0
        self._needed_rows: dict[int, int] = {}  # of each chunk, counted once per store
        self._written: set[int] = set()
        self._dropped: list[int] = []

    # --- in ---
    def admit(self, events: pa.Table, passed: int | float | None) -> tuple[pa.Table, int]:
        """Return the events that are not late, with the columns of the state, and the number of late ones."""
        if not events.schema.equals(self.schema):
            events = events.select(self.schema.names).cast(self.schema)
        if self.binding.order is not None and (missing := events.column(self.binding.order).null_count):
            raise BadInputError(f"{missing:,} rows have no usable order in `{self.binding.order}`")
        ticks = self.ticks_of(events)
        if ticks.dtype == np.float64 and (missing := int(np.isnan(ticks).sum())):
            raise BadInputError(f"{missing:,} rows have no usable time in `{self.binding.time}`")
        if passed is None:
            return events, 0
        in_time = ticks > passed
        late = int(in_time.size - np.count_nonzero(in_time))
        return (events.filter(pa.array(in_time)) if late else events), late

    def ticks_of(self, events: pa.Table) -> Times:
        return ticks_of(contiguous(events.column(self.binding.time)), self.binding)

    def add(self, events: pa.Table, stores: int) -> int:
        """Add admitted events that `stores` stores hold; return the number of their chunk."""
        self._unsaved.append(events)
        self.count(self._next_chunk, events.num_rows * stores)
        return self._next_chunk

    def count(self, chunk: int, rows: int) -> None:
        self._needed_rows[chunk] = self._needed_rows.get(chunk, 0) + rows

    def release(self, chunks: Int64) -> None:
        """Note that a store no longer needs rows of these chunks, one entry per row."""
        for chunk, count in zip(*(part.tolist() for part in np.unique(chunks, return_counts=True)), strict=True):
            self._needed_rows[chunk] -= count
            if not self._needed_rows[chunk]:
                del self._needed_rows[chunk]
                if chunk in self._written:
                    self._written.remove(chunk)
                    self._dropped.append(chunk)

    # --- writing and reading ---
    @property
    def next_chunk(self) -> int:
        return self._next_chunk

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

    def loaded(self, chunk: int, events: pa.Table, stores: int) -> pa.Table:
        """Note a chunk that was read; return its events with the columns of the state."""
        self.count(chunk, events.num_rows * stores)
        self._written.add(chunk)
        return events.cast(self.schema)

    def resume_at(self, next_chunk: int) -> None:
        self._next_chunk = next_chunk
