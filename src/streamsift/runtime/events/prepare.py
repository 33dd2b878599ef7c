"""Prepare the events of a table for a query: sort them by time and add every column that the plan reads.

All callers get their events here, so none can omit the window columns of definitions. Most streams have events of many
classes, and most patterns name few: dropping the events of other classes first saves work in all later steps.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from numba import njit

from streamsift.logical.bound import BoundQuery, EventClass
from streamsift.physical.plan import Plan
from streamsift.physical.stream import counts_rows
from streamsift.runtime.arrays.dtypes import Bool, Int32
from streamsift.runtime.events.bad_rows import Report
from streamsift.runtime.events.candidates import places_by_class
from streamsift.runtime.events.events import NO_ORDER, Events, dense_rank, in_order
from streamsift.runtime.events.reach import with_definition_windows

MAX_KEPT = 0.5  # drop events only if at most this share is kept; otherwise the copies cost more than they save


def prepare(query: BoundQuery, table: pa.Table, bad_rows: str = "fail", report: Report = None) -> Events:
    """Return the events of a table for a query. `bad_rows` is "fail" or "drop"."""
    return with_definition_windows(query, in_order(query, table, bad_rows, report))


def prepare_relevant(plan: Plan, table: pa.Table, bad_rows: str = "fail", report: Report = None) -> Events:
    """Return the events as `prepare` does, but drop events that no step of the plan can bind, if they are many."""
    return with_definition_windows(plan.query, _relevant(plan, in_order(plan.query, table, bad_rows, report)))


def _relevant(plan: Plan, events: Events) -> Events:
    """Drop events of classes that the plan does not name, unless rows are counted or most events would be kept."""
    if counts_rows(plan.query):
        return events
    by_class: dict[EventClass, Int32] = {}
    for each in plan.alternatives:
        by_class |= places_by_class(each, replace(events, by_class=by_class))
    if sum(places.size for places in by_class.values()) > MAX_KEPT * events.rank.size:
        return replace(events, by_class=by_class)
    is_kept = np.zeros(events.rank.size, np.bool_)
    for places in by_class.values():
        is_kept[places] = True
    kept, number_of = _kept_places(is_kept)
    position = np.arange(kept.size, dtype=np.int32)
    if events.window_position.size and events.window_position.min() < 0:
        position[events.window_position[kept] < 0] = -1
    return replace(
        events,
        rows=events.rows_at(kept),
        rank=dense_rank(events.rank[kept].astype(np.int64), NO_ORDER),
        window_position=position,
        ticks=events.ticks[kept],
        in_input_order=False,
        by_class={each: number_of[places] for each, places in by_class.items()},
    )


@njit(cache=True, nogil=True)
def _kept_places(is_kept: Bool) -> tuple[Int32, Int32]:
    """Return the kept places, and for each place how many kept places precede it, without a branch to mispredict."""
    kept, number_of = np.empty(is_kept.size, np.int32), np.empty(is_kept.size, np.int32)
    count = 0
    for place in range(is_kept.size):
        kept[count] = place  # overwritten by the next place unless it is kept
        number_of[place] = count
        count += is_kept[place]
    return kept[:count], number_of
