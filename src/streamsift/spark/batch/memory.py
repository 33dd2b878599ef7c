"""Gather the events of a task, or raise an error that says what is too large before the system kills the task.

The engine needs a few times what the events take. The system says how much a worker may have (`runtime/resources`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from streamsift.errors import BadInputError, PlanTooLargeError
from streamsift.runtime.resources import Budget, default_limit, free_bytes, limited_batches

# That the engine takes for an event, beside the event's own columns. Measured on 2 million events of four columns: nine
# queries (joins, negations, groups, totals, rankings, count windows), with few keys and many, took 24 to 127 bytes.
# The documents say the same number (tests/project/test_contracts.py).
WORKING_BYTES = 160
_CHECKED_BYTES = 1 << 27  # memory is checked after as much has come: smaller tasks are not checked


def gathered(batches: Iterable[pa.RecordBatch], keys: Sequence[int]) -> pa.Table:
    """Return the batches as a table; `keys` are the columns that its rows are together by."""
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


def reported_if_too_large(
    results: Iterator[pa.RecordBatch], events: pa.Table, keys: Sequence[int]
) -> Iterator[pa.RecordBatch]:
    """Yield the same results; raise an error that says what is too large if there is no memory."""
    try:
        yield from limited_batches(results, Budget(default_limit()))
    except PlanTooLargeError:
        raise
    except MemoryError as error:
        raise too_large(events, keys, "there is no more memory") from error


def too_large(events: pa.Table, keys: Sequence[int], why: str) -> BadInputError:
    """Return an error about a task's events: how many they are, and the key that has most of them."""
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
