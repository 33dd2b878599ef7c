"""Compare codes with the operators of predicates, and search sorted arrays, inside kernels."""

from __future__ import annotations

from numba import njit

from streamsift.runtime.arrays.dtypes import UNKNOWN, Int32, Int64

EQUAL, UNEQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL = range(6)
OPERATORS = {"=": EQUAL, "!=": UNEQUAL, "<": LESS, "<=": LESS_EQUAL, ">": GREATER, ">=": GREATER_EQUAL}


@njit(cache=True, nogil=True)
def holds(operator: int, earlier: int, this: int) -> bool:
    """Return True if `earlier operator this` holds for two codes; False if one of them is UNKNOWN."""
    if earlier == UNKNOWN or this == UNKNOWN:
        return False
    if operator == EQUAL:
        return earlier == this
    if operator == UNEQUAL:
        return earlier != this
    if operator == LESS:
        return earlier < this
    if operator == LESS_EQUAL:
        return earlier <= this
    if operator == GREATER:
        return earlier > this
    return earlier >= this


@njit(cache=True, nogil=True)
def first_above(values: Int32 | Int64, base: int, low: int, high: int, hint: int, bound: int) -> int:
    """Return the first i in [low, high) with values[base + i] > bound, or high. Values ascend; low <= hint <= high.

    Galloping search from the hint, where the last search ended ("An almost optimal algorithm for unbounded searching",
    Bentley and Yao, 1976). Successive searches end close together, so most take two or three comparisons.
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
def first_from(places: Int32, start: int, end: int, low: int) -> int:
    """Return the first i in [start, end) with places[i] >= low, or end."""
    while start < end:
        middle = (start + end) >> 1
        if places[middle] < low:
            start = middle + 1
        else:
            end = middle
    return start
