"""Cut the time of a plan into slices, and number the slices that need an event.

A slice is some windows long and owns what belongs to its time: the matches that start in it, the totals and ticks that
fall into it. For that it needs its events and some from before and after it, which `Slices` says. So an event goes to
its own slice and to those around it that need it, known from its time alone: no statistics, no second pass.

Contract: to which slice a time belongs is decided by one function that never falls as time rises; the slices that an
event goes to may be too many, never too few (tests/spark/distribute/test_slices.py, test_total_slices.py,
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

SLICE_REACHES = 16  # as long as what it needs beside its own: one row in 16 is copied, and slices are many
MICROSECONDS = 1_000_000
_DAY_SECONDS = 86_400
_SHORTEST, _LARGEST = 4, 1 << 61  # so that numbers of slices, and sums with them, stay inside 64 bits
_FRACTIONS = 1 << 10  # of a slice with decimals, at one of which those of a key begin
_ROUNDING = 2.0**-50  # of a double, relative, with room to spare


@dataclass(frozen=True, slots=True)
class Slices:
    """How time is cut, in microseconds of timestamps, seconds of dates, units of numbers.

    A slice needs what lies `before` its beginning and `after` its end. Of ticks it has `ticks_each`, from the one after
    its beginning to the one at its end.
    """

    length: Fraction  # a whole number unless times have decimals
    before: Fraction
    after: Fraction
    ticks_each: int = 1

    @property
    def copies(self) -> Fraction:
        """Return how many copies there are for each event, about."""
        return (self.before + self.after) / self.length


def slices(plan: Plan) -> Slices | str:
    """Return how to cut the work of a plan by time, or why that cannot be."""
    query = plan.query
    if counted_keys(query):
        return "a count window counts all rows before it"
    if query.window is None:
        return "without WITHIN a match can hold events of any two times"
    if query.binding.time_kind is b.TimeKind.TEXT:
        return "text is not cut by time: cast the time column to a timestamp"
    match plan:
        case DetectPlan():
            how: Slices | str = _of_matches(plan)
        case AggregatePlan():
            how = _of_totals(plan)
        case RankPlan():
            how = _of_ranks(plan)
    if isinstance(how, Slices) and max(how.length, how.before, how.after) > _LARGEST:
        return "its window is longer than any slice"
    return how


def _of_matches(plan: DetectPlan) -> Slices:
    """Return slices that own the matches that start in them; what lies before is needed if it affects matches."""
    query = plan.query
    assert query.window is not None
    # The window of a definition may begin anywhere in that of the statement, and another one inside it.
    reach = _units(query, query.window.length) + sum(_units(query, length) for length in _own_lengths(query))
    return _reaching(reach if looks_back(plan) else Fraction(0), reach)


def _own_lengths(query: b.BoundQuery) -> list[Fraction]:
    return [
        definition.window.length for definition in query.pattern.windowed_definitions() if definition.window is not None
    ]


def _of_totals(plan: AggregatePlan) -> Slices | str:
    """Return slices that own the rows of their time; what lies before or after is needed if it affects matches."""
    query = plan.query
    assert query.window is not None
    if query.emit is Emit.CHANGES:
        return "with EMIT CHANGES an event of any group can show that another changed"
    if any(alternative.groups is not None for alternative in plan.alternatives):
        return "whether a Kleene group is complete may depend on events outside the window"
    if any(True for _ in query.pattern.windowed_definitions()):
        return "a definition has a window of its own"
    kind = output_schema(query).field("time").type
    if not _is_exact(query) or not (pa.types.is_integer(kind) or pa.types.is_temporal(kind)):
        return "totals are cut by time where times are integers, dates or timestamps"
    width = _units(query, query.window.length)
    before = width * (1 + looks_back(plan))
    return _reaching(before, width if is_awaited(plan) else Fraction(0))


def _of_ranks(plan: RankPlan) -> Slices | str:
    """Return slices that own the ticks in them and at their end; without UPDATE, the matches that start there."""
    query = plan.query
    assert query.window is not None
    if query.update is None and any(isinstance(branch, MergePlan | JoinPlan) for branch in plan.branches):
        return "without UPDATE the parts of the score are ranked over the whole stream"
    width = _units(query, query.window.length)
    # What can be looked at beside a match: where negations end, and larger groups that it would be part of.
    own = (_units(query, length) for length in _own_lengths(query))
    looks_beyond = any(alternative.negations or alternative.groups for alternative in plan.alternatives)
    beyond = sum(own, width) if looks_beyond else Fraction(0)
    if query.update is None:
        return _reaching(beyond, width + beyond)
    step = _units(query, query.update.length)
    whole = step.denominator if _is_exact(query) else 1
    each = max(1, math.ceil(SLICE_REACHES * (width + 2 * beyond) / (step * whole))) * whole
    return Slices(each * step, width + beyond, beyond, each)


def _reaching(before: Fraction, after: Fraction) -> Slices:
    return Slices(_whole(SLICE_REACHES * (before + after)), before, after)


# --- units -----------------------------------------------------------------------------------------------------------


def _is_exact(query: b.BoundQuery) -> bool:
    """Return True if times are whole numbers of the slices' units."""
    return query.binding.time_kind in (b.TimeKind.INTEGER, b.TimeKind.TIMESTAMP, b.TimeKind.DATE)


def _units(query: b.BoundQuery, length: Fraction) -> Fraction:
    return length * MICROSECONDS if query.binding.time_kind is b.TimeKind.TIMESTAMP else length


def _whole(length: Fraction) -> Fraction:
    return Fraction(max(_SHORTEST, math.ceil(length)))


def describe_length(how: Slices, query: b.BoundQuery) -> str:
    """Return the length of a slice, for explain."""
    match query.binding.time_kind:
        case b.TimeKind.TIMESTAMP:
            return f"{float(how.length / MICROSECONDS):,g} s"
        case b.TimeKind.DATE:
            return f"{float(how.length / _DAY_SECONDS):,g} d"
        case _:
            return f"{float(how.length):,g} of `{query.binding.time}`"


# --- in the JVM ------------------------------------------------------------------------------------------------------


def slices_around(
    query: b.BoundQuery, how: Slices, key: SparkColumn | None
) -> tuple[SparkColumn, SparkColumn, SparkColumn]:
    """Return the first slice that needs an event, its own, and the last.

    The slices of a key begin where its hash says. So those of different keys begin at different times, and a stream
    that is shorter than a slice has copies of few of its events, never of all.
    """
    time, kind = column(query.binding.time), query.schema.field(query.binding.time).type
    return _near(_place(time, kind), how, key) if _is_exact(query) else _around(time, how, key)


def _place(time: SparkColumn, kind: pa.DataType) -> SparkColumn:
    """Return the time as a 64-bit integer."""
    if pa.types.is_integer(kind):
        return time.cast("bigint")
    if pa.types.is_date(kind):
        return F.unix_date(time).cast("bigint") * _DAY_SECONDS
    if kind.tz is not None:
        return F.unix_micros(time)
    # On no zone's clock: a cast would go through the session's.
    seconds = F.unix_date(time.cast("date")).cast("bigint") * _DAY_SECONDS + F.hour(time) * 3600 + F.minute(time) * 60
    return seconds * MICROSECONDS + (F.extract(F.lit("SECOND"), time) * MICROSECONDS).cast("bigint")


def _near(place: SparkColumn, how: Slices, key: SparkColumn | None) -> tuple[SparkColumn, SparkColumn, SparkColumn]:
    """Return the slices around a time by integers. Nothing here can overflow."""
    length, before, after = int(how.length), math.floor(how.before), math.floor(how.after)
    within = F.pmod(place, F.lit(length))
    below_zero = F.when(place % length < 0, 1).otherwise(0)  # `div` goes towards zero
    own = F.call_function("div", place, F.lit(length)) - below_zero
    if key is not None:
        moved = within + F.pmod(key, F.lit(length))
        within = F.pmod(moved, F.lit(length))
        own = own + F.when(moved >= length, 1).otherwise(0)
    back = F.call_function("div", F.lit(after) - within, F.lit(length)) + 1
    low = own - F.when(within <= after, back).otherwise(0) if after else own
    high = own + F.call_function("div", within + before, F.lit(length)) if before else own
    return low, own, high


def _around(time: SparkColumn, how: Slices, key: SparkColumn | None) -> tuple[SparkColumn, SparkColumn, SparkColumn]:
    """Return them by doubles, for times with decimals: what is near enough for an error of rounding is needed too."""
    place, length = time.cast("double"), float(how.length)
    slack = F.least(F.abs(place), F.lit(1e300)) * _ROUNDING + length * 1e-9
    moved = F.lit(0.0) if key is None else F.pmod(key, F.lit(_FRACTIONS)) / _FRACTIONS

    def slice_of(at: SparkColumn) -> SparkColumn:
        return F.floor(F.greatest(F.lit(-float(_LARGEST)), F.least(F.lit(float(_LARGEST)), at / length + moved)))

    low = slice_of(place - float(how.after) - slack)
    return low, slice_of(place), slice_of(place + float(how.before) + slack)


# --- in Python -------------------------------------------------------------------------------------------------------


def slice_numbers(times: pa.Array, query: b.BoundQuery, how: Slices) -> Int64:
    """Return the slices of result times, as the JVM numbers those of events: of totals only, whose times are exact."""
    numbers = times.cast(pa.int32()).cast(pa.int64()) if pa.types.is_date(times.type) else times.cast(pa.int64())
    places = numbers.to_numpy(zero_copy_only=False)
    if pa.types.is_date(times.type):
        places = places * _DAY_SECONDS
    elif query.binding.time_kind is b.TimeKind.DATE:
        places = places // MICROSECONDS
    found: Int64 = np.floor_divide(places, int(how.length))
    return found
