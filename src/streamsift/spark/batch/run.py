"""Run a plan on a batch DataFrame and return a lazy DataFrame: one shuffle, one Python call per partition.

The JVM merges the rankings of tasks; nothing is collected.

Contract: all rows of a shard (`spark/distribute/routing.py`) are in one partition (tests/spark/batch/test_batch.py).
Each partition returns its own top k, so the top k of all partitions are among the candidates
(tests/spark/batch/test_ranking_on_spark.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, Observation, Window
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)
from pyspark.sql.types import StructType

from streamsift.logical import bound as b
from streamsift.physical import Plan
from streamsift.runtime.rank import tie_names
from streamsift.spark.batch.memory import reported_if_too_large
from streamsift.spark.batch.spill import MAX_ROWS, tables
from streamsift.spark.batch.task import Task, class_code, class_names
from streamsift.spark.columns import by_position, column, describe_filter, result_schema
from streamsift.spark.distribute import (
    Distribution,
    Placement,
    describe_distribution,
    distribution_of,
    needs_merge,
    shuffled,
    task_count,
)
from streamsift.spark.workers import for_workers

_CODE = "$streamsift_class"  # shuffled instead of the type column

Batches = Iterator[pa.RecordBatch]


def run_batch(df: DataFrame, plan: Plan, *, bad_rows: str, observation: Observation | None) -> DataFrame:
    """Run a plan on a DataFrame and return a lazy DataFrame."""
    query, names, tasks = plan.query, class_names(plan), task_count(df)
    distribution = distribution_of(plan, tasks)
    codes = [class_code(query, names).alias(_CODE)] if names else []
    events = df.select(*map(column, query.schema.names), *codes)
    arriving = shuffled(events, query, [Placement(distribution, {"": plan})], tasks, observation)
    if names and query.binding.type is not None:
        arriving = arriving.withColumn(query.binding.type, F.col(_CODE)).drop(_CODE)
    # With an observation, the caller reads the number of dropped rows from it; otherwise a worker warns.
    report = None if observation is None else lambda _: None
    task = Task(plan, distribution, bad_rows, report, names)
    keys = [query.schema.names.index(key) for key in distribution.keys]
    shard = len(query.schema)

    def run(batches: Batches) -> Batches:
        for table in tables(batches, shard, keys):
            yield from reported_if_too_large(task.results(table), table, keys)

    return result_rows(by_position(arriving), run, df.schema, plan, distribution)


def result_rows(
    df: DataFrame, make: Callable[[Batches], Batches], events: StructType, plan: Plan, distribution: Distribution
) -> DataFrame:
    """Return the rows that `make` yields; if a ranking needs a merge, the top k per tick and group."""
    query, schema = plan.query, result_schema(events, plan.query)
    if query.ranking is None or not needs_merge(plan, distribution):
        return df.mapInArrow(for_workers(make), schema)
    candidates = df.mapInArrow(for_workers(make), result_schema(events, query, ties=True))
    limit = query.ranking.limit
    # `+ 0.0` makes -0.0 equal to 0.0, as in the engine. Nulls come first: absent events do.
    best_first = [(column("score") + F.lit(0.0)).desc(), *(column(name).asc_nulls_first() for name in tie_names(query))]
    ranked_by = [column(name) for name in (*(["window_end"] if query.update else []), *query.group_names)]
    if not ranked_by:
        candidates = candidates.orderBy(*best_first).limit(limit)
    window = Window.partitionBy(*(ranked_by or [F.lit(0)])).orderBy(*best_first)
    ranked = candidates.withColumn("rank", F.row_number().over(window).cast("bigint"))
    return ranked.where(column("rank") <= limit).select(*(column(field.name) for field in schema))


def placement(df: DataFrame, plan: Plan) -> list[str]:
    """Return the lines of explain on how the work is distributed over Spark tasks."""
    tasks, query = task_count(df), plan.query
    how = distribution_of(plan, tasks)
    lines = list(describe_distribution(how, plan, tasks))
    if needs_merge(plan, how):
        lines.append("merge: each task ranks its own matches; the JVM merges the top k of all tasks")
    if query.binding.time_kind is b.TimeKind.TEXT:
        time = query.binding.time
        lines.append(
            f"time: strings in `{time}` are parsed in Python, twice; cast the column to a timestamp to avoid that"
        )
    lines.append(describe_filter(plan))
    codes, others = " (class names as bytes)" if class_names(plan) else "", "no others are read"
    if any(isinstance(item, b.WholeEvent) for item in query.output):
        others = "whole events are sent, because rows have no identity by which to join other columns later"
    lines.append(f"columns: {len(query.schema)} sent to Python{codes}; {others}")
    whole = "time slices" if how.slices is not None else "keys" if how.keys and how.partial is None else None
    if whole is None:
        return [*lines, "memory: a task holds all of its events"]
    return [
        *lines,
        f"memory: a task holds whole {whole}, about {MAX_ROWS:,} events at a time, and spills the rest to disk",
    ]
