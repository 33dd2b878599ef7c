"""Append to arrays, columns and tables in amortized constant time per entry."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit

MIN_ROOM = 64
SEGMENT_ROWS = 1 << 17  # segments of a table are merged up to this size


@njit(cache=True, nogil=True)
def grown(array: np.ndarray) -> np.ndarray:
    """Double the first axis."""
    larger = np.empty((2 * array.shape[0], *array.shape[1:]), array.dtype)
    for place in range(array.size):  # assigning to a slice takes seconds to compile
        larger.flat[place] = array.flat[place]
    return larger


def wider(array: np.ndarray) -> np.ndarray:
    """Double the second axis."""
    return np.concatenate((array, np.empty_like(array)), axis=1)


def with_room(array: np.ndarray, needed: int, fill: int = 0) -> np.ndarray:
    """Return an array of at least `needed` rows that begins with the given rows; new rows hold `fill`."""
    if needed <= array.shape[0]:
        return array
    larger = np.full((max(2 * needed, MIN_ROOM), *array.shape[1:]), fill, array.dtype)
    larger[: array.shape[0]] = array
    return larger


def ring_with_room(ring: np.ndarray, first: int, end: int, needed: int, axis: int = 0) -> np.ndarray:
    """Return a ring buffer of at least `needed` entries with the entries [first, end) of the given ring.

    Entry n is stored at n & (size - 1) along the axis; sizes are powers of two.
    """
    size = ring.shape[axis]
    if needed <= size:
        return ring
    larger_size = max(1 << (needed - 1).bit_length(), 2 * size)
    shape, numbers = list(ring.shape), np.arange(first, end)
    shape[axis] = larger_size
    larger: np.ndarray[Any, Any] = np.zeros(shape, ring.dtype)
    ahead = (slice(None),) * axis
    larger[(*ahead, numbers & (larger_size - 1))] = ring[(*ahead, numbers & (size - 1))]
    return larger


@dataclass(slots=True)
class Parts:
    """Collect arrays to concatenate, so that any number of steps share one array of a kernel."""

    arrays: list[np.ndarray] = field(default_factory=list)
    size: int = 0

    def add(self, array: np.ndarray) -> int:
        """Append an array and return its start offset."""
        self.arrays.append(array)
        self.size += array.size
        return self.size - array.size

    def joined(self, dtype: type) -> np.ndarray:
        return np.concatenate([np.empty(0, dtype), *self.arrays])


class ColumnBuffer:
    """A NumPy column with appends at the end and drops at the front."""

    def __init__(self, dtype: type) -> None:
        self._room: np.ndarray = np.empty(1024, dtype)
        self._start, self._end = 0, 0

    @property
    def values(self) -> np.ndarray:
        return self._room[self._start : self._end]

    def append(self, more: np.ndarray) -> None:
        if self._end + more.size > self._room.size:
            size = self._end - self._start
            self._room, self._start, self._end = with_room(self.values, size + more.size), 0, size
        self._room[self._end : self._end + more.size] = more
        self._end += more.size

    def drop(self, count: int) -> None:
        self._start += count


class TableBuffer:
    """A table in segments. Small segments are merged like the digits of a binary counter, so their number stays low."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._segments: list[pa.Table] = []
        self._dropped = 0  # how many rows of the first segment

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
        while len(self._segments) > 1:
            one, other = (segment.num_rows for segment in self._segments[-2:])
            if one > 2 * other or one + other > SEGMENT_ROWS:
                break
            self._segments[-2:] = [pa.concat_tables(self._segments[-2:]).combine_chunks()]

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
        """Return the rows with the given numbers, which ascend."""
        parts, begin = [self.schema.empty_table()], -self._dropped
        for segment in self._segments:
            low, high = np.searchsorted(rows, (begin, begin + segment.num_rows))
            if low < high:
                parts.append(segment.take(pa.array(rows[low:high] - begin)))
            begin += segment.num_rows
        return pa.concat_tables(parts)
