"""Run a plan on a batch DataFrame, as a lazy DataFrame: one shuffle, one Python call per partition.

Rankings of tasks are merged into one in the JVM: nothing is collected.

Contract: all rows of a shard (`spark/distribute/routing.py`) are in one partition (tests/spark/batch/test_batch.py). A
candidate is among the k best of its partition, so the k best of all are among the candidates
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

_CODE = "$streamsift_class"  # shuffled in place of the type

Batches = Iterator[pa.RecordBatch]


def run_batch(df: DataFrame, plan: Plan, *, bad_rows: str, observation: Observation | None) -> DataFrame:
    """Return the result of a plan on a DataFrame, as a DataFrame."""
    query, names, tasks = plan.query, class_names(plan), task_count(df)
    distribution = distribution_of(plan, tasks)
    codes = [class_code(query, names).alias(_CODE)] if names else []
    events = df.select(*map(column, query.schema.names), *codes)
    arriving = shuffled(events, query, [Placement(distribution, {"": plan})], tasks, observation)
    if names and query.binding.type is not None:
        arriving = arriving.withColumn(query.binding.type, F.col(_CODE)).drop(_CODE)
    # With an observation the caller reads the number of dropped rows from it; else a worker warns.
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
    """Return the rows that `make` makes of batches; of a ranking that needs a merge, the k best per tick and group."""
    query, schema = plan.query, result_schema(events, plan.query)
    if query.ranking is None or not needs_merge(plan, distribution):
        return df.mapInArrow(make, schema)
    candidates = df.mapInArrow(make, result_schema(events, query, ties=True))
    limit = query.ranking.limit
    # `+ 0.0` makes -0.0 and 0.0 one value, as they are to the engine. An absent event comes first: nulls do.
    best_first = [(column("score") + F.lit(0.0)).desc(), *(column(name).asc_nulls_first() for name in tie_names(query))]
    ranked_by = [column(name) for name in (*(["window_end"] if query.update else []), *query.group_names)]
    if not ranked_by:
        candidates = candidates.orderBy(*best_first).limit(limit)
    window = Window.partitionBy(*(ranked_by or [F.lit(0)])).orderBy(*best_first)
    ranked = candidates.withColumn("rank", F.row_number().over(window).cast("bigint"))
    return ranked.where(column("rank") <= limit).select(*(column(field.name) for field in schema))


def placement(df: DataFrame, plan: Plan) -> list[str]:
    """Say how the work is distributed over Spark tasks, for explain."""
    tasks, query = task_count(df), plan.query
    how = distribution_of(plan, tasks)
    lines = list(describe_distribution(how, plan, tasks))
    if needs_merge(plan, how):
        lines.append("each task ranks its own matches; the best of all tasks are merged in the JVM")
    if query.binding.time_kind is b.TimeKind.TEXT:
        time = query.binding.time
        lines.append(f"the text in `{time}` is parsed in Python, twice: cast it to a timestamp to save that")
    lines.append(describe_filter(plan))
    codes, others = ", class names as bytes" if class_names(plan) else "", "no other is read"
    if any(isinstance(item, b.WholeEvent) for item in query.output):
        others = "whole events are carried, as rows have no identity to join them back by after a second reading"
    lines.append(f"to Python: {len(query.schema)} columns{codes}; {others}")
    whole = "slices of time" if how.slices is not None else "keys" if how.keys and how.partial is None else None
    if whole is None:
        return [*lines, "in a task: all of its events at once"]
    return [*lines, f"in a task: whole {whole}, about {MAX_ROWS:,} events at once; those of a larger task wait on disk"]
