"""Events and an UPDATE clause in, the ticks whose windows hold an event out, as numbers and as times.

A tick is a number. The windows that hold a whole match are those from `first` of its last event to `last` of its first
event: nothing else about a match matters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from streamsift.errors import BadInputError
from streamsift.logical.bound import TIME, BoundQuery, TimeKind, WindowKind
from streamsift.runtime.codes import group_codes
from streamsift.runtime.columns import units_per_second
from streamsift.runtime.events import TEXT_TIME, Events, in_units
from streamsift.runtime.kernels import Int32, Int64
from streamsift.runtime.quotients import floor_quotients

if TYPE_CHECKING:
    from streamsift.runtime.shares import Share

CHUNK_PAIRS = 1 << 20  # matches times ticks that are worked on at a time


@dataclass(frozen=True, slots=True)
class Ticks:
    """first, last [places]: the first tick after an event, the last one whose window still holds it."""

    first: Int64
    last: Int64
    step: Fraction  # of time ticks, in the units of the time column (seconds for calendar times); 0 for count ticks
    row_places: Int32  # of count ticks: the place of the tick's row
    share: Share | None = None  # of a task that owns some of the ticks only: then they are numbered without gaps


def ticks_of(query: BoundQuery, events: Events) -> Ticks:
    assert query.update is not None
    assert query.window is not None, "UPDATE needs WITHIN"
    step, width = query.update.length, query.window.length
    if query.update.kind is WindowKind.COUNT:
        return _count_ticks(query, events, int(step), int(width))
    if events.ticks.dtype == np.float64 and not np.isfinite(events.ticks[[0, -1]] if events.ticks.size else 0.0).all():
        raise BadInputError("UPDATE needs finite times: an infinite one lies in no window.")
    each, reach = in_units(step, events.unit), in_units(width, events.unit)
    first = floor_quotients(events.ticks, Fraction(0), each) + 1
    return Ticks(first, floor_quotients(events.ticks, reach, each), step, np.empty(0, np.int32))


def each_tick(first: Int64, last: Int64) -> Iterator[tuple[Int64, Int64]]:
    """Yield the numbers of matches with each tick from their first to their last, a chunk of pairs at a time."""
    bounds: Int64 = np.cumsum(np.maximum(last - first + 1, 0))
    total = int(bounds[-1]) if bounds.size else 0
    for begin in range(0, total, CHUNK_PAIRS):
        pairs = np.arange(begin, min(total, begin + CHUNK_PAIRS))
        which: Int64 = np.searchsorted(bounds, pairs, side="right")
        yield which, last[which] - (bounds[which] - 1 - pairs)


def _count_ticks(query: BoundQuery, events: Events, step: int, width: int) -> Ticks:
    """Ticks of all partitions, numbered one partition after the other."""
    position = events.window_position.astype(np.int64)
    if query.partition_by:
        (groups,), count = group_codes([[events.columns.at(key, events.rows)] for key in query.partition_by])
    else:
        groups, count = np.zeros(position.size, np.int32), 1
    present = groups >= 0
    sizes = np.bincount(groups[present], minlength=count).astype(np.int64)
    bases = np.concatenate([[0], np.cumsum(sizes // step)]).astype(np.int64)
    base, size = bases[groups], sizes[groups] if count else np.zeros(position.size, np.int64)
    first = base + position // step  # the tick after the first whole n-th row that is not before this one
    last = base + np.minimum(position + width, size) // step - 1
    is_tick = present & ((position + 1) % step == 0)
    row_places = np.empty(int(bases[-1]), np.int32)
    row_places[first[is_tick]] = np.flatnonzero(is_tick)
    return Ticks(first, last, Fraction(0), row_places)


# --- as times --------------------------------------------------------------------------------------------------------


def tick_type(query: BoundQuery) -> pa.DataType:
    """The time column's type; but ticks of dates are timestamps, and broken ticks of integers doubles."""
    assert query.update is not None
    binding, step = query.binding, query.update.length
    own = TEXT_TIME if binding.time_kind is TimeKind.TEXT else query.schema.field(binding.time).type
    if query.update.kind is WindowKind.COUNT:
        return own
    if binding.time_kind is TimeKind.DATE:
        return pa.timestamp("us")
    if pa.types.is_timestamp(own):
        per_second = units_per_second(own)
        return own if per_second and (step * per_second).denominator == 1 else pa.timestamp("us", own.tz)
    if binding.time_kind is TimeKind.INTEGER:
        return pa.int64() if step.denominator == 1 else pa.float64()
    return own


def tick_values(query: BoundQuery, events: Events, ticks: Ticks, numbers: Int64) -> pa.Array:
    """`window_end` of ticks. Each distinct tick is worked out once."""
    kind = tick_type(query)
    numbers = numbers if ticks.share is None else ticks.share.ticks(numbers)
    distinct, which = np.unique(numbers, return_inverse=True)
    if query.update is not None and query.update.kind is WindowKind.COUNT:
        name = TIME if query.binding.time_kind is TimeKind.TEXT else query.binding.time
        values = events.columns.at(name, events.rows_at(ticks.row_places[distinct]))
    elif pa.types.is_timestamp(kind):
        scale = units_per_second(kind)
        assert scale is not None
        values = pa.array([int(number * ticks.step * scale) for number in distinct.tolist()], pa.int64()).cast(kind)
    elif pa.types.is_decimal(kind):
        exact = [number * ticks.step for number in distinct.tolist()]
        values = pa.array([Decimal(value.numerator) / Decimal(value.denominator) for value in exact], kind)
    else:
        exact = [number * ticks.step for number in distinct.tolist()]
        whole = pa.types.is_integer(kind)
        values = pa.array([int(value) if whole else float(value) for value in exact], kind)
    values = values if values.type == kind else values.cast(kind)
    return values.take(pa.array(which))
