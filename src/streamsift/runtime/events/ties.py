"""Rank events for breaking ties between matches: by time, then `order`, then input order."""

from __future__ import annotations

import numpy as np

from streamsift.runtime.arrays.dtypes import Int32
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.order_kernels import dense_rank


def tie_levels(events: Events) -> list[Int32]:
    """What breaks ties, each [places + 1], the last standing for no event: times, then `order`, then input order."""
    places = np.arange(events.rank.size, dtype=np.int32)
    times = dense_rank(events.ticks, np.empty(0, np.int64))
    levels = [times] if times.size and times[-1] < times.size - 1 else []
    if levels and events.rank[-1] > times[-1]:
        levels.append(events.rank)
    return [np.append(level, np.int32(-1)) for level in (*levels, places)]
