"""Store vectors of numbers by key: state that outlives its events.

Contract: `changes` returns the vectors set since the last call, or all of them once the deltas have grown too long.
Loading these tables in order with `load` restores the state (tests/generated/test_generated_streams.py).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from streamsift.errors import StreamsiftError
from streamsift.runtime.arrays.dtypes import Bool, Float64, Int64
from streamsift.runtime.arrays.growing import TableBuffer, with_room
from streamsift.runtime.expressions.columns import contiguous, fixed_width, gatherable
from streamsift.runtime.state.key_index import MIN_SLOTS, UInt64, key_hashes

WHOLE, REAL = "$whole", "$real"  # columns of a written state: the numbers of each key
SPARE_ROWS = 4096  # rewrite everything once the written rows exceed twice the keys by this many


class KeyedVectors:
    """A vector of `whole` integers and a vector of `real` doubles for each key, initially zero."""

    def __init__(self, fields: pa.Schema, whole: int, real: int) -> None:
        self.fields = gatherable(fields) if len(fields) else the_only_key(1).schema
        self._keys = TableBuffer(self.fields)
        self.whole: Int64 = np.zeros((64, whole), np.int64)
        self.real: Float64 = np.zeros((64, real), np.float64)
        self._hashes: UInt64 = np.zeros(64, np.uint64)
        self._slots: Int64 = np.full(MIN_SLOTS, -1, np.int64)
        self._changed: Bool = np.zeros(64, np.bool_)
        self._written_rows = 0
        self.count = 0

    def numbers(self, keys: pa.Table) -> Int64:
        """Return the number of each key, adding new keys. The keys must be distinct."""
        keys = keys.cast(self.fields)
        hashes = key_hashes(keys, self.fields.names)
        self._make_room(keys.num_rows)
        before = self.count
        numbers, self.count = find_or_add(self._slots, self._hashes, before, hashes)
        self._keys.append(keys.take(pa.array(np.flatnonzero(numbers >= before))))
        self._check(keys, numbers, np.flatnonzero(numbers < before))
        return numbers

    def at(self, numbers: Int64) -> pa.Table:
        """Return the keys with these numbers."""
        distinct, which = np.unique(numbers, return_inverse=True)
        return self._keys.take(distinct).take(pa.array(which))

    def _check(self, keys: pa.Table, numbers: Int64, old: Int64) -> None:
        """Raise if a key shares its hash with a different stored key, rather than return a wrong result."""
        old = old[np.argsort(numbers[old], kind="stable")]
        kept, given = self._keys.take(numbers[old]), keys.take(pa.array(old))
        for name in self.fields.names:
            if old.size and not pc.all(pc.equal(kept.column(name), given.column(name))).as_py():
                raise StreamsiftError(f"two values of `{name}` have the same 64-bit hash: remove one of them")

    def _make_room(self, more: int) -> None:
        needed = self.count + more
        if needed > self._hashes.size:
            self.whole, self.real = with_room(self.whole, needed), with_room(self.real, needed)
            self._hashes, self._changed = with_room(self._hashes, needed), with_room(self._changed, needed)
        if 2 * needed > self._slots.size:
            self._slots = np.full(1 << int(4 * needed).bit_length(), -1, np.int64)
            find_or_add(self._slots, self._hashes, 0, self._hashes[: self.count].copy())

    def set(self, numbers: Int64, whole: Int64, real: Float64) -> None:
        self.whole[numbers], self.real[numbers] = whole, real
        self._changed[numbers] = True

    @property
    def nbytes(self) -> int:
        each = 8 * (self.whole.shape[1] + self.real.shape[1]) + 9
        return self.count * each + self._keys.nbytes + self._slots.nbytes

    # --- writing and reading ---
    def changes(self) -> tuple[pa.Table | None, bool]:
        """Return the keys set since the last call (None if none), and True if these are all keys."""
        changed = np.flatnonzero(self._changed[: self.count])
        if not changed.size:
            return None, False
        self._changed[:] = False
        is_all = self._written_rows + changed.size > 2 * self.count + SPARE_ROWS
        rows = np.arange(self.count) if is_all else changed
        self._written_rows = rows.size + (0 if is_all else self._written_rows)
        columns = self._keys.take(rows)
        for name, block in ((WHOLE, self.whole), (REAL, self.real)):
            columns = columns.append_column(name, _packed(block[rows]))
        return columns, is_all

    def load(self, table: pa.Table) -> None:
        numbers = self.numbers(table.select(self.fields.names))
        self.whole[numbers] = _unpacked(table.column(WHOLE), self.whole)
        self.real[numbers] = _unpacked(table.column(REAL), self.real)
        self._written_rows += numbers.size


def the_only_key(rows: int) -> pa.Table:
    """Return a table with one constant key column, for queries without keys."""
    return pa.table({"$all": np.zeros(rows, np.bool_)})


def _packed(block: np.ndarray) -> pa.Array:
    width = 8 * block.shape[1]
    data = pa.py_buffer(np.ascontiguousarray(block).tobytes())
    return pa.Array.from_buffers(pa.binary(width), block.shape[0], [None, data])


def _unpacked(column: pa.ChunkedArray, like: np.ndarray) -> np.ndarray:
    array, width = contiguous(column), like.shape[1]
    if not width:
        return np.empty((len(array), 0), like.dtype)
    return fixed_width(array, np.dtype((like.dtype, width)))


@njit(cache=True, nogil=True)
def find_or_add(slots: Int64, hashes: UInt64, count: int, wanted: UInt64) -> tuple[Int64, int]:
    """Return the number of each wanted hash, by open addressing. New hashes get numbers from `count` on."""
    numbers = np.empty(wanted.size, np.int64)
    mask = np.uint64(slots.size - 1)
    for i in range(wanted.size):
        slot = wanted[i] & mask
        while slots[slot] >= 0 and hashes[slots[slot]] != wanted[i]:
            slot = (slot + np.uint64(1)) & mask
        if slots[slot] < 0:
            slots[slot] = count
            hashes[count] = wanted[i]
            count += 1
        numbers[i] = slots[slot]
    return numbers, count
