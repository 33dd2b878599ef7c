"""Rows of events in, which of them are among others out."""

from __future__ import annotations

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Bool, Int32


@njit(cache=True, nogil=True)
def hashed(row: Int32) -> int:
    """A number from 0 that tells most rows apart."""
    value = 0
    for step in range(row.size):
        value = (value * 1_000_003 + int(row[step]) + 1) & 0x3FFFFFFFF  # the product stays below 2 ** 54
    return value


@njit(cache=True, nogil=True)
def are_known(rows: Int32, known: Int32) -> Bool:
    """Which of the rows [m, steps] are among the known ones [n, steps]."""
    size = 16
    while size < 2 * known.shape[0]:
        size *= 2
    table = np.full(size, -1, np.int32)
    for number in range(known.shape[0]):
        slot = hashed(known[number]) & (size - 1)
        while table[slot] >= 0:
            slot = (slot + 1) & (size - 1)
        table[slot] = number
    found = np.zeros(rows.shape[0], np.bool_)
    for number in range(rows.shape[0]):
        slot = hashed(rows[number]) & (size - 1)
        while table[slot] >= 0 and not found[number]:
            found[number] = (known[table[slot]] == rows[number]).all()
            slot = (slot + 1) & (size - 1)
    return found
