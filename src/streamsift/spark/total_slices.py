"""Totals over all keys in, the same totals out of many tasks: the stream is cut into slices of time that overlap.

A slice owns the result rows whose time lies in it. They need the events of one window before them, and of one behind
them where a negation reaches to the end of the window: an event goes to every slice that needs it. The slice is then
one more GROUP BY column, so a task counts all its slices in one call.

Contract: every result row comes from exactly one slice, which has all events that the row depends on
(tests/spark/test_total_slices.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import ceil

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)
from pyspark.sql.types import DataType, DateType, IntegralType, TimestampNTZType, TimestampType

from streamsift.language.syntax import Emit
from streamsift.logical import bound as b
from streamsift.physical import AggregatePlan, Plan
from streamsift.physical.definitions import own_windows
from streamsift.physical.plan import Edge, Negation
from streamsift.runtime import output_schema
from streamsift.spark.filters import column, is_bad

SLICE = "$streamsift_slice"
SLICE_FIELD = pa.field(SLICE, pa.int64())
WINDOWS_IN_A_SLICE = 8  # an eighth of the events goes to two slices
MICROSECONDS = 1_000_000
_KINDS = (b.TimeKind.INTEGER, b.TimeKind.TIMESTAMP, b.TimeKind.DATE)


def why_not_sliced(plan: AggregatePlan) -> str | None:
    """Why the result cannot be put together from slices of time; None if it can."""
    query = plan.query
    if query.emit is Emit.CHANGES:
        return "with EMIT CHANGES an event of any group can show that another changed"
    if query.window is None:
        return "without GROUP BY and WITHIN the values are over all events so far"
    if query.window.kind is b.WindowKind.COUNT:
        return "a count window counts the rows of all groups; PARTITION BY their columns would count per group"
    if any(alternative.groups is not None for alternative in plan.alternatives):
        return "whether a Kleene group is complete may depend on events outside the window"
    if any(True for _ in own_windows(query.pattern)):
        return "a definition has a window of its own"
    ticks = output_schema(query).field("time").type
    if query.binding.time_kind not in _KINDS or not (pa.types.is_integer(ticks) or pa.types.is_temporal(ticks)):
        return "slices of time are cut where times are integers, dates or timestamps"
    return None


def is_sliced(plan: Plan) -> bool:
    """Whether slices are better than a task for each group, or one for all."""
    return isinstance(plan, AggregatePlan) and not plan.query.group_by and why_not_sliced(plan) is None


def with_slices(df: DataFrame, plan: Plan) -> DataFrame:
    """Every event once for each slice that needs it; bad rows once, so that they are counted once."""
    query = plan.query
    window, length = _lengths(query)
    time = _ticks(column(query.binding.time), df.schema[query.binding.time].dataType)
    negations = (n for alternative in plan.alternatives for n in alternative.negations)
    first = time - _whole(window) if _reaches_behind(negations) else time
    slices = F.sequence(_slice(first, length), _slice(time + _whole(window), length))
    return df.withColumn(SLICE, F.explode_outer(F.when(~is_bad(query), slices)))


def of_own_slices(result: DataFrame, query: b.BoundQuery) -> DataFrame:
    """The rows that their slice owns."""
    _, length = _lengths(query)
    time = _ticks(column("time"), result.schema["time"].dataType)
    return result.where(_slice(time, length) == F.col(SLICE)).drop(SLICE)


def _lengths(query: b.BoundQuery) -> tuple[int, int]:
    """Of the window and of a slice, in whole units, rounded up."""
    assert query.window is not None
    unit = Fraction(1) if query.binding.time_kind is b.TimeKind.INTEGER else Fraction(MICROSECONDS)
    window = ceil(query.window.length * unit)
    return window, max(1, WINDOWS_IN_A_SLICE * window)


def _slice(time: SparkColumn, length: int) -> SparkColumn:
    """floor(time / length), exactly, also below zero."""
    return F.floor((time - F.pmod(time, _whole(length))) / _whole(length)).cast("bigint")


def _whole(number: int) -> SparkColumn:
    return F.lit(str(number)).cast("decimal(38,0)")


def _ticks(time: SparkColumn, kind: DataType) -> SparkColumn:
    """The time in whole units, in a type that does not overflow."""
    match kind:
        case IntegralType():
            ticks = time
        case TimestampType():
            ticks = F.unix_micros(time)
        case DateType():
            ticks = F.unix_date(time).cast("decimal(38,0)") * F.lit(86_400 * MICROSECONDS)
        case TimestampNTZType():
            # Without a zone: not by way of a timestamp with one.
            days = F.unix_date(time.cast("date")).cast("decimal(20,0)")
            clock = F.hour(time) * 3600 + F.minute(time) * 60
            ticks = (days * 86_400 + clock + F.extract(F.lit("SECOND"), time)) * F.lit(MICROSECONDS)
        case _:
            raise AssertionError(f"no slices of {kind}")
    return ticks.cast("decimal(38,0)")


def _reaches_behind(negations: Iterable[Negation]) -> bool:
    """Whether a negation reaches past the end of a match."""
    return any(n.upper.edge is Edge.WINDOW_END or _reaches_behind(n.negations) for n in negations)
