"""Limit the memory of a run, track its progress and announce slow compiles.

- `budget`: enforce a memory limit and format its errors
- `memory`: measure how much memory this process can still allocate
- `progress`: track how many events are done
- `compiling`: announce that Numba is compiling kernels

The budget and the progress tracker belong to the current context. A run without them is neither limited nor tracked.
"""

from streamsift.runtime.resources.budget import (
    FEWER_TICKS,
    FEWER_TIES,
    Budget,
    add_to_match_count,
    count_results,
    default_limit,
    limited,
    limited_batches,
    reserve,
    room,
    size_text,
)
from streamsift.runtime.resources.compiling import announce_compiling
from streamsift.runtime.resources.memory import free_bytes
from streamsift.runtime.resources.progress import current_progress, track_progress
