"""Collect the events of a task, or raise an error that names what is too large, before the system kills the worker.

The engine needs a few times the size of the events. `runtime/resources` reads how much memory a worker can have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from streamsift.errors import BadInputError, PlanTooLargeError
from streamsift.runtime.resources import Budget, default_limit, free_bytes, limited_batches

# Memory of the engine per event, in addition to the event's columns. Measured on 2 million events of four columns: nine
# queries (joins, negations, Kleene groups, aggregates, rankings, count windows), with few keys and many, took 24 to 127
# bytes. The documentation gives the same number (tests/project/test_contracts.py).
WORKING_BYTES = 160
_CHECKED_BYTES = 1 << 27  # memory is checked each time this much has arrived; smaller tasks are not checked


def gathered(batches: Iterable[pa.RecordBatch], keys: Sequence[int]) -> pa.Table:
    """Return the batches as a table. `keys` are the columns that an error names."""
    arrived: list[pa.RecordBatch] = []
    taken = rows = checked = 0
    for batch in batches:
        arrived.append(batch)
        taken, rows = taken + batch.nbytes, rows + batch.num_rows
        if taken - checked >= _CHECKED_BYTES:
            checked = taken
            free = free_bytes()
            # Making a column contiguous holds it in memory twice.
            if free is not None and taken + rows * WORKING_BYTES > free:
                raise too_large(pa.Table.from_batches(arrived), keys, f"{free / 1e9:.1f} GB available")
    return pa.Table.from_batches(arrived)


def reported_if_too_large(
    results: Iterator[pa.RecordBatch], events: pa.Table, keys: Sequence[int]
) -> Iterator[pa.RecordBatch]:
    """Yield the results; if memory runs out, raise an error that names what is too large."""
    try:
        yield from limited_batches(results, Budget(default_limit()))
    except PlanTooLargeError:
        raise
    except MemoryError as error:
        raise too_large(events, keys, "no memory available") from error


def too_large(events: pa.Table, keys: Sequence[int], why: str) -> BadInputError:
    """Return an error with the number of a task's events and the most frequent key."""
    problem = f"a task does not fit in memory: {events.num_rows:,} events at once"
    if not keys:
        hint = "add WITHIN, or a predicate such as [id] on all variables, so that several tasks share the events."
        return BadInputError(f"{problem}; {why}\nHint: {hint}")
    named = pa.table({f"k{number}": events.column(number) for number in keys})
    counted = named.group_by(named.column_names).aggregate([([], "count_all")])
    most = counted.take(pc.select_k_unstable(counted, 1, [("count_all", "descending")])).to_pylist()[0]
    count = most.pop("count_all")
    key = ", ".join(repr(value) for value in most.values())
    hint = "increase spark.sql.shuffle.partitions, or the workers' memory (spark.executor.pyspark.memory)."
    if 2 * count > events.num_rows:
        hint = 'add WITHIN or shorten it, so that this key is split by time (spread="keys" prevents that).'
    return BadInputError(f"{problem}, {count:,} of them with key {key}; {why}\nHint: {hint}")
