"""A query and its events in, stamps out: when each event is first shown by a result row, and when it leaves the window.

Without UPDATE a stamp is a place in the stream: the row of a time is made at its last place. With UPDATE it is the
number of a tick. An event counts at stamps from its own on; a match leaves with its first event.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numba import njit

from streamsift.logical.bound import TIME, BoundQuery, TimeKind, WindowKind
from streamsift.runtime.arrays.dtypes import Int32, Int64
from streamsift.runtime.arrays.grouping import group_entries
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.update_ticks import tick_times, ticks_of
from streamsift.runtime.expressions.codes import group_codes
from streamsift.runtime.expressions.columns import take

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
    places: Callable[[Int64], Int64] | None  # where the rows of stamps are made; None: between events, at ticks of time
    unit_of: Int32 | None = None  # UPDATE n EVENTS: each partition has its own ticks


def clock_of(query: BoundQuery, events: Events) -> Clock:
    if query.update is None:
        return _by_place(query, events)
    if query.update.kind is WindowKind.COUNT:
        return _by_row_ticks(query, events)
    return _by_time_ticks(query, events)


# --- a row for each time -------------------------------------------------------------------------------------------


def _by_place(query: BoundQuery, events: Events) -> Clock:
    count = events.rank.size
    own = np.arange(count, dtype=np.int64)
    last = np.append(np.flatnonzero(np.diff(events.rank)), count - 1) if count else own
    shown = own if last.size == count else last[events.rank]
    column = events.columns.whole(TIME if query.binding.time_kind is TimeKind.TEXT else query.binding.time)

    def times(stamps: Int64) -> pa.Array:
        return take(column, pa.array(events.rows_at(stamps.astype(np.int32))))

    return Clock(own, shown, leaving_of(query, events), times, is_ticking=False, places=lambda stamps: stamps)


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
    """An event is first seen by the first tick after it, and last by the last one whose window holds it."""
    ticks = ticks_of(query, events)
    leaves = ticks.last + 1
    return Clock(
        ticks.first,
        ticks.first,
        lambda places: leaves[places],
        lambda stamps: tick_times(query, stamps),
        is_ticking=True,
        places=None,
    )


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

    def places(stamps: Int64) -> Int64:
        return ticks[stamps].astype(np.int64)

    return Clock(own, own, lambda places: last[places], times, is_ticking=True, places=places, unit_of=partitions)


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
