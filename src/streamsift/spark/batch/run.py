"""Run a plan on a batch DataFrame, as a lazy DataFrame: one shuffle, one Python call per partition.

Contract: all rows of a shard (`spark/distribute/sharding.py`) are in one partition (tests/spark/batch/test_batch.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

from streamsift.logical import bound as b
from streamsift.physical import Plan
from streamsift.runtime import BadRows
from streamsift.spark.batch.memory import reported_if_too_large
from streamsift.spark.batch.rank import result_rows
from streamsift.spark.batch.spill import MAX_ROWS, tables
from streamsift.spark.batch.task import Task
from streamsift.spark.columns import CODE, by_position, class_code, class_names, column, describe_filter
from streamsift.spark.distribute import (
    BAD,
    SHARD,
    SHARD_OFFSETS,
    Distribution,
    can_matter_to,
    describe_distribution,
    distribution_of,
    key_hash,
    needs_merge,
    routed,
    shards_of,
    task_count,
    with_bad_rows_marked,
)

_KEY = "$streamsift_key"


def run_batch(df: DataFrame, plan: Plan, *, bad_rows: str, observation: Observation | None) -> DataFrame:
    """Yield the result of a plan on a DataFrame, as a DataFrame."""
    distribution, names = distribution_of(plan, task_count(df)), class_names(plan)
    shuffled = _shuffled(_relevant(df, plan, observation), plan, distribution, task_count(df))
    # With an observation the caller is told of dropped rows by it; else a worker warns.
    report: Callable[[BadRows], None] | None = None if observation is None else _say_nothing
    task = Task(plan, distribution, bad_rows, report, names)
    keys = [plan.query.schema.names.index(key) for key in distribution.keys]
    shard = len(plan.query.schema)

    def find(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in tables(batches, shard, keys):
            yield from reported_if_too_large(task.results(table), table, keys)

    return result_rows(by_position(shuffled), find, df.schema, plan, distribution)


def _relevant(df: DataFrame, plan: Plan, observation: Observation | None) -> DataFrame:
    """Return the columns of the query, of rows that can affect the result, and of bad ones, which are all reported."""
    events = with_bad_rows_marked(df, plan.query)
    if observation is not None:
        events = events.observe(observation, F.count(F.lit(1)).alias("rows"), F.count_if(BAD).alias("bad_rows"))
    condition = can_matter_to([plan])
    return events if condition is None else events.where(condition | F.col(BAD))


def _say_nothing(_: BadRows) -> None:
    pass


def _shuffled(events: DataFrame, plan: Plan, distribution: Distribution, tasks: int) -> DataFrame:
    """Return the columns that cross to Python, in partitions. The key's hash, needed more than once, is a column."""
    names = class_names(plan)
    if names:
        events = events.withColumn(CODE, class_code(plan.query, names))
    numbered = events.withColumn(_KEY, key_hash(distribution.keys, plan.query))
    shards = shards_of(plan, distribution, tasks, F.col(_KEY))

    def carried(name: str) -> SparkColumn:
        return F.col(CODE) if names and name == plan.query.binding.type else column(name)

    columns = [carried(name) for name in plan.query.schema.names]
    hidden = [SHARD, SHARD_OFFSETS] if distribution.is_replicated else [SHARD]
    return routed(numbered, shards, tasks, ~F.col(BAD)).select(*columns, *hidden)


def placement(df: DataFrame, plan: Plan) -> list[str]:
    """Say how the work is distributed over Spark tasks, for explain."""
    distribution = distribution_of(plan, task_count(df))
    lines = list(describe_distribution(distribution, plan, task_count(df)))
    if needs_merge(plan, distribution):
        lines.append("each task ranks its own matches; the best of all tasks are merged in the JVM")
    if plan.query.binding.time_kind is b.TimeKind.TEXT:
        lines.append(
            f"the text in `{plan.query.binding.time}` is parsed in Python, twice: cast it to a timestamp to save that"
        )
    return [*lines, describe_filter(plan), _describe_carried(plan), _describe_tables(distribution)]


def _describe_carried(plan: Plan) -> str:
    crosses = f"to Python: {len(plan.query.schema)} columns{', class names as bytes' if class_names(plan) else ''}"
    if not any(isinstance(item, b.WholeEvent) for item in plan.query.output):
        return f"{crosses}; no other is read"
    return f"{crosses}; whole events are carried, as rows have no identity to join them back by after a second reading"


def _describe_tables(distribution: Distribution) -> str:
    whole = "slices of time" if distribution.slices is not None else "keys"
    if distribution.partial is not None or not (distribution.keys or distribution.slices):
        return "in a task: all of its events at once"
    return f"in a task: whole {whole}, about {MAX_ROWS:,} events at once; those of a larger task wait on disk"
