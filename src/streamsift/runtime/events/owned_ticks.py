"""Ticks in slices of time in, those of some of the slices out.

Contract: each tick is in one slice, and each slice is owned by one task (tests/spark/distribute/test_rank_slices.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from streamsift.runtime.arrays.dtypes import Int64
from streamsift.runtime.events.update_ticks import UpdateTicks


@dataclass(frozen=True, slots=True)
class Share:
    """Some slices of `ticks_each` ticks: the slice s has the ticks s * ticks_each + 1 to (s + 1) * ticks_each."""

    slices: Int64  # ascending
    ticks_each: int

    def owned(self, ticks: UpdateTicks) -> UpdateTicks:
        """The ticks with those of other slices left out, numbered without gaps."""
        return replace(ticks, first=self._next(ticks.first), last=self._next(ticks.last + 1) - 1, share=self)

    def _next(self, tick: Int64) -> Int64:
        """The number without gaps of the first owned tick that is not before this one."""
        slices, nth = (tick - 1) // self.ticks_each, (tick - 1) % self.ticks_each
        before = np.searchsorted(self.slices, slices)
        is_owned = np.append(self.slices, 0)[before] == slices
        is_owned &= before < self.slices.size
        return before * self.ticks_each + np.where(is_owned, nth, 0)

    def ticks(self, numbers: Int64) -> Int64:
        """The ticks that have these numbers without gaps."""
        return self.slices[numbers // self.ticks_each] * self.ticks_each + numbers % self.ticks_each + 1
