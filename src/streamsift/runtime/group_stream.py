"""Events and the steps of a plan in, what groups are made from out: order, windows, and the candidates of each step."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from streamsift.logical.bound import WindowKind
from streamsift.physical.plan import Alternative, Step
from streamsift.runtime.candidates import candidates
from streamsift.runtime.events import Events
from streamsift.runtime.kernels import Int32


class GroupStream:
    """The stream as places; arrays are [places]."""

    def __init__(self, alternative: Alternative, events: Events, steps: Iterable[Step]) -> None:
        self.alternative, self.events = alternative, events
        self.size = events.rank.size
        everywhere = np.arange(self.size, dtype=np.int32)
        # Ranks are dense and ascend: the places of a rank are a range.
        starts = np.flatnonzero(np.diff(events.rank, prepend=-1)).astype(np.int32)
        self.place_since: Int32 = starts[events.rank]
        self.place_after: Int32 = np.append(starts[1:], np.int32(self.size))[events.rank]
        window = events.window
        in_partition = window is not None and window.kind is WindowKind.COUNT and bool(alternative.query.partition_by)
        # A count window within partitions limits positions; every other window limits places.
        self.rows_in_partition = int(events.width) if in_partition else 0
        self.positions: Int32 = events.window_position if in_partition else everywhere
        if in_partition or not self.size:
            self.window_low: Int32 = np.zeros(self.size, np.int32)
            self.window_high: Int32 = np.full(self.size, self.size - 1, np.int32)
        else:
            self.window_high = np.minimum(events.window_limit(everywhere), self.size - 1).astype(np.int32)
            # How many places have a window that ends before this one.
            ended = np.cumsum(np.bincount(self.window_high + 1, minlength=self.size + 1))
            self.window_low = ended[: self.size].astype(np.int32)
        distinct = list({id(step): step for step in steps}.values())
        found = candidates(Alternative(alternative.query, tuple(distinct), ()), events)
        self._candidates = {id(step): places for step, places in zip(distinct, found, strict=True)}

    def candidates(self, step: Step) -> Int32:
        """The places whose rows are of the step's class and pass its local predicates."""
        return self._candidates[id(step)]

    def rows(self, places: Int32) -> Int32:
        return self.events.rows_at(places)
