"""Number the ticks of UPDATE whose windows hold events, and write them as times: for totals and rankings alike.

A tick is a number. The windows that hold a whole match are those from `first` of its last event to `last` of its first
event: nothing else about a match matters. Tick k of a time is at k * d and holds [k * d - w, k * d). With doubles, both
bounds are the doubles nearest to these numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from streamsift.errors import BadInputError, UnsupportedQuery
from streamsift.logical.bound import BoundQuery, WindowKind
from streamsift.logical.durations import UNITS_PER_SECOND, in_units, nearest_double, unit_of, zero_of
from streamsift.runtime.arrays.dtypes import NO_LIMIT, Float64, Int32, Int64, Times
from streamsift.runtime.arrays.floor_quotients import floor_quotients
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.times import time_column, time_type
from streamsift.runtime.expressions.columns import take

if TYPE_CHECKING:
    from streamsift.runtime.events.owned import OwnedTicks

CHUNK_PAIRS = 1 << 20  # matches times ticks that are worked on at a time
EXACT = 2**53  # up to here every integer is a double
MAX_SCALE = 38  # behind the point of a decimal


@dataclass(frozen=True, slots=True)
class UpdateTicks:
    """first, last [places]: the first tick after an event, the last one whose window still holds it."""

    first: Int64
    last: Int64
    row_places: Int32  # of count ticks: the place of the tick's row
    share: OwnedTicks | None = None  # of a task that owns some of the ticks only: then they are numbered without gaps


def ticks_of(query: BoundQuery, events: Events) -> UpdateTicks:
    assert query.update is not None
    assert query.window is not None, "UPDATE needs WITHIN"
    if query.update.kind is WindowKind.COUNT:
        return _count_ticks(query, events, int(query.update.length), min(int(query.window.length), NO_LIMIT))
    first, last = _time_ticks(query, events)
    return UpdateTicks(first, last, np.empty(0, np.int32))


def first_ticks(query: BoundQuery, times: Times) -> Int64:
    """The first tick after each of the ascending times."""
    assert query.update is not None
    unit = unit_of(query)
    return floor_quotients(times, Fraction(-zero_of(unit)), in_units(query.update.length, unit)) + 1


def _time_ticks(query: BoundQuery, events: Events) -> tuple[Int64, Int64]:
    assert query.update is not None
    assert query.window is not None
    step, width = (in_units(length, events.unit) for length in (query.update.length, query.window.length))
    zero = Fraction(-zero_of(events.unit))
    first = floor_quotients(events.ticks, zero, step) + 1
    last = floor_quotients(events.ticks, zero + width, step)
    if events.ticks.dtype == np.float64 and not np.isfinite(events.ticks).all():
        _leave_infinite_out(events.ticks.view(np.float64), first, last)
    return first, last


def _leave_infinite_out(times: Float64, first: Int64, last: Int64) -> None:
    """Gives infinite times, which lie in no window, ticks next to those of the others: first is after last."""
    finite = np.flatnonzero(np.isfinite(times))
    lowest, highest = (int(first[finite[0]]), int(last[finite[-1]])) if finite.size else (1, 0)
    below, above = times == -np.inf, times == np.inf
    first[below], last[below] = lowest, lowest - 1
    first[above], last[above] = highest + 1, highest


def each_tick(first: Int64, last: Int64) -> Iterator[tuple[Int64, Int64]]:
    """Yield the numbers of matches with each tick from their first to their last, a chunk of pairs at a time."""
    bounds: Int64 = np.cumsum(np.maximum(last - first + 1, 0))
    total = int(bounds[-1]) if bounds.size else 0
    for begin in range(0, total, CHUNK_PAIRS):
        pairs = np.arange(begin, min(total, begin + CHUNK_PAIRS))
        which: Int64 = np.searchsorted(bounds, pairs, side="right")
        yield which, last[which] - (bounds[which] - 1 - pairs)


def _count_ticks(query: BoundQuery, events: Events, step: int, width: int) -> UpdateTicks:
    """Ticks of all partitions, numbered one partition after the other."""
    position = events.window_position.astype(np.int64)
    groups, count = events.partitions(query.partition_by)
    present = groups >= 0
    sizes = np.bincount(groups[present], minlength=count).astype(np.int64)
    bases = np.concatenate([[0], np.cumsum(sizes // step)]).astype(np.int64)
    base, size = bases[groups], sizes[groups] if count else np.zeros(position.size, np.int64)
    first = base + position // step  # the tick after the first whole n-th row that is not before this one
    last = base + np.minimum(position + width, size) // step - 1
    is_tick = present & ((position + 1) % step == 0)
    row_places = np.empty(int(bases[-1]), np.int32)
    row_places[first[is_tick]] = np.flatnonzero(is_tick)
    return UpdateTicks(first, last, row_places)


# --- as times --------------------------------------------------------------------------------------------------------


def tick_type(query: BoundQuery) -> pa.DataType:
    """Return the type of ticks: the time column's own, in the coarsest unit or scale that holds every tick.

    Ticks of dates are timestamps. Ticks between integers, and those of any floating-point column, are doubles.
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
        raise _too_fine(query, "a nanosecond", "timestamps have no finer unit")
    if pa.types.is_decimal(kind):
        for scale in range(kind.scale, MAX_SCALE + 1):
            if (step * 10**scale).denominator == 1:
                return pa.decimal128(MAX_SCALE, scale)
        raise _too_fine(query, f"{MAX_SCALE} decimal places", "decimals have no more")
    return kind if pa.types.is_integer(kind) and step.denominator == 1 else pa.float64()


def _too_fine(query: BoundQuery, limit: str, why: str) -> UnsupportedQuery:
    assert query.update is not None
    return UnsupportedQuery(
        f"UPDATE {query.update.text}, which is finer than {limit}",
        query.text,
        query.update.span,
        f"{why}: update less often.",
    )


def tick_times(query: BoundQuery, numbers: Int64) -> pa.Array:
    """The times of ticks that are multiples of a time. Each distinct tick is worked out once."""
    assert query.update is not None
    kind, step = tick_type(query), query.update.length
    distinct, which = np.unique(numbers, return_inverse=True)
    largest = max((abs(int(number)) for number in distinct[[0, -1]]), default=0) if distinct.size else 0
    if pa.types.is_floating(kind):
        if largest * step.numerator < EXACT and step.denominator < EXACT:
            values = pa.array(distinct * step.numerator / step.denominator)
        else:
            values = pa.array([nearest_double(number * step) for number in distinct.tolist()], kind)
    else:
        each = int(in_units(step, kind))
        if distinct.size:
            _check_range(query, kind, int(distinct[0]) * each, int(distinct[-1]) * each)
        if pa.types.is_decimal(kind):
            texts = [f"{number * each}e-{kind.scale}" for number in distinct.tolist()]
            values = pa.array(texts, pa.string()).cast(kind)
        else:
            whole = pa.uint64() if pa.types.is_uint64(kind) else pa.int64()
            values = pa.array([number * each for number in distinct.tolist()], whole).cast(kind)
    return take(values, pa.array(which))


def _check_range(query: BoundQuery, kind: pa.DataType, lowest: int, highest: int) -> None:
    if pa.types.is_decimal(kind):
        low, high = -(10**MAX_SCALE) + 1, 10**MAX_SCALE - 1
    elif pa.types.is_unsigned_integer(kind):
        low, high = 0, 2**kind.bit_width - 1
    else:
        low, high = -(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1
    if lowest < low or highest > high:
        assert query.update is not None
        raise BadInputError(
            f"A tick of UPDATE {query.update.text} does not fit {kind}, the type of its times.\n"
            f"Hint: cast `{query.binding.time}` to a wider type, or update more often."
        )


def tick_values(query: BoundQuery, events: Events, ticks: UpdateTicks, numbers: Int64) -> pa.Array:
    """Return the times of ticks by their numbers."""
    numbers = numbers if ticks.share is None else ticks.share.ticks(numbers)
    if query.update is None or query.update.kind is WindowKind.TIME:
        return tick_times(query, numbers)
    return events.columns.at(time_column(query), events.rows_at(ticks.row_places[numbers]))
