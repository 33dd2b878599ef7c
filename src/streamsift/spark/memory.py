"""Record batches in, one table out; or an error that says what is too large, before the system kills its task.

The engine needs a few times what the events take. How much a worker may have is what the system says: the limit that
`spark.executor.pyspark.memory` sets, a container's limit, or the machine's free memory.
"""

from __future__ import annotations

import resource
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from streamsift.errors import BadInputError

# That the engine takes for an event, beside the event's own columns. Measured on 2 million events of four columns: nine
# queries (joins, negations, groups, totals, rankings, count windows), with few keys and many, took 24 to 127 bytes.
# The documents say the same number (tests/test_contracts.py).
WORKING_BYTES = 160
_CHECKED_BYTES = 1 << 27  # memory is looked at after as much has come: smaller tasks are not asked
_CONTAINER = Path("/sys/fs/cgroup")
_MEMINFO = Path("/proc/meminfo")


def gathered(batches: Iterable[pa.RecordBatch], keys: Sequence[int]) -> pa.Table:
    """The batches, of which there is one, as a table; `keys` are the columns that its rows are together by."""
    arrived: list[pa.RecordBatch] = []
    taken = rows = checked = 0
    for batch in batches:
        arrived.append(batch)
        taken, rows = taken + batch.nbytes, rows + batch.num_rows
        if taken - checked >= _CHECKED_BYTES:
            checked = taken
            free = free_bytes()
            # Columns are made contiguous, which holds each twice for a while.
            if free is not None and taken + rows * WORKING_BYTES > free:
                raise too_large(pa.Table.from_batches(arrived), keys, f"{free / 1e9:.1f} GB of memory are left")
    return pa.Table.from_batches(arrived)


def told_if_too_large(
    results: Iterator[pa.RecordBatch], events: pa.Table, keys: Sequence[int]
) -> Iterator[pa.RecordBatch]:
    """The same results; want of memory becomes an error that says of what."""
    try:
        yield from results
    except (MemoryError, pa.ArrowMemoryError) as error:
        raise too_large(events, keys, "there is no more memory") from error


def too_large(events: pa.Table, keys: Sequence[int], why: str) -> BadInputError:
    """What is wrong with a task's events: how many they are, and the key that has most of them."""
    hint = "give it more partitions (spark.sql.shuffle.partitions), or workers more memory."
    if not keys:
        hint = "WITHIN, or a column that all events of a match share, would spread them over tasks."
        return BadInputError(f"One task has {events.num_rows:,} events at once, and {why}.\nHint: {hint}")
    named = pa.table({f"k{number}": events.column(number) for number in keys})
    counted = named.group_by(named.column_names).aggregate([([], "count_all")])
    most = counted.take(pc.select_k_unstable(counted, 1, [("count_all", "descending")])).to_pylist()[0]
    count = most.pop("count_all")
    key = ", ".join(repr(value) for value in most.values())
    if 2 * count > events.num_rows:
        hint = 'WITHIN, or a shorter one, would divide this key\'s events by time; with spread="keys" they are not.'
    return BadInputError(
        f"One task has {events.num_rows:,} events at once, {count:,} of them of the key {key}, and {why}.\nHint: {hint}"
    )


def no_memory(rows: int) -> BadInputError:
    """What is wrong where a worker cannot even take its events in, which wait on disk."""
    hint = "give it more: spark.executor.pyspark.memory, or fewer workers (spark.executor.cores) in the same memory."
    return BadInputError(f"A Python worker has no memory left after {rows:,} events of its task.\nHint: {hint}")


def free_bytes() -> int | None:
    """What this process may still take; None where the system does not tell."""
    left = [of_process, of_container, of_machine]
    known = [free for each in left if (free := each()) is not None]
    return min(known, default=None)


def of_process() -> int | None:
    """Up to the limit that Spark sets for its Python workers."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    pages = Path("/proc/self/statm")
    used = int(pages.read_text().split()[0]) * resource.getpagesize() if pages.exists() else 0
    return max(0, limit - used)


def of_container() -> int | None:
    limit, used = _CONTAINER / "memory.max", _CONTAINER / "memory.current"
    if not limit.exists() or not used.exists() or not (text := limit.read_text().strip()).isdigit():
        return None
    return max(0, int(text) - int(used.read_text()))


def of_machine() -> int | None:
    if not _MEMINFO.exists():
        return None
    lines = (line.split() for line in _MEMINFO.read_text().splitlines())
    return next((int(words[1]) * 1024 for words in lines if words[0] == "MemAvailable:"), None)
