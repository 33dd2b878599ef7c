"""A query and its events in, stamps out: when each event is first shown by a result row, and when it leaves the window.

Without UPDATE a stamp is a place in the stream: the row of a time is made at its last place. With UPDATE it is the
number of a tick. An event counts at stamps from its own on; a match leaves with its first event.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numba import njit

from streamsift.logical.bound import TIME, BoundQuery, TimeKind, WindowKind
from streamsift.runtime.codes import group_codes
from streamsift.runtime.columns import UNITS_PER_SECOND, take
from streamsift.runtime.events import Events, in_units
from streamsift.runtime.kernels import Int32, Int64, group_entries
from streamsift.runtime.output import time_type
from streamsift.runtime.quotients import floor_quotients

NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Clock:
    """All arrays are [places]. `leaves` takes ascending places.

    own: the first stamp of an event; with equal times, its own place.
    shown: the stamp of the row in which it is first seen; ascends with the place.
    """

    own: Int64
    shown: Int64
    leaves: Callable[[Int32], Int64]
    times: Callable[[Int64], pa.Array]  # what result rows call a stamp
    is_ticking: bool
    unit_of: Int32 | None = None  # UPDATE n EVENTS: each partition has its own ticks


def clock_of(query: BoundQuery, events: Events) -> Clock:
    if query.update is None:
        return _by_place(query, events)
    if query.update.kind is WindowKind.COUNT:
        return _by_row_ticks(query, events)
    return _by_time_ticks(query, events)


def tick_time_type(query: BoundQuery) -> pa.DataType:
    """The type of `time`: the column's own; with UPDATE one that holds every tick."""
    kind = time_type(query)
    update = query.update
    if update is None or update.kind is WindowKind.COUNT:
        return kind
    if pa.types.is_date(kind):
        return pa.timestamp("us")
    if pa.types.is_timestamp(kind):
        units = [unit for unit in ("s", "ms", "us", "ns") if UNITS_PER_SECOND[unit] >= UNITS_PER_SECOND[kind.unit]]
        fits = [unit for unit in units if (update.length * UNITS_PER_SECOND[unit]).denominator == 1]
        return pa.timestamp(fits[0] if fits else "ns", kind.tz)
    if pa.types.is_decimal(kind):
        return pa.decimal128(38, max(kind.scale, _decimal_places(update.length)))
    if pa.types.is_integer(kind) and update.length.denominator != 1:
        return pa.float64()
    return kind


def _decimal_places(length: Fraction) -> int:
    return next(places for places in range(39) if (length * 10**places).denominator == 1)


# --- a row for each time -------------------------------------------------------------------------------------------


def _by_place(query: BoundQuery, events: Events) -> Clock:
    count = events.rank.size
    own = np.arange(count, dtype=np.int64)
    last = np.append(np.flatnonzero(np.diff(events.rank)), count - 1) if count else own
    shown = own if last.size == count else last[events.rank]
    column = events.columns.whole(TIME if query.binding.time_kind is TimeKind.TEXT else query.binding.time)

    def times(stamps: Int64) -> pa.Array:
        return take(column, pa.array(events.rows_at(stamps.astype(np.int32))))

    return Clock(own, shown, leaving_of(query, events), times, is_ticking=False)


def leaving_of(query: BoundQuery, events: Events) -> Callable[[Int32], Int64]:
    """The first place that is no longer in one window with the given ones."""
    window, count = query.window, events.rank.size
    if window is None:
        return lambda places: np.full(places.size, NEVER)
    if window.kind is WindowKind.COUNT and query.partition_by:
        offsets, order = group_entries(*_partitions(query, events))
        later = rows_later(offsets, order, count, int(events.width), NEVER)
        return lambda places: later[places]

    def leaves(places: Int32) -> Int64:
        after = events.window_limit(places).astype(np.int64) + 1
        return np.where(after < count, after, NEVER)

    return leaves


def _partitions(query: BoundQuery, events: Events) -> tuple[Int32, int]:
    """The partition of each place, -1 for none, and how many there are."""
    if not query.partition_by:
        return np.zeros(events.rank.size, np.int32), 1
    (codes,), count = group_codes([[events.columns.at(key, events.rows)] for key in query.partition_by])
    return codes, count


@njit(cache=True, nogil=True)
def rows_later(offsets: Int64, order: Int32, count: int, rows: int, never: int) -> Int64:
    """For each of `count` places the place that is `rows` rows later in its group; `never` if there is none."""
    found = np.full(count, never, np.int64)
    for group in range(offsets.size - 1):
        for i in range(offsets[group], offsets[group + 1] - rows):
            found[order[i]] = order[i + rows]
    return found


# --- ticks ---------------------------------------------------------------------------------------------------------


def _by_time_ticks(query: BoundQuery, events: Events) -> Clock:
    """Tick k is at k * d and sees [k * d - w, k * d): an event is first seen by the first tick after it."""
    assert query.update is not None
    assert query.window is not None
    step, width = (in_units(length, events.unit) for length in (query.update.length, query.window.length))
    own = floor_quotients(events.ticks, Fraction(0), step) + 1
    last = floor_quotients(events.ticks, width, step) + 1
    step_length, kind = query.update.length, tick_time_type(query)

    def times(stamps: Int64) -> pa.Array:
        return _tick_times(stamps, step_length, kind)

    return Clock(own, own, lambda places: last[places], times, is_ticking=True)


def _tick_times(stamps: Int64, step: Fraction, kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind):
        return pa.array(stamps * int(step * UNITS_PER_SECOND[kind.unit]), pa.int64()).cast(kind)
    if pa.types.is_decimal(kind):
        # Once per distinct tick of a result, which is small.
        texts = [str(int(stamp) * step.numerator * 10**kind.scale // step.denominator) for stamp in stamps]
        return pa.array([_shifted(text, kind.scale) for text in texts], pa.string()).cast(kind)
    if pa.types.is_floating(kind):
        return pa.array(stamps * step.numerator / step.denominator).cast(kind)
    return pa.array(stamps * int(step), pa.int64()).cast(kind)


def _shifted(text: str, scale: int) -> str:
    return f"{text}e-{scale}" if scale else text


def _by_row_ticks(query: BoundQuery, events: Events) -> Clock:
    """A tick after every n-th row of a partition; ticks are numbered on from one partition to the next."""
    assert query.update is not None
    assert query.window is not None
    step, width = int(query.update.length), min(int(query.window.length), events.rank.size + 1)
    partitions, count = _partitions(query, events)
    offsets, order = group_entries(partitions, count)
    own, last, ticks = row_ticks(offsets, order, events.rank.size, step, width, NEVER)
    column = events.columns.whole(TIME if query.binding.time_kind is TimeKind.TEXT else query.binding.time)

    def times(stamps: Int64) -> pa.Array:
        return take(column, pa.array(events.rows_at(ticks[stamps])))

    return Clock(own, own, lambda places: last[places], times, is_ticking=True, unit_of=partitions)


@njit(cache=True, nogil=True)
def row_ticks(
    offsets: Int64, order: Int32, count: int, step: int, width: int, never: int
) -> tuple[Int64, Int64, Int32]:
    """For each place (the first tick that sees it, the first that no longer does), and the place of each tick."""
    own, last = np.full(count, never, np.int64), np.full(count, never, np.int64)
    ticks = np.empty(count // step + 1, np.int32)
    first = 0
    for group in range(offsets.size - 1):
        rows = offsets[group + 1] - offsets[group]
        after = first + rows // step
        for i in range(rows):
            place = order[offsets[group] + i]
            tick = first + i // step
            own[place] = tick if tick < after else never
            last[place] = min(after, first + (i + width) // step)
            if (i + 1) % step == 0:
                ticks[tick] = place
        first = after
    return own, last, ticks[:first]
