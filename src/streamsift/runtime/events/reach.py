"""Compute for each event which places it can be combined with, given order and windows.

The bounds of definition windows are stored as columns of the events, so that a subset of the events keeps the bounds
that were computed from all of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numba import njit

from streamsift.logical.bound import BoundQuery, BoundWindow, WindowKind
from streamsift.physical.detect import PLACE, since, until
from streamsift.runtime.arrays.dtypes import Int32, Int64
from streamsift.runtime.arrays.grouping import group_entries
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.times import window_width
from streamsift.runtime.expressions.columns import fixed_width


class Reach(NamedTuple):
    """The bounds that order and windows set for each event; arrays are [places]."""

    place_after: Int32  # the first place with a later time
    place_since: Int32  # the first place with the same time
    window_low: Int32  # the first place of the window that ends here
    window_high: Int32  # the last place of the window that starts here
    widest_window: int  # the largest number of places in a window
    own_windows: Int32  # [2 * definitions, places] the first and last place that share a definition window with it


def reach_of(query: BoundQuery, events: Events) -> Reach:
    """Compute the bounds that order, the window of a query and the windows of its definitions set."""
    low, high = _window_reach(events.window, query.partition_by, events)
    widest = int((high - np.arange(high.size, dtype=np.int32)).max(initial=-1)) + 1
    return Reach(*_places_around(events.rank), low, high, widest, own_limits(query, events))


@njit(cache=True, nogil=True)
def _places_around(rank: Int32) -> tuple[Int32, Int32]:
    """Return for each place the first place with a later time, and the first with the same time; ranks ascend."""
    count = rank.size
    after, since = np.empty(count, np.int32), np.empty(count, np.int32)
    for i in range(count):
        since[i] = since[i - 1] if i > 0 and rank[i] == rank[i - 1] else i
    for i in range(count - 1, -1, -1):
        after[i] = after[i + 1] if i + 1 < count and rank[i] == rank[i + 1] else i + 1
    return after, since


def _window_reach(window: BoundWindow | None, keys: tuple[str, ...], events: Events) -> tuple[Int32, Int32]:
    """Return the first and the last place that share a window with each place; all places without a window.

    A count window of a key spans places of other keys too; that is harmless because events of a match share the key.
    A row without a key shares no window with any place.
    """
    count = events.rank.size
    if window is None or window.kind is WindowKind.TIME or not keys:
        width = 0 if window is None else window_width(window, events.unit)
        limit = replace(events, window=window, width=width).window_limit(np.arange(count, dtype=np.int32))
        high = np.minimum(limit, count - 1).astype(np.int32, copy=False)
        return _first_reaching(high), high
    rows = min(int(window.length), count)
    offsets, order = group_entries(*events.partitions(keys))
    low, high = np.full(count, count, np.int32), np.full(count, -1, np.int32)
    first, last = np.repeat(offsets[:-1], np.diff(offsets)), np.repeat(offsets[1:] - 1, np.diff(offsets))
    entries = np.arange(order.size)
    low[order] = order[np.maximum(entries - (rows - 1), first)]
    high[order] = order[np.minimum(entries + (rows - 1), last)]
    return low, high


@njit(cache=True, nogil=True)
def _first_reaching(high: Int32) -> Int32:
    """Return for each place the first place whose window contains it; window ends ascend."""
    low = np.empty(high.size, np.int32)
    j = 0
    for i in range(high.size):
        while j < high.size and high[j] < i:
            j += 1
        low[i] = j
    return low


def with_definition_windows(query: BoundQuery, events: Events) -> Events:
    """Add the columns with the bounds of definition windows; return the events unchanged if there are none."""
    definitions = list(query.pattern.windowed_definitions())
    if not definitions:
        return events
    columns = events.columns

    def by_row(of_place: Int32) -> pa.Array:
        column = np.full(columns.table.num_rows, -1, np.int64)
        column[events.rows] = of_place
        return pa.array(column)

    columns = columns.with_array(PLACE, by_row(np.arange(events.rows.size, dtype=np.int32)))
    for definition in definitions:
        low, high = _window_reach(definition.window, definition.partition_by or query.partition_by, events)
        columns = columns.with_array(since(definition.name), by_row(low))
        columns = columns.with_array(until(definition.name), by_row(high))
    return replace(events, columns=columns)


def limit_rows(query: BoundQuery) -> dict[str, int]:
    """Return the first of the two rows in `own_limits` for each definition with a window."""
    return {definition.name: 2 * number for number, definition in enumerate(query.pattern.windowed_definitions())}


def own_limits(query: BoundQuery, events: Events) -> Int32:
    """Return [2 * definitions, places] the first and the last place that share a definition window with each place."""

    def column(name: str) -> Int64:
        return fixed_width(events.columns.at(name, events.rows), np.dtype(np.int64))

    limits = np.empty((2 * len(limit_rows(query)), events.rows.size), np.int32)
    places = column(PLACE) if limits.size else np.empty(0, np.int64)
    is_whole = places.size > 0 and places[-1] == places.size - 1  # places ascend, so then none is missing
    for name, row in limit_rows(query).items():
        limits[row], limits[row + 1] = column(since(name)), column(until(name))
        if not is_whole:
            limits[row] = np.searchsorted(places, column(since(name)), side="left")
            limits[row + 1] = np.searchsorted(places, column(until(name)), side="right") - 1
    return limits
