"""Check that Spark batch returns the oracle's rows for a generated query, as a whole or task by task."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from hypothesis import assume, event, note
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

import streamsift as ss
from streamsift.language import Script, print_script
from streamsift.physical import Plan
from streamsift.runtime import output_schema
from streamsift.spark.batch.spill import tables
from streamsift.spark.batch.task import Task
from streamsift.spark.distribute.routing import OFFSET_BITS
from supported import may_be_refused
from test_generated import SCHEMA, Rows, assert_same

# `order` is bound, because Spark has no order for rows with equal times.
BINDING = {"time": "t", "type": "kind", "order": "seq"}
Copies = Callable[[dict[str, Any]], tuple[int, range]]


def scattered(spark: SparkSession, table: pa.Table, schema: StructType | None = None) -> DataFrame:
    """Return the rows in random order, one partition per core; this saves the shuffle of `repartition`."""
    places = random.Random(table.num_rows).sample(range(table.num_rows), table.num_rows)
    return spark.createDataFrame(table.take(pa.array(places, pa.int64())), schema)


def rows_on_spark(spark: SparkSession, script: Script, rows: Rows, **options: Any) -> Rows:
    for place, row in enumerate(rows):
        row["seq"] = place
    note(print_script(script))
    df = scattered(spark, pa.Table.from_pylist(rows, SCHEMA))
    return ss.query(print_script(script)).run(df, **BINDING, **options).toArrow().to_pylist()


def check_on_spark(spark: SparkSession, script: Script, rows: Rows, **options: Any) -> None:
    try:
        actual = rows_on_spark(spark, script, rows, **options)
    except PythonException as failure:
        assume("64 bits" not in str(failure) and "64-bit" not in str(failure))
        raise
    assert_same(script, rows, BINDING, actual)


def planned(script: Script, rows: Rows) -> Plan:
    """Return the plan of a supported query, and number its rows in `seq`."""
    assume(not may_be_refused(script))
    for place, row in enumerate(rows):
        row["seq"] = place
    note(print_script(script))
    return ss.query(print_script(script)).plan(SCHEMA, **BINDING)


def check_tasks(
    script: Script,
    rows: Rows,
    task: Task,
    copies: Copies,
    partition_of: list[int],
) -> None:
    """Check that all tasks together return the oracle's rows. `copies` returns an event's owner and its shards."""
    table = pa.Table.from_pylist(rows, SCHEMA).select(task.plan.query.schema.names)
    found: Rows = []
    for part in _partitions(table, copies, partition_of):
        for some in tables(part.to_batches(max_chunksize=2), len(table.schema), ()):
            found += pa.Table.from_batches(task.results(some), output_schema(task.plan.query)).to_pylist()
    event("matches" if found else "no match")
    assert_same(script, rows, BINDING, found)


def shard_offsets(owner: int, first: int, shard: int) -> int:
    """Return a value of the column SHARD_OFFSETS, as the JVM computes it."""
    return (owner - first << OFFSET_BITS) + (shard - first)


def _partitions(table: pa.Table, copies: Copies, partition_of: list[int]) -> Iterator[pa.Table]:
    """Replicate events to their shards as the JVM does, and yield the rows of each partition."""
    placed = []
    for row in table.to_pylist():
        owner, shards = copies(row)
        for shard in shards:
            replica = {**row, "shard": shard, "offsets": shard_offsets(owner, shards.start, shard)}
            placed.append((partition_of[shard % len(partition_of)], replica))
    schema = pa.schema([*table.schema, ("shard", pa.int64()), ("offsets", pa.int64())])
    for number in set(partition_of):
        yield pa.Table.from_pylist([row for partition, row in placed if partition == number], schema)
