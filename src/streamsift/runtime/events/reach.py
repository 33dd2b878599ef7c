"""Compute for each event the places that order and windows let it be combined with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.logical.bound import BoundQuery
from streamsift.runtime.arrays.dtypes import Int32
from streamsift.runtime.events.definition_windows import own_limits, window_reach
from streamsift.runtime.events.events import Events


class Reach(NamedTuple):
    """What order and windows leave for each event; arrays are [places]."""

    place_after: Int32  # the first place later than this one
    place_since: Int32  # the first place of the same time
    window_low: Int32  # the first place in one window with this one, as its last event
    window_high: Int32  # the last place in one window with this one, as its first event
    widest_window: int  # the most places that one window holds
    own_windows: Int32  # [2 * definitions, places] the first and the last place in one window of a definition with this


def reach_of(query: BoundQuery, events: Events) -> Reach:
    """Return what order, the window of a query and those of its definitions leave."""
    low, high = window_reach(events.window, query.partition_by, events)
    widest = int((high - np.arange(high.size, dtype=np.int32)).max(initial=-1)) + 1
    return Reach(*places_around(events.rank), low, high, widest, own_limits(query, events))


@njit(cache=True, nogil=True)
def places_around(rank: Int32) -> tuple[Int32, Int32]:
    """Return for each place the first later one, and the first of its time; ranks ascend."""
    count = rank.size
    after, since = np.empty(count, np.int32), np.empty(count, np.int32)
    for i in range(count):
        since[i] = since[i - 1] if i > 0 and rank[i] == rank[i - 1] else i
    for i in range(count - 1, -1, -1):
        after[i] = after[i + 1] if i + 1 < count and rank[i] == rank[i + 1] else i + 1
    return after, since
