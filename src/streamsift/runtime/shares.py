"""Ticks that go round tasks in, those that some tasks own out.

Contract: each tick is owned by one task (tests/spark/test_rank_slices.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from streamsift.runtime.kernels import Bool, Int64
from streamsift.runtime.ticks import Ticks


@dataclass(frozen=True, slots=True)
class Share:
    """Slices of `ticks_each` ticks go round the tasks; these are the tasks that `own` [tasks] marks.

    The slice s has the ticks s * ticks_each + 1 to (s + 1) * ticks_each, and the task s % tasks.
    """

    own: Bool
    ticks_each: int

    def owned(self, ticks: Ticks) -> Ticks:
        """The ticks with those of other tasks left out, numbered without gaps."""
        return replace(ticks, first=self._next(ticks.first), last=self._next(ticks.last + 1) - 1, share=self)

    def _next(self, tick: Int64) -> Int64:
        """The number without gaps of the first owned tick that is not before this one."""
        each, tasks = self.ticks_each, self.own.size
        slices, nth = (tick - 1) // each, (tick - 1) % each
        passed = np.concatenate([[0], np.cumsum(self.own)])
        before = slices // tasks * passed[-1] + passed[slices % tasks]  # owned slices before this tick's
        return before * each + np.where(self.own[slices % tasks], nth, 0)

    def ticks(self, numbers: Int64) -> Int64:
        """The ticks that have these numbers without gaps."""
        each, own = self.ticks_each, np.flatnonzero(self.own)
        slices, nth = numbers // each, numbers % each
        return (slices // own.size * self.own.size + own[slices % own.size]) * each + nth + 1
