"""Ticks that go round tasks in, those that one task owns out.

Contract: each tick is owned by one task (tests/spark/test_rank_slices.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from streamsift.runtime.kernels import Int64
from streamsift.runtime.ticks import Ticks


@dataclass(frozen=True, slots=True)
class Share:
    """Slices of `ticks_each` ticks go round `tasks` tasks; this is the task `number`.

    The slice s has the ticks s * ticks_each + 1 to (s + 1) * ticks_each, and the task s % tasks.
    """

    number: int
    tasks: int
    ticks_each: int

    def owned(self, ticks: Ticks) -> Ticks:
        """The ticks with those of other tasks left out, numbered without gaps."""
        return replace(ticks, first=self._next(ticks.first), last=self._next(ticks.last + 1) - 1, share=self)

    def _next(self, tick: Int64) -> Int64:
        """The number without gaps of the first owned tick that is not before this one."""
        each = self.ticks_each
        slices, nth = (tick - 1) // each, (tick - 1) % each
        is_own = slices % self.tasks == self.number
        # Whole slices of this task before it.
        before = -((self.number - slices) // self.tasks)
        return np.where(is_own, (slices - self.number) // self.tasks * each + nth, before * each)

    def ticks(self, numbers: Int64) -> Int64:
        """The ticks that have these numbers without gaps."""
        each = self.ticks_each
        return (numbers // each * self.tasks + self.number) * each + numbers % each + 1
