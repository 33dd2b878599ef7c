"""A DataFrame of events without a key in, the same cut in time out: each event once in every task it matters to.

Time is cut into slices a few windows long, and the slices go round the tasks. A task sees its slices and what lies in
one window with them; it owns the ticks, or the matches that start, in its slices. Nothing is known of the data before
it runs: no statistics, no second pass.

Contract: which task owns a row is decided here, once, by a function that never falls as time rises; what a task sees
beside its own rows may be too much, never too little (tests/spark/test_rank_slices.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)
from pyspark.sql.types import DateType, NumericType, TimestampType

from streamsift.logical import bound as b
from streamsift.physical.definitions import own_windows
from streamsift.physical.plan import JoinPlan, MergePlan, RankPlan
from streamsift.runtime.kernels import Bool
from streamsift.runtime.shares import Share
from streamsift.runtime.ticks import Ticks
from streamsift.spark.filters import column

WINDOWS_EACH = 4  # windows that a slice is long: so most events go to one task, some to two
SHORTEST = Fraction(1, 1000)  # windows, in seconds or the column's own units, below which doubles tell too little
TASK, OWN = "$streamsift_task", "$streamsift_own"  # columns beside the events
DAY = 86_400


@dataclass(frozen=True, slots=True)
class RankSlices:
    """Lengths in seconds, or in the time column's own units; `ticks_each` of a slice, 1 without UPDATE."""

    length: Fraction
    ticks_each: int
    before: Fraction  # what a task sees before a slice
    after: Fraction  # and behind it
    tasks: int


def slices_of(plan: RankPlan, df: DataFrame) -> RankSlices | None:
    """How the stream is cut; None if one task must see all of it."""
    query = plan.query
    if why_not(plan) or not isinstance(df.schema[query.binding.time].dataType, (NumericType, TimestampType, DateType)):
        return None
    assert query.window is not None
    width = query.window.length
    # What can be looked at beside a match: where negations end, and larger groups that it would be part of.
    beyond = sum((w.window.length for w in own_windows(query.pattern) if w.window is not None), width)
    looks_beyond = any(alternative.negations or alternative.groups for alternative in plan.alternatives)
    beyond = beyond if looks_beyond else Fraction(0)
    tasks = int(df.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)
    if query.update is not None:
        each = max(1, ceil(WINDOWS_EACH * width / query.update.length))
        return RankSlices(each * query.update.length, each, width + beyond, beyond, tasks)
    return RankSlices(WINDOWS_EACH * width, 1, beyond, width + beyond, tasks)


def why_not(plan: RankPlan) -> str | None:
    """What keeps a ranking from being cut in time; None if nothing does."""
    query = plan.query
    windows = [query.window, *(definition.window for definition in own_windows(query.pattern))]
    if query.window is None:
        return "without WITHIN a match may be as long as the stream"
    if any(window is not None and window.kind is b.WindowKind.COUNT for window in windows):
        return "a count window counts the rows of all tasks"
    if query.window.length < SHORTEST:
        return "the window is too short to be cut by"
    if query.binding.time_kind is b.TimeKind.TEXT:
        return "times are text"
    if query.update is None and any(isinstance(branch, MergePlan | JoinPlan) for branch in plan.branches):
        return "without UPDATE the parts of the score are ranked over the whole stream"
    return None


def describe_cut(plan: RankPlan) -> Iterator[str]:
    """How a ranking without keys is spread over tasks, for explain."""
    why = why_not(plan)
    if why is not None:
        counted = "a count window counts the rows of all keys; PARTITION BY would count per key"
        yield f"Spark: one task: {counted if plan.keys else f'no column is shared by all variables, and {why}'}"
        return
    yield "Spark: cut in time, each task with slices of its own and what lies in one window with them"
    if plan.query.update is None:
        yield "each task ranks the matches that start in its slices; the best of all are merged in the JVM"


def by_slices(events: DataFrame, query: b.BoundQuery, slices: RankSlices, bad: SparkColumn) -> DataFrame:
    """The events with their task, once for each that needs them; bad rows go to the task null."""
    seconds = _seconds(query, events)
    length = F.lit(float(slices.length))
    # Doubles may be off by a little: what lies that near to a border is seen on both sides.
    slack = F.abs(seconds) * F.lit(2.0**-50) + length * F.lit(1e-6)

    def slice_at(time: SparkColumn) -> SparkColumn:
        return F.floor(time / length).cast("bigint")

    low = slice_at(seconds - F.lit(float(slices.after)) - slack)
    high = slice_at(seconds + F.lit(float(slices.before)) + slack)
    own = F.pmod(slice_at(seconds), F.lit(slices.tasks)).cast("int")
    seen = F.array_distinct(F.transform(F.sequence(low, high), lambda s: F.pmod(s, F.lit(slices.tasks)).cast("int")))
    tasks = F.when(bad, F.array(F.lit(None).cast("int"))).otherwise(seen)
    found = events.withColumn(OWN, own).withColumn(TASK, F.explode(tasks))
    return found.withColumn(OWN, F.coalesce(F.col(OWN) == F.col(TASK), F.lit(False))).repartition(F.col(TASK))


def _seconds(query: b.BoundQuery, events: DataFrame) -> SparkColumn:
    time = column(query.binding.time)
    if isinstance(events.schema[query.binding.time].dataType, DateType):
        return F.unix_date(time).cast("double") * F.lit(float(DAY))
    return time.cast("double")


@dataclass(frozen=True, slots=True)
class TaskPart:
    """The events of one task, and what it owns: ticks, or rows that its matches start with; nothing of bad rows."""

    events: pa.Table
    own: Bool | None
    wanted: Callable[[Ticks], Ticks] | None


def each_task(table: pa.Table, slices: RankSlices, query: b.BoundQuery) -> Iterator[TaskPart]:
    """The tasks in a table, whose last two columns are OWN and TASK: a partition may have the rows of several."""
    *_, own, task = table.columns
    events = table.select(range(table.num_columns - 2))
    for number in pc.unique(task).to_pylist():
        if number is None:
            yield TaskPart(events.filter(pc.is_null(task)), None, None)
            continue
        where = pc.fill_null(pc.equal(task, number), False)
        if query.update is None:
            yield TaskPart(events.filter(where), np.asarray(own.filter(where), np.bool_), None)
        else:
            yield TaskPart(events.filter(where), None, Share(number, slices.tasks, slices.ticks_each).owned)
