"""Columns that grow at their end and are dropped at their beginning, at a constant cost for each value."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

SEGMENT_ROWS = 1 << 17  # of a table that is not copied again


class Tail:
    """A NumPy column. Room is doubled when it is used up, so a value is copied about once."""

    def __init__(self, dtype: type) -> None:
        self._room: np.ndarray = np.empty(1024, dtype)
        self._start, self._stop = 0, 0

    @property
    def values(self) -> np.ndarray:
        return self._room[self._start : self._stop]

    def append(self, more: np.ndarray) -> None:
        held, needed = self._stop - self._start, self._stop + more.size
        if needed > self._room.size:
            room = np.empty(max(2 * (held + more.size), 1024), self._room.dtype)
            room[:held] = self.values
            self._room, self._start, self._stop = room, 0, held
        self._room[self._stop : self._stop + more.size] = more
        self._stop += more.size

    def drop(self, count: int) -> None:
        self._start += count


class TableTail:
    """A table in segments. Small ones are merged like the digits of a counter; few are left, whatever the pushes."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._segments: list[pa.Table] = []
        self._dropped = 0  # rows of the first segment

    @property
    def rows(self) -> int:
        return sum(segment.num_rows for segment in self._segments) - self._dropped

    @property
    def nbytes(self) -> int:
        return sum(segment.nbytes for segment in self._segments)

    def append(self, table: pa.Table) -> None:
        if not table.num_rows:
            return
        self._segments.append(table.combine_chunks())
        while len(self._segments) > 1 and self._can_merge():
            last = self._segments.pop()
            self._segments[-1] = pa.concat_tables([self._segments[-1], last]).combine_chunks()

    def _can_merge(self) -> bool:
        one, other = (segment.num_rows for segment in self._segments[-2:])
        return one <= 2 * other and one + other <= SEGMENT_ROWS

    def drop(self, count: int) -> None:
        self._dropped += count
        while self._segments and self._dropped >= self._segments[0].num_rows:
            self._dropped -= self._segments.pop(0).num_rows

    def whole(self) -> pa.Table:
        if not self._segments:
            return self.schema.empty_table()
        first, *rest = self._segments
        return pa.concat_tables([first.slice(self._dropped), *rest])

    def take(self, rows: np.ndarray) -> pa.Table:
        """The rows at these numbers, which ascend."""
        ends = np.cumsum([segment.num_rows for segment in self._segments])
        borders = [0, *np.searchsorted(rows, ends - self._dropped).tolist()]
        found, begin = [self.schema.empty_table()], -self._dropped
        for number, segment in enumerate(self._segments):
            part = rows[borders[number] : borders[number + 1]] - begin
            if part.size:
                found.append(segment.take(pa.array(part)))
            begin += segment.num_rows
        return pa.concat_tables(found)
