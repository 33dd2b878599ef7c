"""Assignments of groups in, those that no other contains out."""

from __future__ import annotations

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64


@njit(cache=True, nogil=True)
def holds_all(places: Int32, first: int, stop: int, other_first: int, other_stop: int) -> bool:
    """Whether every place of the other range, ascending as this one, is in this one."""
    if other_stop - other_first > stop - first:
        return False
    while other_first < other_stop:
        while first < stop and places[first] < places[other_first]:
            first += 1
        if first == stop or places[first] != places[other_first]:
            return False
        other_first += 1
    return True


@njit(cache=True, nogil=True)
def largest(origins: Int64, ends: Int32, places: Int32, first: Int64, stop: Int64) -> Bool:
    """Which assignments no other with the same origin and end contains; origins ascend."""
    kept = np.ones(origins.size, np.bool_)
    begin = 0
    for one in range(origins.size):
        if origins[one] != origins[begin]:
            begin = one
        other = begin
        while kept[one] and other < origins.size and origins[other] == origins[one]:
            if other != one and ends[other] == ends[one]:
                contains, larger = True, False
                for group in range(first.shape[0]):
                    size, others = stop[group, one] - first[group, one], stop[group, other] - first[group, other]
                    larger = larger or others > size
                    contains = contains and holds_all(
                        places, first[group, other], stop[group, other], first[group, one], stop[group, one]
                    )
                kept[one] = not (contains and larger)
            other += 1
    return kept
