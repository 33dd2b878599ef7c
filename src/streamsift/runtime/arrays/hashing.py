"""Number equal values and find rows among others by hash tables; code short texts as integers in their order."""

from __future__ import annotations

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64, UInt8

SCATTER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: neighbors land far from each other
FIRST_BITS = 10  # the table begins with 2^10 slots


@njit(cache=True, nogil=True)
def short_text_codes(offsets: Int32 | Int64, data: UInt8) -> Int64:
    """Return texts of at most seven bytes as numbers in the order of the texts; nothing if one is longer.

    text i = data[offsets[i]:offsets[i + 1]], in the upper seven bytes; the lowest has its length, and is never 0.
    """
    codes = np.empty(offsets.size - 1, np.int64)
    for i in range(codes.size):
        start = offsets[i]
        length = offsets[i + 1] - start
        if length > 7:
            return codes[:0]
        code = np.int64(0)
        for k in range(length):
            code = code << 8 | np.int64(data[start + k])
        # Half the range is taken off, so that bytes ascend as signed numbers do.
        codes[i] = (((code << 8 * (7 - length)) - (1 << 55)) << 8) + length + 1
    return codes


def numbered(values: Int64) -> tuple[Int32, int]:
    """Return the number of each value, and how many there are: equal values have one, from 0 as they appear."""
    with np.errstate(over="ignore"):  # to scatter is to overflow; NumPy would warn of it where nothing is compiled
        return _numbered(values)


@njit(cache=True, nogil=True)
def _numbered(values: Int64) -> tuple[Int32, int]:
    """A table with open addressing, at most half full. One function, as Numba counts references for arrays in calls."""
    size, shift = 1 << FIRST_BITS, 64 - FIRST_BITS
    slots = np.full(size, -1, np.int32)  # the number of the value that is there
    distinct = np.empty(size >> 1, np.int64)
    codes = np.empty(values.size, np.int32)
    count = 0
    for i in range(values.size):
        value = values[i]
        slot = np.int64((np.uint64(value) * SCATTER) >> np.uint64(shift))
        while True:
            code = slots[slot]
            if code < 0:
                if count < distinct.size:
                    slots[slot], distinct[count], code = count, value, count
                    count += 1
                    break
                size, shift = 2 * size, shift - 1
                slots = np.full(size, -1, np.int32)
                grown = np.empty(size >> 1, np.int64)
                grown[:count] = distinct
                distinct = grown
                for number in range(count):
                    slot = np.int64((np.uint64(distinct[number]) * SCATTER) >> np.uint64(shift))
                    while slots[slot] >= 0:
                        slot = (slot + 1) & (size - 1)
                    slots[slot] = number
                slot = np.int64((np.uint64(value) * SCATTER) >> np.uint64(shift))
            elif distinct[code] == value:
                break
            else:
                slot = (slot + 1) & (size - 1)
        codes[i] = code
    return codes, count


@njit(cache=True, nogil=True)
def hashed(row: Int32) -> int:
    """Return a number from 0 that distinguishes most rows."""
    value = 0
    for step in range(row.size):
        value = (value * 1_000_003 + int(row[step]) + 1) & 0x3FFFFFFFF  # the product stays below 2 ** 54
    return value


@njit(cache=True, nogil=True)
def contains_rows(members: Int32, rows: Int32) -> Bool:
    """Return which of the rows [m, steps] are among the members [n, steps] of a set."""
    size = 16
    while size < 2 * members.shape[0]:
        size *= 2
    table = np.full(size, -1, np.int32)
    for number in range(members.shape[0]):
        slot = hashed(members[number]) & (size - 1)
        while table[slot] >= 0:
            slot = (slot + 1) & (size - 1)
        table[slot] = number
    is_member = np.zeros(rows.shape[0], np.bool_)
    for number in range(rows.shape[0]):
        slot = hashed(rows[number]) & (size - 1)
        while table[slot] >= 0 and not is_member[number]:
            is_member[number] = (members[table[slot]] == rows[number]).all()
            slot = (slot + 1) & (size - 1)
    return is_member
