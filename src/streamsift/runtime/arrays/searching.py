"""Search sorted arrays from kernels."""

from __future__ import annotations

from numba import njit

from streamsift.runtime.arrays.dtypes import Int32, Int64


@njit(cache=True, nogil=True)
def first_above(values: Int32 | Int64, base: int, low: int, high: int, hint: int, bound: int) -> int:
    """The first i in [low, high) with values[base + i] > bound, or high. Values ascend; low <= hint <= high.

    Galloping from where the last search ended ("An almost optimal algorithm for unbounded searching", Bentley and Yao,
    1976): neighbouring searches end close to each other, so most take two or three comparisons.
    """
    if hint < high and values[base + hint] <= bound:
        low = hint + 1
        step = 1
        while low + step <= high and values[base + low + step - 1] <= bound:
            low += step
            step *= 2
        high = min(high, low + step - 1)
    elif hint > low and values[base + hint - 1] > bound:
        high = hint - 1
        step = 1
        while high - step >= low and values[base + high - step] > bound:
            high -= step
            step *= 2
        low = max(low, high - step + 1)
    else:
        return hint
    while low < high:
        middle = (low + high) // 2
        if values[base + middle] <= bound:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def first_from(places: Int32, start: int, stop: int, low: int) -> int:
    """The first i in [start, stop) with places[i] >= low, or stop."""
    while start < stop:
        middle = (start + stop) >> 1
        if places[middle] < low:
            start = middle + 1
        else:
            stop = middle
    return start
