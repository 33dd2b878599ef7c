"""Drop the events that no step of a plan may bind, as far as their class tells.

Most streams have events of many classes, and most patterns name few. Whatever looks at all places is then looking at
few: orders, windows, groups, keys. It is what a stream's engine does when it takes events in.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numba import njit

from streamsift.logical.bound import EventClass
from streamsift.physical.plan import Plan
from streamsift.physical.stream import counts_rows
from streamsift.runtime.arrays.dtypes import Bool, Int32
from streamsift.runtime.events.candidates import places_by_class
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.order_kernels import dense_rank

MAX_KEPT = 0.5  # of the events, for dropping the others to be worth the copies


def relevant(plan: Plan, events: Events) -> Events:
    """Return the events of the classes that the plan names; all of them where rows are counted, or most are left."""
    if counts_rows(plan.query):
        return events
    found: dict[EventClass, Int32] = {}
    for each in plan.alternatives:
        found |= places_by_class(each, replace(events, by_class=found))
    if sum(places.size for places in found.values()) > MAX_KEPT * events.rank.size:
        return replace(events, by_class=found)
    is_kept = np.zeros(events.rank.size, np.bool_)
    for places in found.values():
        is_kept[places] = True
    kept, number_of = kept_places(is_kept)
    return replace(_at(kept, events), by_class={each: number_of[places] for each, places in found.items()})


@njit(cache=True, nogil=True)
def kept_places(is_kept: Bool) -> tuple[Int32, Int32]:
    """(the places that are kept, for each place how many of them lie before it), without a branch to mispredict."""
    kept, number_of = np.empty(is_kept.size, np.int32), np.empty(is_kept.size, np.int32)
    count = 0
    for place in range(is_kept.size):
        kept[count] = place  # the next one overwrites it unless it is kept
        number_of[place] = count
        count += is_kept[place]
    return kept[:count], number_of


def _at(kept: Int32, events: Events) -> Events:
    position = np.arange(kept.size, dtype=np.int32)
    if events.window_position.size and events.window_position.min() < 0:
        position[events.window_position[kept] < 0] = -1
    return replace(
        events,
        rows=events.rows_at(kept),
        rank=dense_rank(events.rank[kept].astype(np.int64), np.empty(0, np.int64)),
        window_position=position,
        ticks=events.ticks[kept],
        in_input_order=False,
    )
