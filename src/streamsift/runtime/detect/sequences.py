"""Find the matches of a plain sequence by extending its first events, step by step, in order of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from streamsift.physical.plan import Alternative
from streamsift.runtime.arrays.dtypes import Int32
from streamsift.runtime.arrays.grouping import entries_from
from streamsift.runtime.detect.sequence_kernel import CURSOR_FIELDS, DONE, extend
from streamsift.runtime.detect.sequence_packing import pack
from streamsift.runtime.events.events import Events
from streamsift.runtime.matches import Stage, passing, stages_of


class SequenceSearch:
    """One run of a plan over packed events; `candidates` are the places that each step may bind.

    It works on `chunk` partial matches at a time, and looks for `enough` matches.
    """

    def __init__(self, plan: Alternative, events: Events, candidates: Sequence[Int32], chunk: int, enough: int) -> None:
        self.plan, self.events, self.chunk, self.enough = plan, events, chunk, enough
        self.first_places = candidates[0]
        self.buffers, self.places = pack(plan, events, candidates)

    def matches(self, low: int, high: int) -> Iterator[Int32]:
        """Yield chunks [steps, m] of places: the matches that start in [low, high)."""
        # The first stage is step 0 alone: its entries are partial matches.
        filters = [step.filters for step in self.plan.steps]
        first, rest = Stage(0, 0, filters[0]), stages_of(filters[1:], 1)
        starts = np.arange(*entries_from(self.first_places, [low, high]), dtype=np.int32)[None, :]
        size = self.chunk if first.filters or not rest else max(1, starts.shape[1])
        for begin in range(0, starts.shape[1], size):
            entries = self._passing(first, starts[:, begin : begin + size], as_places=False)
            yield from self._extended(rest, entries) if rest else (self._places(entries),)

    def _extended(self, rest: Sequence[Stage], partials: Int32) -> Iterator[Int32]:
        """Extend partial matches (entries) by the remaining stages to matches (places), depth first over chunks."""
        stage, *later = rest
        match = np.zeros(stage.last + 1, np.int32)
        ranges = np.zeros((stage.last + 1, 2), np.int64)
        cursor = np.zeros(CURSOR_FIELDS, np.int64)
        partials = np.ascontiguousarray(partials)
        size = self.chunk if stage.filters or later else self.enough
        while not cursor[DONE]:
            out = np.empty((stage.last + 1, size), np.int32)
            count = extend(self.buffers, partials, stage.first, stage.last, not later, cursor, match, ranges, out)
            longer = self._passing(stage, out[:, :count], as_places=not later)
            if longer.shape[1]:
                yield from self._extended(later, longer) if later else (longer,)

    def _places(self, entries: Int32) -> Int32:
        """Return the places of entries [steps so far, m]."""
        return np.stack([places[numbers] for places, numbers in zip(self.places, entries, strict=False)])

    def _passing(self, stage: Stage, partials: Int32, *, as_places: bool) -> Int32:
        """Return the partial matches that pass the filters of a stage."""
        if not stage.filters:
            return partials
        places = partials if as_places else self._places(partials)
        return partials[:, passing(self.plan, self.events, stage.filters, places)]
