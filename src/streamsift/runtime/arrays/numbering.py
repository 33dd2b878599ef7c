"""Texts or 64-bit values in, numbers out: short texts as integers in their order, equal values as numbers from 0."""

from __future__ import annotations

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Int32, Int64, UInt8

SCATTER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: neighbours land far from each other
FIRST_BITS = 10  # the table begins with 2^10 slots


@njit(cache=True, nogil=True)
def short_text_codes(offsets: Int32 | Int64, data: UInt8) -> Int64:
    """Texts of at most seven bytes as numbers in the order of the texts; nothing where one is longer.

    text i = data[offsets[i]:offsets[i + 1]], in the upper seven bytes; the lowest has its length, and is never 0.
    """
    found = np.empty(offsets.size - 1, np.int64)
    for i in range(found.size):
        start = offsets[i]
        length = offsets[i + 1] - start
        if length > 7:
            return found[:0]
        code = np.int64(0)
        for k in range(length):
            code = code << 8 | np.int64(data[start + k])
        # Half the range is taken off, so that bytes ascend as signed numbers do.
        found[i] = (((code << 8 * (7 - length)) - (1 << 55)) << 8) + length + 1
    return found


def numbered(values: Int64) -> tuple[Int32, int]:
    """(the number of each value, how many there are): equal values have one, counted from 0 as they appear."""
    with np.errstate(over="ignore"):  # to scatter is to overflow; NumPy would warn of it where nothing is compiled
        return _numbered(values)


@njit(cache=True, nogil=True)
def _numbered(values: Int64) -> tuple[Int32, int]:
    """A table with open addressing, at most half full. One function, as Numba counts references for arrays in calls."""
    size, shift = 1 << FIRST_BITS, 64 - FIRST_BITS
    slots = np.full(size, -1, np.int32)  # the number of the value that is there
    known = np.empty(size >> 1, np.int64)
    codes = np.empty(values.size, np.int32)
    count = 0
    for i in range(values.size):
        value = values[i]
        slot = np.int64((np.uint64(value) * SCATTER) >> np.uint64(shift))
        while True:
            code = slots[slot]
            if code < 0:
                if count < known.size:
                    slots[slot], known[count], code = count, value, count
                    count += 1
                    break
                size, shift = 2 * size, shift - 1
                slots = np.full(size, -1, np.int32)
                grown = np.empty(size >> 1, np.int64)
                grown[:count] = known
                known = grown
                for number in range(count):
                    slot = np.int64((np.uint64(known[number]) * SCATTER) >> np.uint64(shift))
                    while slots[slot] >= 0:
                        slot = (slot + 1) & (size - 1)
                    slots[slot] = number
                slot = np.int64((np.uint64(value) * SCATTER) >> np.uint64(shift))
            elif known[code] == value:
                break
            else:
                slot = (slot + 1) & (size - 1)
        codes[i] = code
    return codes, count
