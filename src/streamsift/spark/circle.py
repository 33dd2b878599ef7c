"""Events in, the same events dealt to tasks out: each once in every task that it matters to, at home in one of them.

Tasks stand on a circle, and an event goes to those on an arc of it: to one by its key; to two where a slice of time
that needs it borders on its own; to all where every task needs it. Its home is one of them. Where Spark puts several
small tasks into one partition, they are one task there, and what came more than once is kept once.

Contract: a partition has each of its events once, and an event is at home in one partition, however tasks are put
together (tests/spark/test_circle.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

from streamsift.runtime.kernels import Bool, Int64
from streamsift.spark.packing import bucket_numbers

HOME, START, AT = COLUMNS = ("$streamsift_home", "$streamsift_start", "$streamsift_at")  # beside the events


@dataclass(frozen=True, slots=True)
class Arc:
    """Where an event goes: `count` tasks from `start` on, and its home. Numbers of tasks may be any integers."""

    start: SparkColumn
    home: SparkColumn
    count: SparkColumn


def dealt(events: DataFrame, arc: Arc, tasks: int, good: SparkColumn) -> DataFrame:
    """The events in partitions, with `COLUMNS` beside them; those that are not good all go to one partition."""

    def on_circle(number: SparkColumn) -> SparkColumn:
        return F.pmod(number, F.lit(tasks)).cast("int")

    last = F.col(START) + F.least(arc.count, F.lit(tasks)).cast("int") - 1
    stops = F.when(good, F.sequence(F.col(START), last)).otherwise(F.array(F.lit(None).cast("int")))
    copied = (
        events.withColumn(HOME, F.when(good, on_circle(arc.home)))
        .withColumn(START, F.when(good, on_circle(arc.start)))
        .withColumn(AT, F.explode(stops))
    )
    # Spark hashes what it partitions by: these numbers are hashed to one partition each.
    names = F.array(*(F.lit(name) for name in bucket_numbers(tasks)))
    return copied.repartition(F.element_at(names, on_circle(F.col(AT)) + 1))


@dataclass(frozen=True, slots=True)
class Part:
    """The events of a partition, which of them are at home there, and whose tasks' they are."""

    events: pa.Table
    own: Bool  # [rows]
    tasks: Bool  # [tasks]


def part_of(table: pa.Table, tasks: int) -> Part:
    """The part in a table, whose last columns are those of `COLUMNS` in this order."""
    width = table.num_columns - len(COLUMNS)
    home, start, at = (table.column(width + i) for i in range(len(COLUMNS)))
    is_good = at.combine_chunks().is_valid().to_numpy(zero_copy_only=False)
    present = np.zeros(tasks, np.bool_)
    present[_numbers(at)[is_good] % tasks] = True
    # Of the tasks on the way to where this copy is, has the partition one? Then it has the event already.
    passed = np.concatenate([[0], np.cumsum(np.tile(present, 2))])
    is_first = passed[_numbers(at)] == passed[_numbers(start)]
    own = present[_numbers(home)] & is_good
    events = table.select(range(width))
    return Part(events, own, present) if is_first.all() else Part(events.filter(is_first), own[is_first], present)


def _numbers(values: pa.ChunkedArray) -> Int64:
    return values.combine_chunks().fill_null(0).cast(pa.int64()).to_numpy(zero_copy_only=False)
