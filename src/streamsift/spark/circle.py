"""Events in, the same events dealt to tasks out: each once in every task that it matters to, at home in one of them.

Tasks stand on a circle, and an event goes to those on an arc of it: to one by its key; to two where a slice of time
that needs it borders on its own; to all where every task needs it. Its home is one of them. Where Spark puts several
small tasks into one partition, they are one task there, and what came more than once is kept once.

Contract: a partition has each of its events once, and an event is at home in one partition, however tasks are put
together (tests/spark/test_slices.py, test_partial_keys.py).
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

WAY = "$streamsift_way"  # a column beside the events: where this copy is, where its arc starts, the event's home
_START, _AT = "$streamsift_start", "$streamsift_at"
_BITS = 21  # of each of the three numbers
MOST_TASKS = 1 << (_BITS - 1)  # where a copy is may be once round the circle, on from the start of its arc


@dataclass(frozen=True, slots=True)
class Arc:
    """Where an event goes: `count` tasks from `start` on, and its home. Numbers of tasks may be any integers."""

    start: SparkColumn
    home: SparkColumn
    count: SparkColumn


def dealt(events: DataFrame, arc: Arc, tasks: int, good: SparkColumn) -> DataFrame:
    """The events in partitions, with WAY beside them; those that are not good all go to one partition."""
    assert tasks <= MOST_TASKS

    def on_circle(number: SparkColumn) -> SparkColumn:
        return F.pmod(number, F.lit(tasks)).cast("int")

    last = F.col(_START) + F.least(arc.count, F.lit(tasks)).cast("int") - 1
    stops = F.when(good, F.sequence(F.col(_START), last)).otherwise(F.array(F.lit(None).cast("int")))
    copied = (
        events.withColumn(_START, F.when(good, on_circle(arc.start)))
        .withColumn(WAY, F.when(good, on_circle(arc.home).cast("bigint")))
        .withColumn(_AT, F.explode(stops))
        .withColumn(WAY, (F.col(WAY) * F.lit(1 << _BITS) + F.col(_START)) * F.lit(1 << _BITS) + F.col(_AT))
    )
    # Spark hashes what it partitions by: these numbers are hashed to one partition each.
    names = F.array(*(F.lit(name) for name in bucket_numbers(tasks)))
    return copied.repartition(F.element_at(names, on_circle(F.col(_AT)) + 1)).drop(_START, _AT)


def way_of(home: Int64, start: Int64, at: Int64) -> Int64:
    """The column WAY, as the JVM makes it."""
    return (home << 2 * _BITS) + (start << _BITS) + at


@dataclass(frozen=True, slots=True)
class Part:
    """The events of a partition, which of them are at home there, and whose tasks' they are."""

    events: pa.Table
    own: Bool  # [rows]
    tasks: Bool  # [tasks]


def part_of(table: pa.Table, tasks: int) -> Part:
    """The part in a table, whose last column is WAY; it is null where events are not good."""
    ways = table.column(table.num_columns - 1).combine_chunks()
    is_good = ways.is_valid().to_numpy(zero_copy_only=False)
    way = ways.fill_null(0).to_numpy(zero_copy_only=False)
    home, start, at = way >> 2 * _BITS, way >> _BITS & ((1 << _BITS) - 1), way & ((1 << _BITS) - 1)
    present = np.zeros(tasks, np.bool_)
    present[at[is_good] % tasks] = True
    # Of the tasks on the way to where this copy is, has the partition one? Then it has the event already.
    passed = np.concatenate([[0], np.cumsum(np.tile(present, 2))])
    is_first = passed[at] == passed[start]
    own = present[home] & is_good
    events = table.select(range(table.num_columns - 1))
    return Part(events, own, present) if is_first.all() else Part(events.filter(is_first), own[is_first], present)
