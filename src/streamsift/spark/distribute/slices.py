"""Split the time of a plan into slices, and compute which slices need an event.

A slice is several windows long and owns the results of its time: matches that start in it, and aggregates and ticks
that fall into it. It needs its own events and some before and after it (`Slices`). An event is sent to its slice and to
the neighboring slices that need it. These follow from its time alone, without statistics or a second pass.

Contract: a monotone function maps times to slices; an event may be sent to too many slices, never to too few
(tests/spark/distribute/test_slices.py, test_total_slices.py,
test_rank_slices.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

from streamsift.language.syntax import Emit
from streamsift.logical import bound as b
from streamsift.physical import AggregatePlan, DetectPlan, Plan, RankPlan
from streamsift.physical.plan import JoinPlan, MergePlan
from streamsift.physical.stream import is_awaited, looks_back
from streamsift.runtime import output_schema
from streamsift.runtime.arrays.dtypes import Int64
from streamsift.spark.columns import column, counted_keys

SLICE_REACHES = 16  # a slice is 16 times as long as the time around it that it needs, so 1 row in 16 is replicated
MICROSECONDS = 1_000_000
_DAY_SECONDS = 86_400
_SHORTEST, _LARGEST = 4, 1 << 61  # so that slice numbers, and sums with them, fit in 64 bits
_FRACTIONS = 1 << 10  # of a slice of fractional times; a key's hash chooses at which one its slices begin
_ROUNDING = 2.0**-50  # relative rounding error of a double, with a margin

SliceRange = tuple[SparkColumn, SparkColumn, SparkColumn]  # the first slice that needs an event, its own, the last


@dataclass(frozen=True, slots=True)
class Slices:
    """How time is split: microseconds for timestamps, seconds for dates, the units of numeric times."""

    length: Fraction  # an integer unless times are fractional; with ticks, a multiple of the tick interval
    before: Fraction  # how far before its start a slice needs events
    after: Fraction  # how far after its end

    @property
    def copies(self) -> Fraction:
        """Return the approximate number of replicas per event."""
        return (self.before + self.after) / self.length


def slices(plan: Plan) -> Slices | str:
    """Return how to split the work of a plan by time, or why it cannot be split."""
    query = plan.query
    if counted_keys(query):
        return "a count window counts all earlier rows"
    if query.window is None:
        return "without WITHIN, a match can span any length of time"
    if query.binding.time_kind is b.TimeKind.TEXT:
        return "string times cannot be split (cast the time column to a timestamp)"
    width = _units(query, query.window.length)
    match plan:
        case DetectPlan():  # a slice owns the matches that start in it
            how: Slices | str = _reaching(_reach(query) if looks_back(plan) else Fraction(0), _reach(query))
        case AggregatePlan():
            how = _of_totals(plan, width)
        case RankPlan():
            how = _of_ranks(plan, width)
    if isinstance(how, Slices) and max(how.length, how.before, how.after) > _LARGEST:
        return "the window is longer than the longest slice"
    return how


def _of_totals(plan: AggregatePlan, width: Fraction) -> Slices | str:
    """Return slices that own the rows of their time, with the events around them that affect these rows."""
    query = plan.query
    if query.emit is Emit.CHANGES:
        return "with EMIT CHANGES, an event of any group can reveal a change in another"
    if any(alternative.groups is not None for alternative in plan.alternatives):
        return "events outside the window can decide whether a Kleene group is complete"
    if any(True for _ in query.pattern.windowed_definitions()):
        return "a definition has its own window"
    kind = output_schema(query).field("time").type
    if not _is_exact(query) or not (pa.types.is_integer(kind) or pa.types.is_temporal(kind)):
        return "aggregates are split by time only if times are integers, dates or timestamps"
    return _reaching(width * (1 + looks_back(plan)), width if is_awaited(plan) else Fraction(0))


def _of_ranks(plan: RankPlan, width: Fraction) -> Slices | str:
    """Return slices that own the ticks in them and at their end; without UPDATE, the matches that start in them."""
    query = plan.query
    if query.update is None and any(isinstance(branch, MergePlan | JoinPlan) for branch in plan.branches):
        return "without UPDATE, score components are ranked over the whole stream"
    # Negations and larger Kleene groups can reach beyond a match.
    reads_beyond = any(alternative.negations or alternative.groups for alternative in plan.alternatives)
    beyond = _reach(query) if reads_beyond else Fraction(0)
    if query.update is None:
        return _reaching(beyond, width + beyond)
    step = tick_distance(query)
    whole = step.denominator if _is_exact(query) else 1
    ticks = max(1, math.ceil(SLICE_REACHES * (width + 2 * beyond) / (step * whole))) * whole
    return Slices(ticks * step, width + beyond, beyond)


def _reaching(before: Fraction, after: Fraction) -> Slices:
    return Slices(Fraction(max(_SHORTEST, math.ceil(SLICE_REACHES * (before + after)))), before, after)


# --- units -----------------------------------------------------------------------------------------------------------


def _reach(query: b.BoundQuery) -> Fraction:
    """Return the maximum time between events that affect a match. The windows of nested definitions add up."""
    windows = (query.window, *(definition.window for definition in query.pattern.windowed_definitions()))
    return sum((_units(query, window.length) for window in windows if window is not None), Fraction(0))


def tick_distance(query: b.BoundQuery) -> Fraction:
    """Return the tick interval of UPDATE, in the units of slices."""
    assert query.update is not None
    return _units(query, query.update.length)


def _is_exact(query: b.BoundQuery) -> bool:
    """Return True if times are integers in the units of slices."""
    return query.binding.time_kind in (b.TimeKind.INTEGER, b.TimeKind.TIMESTAMP, b.TimeKind.DATE)


def _units(query: b.BoundQuery, length: Fraction) -> Fraction:
    return length * MICROSECONDS if query.binding.time_kind is b.TimeKind.TIMESTAMP else length


def describe_length(how: Slices, query: b.BoundQuery) -> str:
    """Return the length of a slice, for explain."""
    units = {b.TimeKind.TIMESTAMP: (MICROSECONDS, "s"), b.TimeKind.DATE: (_DAY_SECONDS, "d")}
    size, name = units.get(query.binding.time_kind, (1, f"`{query.binding.time}` units"))
    return f"{float(how.length / size):,g} {name}"


# --- in the JVM ------------------------------------------------------------------------------------------------------


def slices_around(query: b.BoundQuery, how: Slices, key: SparkColumn | None) -> SliceRange:
    """Return the slices that need an event.

    A key's hash shifts where its slices begin. Without the shift, all events of a stream shorter than one slice could
    be replicated; with it, few are.
    """
    time, kind = column(query.binding.time), query.schema.field(query.binding.time).type
    return _around_integer(_integer(time, kind), how, key) if _is_exact(query) else _around_double(time, how, key)


def _integer(time: SparkColumn, kind: pa.DataType) -> SparkColumn:
    """Return the time as a 64-bit integer."""
    if pa.types.is_integer(kind):
        return time.cast("bigint")
    if pa.types.is_date(kind):
        return F.unix_date(time).cast("bigint") * _DAY_SECONDS
    if kind.tz is not None:
        return F.unix_micros(time)
    # A timestamp without time zone: a cast to a number would use the session's zone.
    seconds = F.unix_date(time.cast("date")).cast("bigint") * _DAY_SECONDS + F.hour(time) * 3600 + F.minute(time) * 60
    return seconds * MICROSECONDS + (F.extract(F.lit("SECOND"), time) * MICROSECONDS).cast("bigint")


def _around_integer(time: SparkColumn, how: Slices, key: SparkColumn | None) -> SliceRange:
    """Return the slices around an integer time. Nothing here can overflow."""
    length, before, after = int(how.length), math.floor(how.before), math.floor(how.after)
    within = F.pmod(time, F.lit(length))
    below_zero = F.when(time % length < 0, 1).otherwise(0)  # `div` rounds toward zero
    owner = F.call_function("div", time, F.lit(length)) - below_zero
    if key is not None:
        moved = within + F.pmod(key, F.lit(length))
        within = F.pmod(moved, F.lit(length))
        owner = owner + F.when(moved >= length, 1).otherwise(0)
    back = F.call_function("div", F.lit(after) - within, F.lit(length)) + 1
    low = owner - F.when(within <= after, back).otherwise(0) if after else owner
    high = owner + F.call_function("div", within + before, F.lit(length)) if before else owner
    return low, owner, high


def _around_double(time: SparkColumn, how: Slices, key: SparkColumn | None) -> SliceRange:
    """Return the slices around a fractional time, widened by the rounding error of doubles."""
    time, length = time.cast("double"), float(how.length)
    slack = F.least(F.abs(time), F.lit(1e300)) * _ROUNDING + length * 1e-9
    moved = F.lit(0.0) if key is None else F.pmod(key, F.lit(_FRACTIONS)) / _FRACTIONS

    def slice_of(at: SparkColumn) -> SparkColumn:
        return F.floor(F.greatest(F.lit(-float(_LARGEST)), F.least(F.lit(float(_LARGEST)), at / length + moved)))

    low = slice_of(time - float(how.after) - slack)
    return low, slice_of(time), slice_of(time + float(how.before) + slack)


# --- in Python -------------------------------------------------------------------------------------------------------


def slice_numbers(times: pa.Array, query: b.BoundQuery, how: Slices) -> Int64:
    """Return the slices of result times, numbered as in the JVM. Only for aggregates, whose times are exact."""
    are_dates = pa.types.is_date(times.type)
    times = times.cast(pa.timestamp("s")) if are_dates else times
    numbers = times.cast(pa.int64()).to_numpy(zero_copy_only=False)
    if query.binding.time_kind is b.TimeKind.DATE and not are_dates:
        numbers = numbers // MICROSECONDS
    return np.floor_divide(numbers, int(how.length))
