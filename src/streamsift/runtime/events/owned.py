"""State which results of its events a task owns: other tasks, which have copies of some of the events, own the rest.

Contract: each match, each tick and each row of totals has one owner, if every row and every slice has one
(tests/spark/distribute/test_slices.py, test_rank_slices.py, test_total_slices.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from streamsift.runtime.arrays.dtypes import Bool, Int64
from streamsift.runtime.events.update_ticks import UpdateTicks


@dataclass(frozen=True, slots=True)
class OwnedTicks:
    """Some time slices of `ticks_each` ticks: slice s has the ticks s * ticks_each + 1 to (s + 1) * ticks_each."""

    slices: Int64  # ascending
    ticks_each: int

    def of(self, ticks: UpdateTicks) -> UpdateTicks:
        """Drop the ticks of other slices and number the others without gaps."""
        return replace(ticks, first=self._next(ticks.first), last=self._next(ticks.last + 1) - 1, share=self)

    def _next(self, tick: Int64) -> Int64:
        """Return the number without gaps of the first owned tick that is not before this one."""
        slices, nth = (tick - 1) // self.ticks_each, (tick - 1) % self.ticks_each
        before = np.searchsorted(self.slices, slices)
        is_owned = np.append(self.slices, 0)[before] == slices
        is_owned &= before < self.slices.size
        return before * self.ticks_each + np.where(is_owned, nth, 0)

    def ticks(self, numbers: Int64) -> Int64:
        """Return the ticks that have these numbers without gaps."""
        return self.slices[numbers // self.ticks_each] * self.ticks_each + numbers % self.ticks_each + 1


@dataclass(frozen=True, slots=True)
class Owned:
    """What a task owns, of each kind of result; None: all of it."""

    rows: Bool | None = None  # [table rows] of detection and ranking: the matches with such a row
    steps: tuple[int | None, ...] = ()  # for each alternative the step whose event that row is; None: the first event
    ticks: OwnedTicks | None = None  # of a ranking with UPDATE
    totals: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None  # of an aggregation: keeps its rows


EVERYTHING = Owned()
