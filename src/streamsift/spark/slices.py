"""Events in, the same events cut into slices of time out: each task owns the matches that start in its own slices.

A slice is eight windows long. An event goes to its own slice and, as a copy, to the one before it where a match that
starts there could reach it; where what comes before a match has a say (a negation at its lower edge, a group that could
begin earlier), also to the one after it. Spark's range partitioning puts slices that follow each other into one task,
which drops the copies whose originals it has: a task sees its slices and one window more, at most at each end.

Contract: every match is found by exactly one task, wherever the cuts fall (tests/spark/test_slices.py). A slice is
never divided, so a window that holds most events is still one task's work.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

from streamsift.logical import bound as b
from streamsift.physical import DetectPlan, Plan
from streamsift.physical.definitions import own_windows
from streamsift.physical.plan import Edge, Negation
from streamsift.runtime.events import in_units
from streamsift.runtime.kernels import Bool, Int64
from streamsift.spark.filters import column, counted_keys

SLICE_WINDOWS = 8  # copies are at most one row in eight; fewer slices would leave tasks of uneven size
SLICE, OWN, KEY = "$streamsift_slice", "$streamsift_own_slice", "$streamsift_key"
_LARGEST = 1 << 62
_DAY_MICROSECONDS = 86_400_000_000
_ROUNDING = 2.0**-50  # of a double, relative, with room to spare


@dataclass(frozen=True, slots=True)
class Slices:
    """How the time of a query is cut, in the units of its time column."""

    width: Fraction  # how far a match, or what has a say in it, reaches
    length: int
    looks_back: bool  # whether a task needs a window of events before its slices


def slices(plan: Plan) -> Slices | str:
    """How to cut the work of a plan by time, or why that cannot be."""
    query = plan.query
    if not isinstance(plan, DetectPlan):
        return "its values are over all events"
    if query.window is None:
        return "without WITHIN a match can hold events of any two times"
    if counted_keys(query):
        return "a count window counts all rows before it"
    if query.binding.time_kind is b.TimeKind.TEXT:
        return "text is not cut by time: cast the time column to a timestamp"
    time = query.schema.field(query.binding.time).type
    is_number = pa.types.is_decimal(time) or pa.types.is_floating(time)
    windows = [query.window, *(d.window for d in own_windows(query.pattern) if d.window is not None)]
    width = max(window.length if is_number else in_units(window.length, time) for window in windows)
    length = max(2, math.ceil(SLICE_WINDOWS * width))
    if length > _LARGEST:
        return "its window is longer than any slice"
    return Slices(width, length, _looks_back(plan))


def _looks_back(plan: DetectPlan) -> bool:
    return any(
        alternative.groups is not None or any(map(_has_lower_edge, alternative.negations))
        for alternative in plan.alternatives
    )


def _has_lower_edge(negation: Negation) -> bool:
    edges = {negation.lower.edge, negation.upper.edge}
    return Edge.WINDOW_START in edges or any(map(_has_lower_edge, negation.negations))


def describe_slices(how: Slices, query: b.BoundQuery, keys: Sequence[str]) -> Iterator[str]:
    time = query.schema.field(query.binding.time).type
    unit = "days" if pa.types.is_date(time) else "µs" if pa.types.is_timestamp(time) else f"of `{query.binding.time}`"
    of_key = f" of each {', '.join(keys)}" if keys else ""
    yield f"Spark: slices of time{of_key}, {how.length:,} {unit} or {SLICE_WINDOWS} windows each; a task has many"
    around = "at both ends" if how.looks_back else "at its end"
    yield f"a task finds the matches that start in its slices and sees one window more {around}"


def sliced(events: DataFrame, query: b.BoundQuery, how: Slices, keys: Sequence[SparkColumn], bad: str) -> DataFrame:
    """The events, copies included, with the slice they are here for and their own: ranges of slices in tasks.

    With keys, the slices of a key follow each other: a task has many keys, or a part of the time of one.
    """
    time = query.schema.field(query.binding.time).type
    exact = _exact_place(column(query.binding.time), time)
    low, own, high = _near(exact, how) if exact is not None else _around(column(query.binding.time), how)
    numbers = F.sequence(low, high if how.looks_back else own)
    good = ~F.col(bad)
    cut = events.withColumn(OWN, F.when(good, own)).withColumn(
        SLICE, F.explode(F.when(good, numbers).otherwise(F.array(F.lit(None).cast("bigint"))))
    )
    if not keys:
        return cut.repartitionByRange(SLICE)
    return cut.withColumn(KEY, F.when(good, F.xxhash64(*keys))).repartitionByRange(KEY, SLICE)


def _exact_place(time: SparkColumn, kind: pa.DataType) -> SparkColumn | None:
    """The time as a 64-bit integer in its own units, or None for numbers with decimals."""
    if pa.types.is_integer(kind):
        return time.cast("bigint")
    if pa.types.is_date(kind):
        return F.unix_date(time).cast("bigint")
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return F.unix_micros(time)
    if pa.types.is_timestamp(kind):  # on no zone's clock: a cast would go through the session's
        seconds = F.hour(time) * 3600 + F.minute(time) * 60
        within_minute = (F.extract(F.lit("SECOND"), time) * 1_000_000).cast("bigint")
        days = F.unix_date(time.cast("date")).cast("bigint")
        return days * _DAY_MICROSECONDS + seconds.cast("bigint") * 1_000_000 + within_minute
    return None


def _near(place: SparkColumn, how: Slices) -> tuple[SparkColumn, SparkColumn, SparkColumn]:
    """The slices before, of and after an exact time, as far as the window reaches. Nothing here can overflow."""
    length = F.lit(how.length)
    remainder = F.pmod(place, length)
    below_zero = F.when(place % length < 0, 1).otherwise(0)  # `div` goes towards zero
    own = F.call_function("div", place, length) - below_zero
    reach = F.lit(math.floor(how.width))
    low = F.when(remainder <= reach, own - 1).otherwise(own)
    high = F.when(length - remainder <= reach, own + 1).otherwise(own)
    return low, own, high


def _around(time: SparkColumn, how: Slices) -> tuple[SparkColumn, SparkColumn, SparkColumn]:
    """The same for numbers with decimals, by doubles: the reach is a little longer than the window."""
    place = time.cast("double")
    finite = F.least(F.abs(place), F.lit(1e300))
    reach = F.lit(float(how.width) * (1 + _ROUNDING)) + finite * _ROUNDING

    def slice_of(at: SparkColumn) -> SparkColumn:
        return F.floor(F.greatest(F.lit(-float(_LARGEST)), F.least(F.lit(float(_LARGEST)), at / how.length)))

    return slice_of(place - reach), slice_of(place), slice_of(place + reach)


def own_part(table: pa.Table, *, keyed: bool) -> tuple[pa.Table, Bool]:
    """The rows of a task without copies of what it has, and which of them are its own: only those start its matches.

    The last columns of the table are the own slice, the slice and, with keys, their hash.
    """
    width = table.num_columns - 2 - keyed
    own, slice_of, *hashes = (_numbers(table.column(i)) for i in range(width, table.num_columns))
    is_own = slice_of == own
    group = np.unique(hashes[0], return_inverse=True)[1] if keyed else np.zeros(table.num_rows, np.int64)
    count = int(group.max(initial=-1)) + 1
    first, last = np.full(count, np.iinfo(np.int64).max), np.full(count, np.iinfo(np.int64).min)
    np.minimum.at(first, group[is_own], own[is_own])
    np.maximum.at(last, group[is_own], own[is_own])
    keep = is_own | (own < first[group]) | (own > last[group])
    events = table.select(range(width))
    return (events, is_own) if keep.all() else (events.filter(pa.array(keep)), is_own[keep])


def _numbers(values: pa.ChunkedArray) -> Int64:
    """Integers; bad rows, which have none, are in a slice of their own."""
    return values.combine_chunks().fill_null(np.iinfo(np.int64).min).to_numpy(zero_copy_only=False)
