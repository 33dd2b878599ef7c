"""Compute for each event the places that order and windows let it be combined with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.logical.bound import WindowKind
from streamsift.physical.plan import Alternative
from streamsift.runtime.arrays.dtypes import Int32
from streamsift.runtime.events.definition_windows import own_limits, rows_of_keys
from streamsift.runtime.events.events import Events


class Stream(NamedTuple):
    """What intervals are computed from; arrays are [places]."""

    place_after: Int32  # the first place later than this one
    place_since: Int32  # the first place of the same time
    window_low: Int32  # the first place in one window with this one, as its last event
    window_high: Int32  # the last place in one window with this one, as its first event
    widest_window: int  # the most places that one window holds
    own_windows: Int32  # [2 * definitions, places] the first and the last place in one window of a definition with this


def stream_of(alternative: Alternative, events: Events) -> Stream:
    """What the intervals of an alternative are computed from."""
    count = events.rank.size
    window, everywhere = events.window, np.arange(count, dtype=np.int32)
    if window is not None and window.kind is WindowKind.COUNT and alternative.query.partition_by:
        low, high = rows_of_keys(int(events.width), alternative.query.partition_by, events)
        after, since, _, _ = places_around(events.rank, everywhere)
        widest = int((high - everywhere).max(initial=-1)) + 1
    else:
        high = np.minimum(events.window_limit(everywhere), count - 1).astype(np.int32, copy=False)
        after, since, low, widest = places_around(events.rank, high)
    return Stream(after, since, low, high, widest, own_limits(alternative.query, events))


@njit(cache=True, nogil=True)
def places_around(rank: Int32, high: Int32) -> tuple[Int32, Int32, Int32, int]:
    """For each place the first later one, the first of its time, the first whose window reaches it; the widest window.

    Ranks and windows' ends ascend, so one pass each way with two pointers does.
    """
    count = rank.size
    after, since, low = np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count, np.int32)
    j = widest = 0
    for i in range(count):
        since[i] = since[i - 1] if i > 0 and rank[i] == rank[i - 1] else i
        while j < count and high[j] < i:
            j += 1
        low[i] = j
        widest = max(widest, high[i] + 1 - i)
    for i in range(count - 1, -1, -1):
        after[i] = after[i + 1] if i + 1 < count and rank[i] == rank[i + 1] else i + 1
    return after, since, low, widest
