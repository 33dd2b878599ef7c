"""A batch DataFrame of events in, a lazy DataFrame of matches out: one shuffle, one Python call per partition.

Contract: all rows of a key are in one partition (Spark's hash partitioning); every row that cannot be used (null time)
is in ONE partition, whatever its key, so that one worker can count and show them all (tests/spark/test_batch.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from operator import and_

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

from streamsift.logical import bound as b
from streamsift.physical import Plan, RankPlan
from streamsift.runtime import BadRows
from streamsift.spark.circle import Arc, dealt
from streamsift.spark.filters import can_matter, column, is_bad
from streamsift.spark.ranking import merged, needs_merge
from streamsift.spark.schemas import result_schema
from streamsift.spark.slices import slices_around
from streamsift.spark.spreading import Spreading, describe_spreading, shuffle_keys, spreading
from streamsift.spark.task import Task

BAD = "$streamsift_bad"  # a column beside the events until the shuffle is done


def run_batch(df: DataFrame, plan: Plan, *, bad_rows: str, observation: Observation | None) -> DataFrame:
    """The matches of a plan in a DataFrame, as a DataFrame."""
    how = spreading(plan, tasks_of(df))
    ties = isinstance(plan, RankPlan) and needs_merge(plan, how.keys, is_cut=how.is_dealt)
    events = _observed(df, plan, observation).select(*(column(name) for name in plan.query.schema.names))
    shuffled = _spread(_pruned(events.withColumn(BAD, is_bad(plan.query)), plan), plan, how, tasks_of(df)).drop(BAD)
    # By position: mapInArrow cannot name columns with dots or backticks.
    numbered = shuffled.toDF(*(f"c{i}" for i in range(len(shuffled.columns))))
    # With an observation the caller is told of dropped rows by it; else a worker warns.
    report: Callable[[BadRows], None] | None = None if observation is None else _say_nothing
    task = Task(plan, how, tasks_of(df), bad_rows, report, ties=ties)

    def find(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrived = list(batches)
        return task.results(pa.Table.from_batches(arrived)) if arrived else iter(())

    found = numbered.mapInArrow(find, result_schema(df.schema, plan.query, ties=ties))
    return merged(found, plan, result_schema(df.schema, plan.query)) if isinstance(plan, RankPlan) and ties else found


def tasks_of(df: DataFrame) -> int:
    """How many tasks a shuffle has, before Spark puts small ones together."""
    return int(df.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)


def _observed(df: DataFrame, plan: Plan, observation: Observation | None) -> DataFrame:
    if observation is None:
        return df
    marked = df.withColumn(BAD, is_bad(plan.query))
    return marked.observe(observation, F.count(F.lit(1)).alias("rows"), F.count_if(BAD).alias("bad_rows")).drop(BAD)


def _say_nothing(_: BadRows) -> None:
    pass


def _pruned(events: DataFrame, plan: Plan) -> DataFrame:
    """Rows that can be in a match, and the bad ones, which must be seen."""
    condition = can_matter_with_keys(plan)
    return events if condition is None else events.where(condition | F.col(BAD))


def can_matter_with_keys(plan: Plan) -> SparkColumn | None:
    """Rows that some step could bind and that have the keys which a match needs; None when no row can be left out."""
    conditions = [column(key).isNotNull() for key in shuffle_keys(plan) if _is_needed(key, plan)]
    matters = can_matter(plan)
    if matters is not None:
        conditions.append(matters)
    return reduce(and_, conditions) if conditions else None


def _is_needed(key: str, plan: Plan) -> bool:
    """Whether a row without this key can be in no match: it must equal another there, or be in a partition or group."""
    in_all = key in (*plan.query.partition_by, *plan.query.group_by)
    return in_all or all(alternative.least_events > 1 for alternative in plan.alternatives)


def _spread(events: DataFrame, plan: Plan, how: Spreading, tasks: int) -> DataFrame:
    if not how.is_dealt:
        return shuffled_by(events, how.keys, plan.query)
    return dealt(events, _arc(plan.query, how), tasks, ~F.col(BAD))


def _arc(query: b.BoundQuery, how: Spreading) -> Arc:
    """The tasks of an event: those of the slices around it, counted on from that of its key."""
    assert how.slices is not None
    key = F.pmod(F.xxhash64(*(normal_key(key, query) for key in how.keys)), F.lit(1 << 31)) if how.keys else F.lit(0)
    low, own, high = slices_around(query, how.slices)
    return Arc(low + key, own + key, high - low + 1)


def shuffled_by(events: DataFrame, keys: tuple[str, ...], query: b.BoundQuery) -> DataFrame:
    """All rows of a key in one partition; without keys, all rows."""
    return (
        events.repartition(*(F.when(~F.col(BAD), normal_key(key, query)) for key in keys))
        if keys
        else events.repartition(1)
    )


def normal_key(key: str, query: b.BoundQuery) -> SparkColumn:
    """The key such that equal values hash alike: -0.0 is 0.0."""
    is_float = pa.types.is_floating(query.schema.field(key).type)
    return column(key) + F.lit(0.0) if is_float else column(key)


def placement(df: DataFrame, plan: Plan) -> list[str]:
    """How the work is spread over Spark tasks, for explain."""
    how = spreading(plan, tasks_of(df))
    lines = list(describe_spreading(how, plan))
    if isinstance(plan, RankPlan) and needs_merge(plan, how.keys, is_cut=how.is_dealt):
        lines.append("each task ranks its own matches; the best of all tasks are merged in the JVM")
    if plan.query.binding.time_kind is b.TimeKind.TEXT:
        lines.append(
            f"the text in `{plan.query.binding.time}` is parsed in Python, twice: cast it to a timestamp to save that"
        )
    if can_matter(plan) is None:
        return [*lines, "before the shuffle: every row is kept"]
    return [*lines, "before the shuffle: only rows of the pattern's classes that pass their local predicates"]
