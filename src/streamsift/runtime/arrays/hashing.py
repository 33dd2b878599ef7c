"""Number equal values and look up rows with hash tables; encode short strings as integers in string order."""

from __future__ import annotations

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64, UInt8

SCATTER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: multiplying by it spreads neighboring values
FIRST_BITS = 10  # the table starts with 2^10 slots


@njit(cache=True, nogil=True)
def short_text_codes(offsets: Int32 | Int64, data: UInt8) -> Int64:
    """Encode strings of at most 7 bytes as integers in string order; return an empty array if one is longer.

    String i is data[offsets[i]:offsets[i + 1]]. It fills the upper 7 bytes; the lowest byte is its length + 1.
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
        # Subtract half the range, so that signed order equals the order of unsigned bytes.
        codes[i] = (((code << 8 * (7 - length)) - (1 << 55)) << 8) + length + 1
    return codes


def numbered(values: Int64) -> tuple[Int32, int]:
    """Number distinct values from 0 in order of appearance; return the number of each value, and their count."""
    with np.errstate(over="ignore"):  # multiplying by SCATTER overflows; without the JIT, NumPy would warn
        return _numbered(values)


@njit(cache=True, nogil=True)
def _numbered(values: Int64) -> tuple[Int32, int]:
    """Use open addressing, at most half full. All in one function: Numba counts array references at every call."""
    size, shift = 1 << FIRST_BITS, 64 - FIRST_BITS
    slots = np.full(size, -1, np.int32)  # the number of the value in each slot
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
                for number in range(count):
                    grown[number] = distinct[number]  # assigning to a slice takes seconds to compile
                    slot = np.int64((np.uint64(distinct[number]) * SCATTER) >> np.uint64(shift))
                    while slots[slot] >= 0:
                        slot = (slot + 1) & (size - 1)
                    slots[slot] = number
                distinct = grown
                slot = np.int64((np.uint64(value) * SCATTER) >> np.uint64(shift))
            elif distinct[code] == value:
                break
            else:
                slot = (slot + 1) & (size - 1)
        codes[i] = code
    return codes, count


@njit(cache=True, nogil=True)
def hashed(row: Int32) -> int:
    """Return a nonnegative hash of a row."""
    value = 0
    for step in range(row.size):
        value = (value * 1_000_003 + int(row[step]) + 1) & 0x3FFFFFFFF  # the product stays below 2 ** 54
    return value


@njit(cache=True, nogil=True)
def contains_rows(members: Int32, rows: Int32) -> Bool:
    """Return a mask of the rows [m, steps] that are among the members [n, steps]."""
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
