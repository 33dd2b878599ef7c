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
from streamsift.spark.filters import can_be_bound, can_matter, column, is_bad
from streamsift.spark.hot_keys import HOT, with_hot_keys
from streamsift.spark.memory import gathered, told_if_too_large
from streamsift.spark.ranking import merged, needs_merge
from streamsift.spark.schemas import result_schema
from streamsift.spark.slices import slices_around
from streamsift.spark.spreading import Cut, Spreading, describe_spreading, shuffle_keys, spreading
from streamsift.spark.task import Task

BAD = "$streamsift_bad"  # a column beside the events until the shuffle is done


def run_batch(df: DataFrame, plan: Plan, *, bad_rows: str, observation: Observation | None) -> DataFrame:
    """The matches of a plan in a DataFrame, as a DataFrame."""
    how = spreading(plan, tasks_of(df))
    ties = isinstance(plan, RankPlan) and needs_merge(plan, how.keys, is_cut=how.is_dealt)
    events = _useful(_observed(df, plan, observation), plan)
    if how.cut is Cut.HOT:
        events = with_hot_keys(events, _useful(df, plan), _normal_keys(how.keys, plan.query), tasks_of(df))
    shuffled = _spread(events, plan, how, tasks_of(df)).drop(BAD, HOT)
    # By position: mapInArrow cannot name columns with dots or backticks.
    numbered = shuffled.toDF(*(f"c{i}" for i in range(len(shuffled.columns))))
    # With an observation the caller is told of dropped rows by it; else a worker warns.
    report: Callable[[BadRows], None] | None = None if observation is None else _say_nothing
    task = Task(plan, how, tasks_of(df), bad_rows, report, ties=ties)

    places = [plan.query.schema.names.index(key) for key in how.keys]

    def find(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrived = gathered(batches, places)
        return iter(()) if arrived is None else told_if_too_large(task.results(arrived), arrived, places)

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


def _useful(df: DataFrame, plan: Plan) -> DataFrame:
    """The columns that are needed, of rows that can be in a match, and of bad ones, which are marked: all are told."""
    events = df.select(*(column(name) for name in plan.query.schema.names)).withColumn(BAD, is_bad(plan.query))
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
    return dealt(events, arc_of(plan, how, tasks), tasks, ~F.col(BAD))


def arc_of(plan: Plan, how: Spreading, tasks: int) -> Arc:
    """The tasks of an event: that of its key, or all; those of the slices around it, counted on from its key's."""
    query = plan.query
    key = F.pmod(F.xxhash64(*_normal_keys(how.keys, query)), F.lit(1 << 31)) if how.keys else F.lit(0)
    if how.partial is not None:
        steps = [(s, a.query) for a, copied in zip(plan.alternatives, how.partial.copied, strict=True) for s in copied]
        is_copied = can_be_bound(steps)
        return Arc(key, key, F.lit(tasks) if is_copied is None else F.when(is_copied, tasks).otherwise(1))
    if how.slices is None:
        return Arc(key, key, F.lit(1))
    low, own, high = slices_around(query, how.slices)
    if how.cut is Cut.HOT:
        low, own, high = (F.when(F.col(HOT), number).otherwise(0) for number in (low, own, high))
    return Arc(low + key, own + key, high - low + 1)


def shuffled_by(events: DataFrame, keys: tuple[str, ...], query: b.BoundQuery) -> DataFrame:
    """All rows of a key in one partition; without keys, all rows."""
    return (
        events.repartition(*(F.when(~F.col(BAD), normal_key(key, query)) for key in keys))
        if keys
        else events.repartition(1)
    )


def _normal_keys(keys: tuple[str, ...], query: b.BoundQuery) -> list[SparkColumn]:
    return [normal_key(key, query) for key in keys]


def normal_key(key: str, query: b.BoundQuery) -> SparkColumn:
    """The key such that equal values hash alike: -0.0 is 0.0."""
    is_float = pa.types.is_floating(query.schema.field(key).type)
    return column(key) + F.lit(0.0) if is_float else column(key)


def placement(df: DataFrame, plan: Plan) -> list[str]:
    """How the work is spread over Spark tasks, for explain."""
    how = spreading(plan, tasks_of(df))
    lines = list(describe_spreading(how, plan, tasks_of(df)))
    if isinstance(plan, RankPlan) and needs_merge(plan, how.keys, is_cut=how.is_dealt):
        lines.append("each task ranks its own matches; the best of all tasks are merged in the JVM")
    if plan.query.binding.time_kind is b.TimeKind.TEXT:
        lines.append(
            f"the text in `{plan.query.binding.time}` is parsed in Python, twice: cast it to a timestamp to save that"
        )
    if can_matter(plan) is None:
        return [*lines, "before the shuffle: every row is kept"]
    return [*lines, "before the shuffle: only rows of the pattern's classes that pass their local predicates"]
