"""Compute for each event the places that order and windows let it be combined with."""

from __future__ import annotations

from typing import NamedTuple

from streamsift.runtime.arrays.dtypes import Int32


class Stream(NamedTuple):
    """What intervals are computed from; arrays are [places]."""

    place_after: Int32  # the first place later than this one
    place_since: Int32  # the first place of the same time
    window_low: Int32  # the first place in one window with this one, as its last event
    window_high: Int32  # the last place in one window with this one, as its first event
    widest_window: int  # the most places that one window holds
    own_windows: Int32  # [2 * definitions, places] the first and the last place in one window of a definition with this
