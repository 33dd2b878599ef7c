"""Drop the candidates of a sequence that can be part of no match: a semi-join reduction by windows.

Where a class is rare, most candidates of the others have none of it in their windows: to drop them costs one look at
each, to carry them through a graph many.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64


@njit(cache=True, nogil=True)
def windows_of_places(low: Int32, high: Int32, places: int) -> tuple[Int32, Int32]:
    """Return for each place the first window that ends behind it, and the last that begins at it or before, or -1."""
    first, last = np.empty(places, np.int32), np.empty(places, np.int32)
    window = 0
    for place in range(places):
        while window < high.size and high[window] <= place:
            window += 1
        first[place] = window
    window = low.size - 1
    for place in range(places - 1, -1, -1):
        while window >= 0 and low[window] > place:
            window -= 1
        last[place] = window
    return first, last


@njit(cache=True, nogil=True)
def in_reach(offsets: Int64, place: Int32, rank: Int32, low: Int32, high: Int32) -> Bool:
    """Return which entries [n] have, in a window [low, high) with them, entries of all steps on the way there and on.

    Windows have ascending bounds. Of the ways that lead to an entry the one that begins last decides, together with the
    first window that the entry is in; of those that lead on the one that ends first, and the last window. Both may hold
    in different windows only: too many may be kept, never too few.
    """
    steps, groups, n = offsets.shape[0], offsets.shape[1] - 1, place.size
    first_window, last_window = windows_of_places(low, high, place.max() + 1 if n else 0)
    begins, ends, found = np.full(n, -1, np.int32), np.empty(n, np.int32), np.zeros(n, np.bool_)
    for step in range(steps):
        for group in range(groups):
            before, last = offsets[max(step - 1, 0), group], -1
            for entry in range(offsets[step, group], offsets[step, group + 1]):
                if step == 0:
                    last = place[entry]
                else:
                    while before < offsets[step - 1, group + 1] and rank[before] < rank[entry]:
                        last = max(last, begins[before])
                        before += 1
                window = first_window[place[entry]]
                if window < high.size and low[window] <= last:
                    begins[entry], found[entry] = last, True
    for step in range(steps - 1, -1, -1):
        for group in range(groups):
            behind, first = offsets[min(step + 1, steps - 1), group + 1] - 1, 1 << 31
            for entry in range(offsets[step, group + 1] - 1, offsets[step, group] - 1, -1):
                if step == steps - 1:
                    first = place[entry]
                else:
                    while behind >= offsets[step + 1, group] and rank[behind] > rank[entry]:
                        if found[behind]:
                            first = min(first, ends[behind])
                        behind -= 1
                window = last_window[place[entry]]
                found[entry] = found[entry] and window >= 0 and first < high[window]
                if found[entry]:
                    ends[entry] = first
    return found


def offsets_of(offsets: Int64, kept: Bool) -> Int64:
    """Return where the groups of each step begin among the entries that are kept."""
    return np.append(0, np.cumsum(kept))[offsets]
