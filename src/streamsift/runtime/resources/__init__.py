"""TODO"""

from streamsift.runtime.resources.budget import (
    FEWER_TICKS,
    FEWER_TIES,
    Budget,
    default_limit,
    found_matches,
    held,
    limited,
    limited_batches,
    reserve,
    room,
)
from streamsift.runtime.resources.memory import free_bytes
from streamsift.runtime.resources.progress import watch, watching

__all__ = [
    "FEWER_TICKS",
    "FEWER_TIES",
    "Budget",
    "default_limit",
    "found_matches",
    "free_bytes",
    "held",
    "limited",
    "limited_batches",
    "reserve",
    "room",
    "watch",
    "watching",
]
