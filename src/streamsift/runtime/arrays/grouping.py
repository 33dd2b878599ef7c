"""Sort, group and select array entries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64, Places


def entries_from(places: Int32, bounds: Sequence[int] | Int32 | Int64) -> Int64:
    """Return for each bound the index of the first place >= bound; places ascend.

    Bounds are cast to 32 bits; otherwise NumPy casts all places to 64 bits in each search.
    """
    return np.searchsorted(places, np.asarray(bounds, np.int32))


def distinct(values: Places) -> Places:
    """Return the distinct values in ascending order. np.unique hashes: it is 10 times slower if most values differ."""
    ascending = np.sort(values)
    is_first = np.ones(ascending.size, np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=is_first[1:])
    return ascending[is_first]


def gathered(values: Int32, numbers: Int32) -> Int32:
    """Return values[numbers]. NumPy casts the numbers to 64 bits first, which takes 4 times as long."""
    return _gathered(values, np.ascontiguousarray(numbers).reshape(-1)).reshape(numbers.shape)


@njit(cache=True, nogil=True)
def _gathered(values: Int32, numbers: Int32) -> Int32:
    at_numbers = np.empty(numbers.size, np.int32)
    for i in range(numbers.size):
        at_numbers[i] = values[numbers[i]]
    return at_numbers


@njit(cache=True, nogil=True)
def group_entries(codes: Int32, groups: int) -> tuple[Int64, Int32]:
    """Group places by code with a counting sort and return (offsets [groups + 1], places [kept]).

    places[offsets[g]:offsets[g + 1]] are the places with code g, ascending. Places with code -1 are dropped.
    """
    # Code c is counted at c + 2, so that slot c + 1 holds its start after summing. Code -1 is sorted too: no branch.
    starts = np.zeros(groups + 2, np.int64)
    for i in range(codes.size):
        starts[codes[i] + 2] += 1
    for slot in range(1, groups + 2):
        starts[slot] += starts[slot - 1]
    places = np.empty(codes.size, np.int32)
    for i in range(codes.size):
        slot = codes[i] + 1
        places[starts[slot]] = i
        starts[slot] += 1
    dropped = starts[0]
    return starts[: groups + 1] - dropped, places[dropped:]


@njit(cache=True, nogil=True)
def chosen(values: Int32, keep: Bool) -> Int32:
    """Return values[keep], without a branch to mispredict: a value that is not kept is overwritten by the next one."""
    kept = np.empty(values.size, np.int32)
    count = 0
    for i in range(values.size):
        kept[count] = values[i]
        count += keep[i]
    return kept[:count]


@njit(cache=True, nogil=True)
def successors(bounds: Int32, bound_codes: Int32, values: Int32, codes: Int32, offsets: Int64) -> Int32:
    """Return for each i the end of the entries of group bound_codes[i] with value <= bounds[i]; 0 for code -1.

    Merge two ascending columns, bounds and values, with a fill counter per group that starts at the group's offset.
    """
    fill = offsets.copy()
    ends = np.zeros(bounds.size, np.int32)
    j = 0
    for i in range(bounds.size):
        while j < values.size and values[j] <= bounds[i]:
            if codes[j] >= 0:
                fill[codes[j]] += 1
            j += 1
        if bound_codes[i] >= 0:
            ends[i] = fill[bound_codes[i]]
    return ends


@njit(cache=True, nogil=True)
def positions_in_group(codes: Int32, groups: int) -> Int32:
    """Return for each row how many earlier rows have the same code; -1 for negative codes, which belong to no group."""
    seen = np.zeros(groups, np.int32)
    position = np.empty(codes.size, np.int32)
    for i in range(codes.size):
        if codes[i] < 0:
            position[i] = -1
        else:
            position[i] = seen[codes[i]]
            seen[codes[i]] += 1
    return position


@njit(cache=True, nogil=True)
def ascends_in_groups(values: Int32, offsets: Int64) -> bool:
    """Return True if the values of each group offsets[g]:offsets[g + 1] never decrease."""
    for group in range(offsets.size - 1):
        for i in range(offsets[group] + 1, offsets[group + 1]):
            if values[i] < values[i - 1]:
                return False
    return True
