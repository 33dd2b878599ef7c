"""Events and the steps of a plan in, what groups are made from out: order, windows, and the candidates of each step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from streamsift.logical.bound import BoundQuery, WindowKind
from streamsift.physical.plan import Alternative, Step
from streamsift.runtime.arrays.dtypes import NO_LIMIT, Int32
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.definition_windows import own_limits
from streamsift.runtime.events.events import Events


class Clock(NamedTuple):
    """The order of the stream and its windows; all [places]."""

    place_after: Int32  # the first place that is later than this one
    place_since: Int32  # the first place of the same time
    window_low: Int32  # the first place in one window with this one, as its last event
    window_high: Int32  # the last place in one window with this one, as its first event
    positions: Int32  # window positions: the places themselves, but for count windows within partitions
    length: int  # of a count window within partitions, else 0


class Reach(NamedTuple):
    """Where events may lie: places [low, high), window positions [least, most]. All [matches]."""

    low: Int32
    high: Int32
    least: Int32
    most: Int32


class GroupStream:
    """The stream as places, and which of them each step may bind."""

    def __init__(self, query: BoundQuery, events: Events, steps: Iterable[Step]) -> None:
        self.query, self.events, self.size = query, events, events.rank.size
        everywhere = np.arange(self.size, dtype=np.int32)
        # Ranks are dense and ascend: the places of a rank are a range.
        starts = np.flatnonzero(np.diff(events.rank, prepend=-1)).astype(np.int32)
        order = np.append(starts[1:], np.int32(self.size))[events.rank], starts[events.rank]
        no_window = np.zeros(self.size, np.int32), np.full(self.size, self.size - 1, np.int32)
        self.unlimited = Clock(*order, *no_window, everywhere, 0)
        self.clock = self.unlimited
        if events.window is not None and events.window.kind is WindowKind.COUNT and query.partition_by:
            length = min(int(events.width), max(1, self.size))
            self.clock = Clock(*order, *no_window, events.window_position, length)
        elif events.window is not None and self.size:
            high = np.minimum(events.window_limit(everywhere), self.size - 1).astype(np.int32)
            # How many places have a window that ends before this one.
            low = np.cumsum(np.bincount(high + 1, minlength=self.size + 1))[: self.size].astype(np.int32)
            self.clock = Clock(*order, low, high, everywhere, 0)
        self.own_windows = own_limits(query, events)
        distinct = list({id(step): step for step in steps}.values())
        found = candidates(Alternative(query, tuple(distinct), ()), events)
        self._candidates = {id(step): places for step, places in zip(distinct, found, strict=True)}

    def candidates(self, step: Step) -> Int32:
        """The places whose rows are of the step's class and pass its local predicates."""
        return self._candidates[id(step)]

    def rows(self, places: Int32) -> Int32:
        return self.events.rows_at(places)

    def window(self, first: Int32, last: Int32) -> Reach:
        """What is in one window with matches that go from `first` to `last`."""
        clock, count = self.clock, first.size
        least, most = np.full(count, -1, np.int32), np.full(count, NO_LIMIT, np.int32)
        if clock.length:
            least, most = clock.positions[last] - (clock.length - 1), clock.positions[first] + (clock.length - 1)
        return Reach(clock.window_low[last], clock.window_high[first] + 1, least, most)
