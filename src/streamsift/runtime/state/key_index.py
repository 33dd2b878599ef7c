"""Find the rows that share a key with given rows by hash chains, without a full scan.

Each row points to the previous row in its hash slot. Keys are compared by hash only, so a lookup may also return rows
of a key with the same hash. That costs time but changes no result, because matches never mix keys.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numba import njit

from streamsift.runtime.arrays.dtypes import Int64
from streamsift.runtime.arrays.growing import ColumnBuffer
from streamsift.runtime.expressions.codes import codes
from streamsift.runtime.expressions.columns import contiguous, fixed_width, integers, nulls, plain

UInt64 = np.ndarray
MIN_SLOTS = 1 << 12
SAMPLE = 1 << 10  # rows read to estimate the share of rows with some keys


class KeyIndex:
    """Hash chains over the rows of the store, numbered from the first retained row."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self.columns = columns
        self._hashes, self._before = ColumnBuffer(np.uint64), ColumnBuffer(np.int64)
        self._first = 0  # number of the first retained row, counted from the start of the stream
        self._last = np.full(MIN_SLOTS, -1, np.int64)  # by slot: the last row, counted from the start of the stream

    @property
    def rows(self) -> int:
        return int(self._hashes.values.size)

    def append(self, events: pa.Table) -> None:
        self._hashes.append(key_hashes(events, self.columns))
        added, next_row = self._hashes.values[-events.num_rows :], self._first + self.rows - events.num_rows
        if self._last.size < 2 * self.rows:
            self._last = np.full(4 * self._last.size, -1, np.int64)
            self._before.drop(self._before.values.size)
            added, next_row = self._hashes.values, self._first
        before = np.empty(added.size, np.int64)
        chain(self._last, added, next_row, before)
        self._before.append(before)

    def drop(self, count: int) -> None:
        self._hashes.drop(count)
        self._before.drop(count)
        self._first += count

    def hashes(self, rows: slice | Int64) -> UInt64:
        return self._hashes.values[rows]

    def share_with(self, hashes: UInt64) -> float:
        """Estimate the share of rows with one of these sorted hashes."""
        rows = self._hashes.values[:: max(1, self.rows // SAMPLE)]
        if not hashes.size or not rows.size:
            return 0.0
        at = np.minimum(np.searchsorted(hashes, rows), hashes.size - 1)
        return float((hashes[at] == rows).mean())

    def rows_with(self, hashes: UInt64, most: int) -> Int64 | None:
        """Return the sorted rows with one of these distinct hashes, or None if there are more than `most`."""
        rows = np.empty(most, np.int64)
        count = follow(self._last, self._before.values, self._hashes.values, self._first, hashes, rows)
        return None if count < 0 else np.sort(rows[:count])


@njit(cache=True, nogil=True)
def chain(last: Int64, hashes: UInt64, next_row: int, before: Int64) -> None:
    """Link each new row to the previous row in its slot."""
    mask = np.uint64(last.size - 1)
    for i in range(hashes.size):
        slot = hashes[i] & mask
        before[i] = last[slot]
        last[slot] = next_row + i


@njit(cache=True, nogil=True)
def follow(last: Int64, before: Int64, hashes: UInt64, first: int, wanted: UInt64, rows: Int64) -> int:
    """Write the rows with the wanted hashes, counted from `first`; return their number, or -1 if `rows` is full."""
    mask, count = np.uint64(last.size - 1), 0
    for i in range(wanted.size):
        row = last[wanted[i] & mask]
        while row >= first:
            if hashes[row - first] == wanted[i]:
                if count == rows.size:
                    return -1
                rows[count] = row - first
                count += 1
            row = before[row - first]
    return count


# --- hashes ----------------------------------------------------------------------------------------------------------


def key_hashes(events: pa.Table, columns: Sequence[str]) -> UInt64:
    """Return a hash of each row's key. Equal keys have equal hashes in every table."""
    hashes = np.zeros(events.num_rows, np.uint64)
    with np.errstate(over="ignore"):  # hashes wrap around; without JIT, NumPy would warn
        for name in columns:
            mix(hashes, _values(plain(contiguous(events.column(name)))))
    return hashes


def _values(array: pa.Array) -> UInt64:
    """Map equal values to equal numbers. All values of an unsupported type map to 0."""
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        array = array.cast(pa.large_string())
        _, offsets, data = array.buffers()
        starts = np.zeros(1, np.int64)
        if len(array):
            starts = np.frombuffer(offsets, np.int64, len(array) + 1, array.offset * 8)
        texts = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
        values = hash_texts(starts, texts)
    elif pa.types.is_floating(kind):
        values = codes([array])[0].view(np.uint64)
    elif pa.types.is_integer(kind) or pa.types.is_temporal(kind) or pa.types.is_boolean(kind):
        whole = integers(array)
        values = np.zeros(len(array), np.uint64) if whole is None else whole.view(np.uint64)
    elif pa.types.is_decimal128(kind):
        words = fixed_width(array.cast(pa.decimal128(38, kind.scale)), np.dtype((np.uint64, 2)))
        values = words[:, 0] ^ words[:, 1]
    else:
        return np.zeros(len(array), np.uint64)
    missing = nulls(array)
    return values if missing is None else np.where(missing, np.uint64(0), values)


@njit(cache=True, nogil=True)
def hash_texts(starts: Int64, texts: np.ndarray) -> UInt64:
    """Return the 64-bit FNV-1a hash of each string."""
    hashes = np.empty(starts.size - 1, np.uint64)
    for i in range(hashes.size):
        value = np.uint64(14695981039346656037)
        for k in range(starts[i], starts[i + 1]):
            value = (value ^ np.uint64(texts[k])) * np.uint64(1099511628211)
        hashes[i] = value
    return hashes


@njit(cache=True, nogil=True)
def mix(hashes: UInt64, values: UInt64) -> None:
    """Mix a column into the hashes with the SplitMix64 finalizer, which spreads adjacent values."""
    for i in range(hashes.size):
        value = hashes[i] * np.uint64(0x9E3779B97F4A7C15) + values[i] + np.uint64(0x9E3779B97F4A7C15)
        value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        hashes[i] = value ^ (value >> np.uint64(31))
