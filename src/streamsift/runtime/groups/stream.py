"""Compute what groups are made from: order and windows of the stream, and the candidates of each step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from streamsift.logical.bound import BoundQuery
from streamsift.physical.plan import Alternative, Step
from streamsift.runtime.arrays.dtypes import Int32
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.comparisons import CandidateCodes
from streamsift.runtime.events.definition_windows import limit_rows
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.reach import reach_of


class Interval(NamedTuple):
    """Where events may lie: places [low, high). Both [matches]."""

    low: Int32
    high: Int32


class GroupStream:
    """The stream as places, and which of them each step may bind."""

    def __init__(self, query: BoundQuery, events: Events, steps: Iterable[Step]) -> None:
        self.query, self.events, self.size = query, events, events.rank.size
        self.reach = reach_of(query, events)
        everything = np.zeros(self.size, np.int32), np.full(self.size, self.size - 1, np.int32)
        self.unlimited = self.reach._replace(window_low=everything[0], window_high=everything[1])
        self.own_windows, self.window_rows = self.reach.own_windows, limit_rows(query)
        self.codes = CandidateCodes(query, events)
        distinct = list({id(step): step for step in steps}.values())
        found = candidates(Alternative(query, tuple(distinct), ()), events)
        self._candidates = {id(step): places for step, places in zip(distinct, found, strict=True)}

    def candidates(self, step: Step) -> Int32:
        """Return the places whose rows are of the step's class and pass its local predicates."""
        return self._candidates[id(step)]

    def rows(self, places: Int32) -> Int32:
        return self.events.rows_at(places)

    def window(self, first: Int32, last: Int32) -> Interval:
        """Return what is in one window with matches that go from `first` to `last`."""
        return Interval(self.reach.window_low[last], self.reach.window_high[first] + 1)
