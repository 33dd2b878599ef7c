"""Number the ticks of UPDATE whose windows contain events, and convert them to times, for aggregates and rankings.

A tick is an integer. A match lies in the windows of the ticks from `first` of its last event to `last` of its first
event. With UPDATE d and WITHIN w, tick k is at k * d and its window is [k * d - w, k * d). For doubles, both bounds are
rounded to the nearest double.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pyarrow as pa

from streamsift.errors import BadInputError, UnsupportedQuery
from streamsift.logical.bound import BoundQuery, WindowKind
from streamsift.logical.durations import UNITS_PER_SECOND, in_units, nearest_double, unit_of, zero_of
from streamsift.runtime.arrays.doubles import floor_quotients
from streamsift.runtime.arrays.dtypes import NO_LIMIT, Float64, Int32, Int64, Times
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.times import time_column, time_type
from streamsift.runtime.expressions.columns import take

CHUNK_PAIRS = 1 << 20  # (match, tick) pairs processed at a time
EXACT = 2**53  # integers up to this one are exact in a double
MAX_SCALE = 38  # of a decimal


@dataclass(frozen=True, slots=True)
class OwnedTicks:
    """Time slices of `ticks_each` ticks: slice s has the ticks s * ticks_each + 1 to (s + 1) * ticks_each."""

    slices: Int64  # ascending
    ticks_each: int

    def of(self, ticks: UpdateTicks) -> UpdateTicks:
        """Drop the ticks of other slices and renumber the owned ticks without gaps."""
        return replace(ticks, first=self._next(ticks.first), last=self._next(ticks.last + 1) - 1, share=self)

    def _next(self, tick: Int64) -> Int64:
        """Return the new number of the first owned tick that is not before the given tick."""
        slices, nth = (tick - 1) // self.ticks_each, (tick - 1) % self.ticks_each
        before = np.searchsorted(self.slices, slices)
        is_owned = np.append(self.slices, 0)[before] == slices
        is_owned &= before < self.slices.size
        return before * self.ticks_each + np.where(is_owned, nth, 0)

    def ticks(self, numbers: Int64) -> Int64:
        """Return the ticks with the given new numbers."""
        return self.slices[numbers // self.ticks_each] * self.ticks_each + numbers % self.ticks_each + 1


@dataclass(frozen=True, slots=True)
class UpdateTicks:
    """The range of ticks whose windows contain each event; first > last if there are none."""

    first: Int64  # [places] the first tick after the event
    last: Int64  # [places] the last tick whose window contains the event
    row_places: Int32  # for UPDATE n EVENTS: the place of each tick's row
    share: OwnedTicks | None = None  # set if the task owns only some ticks, which are renumbered without gaps


def ticks_of(query: BoundQuery, events: Events) -> UpdateTicks:
    """Return the range of ticks whose windows contain each event."""
    assert query.update is not None
    assert query.window is not None, "UPDATE needs WITHIN"
    if query.update.kind is WindowKind.COUNT:
        return _count_ticks(query, events, int(query.update.length), min(int(query.window.length), NO_LIMIT))
    step, width = (in_units(length, events.unit) for length in (query.update.length, query.window.length))
    zero = Fraction(-zero_of(events.unit))
    first = floor_quotients(events.ticks, zero, step) + 1
    last = floor_quotients(events.ticks, zero + width, step)
    if events.ticks.dtype == np.float64 and not np.isfinite(events.ticks).all():
        _exclude_infinite(events.ticks.view(np.float64), first, last)
    return UpdateTicks(first, last, np.empty(0, np.int32))


def first_ticks(query: BoundQuery, times: Times) -> Int64:
    """Return the first tick after each of the ascending times."""
    assert query.update is not None
    unit = unit_of(query)
    return floor_quotients(times, Fraction(-zero_of(unit)), in_units(query.update.length, unit)) + 1


def _exclude_infinite(times: Float64, first: Int64, last: Int64) -> None:
    """Give infinite times, which lie in no window, an empty range of ticks next to those of finite times."""
    finite = np.flatnonzero(np.isfinite(times))
    lowest, highest = (int(first[finite[0]]), int(last[finite[-1]])) if finite.size else (1, 0)
    below, above = times == -np.inf, times == np.inf
    first[below], last[below] = lowest, lowest - 1
    first[above], last[above] = highest + 1, highest


def each_tick(first: Int64, last: Int64) -> Iterator[tuple[Int64, Int64]]:
    """Yield (match numbers, ticks) for every tick from each match's first to its last, in chunks of pairs."""
    bounds: Int64 = np.cumsum(np.maximum(last - first + 1, 0))
    total = int(bounds[-1]) if bounds.size else 0
    for begin in range(0, total, CHUNK_PAIRS):
        pairs = np.arange(begin, min(total, begin + CHUNK_PAIRS))
        which: Int64 = np.searchsorted(bounds, pairs, side="right")
        yield which, last[which] - (bounds[which] - 1 - pairs)


def _count_ticks(query: BoundQuery, events: Events, step: int, width: int) -> UpdateTicks:
    """Number the ticks of all partitions, one partition after the other."""
    position = events.window_position.astype(np.int64)
    groups, count = events.partitions(query.partition_by)
    present = groups >= 0
    sizes = np.bincount(groups[present], minlength=count).astype(np.int64)
    bases = np.concatenate([[0], np.cumsum(sizes // step)]).astype(np.int64)
    base, size = bases[groups], sizes[groups] if count else np.zeros(position.size, np.int64)
    first = base + position // step  # the tick of the first n-th row that is not before this one
    last = base + np.minimum(position + width, size) // step - 1
    is_tick = present & ((position + 1) % step == 0)
    row_places = np.empty(int(bases[-1]), np.int32)
    row_places[first[is_tick]] = np.flatnonzero(is_tick)
    return UpdateTicks(first, last, row_places)


# --- times of ticks --------------------------------------------------------------------------------------------------


def tick_type(query: BoundQuery) -> pa.DataType:
    """Return the type of ticks: that of the time column, in the coarsest unit or scale that is exact for every tick.

    Ticks of dates are timestamps. Ticks of a floating-point column, or between integers, are doubles.
    """
    update = query.update
    assert update is not None
    if update.kind is WindowKind.COUNT:
        return time_type(query)
    kind, step = unit_of(query), update.length
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        coarsest = "us" if pa.types.is_date(kind) else kind.unit
        for unit, per_second in UNITS_PER_SECOND.items():
            if per_second >= UNITS_PER_SECOND[coarsest] and (step * per_second).denominator == 1:
                return pa.timestamp(unit, getattr(kind, "tz", None))
        raise _too_fine(query, "a nanosecond")
    if pa.types.is_decimal(kind):
        for scale in range(kind.scale, MAX_SCALE + 1):
            if (step * 10**scale).denominator == 1:
                return pa.decimal128(MAX_SCALE, scale)
        raise _too_fine(query, f"{MAX_SCALE} decimal places")
    return kind if pa.types.is_integer(kind) and step.denominator == 1 else pa.float64()


def _too_fine(query: BoundQuery, limit: str) -> UnsupportedQuery:
    assert query.update is not None
    hint = "use a longer UPDATE interval."
    return UnsupportedQuery(f"UPDATE cannot be finer than {limit}", query.text, query.update.span, hint)


def _tick_times(query: BoundQuery, numbers: Int64) -> pa.Array:
    """Return the times of ticks of a time interval; compute each distinct tick once."""
    assert query.update is not None
    kind, step = tick_type(query), query.update.length
    distinct, which = np.unique(numbers, return_inverse=True)
    if pa.types.is_floating(kind):
        largest = max(abs(int(distinct[0])), abs(int(distinct[-1]))) if distinct.size else 0
        if largest * step.numerator < EXACT and step.denominator < EXACT:
            values = pa.array(distinct * step.numerator / step.denominator)
        else:
            values = pa.array([nearest_double(number * step) for number in distinct.tolist()], kind)
        return take(values, pa.array(which))
    each = int(in_units(step, kind))
    counts = [number * each for number in distinct.tolist()]
    _check_range(query, kind, counts)
    if pa.types.is_decimal(kind):
        values = pa.array([f"{count}e-{kind.scale}" for count in counts], pa.string()).cast(kind)
    else:
        values = pa.array(counts, pa.uint64() if pa.types.is_uint64(kind) else pa.int64()).cast(kind)
    return take(values, pa.array(which))


def _check_range(query: BoundQuery, kind: pa.DataType, counts: list[int]) -> None:
    """Raise if one of the ascending counts is out of range for the type."""
    if pa.types.is_decimal(kind):
        low, high = -(10**MAX_SCALE) + 1, 10**MAX_SCALE - 1
    else:
        is_signed = not pa.types.is_unsigned_integer(kind)
        high = 2 ** (kind.bit_width - is_signed) - 1
        low = -high - 1 if is_signed else 0
    if counts and (counts[0] < low or counts[-1] > high):
        assert query.update is not None
        raise BadInputError(
            f"a tick of UPDATE {query.update.text} does not fit in {kind}, the type of `{query.binding.time}`\n"
            f"Hint: cast `{query.binding.time}` to a wider type, or use a shorter UPDATE interval."
        )


def tick_values(query: BoundQuery, events: Events, ticks: UpdateTicks, numbers: Int64) -> pa.Array:
    """Return the times of the ticks with the given numbers."""
    numbers = numbers if ticks.share is None else ticks.share.ticks(numbers)
    if query.update is None or query.update.kind is WindowKind.TIME:
        return _tick_times(query, numbers)
    return events.columns.at(time_column(query), events.rows_at(ticks.row_places[numbers]))
