"""Limit the memory of a query and track its progress.

- `budget`: hold the work of a context to a limit of memory; format the errors of what exceeds it
- `memory`: find how much memory this process may still take
- `progress`: track how many events are done

Both the budget and the tracker belong to the current context. Work without one is neither limited nor tracked.
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
from streamsift.runtime.resources.memory import free_bytes
from streamsift.runtime.resources.progress import current_progress, track_progress
