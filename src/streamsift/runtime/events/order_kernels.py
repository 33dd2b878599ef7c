"""Columns of a stream in, its order, groups and limits out: the loops over events, compiled once by Numba.

Every array has one dtype for every query (int32 for rows, ranks and positions, int64 for codes and offsets), so
no query ever waits for a compiler; the compiled code is cached on disk. Only the two-pointer kernels see times.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Int32, Int64, Times


@njit(cache=True, nogil=True)
def earliest_ends(ranks: Int32, next_ranks: Int32, next_ends: Int32, never: int) -> Int32:
    """For each entry of a step the first place at which a match through it can end; `never` if there is none.

    That is the end of the first entry of the next step with a greater rank. Ranks ascend, so ends do.
    """
    ends = np.empty(ranks.size, np.int32)
    j = 0
    for i in range(ranks.size):
        while j < next_ranks.size and next_ranks[j] <= ranks[i]:
            j += 1
        ends[i] = next_ends[j] if j < next_ranks.size else never
    return ends


@njit(cache=True, nogil=True)
def is_ordered(time: Times, order: Int64) -> bool:
    """Whether the pairs (time, order) never fall; an empty `order` means time alone."""
    for i in range(1, time.size):
        if time[i] < time[i - 1] or (order.size > 0 and time[i] == time[i - 1] and order[i] < order[i - 1]):
            return False
    return True


@njit(cache=True, nogil=True)
def dense_rank(time: Times, order: Int64) -> Int32:
    """The dense rank, from 0, of ascending pairs (time, order); an empty `order` means time alone."""
    rank = np.empty(time.size, np.int32)
    current = 0
    for i in range(time.size):
        if i > 0 and (time[i] != time[i - 1] or (order.size > 0 and order[i] != order[i - 1])):
            current += 1
        rank[i] = current
    return rank


@njit(cache=True, nogil=True)
def limits_by_bound(time: Times, starts: Int32, bounds: Int64) -> Int32:
    """For each start the last j with time[j] <= its bound, by two pointers: starts, bounds and times ascend."""
    limit = np.empty(starts.size, np.int32)
    j = 0
    for place in range(starts.size):
        j = max(j, starts[place])
        while j + 1 < time.size and time[j + 1] <= bounds[place]:
            j += 1
        limit[place] = j
    return limit


@njit(cache=True, nogil=True)
def limits_by_float(time: Times, starts: Int32, width: float) -> Int32:
    """For each start i the last j with time[j] - time[i] <= width; equal times are 0 apart, infinite ones too.

    Rounded subtraction is monotone, so the pointers only rise.
    """
    limit = np.empty(starts.size, np.int32)
    j = 0
    for place in range(starts.size):
        i = starts[place]
        j = max(j, i)
        while j + 1 < time.size and (time[j + 1] == time[i] or time[j + 1] - time[i] <= width):
            j += 1
        limit[place] = j
    return limit
