"""Compute the stamps at which each event enters and leaves the window.

Without UPDATE, a stamp is a place: the result row of a time belongs to the last place of that time. With UPDATE, a
stamp is the number of a tick. An event counts from its first stamp on; a match leaves the window with its first event.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numba import njit

from streamsift.logical.bound import BoundQuery, WindowKind
from streamsift.runtime.arrays.dtypes import Int32, Int64
from streamsift.runtime.arrays.grouping import group_entries
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.times import time_column
from streamsift.runtime.events.update_ticks import tick_values, ticks_of

NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Clock:
    """The stamps of events; arrays are [places]."""

    first: Int64  # the first stamp of an event; without UPDATE its place
    shown: Int64  # the stamp of the first result row that includes the event; ascends with the place
    leaves: Callable[[Int32], Int64]  # the stamp at which events at ascending places leave the window
    times: Callable[[Int64], pa.Array]  # the times of stamps in result rows
    is_ticking: bool
    places: Callable[[Int64], Int64] | None  # the places of stamps; None for ticks of time, which lie between events
    unit_of: Int32 | None = None  # with UPDATE n EVENTS, the partition of each event: partitions have their own ticks


def clock_of(query: BoundQuery, events: Events) -> Clock:
    return _by_place(query, events) if query.update is None else _by_ticks(query, events)


# --- a row for each time -------------------------------------------------------------------------------------------


def _by_place(query: BoundQuery, events: Events) -> Clock:
    count = events.rank.size
    first = np.arange(count, dtype=np.int64)
    last = np.append(np.flatnonzero(np.diff(events.rank)), count - 1) if count else first
    shown = first if last.size == count else last[events.rank]

    def times(stamps: Int64) -> pa.Array:
        return events.columns.at(time_column(query), events.rows_at(stamps.astype(np.int32)))

    return Clock(first, shown, leaving_of(query, events), times, is_ticking=False, places=lambda stamps: stamps)


def leaving_of(query: BoundQuery, events: Events) -> Callable[[Int32], Int64]:
    """Return a function from ascending places to the first later place that does not share a window with each."""
    window, count = query.window, events.rank.size
    if window is None:
        return lambda places: np.full(places.size, NEVER)
    if window.kind is WindowKind.COUNT and query.partition_by:
        offsets, order = group_entries(*events.partitions(query.partition_by))
        later = rows_later(offsets, order, count, int(events.width), NEVER)
        return lambda places: later[places]

    def leaves(places: Int32) -> Int64:
        after = events.window_limit(places).astype(np.int64) + 1
        return np.where(after < count, after, NEVER)

    return leaves


@njit(cache=True, nogil=True)
def rows_later(offsets: Int64, order: Int32, count: int, rows: int, never: int) -> Int64:
    """Return for each of `count` places the place `rows` rows later in its group; `never` if there is none."""
    later = np.full(count, never, np.int64)
    for group in range(offsets.size - 1):
        for i in range(offsets[group], offsets[group + 1] - rows):
            later[order[i]] = order[i + rows]
    return later


# --- ticks ---------------------------------------------------------------------------------------------------------


def _by_ticks(query: BoundQuery, events: Events) -> Clock:
    """Use ticks as stamps: an event enters at the first tick after it and leaves after the last one that contains it.

    A tick of UPDATE n EVENTS is a row of a partition. It does not contain events of other partitions, and events after
    the last tick of a partition never enter.
    """
    assert query.update is not None
    ticks, places, partitions = ticks_of(query, events), None, None
    first, leaves = ticks.first, ticks.last + 1
    if query.update.kind is WindowKind.COUNT:
        partitions, _ = events.partitions(query.partition_by)
        of_tick = np.append(partitions[ticks.row_places], -1)[np.clip(first, -1, ticks.row_places.size)]
        first = np.where((of_tick == partitions) & (partitions >= 0), first, NEVER)
        leaves = np.where(partitions >= 0, leaves, NEVER)
        places = lambda stamps: ticks.row_places[stamps].astype(np.int64)  # noqa: E731

    def times(stamps: Int64) -> pa.Array:
        return tick_values(query, events, ticks, stamps)

    return Clock(first, first, lambda places: leaves[places], times, True, places, partitions)
