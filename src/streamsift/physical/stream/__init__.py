"""TODO"""

from streamsift.physical.stream.final import (
    StateWindow,
    awaited,
    check_stream,
    counts_rows,
    is_awaited,
    keeps_no_events,
    looks_back,
    state_windows,
    ticks_count_rows,
    why_recounted,
    windows,
)
from streamsift.physical.stream.finalizing_steps import (
    DECIDES,
    OTHER,
    Anchor,
    Anchored,
    anchored,
    group_keys,
    last_steps,
    stream_keys,
)

__all__ = [
    "DECIDES",
    "OTHER",
    "Anchor",
    "Anchored",
    "StateWindow",
    "anchored",
    "awaited",
    "check_stream",
    "counts_rows",
    "group_keys",
    "is_awaited",
    "keeps_no_events",
    "last_steps",
    "looks_back",
    "state_windows",
    "stream_keys",
    "ticks_count_rows",
    "why_recounted",
    "windows",
]
