"""A batch DataFrame of events in, a lazy DataFrame of matches out: one shuffle, one Python call per partition.

Contract: all rows of a stop (`spark/distribute/sharding.py`) are in one partition; every row that cannot be used (null time)
is in ONE partition, whatever its key, so that one worker can count and show them all (tests/spark/batch/test_batch.py).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from functools import reduce
from operator import and_

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

from streamsift.logical import bound as b
from streamsift.physical import AggregatePlan, Plan, RankPlan
from streamsift.runtime import BadRows
from streamsift.spark.batch.memory import told_if_too_large
from streamsift.spark.batch.rank import merged
from streamsift.spark.batch.spill import MOST_ROWS, tables
from streamsift.spark.batch.task import Task
from streamsift.spark.columns import (
    CODE,
    can_be_bound,
    can_matter,
    class_code,
    class_names,
    column,
    is_bad,
    result_schema,
)
from streamsift.spark.distribute import (
    STOP,
    WAY,
    Arc,
    Spreading,
    dealt,
    describe_spreading,
    needs_merge,
    shuffle_keys,
    slices_around,
    spreading,
)

_KEY = "$streamsift_key"
BAD = "$streamsift_bad"  # a column beside the events until the shuffle is done


def run_batch(df: DataFrame, plan: Plan, *, bad_rows: str, observation: Observation | None) -> DataFrame:
    """The matches of a plan in a DataFrame, as a DataFrame."""
    how = spreading(plan, tasks_of(df))
    ties = isinstance(plan, RankPlan) and needs_merge(plan, how.keys, is_cut=how.is_copied)
    events = _useful(_observed(df, plan, observation), plan)
    names = class_names(plan)
    if names:
        events = events.withColumn(CODE, class_code(plan.query, names))
    shuffled = _spread(events, plan, how, tasks_of(df)).select(*_carried(plan, how, is_coded=bool(names)))
    # By position: mapInArrow cannot name columns with dots or backticks.
    numbered = shuffled.toDF(*(f"c{i}" for i in range(len(shuffled.columns))))
    # With an observation the caller is told of dropped rows by it; else a worker warns.
    report: Callable[[BadRows], None] | None = None if observation is None else _say_nothing
    task = Task(plan, how, bad_rows, report, ties, names)
    places = [plan.query.schema.names.index(key) for key in how.keys]
    stop = len(plan.query.schema)

    def find(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for arrived in tables(batches, stop, places):
            yield from told_if_too_large(task.results(arrived), arrived, places)

    found = numbered.mapInArrow(find, result_schema(df.schema, plan.query, ties=ties))
    return merged(found, plan, result_schema(df.schema, plan.query)) if isinstance(plan, RankPlan) and ties else found


def _carried(plan: Plan, how: Spreading, *, is_coded: bool) -> Iterator[SparkColumn]:
    """The columns that cross to Python: those of the query, with classes as numbers, and where events are."""
    for name in plan.query.schema.names:
        yield F.col(CODE) if is_coded and name == plan.query.binding.type else column(name)
    yield F.col(STOP)
    if how.is_copied:
        yield F.col(WAY)


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
    conditions = [column(key).isNotNull() for key in _needed_keys(plan)]
    matters = can_matter(plan)
    if matters is not None:
        conditions.append(matters)
    return reduce(and_, conditions) if conditions else None


def asked_of_rows(plan: Plan) -> Hashable:
    """Equal for plans on the same events for which the same rows can matter."""
    asked = frozenset(
        (a.query.variables[step.variable].event_class, step.local) for a in plan.alternatives for step in a.all_steps()
    )
    return _needed_keys(plan), can_matter(plan) is None or asked


def _needed_keys(plan: Plan) -> tuple[str, ...]:
    """The keys without which a row can be in no match: it must equal another there, or be in a partition or group."""
    in_all = (*plan.query.partition_by, *plan.query.group_by)
    are_several = all(alternative.least_events > 1 for alternative in plan.alternatives)
    return tuple(key for key in shuffle_keys(plan) if are_several or key in in_all)


def _spread(events: DataFrame, plan: Plan, how: Spreading, tasks: int) -> DataFrame:
    """The key's number is a column of its own: it is needed more than once."""
    numbered = events.withColumn(_KEY, key_number(plan, how))
    return dealt(numbered, arc_of(plan, how, tasks, F.col(_KEY)), tasks, ~F.col(BAD))


def key_number(plan: Plan, how: Spreading) -> SparkColumn:
    keys = [normal_key(key, plan.query) for key in how.keys]
    return F.pmod(F.xxhash64(*keys), F.lit(1 << 31)) if keys else F.lit(0).cast("bigint")


def arc_of(plan: Plan, how: Spreading, tasks: int, key: SparkColumn) -> Arc:
    """The stops of an event: that of its key, or all tasks; those of the slices around it, from its key's on."""
    if how.partial is not None:
        steps = [(s, a.query) for a, copied in zip(plan.alternatives, how.partial.copied, strict=True) for s in copied]
        is_copied, task = can_be_bound(steps), F.pmod(key, F.lit(tasks))
        if is_copied is None:
            return Arc(F.lit(0), task, F.lit(tasks - 1))
        return Arc(F.when(is_copied, 0).otherwise(task), task, F.when(is_copied, tasks - 1).otherwise(task))
    if how.slices is None:
        return Arc(key, key)
    # The slices of totals begin at the same time for all keys: in Python, too, they are known from the time alone.
    moved_by = key if how.keys and not isinstance(plan, AggregatePlan) else None
    low, own, high = slices_around(plan.query, how.slices, moved_by)
    return Arc(low + key, own + key, high + key)


def normal_key(key: str, query: b.BoundQuery) -> SparkColumn:
    """The key such that equal values hash alike: -0.0 is 0.0."""
    is_float = pa.types.is_floating(query.schema.field(key).type)
    return column(key) + F.lit(0.0) if is_float else column(key)


def placement(df: DataFrame, plan: Plan) -> list[str]:
    """How the work is spread over Spark tasks, for explain."""
    how = spreading(plan, tasks_of(df))
    lines = list(describe_spreading(how, plan, tasks_of(df)))
    if isinstance(plan, RankPlan) and needs_merge(plan, how.keys, is_cut=how.is_copied):
        lines.append("each task ranks its own matches; the best of all tasks are merged in the JVM")
    if plan.query.binding.time_kind is b.TimeKind.TEXT:
        lines.append(
            f"the text in `{plan.query.binding.time}` is parsed in Python, twice: cast it to a timestamp to save that"
        )
    matters = "every row is kept"
    if can_matter(plan) is not None:
        matters = "only rows of the pattern's classes that pass their local predicates"
    return [*lines, f"before the shuffle: {matters}", _describe_carried(plan), _describe_tables(how)]


def _describe_carried(plan: Plan) -> str:
    """What crosses to Python, for explain."""
    crosses = f"to Python: {len(plan.query.schema)} columns{', class names as bytes' if class_names(plan) else ''}"
    if not any(isinstance(item, b.WholeEvent) for item in plan.query.output):
        return f"{crosses}; no other is read"
    return f"{crosses}; whole events are carried, as rows have no identity to join them back by after a second reading"


def _describe_tables(how: Spreading) -> str:
    """What a task has in memory at once, for explain."""
    whole = "slices of time" if how.slices is not None else "keys"
    if how.partial is not None or not (how.keys or how.slices):
        return "in a task: all of its events at once"
    return f"in a task: whole {whole}, about {MOST_ROWS:,} events at once; those of a larger task wait on disk"
