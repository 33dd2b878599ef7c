"""A window and the events in, how far it reaches from each place out: of rows of a key, or of a definition's own."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import BoundQuery, SubPattern, WindowKind
from streamsift.physical.detect import PLACE, since, until, window_bound
from streamsift.physical.plan import Pair
from streamsift.runtime.arrays.dtypes import Int32, Int64
from streamsift.runtime.arrays.grouping import group_entries
from streamsift.runtime.events.events import Events, window_width
from streamsift.runtime.expressions.codes import group_codes
from streamsift.runtime.expressions.columns import fixed_width


class Reach(NamedTuple):
    """The first and the last place in one window with each place; both [places].

    A window that counts the rows of a key reaches over places of other keys too: what shares a match shares the key.
    """

    low: Int32
    high: Int32


def reach(definition: SubPattern, query: BoundQuery, events: Events) -> Reach:
    window, count = definition.window, events.rank.size
    assert window is not None
    everywhere = np.arange(count, dtype=np.int32)
    if window.kind is WindowKind.TIME:
        within = replace(events, window=window, width=window_width(window, events))
        high = np.minimum(within.window_limit(everywhere), count - 1).astype(np.int32)
        return Reach(np.searchsorted(high, everywhere, side="left").astype(np.int32), high)
    keys = definition.partition_by or query.partition_by
    if keys:
        return rows_of_keys(int(window.length), keys, events)
    rows = min(int(window.length), count)
    return Reach(np.maximum(everywhere - (rows - 1), 0), np.minimum(everywhere + (rows - 1), max(0, count - 1)))


def rows_of_keys(length: int, keys: tuple[str, ...], events: Events) -> Reach:
    """A window that counts the rows of each key; of a row without a key it holds none."""
    count = events.rank.size
    rows = min(length, count)
    (groups,), number = group_codes([[events.columns.at(key, events.rows)] for key in keys])
    offsets, order = group_entries(groups, number)
    low, high = np.full(count, count, np.int32), np.full(count, -1, np.int32)
    first, last = np.repeat(offsets[:-1], np.diff(offsets)), np.repeat(offsets[1:] - 1, np.diff(offsets))
    entries = np.arange(order.size)
    low[order] = order[np.maximum(entries - (rows - 1), first)]
    high[order] = order[np.minimum(entries + (rows - 1), last)]
    return Reach(low, high)


def with_own_windows(query: BoundQuery, events: Events) -> Events:
    """The events with the columns that definitions' windows are compared by; as they are if there is none."""
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
        low, high = reach(definition, query, events)
        columns = columns.with_array(since(definition.name), by_row(low))
        columns = columns.with_array(until(definition.name), by_row(high))
    return replace(events, columns=columns)


def limit_rows(query: BoundQuery) -> dict[str, int]:
    """Return the first of the two rows of `own_limits` for each definition with a window of its own."""
    return {definition.name: 2 * number for number, definition in enumerate(query.pattern.windowed_definitions())}


def own_limits(query: BoundQuery, events: Events) -> Int32:
    """Return [2 * definitions, places] the first and the last place in one window of a definition with each place.

    They are read from the columns: some of the events of a stream still have the windows of all of it.
    """

    def column(name: str) -> Int64:
        return fixed_width(events.columns.at(name, events.rows), np.dtype(np.int64))

    found = np.empty((2 * len(limit_rows(query)), events.rows.size), np.int32)
    places = column(PLACE) if found.size else np.empty(0, np.int64)
    is_whole = places.size > 0 and places[-1] == places.size - 1  # places ascend, so none is missing
    for name, row in limit_rows(query).items():
        found[row], found[row + 1] = column(since(name)), column(until(name))
        if not is_whole:
            found[row] = np.searchsorted(places, column(since(name)), side="left")
            found[row + 1] = np.searchsorted(places, column(until(name)), side="right") - 1
    return found


def is_limit(pair: Pair) -> bool:
    """Return True if a pair limits where its event may lie, by a definition's window."""
    return window_bound(pair.earlier_side, pair.this_side) is not None
