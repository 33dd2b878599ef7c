"""A batch DataFrame of events in, a lazy DataFrame of matches out: one shuffle, one Python call per partition.

Contract: all rows of a key are in one partition (Spark's hash partitioning); every row that cannot be used (null time)
is in ONE partition, whatever its key, so that one worker can count and show them all (tests/spark/test_batch.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from operator import and_

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

from streamsift.language.syntax import Emit
from streamsift.logical import bound as b
from streamsift.physical import AggregatePlan, DetectPlan, Plan, RankPlan
from streamsift.physical.choices import Spread
from streamsift.runtime import BadRows, execute
from streamsift.spark.filters import can_matter, column, counted_keys, is_bad
from streamsift.spark.rank_slices import TaskPart, by_slices, describe_cut, each_task, slices_of
from streamsift.spark.ranking import merged, needs_merge
from streamsift.spark.schemas import result_schema
from streamsift.spark.slices import Slices, describe_slices, own_part, sliced, slices
from streamsift.spark.total_slices import WINDOWS_IN_A_SLICE, of_own_slices, why_not_sliced, with_slices

BAD = "$streamsift_bad"  # a column beside the events until the shuffle is done


def run_batch(df: DataFrame, plan: Plan, *, bad_rows: str, observation: Observation | None) -> DataFrame:
    """The matches of a plan in a DataFrame, as a DataFrame."""
    # With an observation the caller is told of dropped rows by it; else a worker warns.
    return _run(_observed(df, plan, observation), plan, bad_rows, None if observation is None else _say_nothing)


def run_sliced(
    df: DataFrame, plan: Plan, by_slice: Plan, *, bad_rows: str, observation: Observation | None
) -> DataFrame:
    """The same result, counted slice by slice; `by_slice` is the plan with the slice as a group."""
    events = with_slices(_observed(df, plan, observation), plan)
    found = _run(events, by_slice, bad_rows, None if observation is None else _say_nothing)
    return of_own_slices(found, plan.query)


def _observed(df: DataFrame, plan: Plan, observation: Observation | None) -> DataFrame:
    if observation is None:
        return df
    marked = df.withColumn(BAD, is_bad(plan.query))
    return marked.observe(observation, F.count(F.lit(1)).alias("rows"), F.count_if(BAD).alias("bad_rows")).drop(BAD)


def _run(df: DataFrame, plan: Plan, bad_rows: str, report: Callable[[BadRows], None] | None) -> DataFrame:
    schema = plan.query.schema
    ranked = slices_of(plan, df) if isinstance(plan, RankPlan) and not shuffle_keys(plan) else None
    ties = isinstance(plan, RankPlan) and needs_merge(plan, shuffle_keys(plan), is_cut=ranked is not None)

    keys, cut = shuffle_keys(plan), cut_by_time(plan)

    def find(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrived = list(batches)
        if not arrived:
            return
        table = pa.Table.from_batches(arrived)
        if ranked is not None:
            parts: Iterable[TaskPart] = each_task(table, ranked, plan.query)
        elif isinstance(cut, Slices):
            parts = [TaskPart(*own_part(table, keyed=bool(keys)), None)]
        else:
            parts = [TaskPart(table, None, None)]
        for part in parts:
            # The session's time zone is in the arriving type; the same instants are meant.
            table = part.events.rename_columns(schema.names).cast(schema)
            yield from execute(
                plan, table, bad_rows=bad_rows, report=report, ties=ties, own=part.own, wanted=part.wanted
            )

    events = df.select(*(column(name) for name in schema.names)).withColumn(BAD, is_bad(plan.query))
    kept = _pruned(events, plan)
    if ranked is not None:
        shuffled = by_slices(kept, plan.query, ranked, F.col(BAD)).drop(BAD)
    elif isinstance(cut, Slices):
        shuffled = sliced(kept, plan.query, cut, [normal_key(key, plan.query) for key in keys], BAD).drop(BAD)
    else:
        shuffled = shuffled_by(kept, keys, plan.query).drop(BAD)
    # By position: mapInArrow cannot name columns with dots or backticks.
    numbered = shuffled.toDF(*(f"c{i}" for i in range(len(shuffled.columns))))
    found = numbered.mapInArrow(find, result_schema(df.schema, plan.query, ties=ties))
    return merged(found, plan, result_schema(df.schema, plan.query)) if isinstance(plan, RankPlan) and ties else found


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


def cut_by_time(plan: Plan) -> Slices | str:
    """The slices of time that tasks work on, or why they are not cut by time."""
    if isinstance(plan, DetectPlan) and plan.choices.spread is Spread.AUTO and shuffle_keys(plan):
        return "its keys are spread already"
    if isinstance(plan, DetectPlan) and plan.choices.spread is Spread.KEYS:
        return 'spread="keys" asks for no slices of time'
    return slices(plan)


def placement(plan: Plan) -> list[str]:
    """How the work is spread over Spark tasks, for explain."""
    keys, cut = shuffle_keys(plan), cut_by_time(plan)
    if isinstance(cut, Slices):
        lines = list(describe_slices(cut, plan.query, keys))
    elif keys:
        lines = [f"Spark: shuffled by {', '.join(keys)}, one Python call per partition"]
    elif isinstance(plan, AggregatePlan) and (obstacle := why_not_sliced(plan)) is None:
        parts = f"slices of time, {WINDOWS_IN_A_SLICE} windows long and overlapping by one"
        lines = [f"Spark: shuffled by {parts}; each slice counts its own rows, like a group"]
    elif isinstance(plan, AggregatePlan):
        lines = [f"Spark: one task: {obstacle}"]
    elif isinstance(plan, RankPlan):
        lines = list(describe_cut(plan))
    else:
        lines = [f"Spark: one task: {why_one_task(plan)}{'' if plan.keys else f', and {cut}'}"]
    if isinstance(plan, RankPlan) and needs_merge(plan, keys):
        lines.append("each partition ranks its own matches; the best of all partitions are merged in the JVM")
    if plan.query.binding.time_kind is b.TimeKind.TEXT:
        lines.append(
            f"the text in `{plan.query.binding.time}` is parsed in Python, twice: cast it to a timestamp to save that"
        )
    if can_matter(plan) is None:
        return [*lines, "before the shuffle: every row is kept"]
    return [*lines, "before the shuffle: only rows of the pattern's classes that pass their local predicates"]


def shuffle_keys(plan: Plan) -> tuple[str, ...]:
    """Columns to split the work by. Positions of a count window are counted over a whole stream or partition."""
    query = plan.query
    keys = _aggregate_keys(query) if isinstance(plan, AggregatePlan) else query.partition_by or plan.keys
    counted = [set(columns) for columns in counted_keys(query)]
    return tuple(key for key in keys if all(key in columns for columns in counted))


def _aggregate_keys(query: b.BoundQuery) -> tuple[str, ...]:
    """A group's rows are made where all of the group is; with EMIT CHANGES, where all events are."""
    assert query.window is not None or query.update is None
    if query.update is not None and query.update.kind is b.WindowKind.COUNT:
        return query.partition_by  # each partition has its own ticks
    if query.emit is Emit.CHANGES:
        return ()
    if query.window is not None and query.window.kind is b.WindowKind.COUNT:
        return query.partition_by if set(query.partition_by) <= set(query.group_by) else ()
    return query.group_by


def why_one_task(plan: Plan) -> str:
    """Why a plan without keys to shuffle by has none."""
    query = plan.query
    if not isinstance(plan, AggregatePlan):
        counted = "a count window counts the rows of all keys; PARTITION BY would count per key"
        return counted if plan.keys else "no column is shared by all variables"
    if query.emit is Emit.CHANGES:
        return "with EMIT CHANGES an event of any group can show that another changed"
    if query.window is not None and query.window.kind is b.WindowKind.COUNT:
        return "a count window counts the rows of all groups; PARTITION BY their columns would count per group"
    return "without GROUP BY the values are over all events"
