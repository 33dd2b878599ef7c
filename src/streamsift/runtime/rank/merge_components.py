"""Read the matches of a pattern's component in each window, best first and on demand: sorted access.

A component with a linear score is read by best paths (`paths/sorted_access.py`), a monotone one by a rank join.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from streamsift.physical.plan import JoinPlan, PathPlan
from streamsift.runtime.arrays.dtypes import Int64
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.update_ticks import UpdateTicks
from streamsift.runtime.paths import GaveUp, Loaded, path_component, ticks_with_events
from streamsift.runtime.rank.join import RankJoin


class RankedComponent(Protocol):
    """What the merge asks of a component."""

    @property
    def ticks(self) -> Int64:
        """The windows in which it may have matches, ascending."""

    @property
    def error(self) -> float:
        """By how much its scores may differ from those as written."""

    def open(self, tick: int) -> None:
        """Begin with the best match of a window."""

    def load(self, count: int) -> Loaded | GaveUp:
        """Return the next matches, about so many."""


def component_of(
    plan: PathPlan | JoinPlan, events: Events, ticks: UpdateTicks | None, *, keeps: bool
) -> RankedComponent | GaveUp:
    """With `keeps`, what stays inside when the window moves is kept; a rank join always keeps it."""
    if isinstance(plan, JoinPlan):
        return JoinComponent(plan, events, ticks)
    return path_component(plan, events, ticks, keeps=keeps)


class JoinComponent:
    """The best matches by a rank join of the window's events, asked for anew when more of them are wanted (iNNLPS).

    The first question of a window is for as many matches as the one before it was asked for: one join does.
    """

    def __init__(self, plan: JoinPlan, events: Events, ticks: UpdateTicks | None) -> None:
        self.join = RankJoin(plan, events, ticks=ticks is not None)
        self.size, self.windows = events.rank.size, ticks
        self.ticks = np.zeros(1, np.int64) if ticks is None else ticks_with_events(ticks)
        self.error, self.loaded, self.asked = 0.0, 0, 0

    def open(self, tick: int) -> None:
        self.asked, self.loaded = max(self.loaded, self.asked // 2), 0
        low, high = 0, self.size
        if self.windows is not None:
            low = int(np.searchsorted(self.windows.last, tick, side="left"))
            high = int(np.searchsorted(self.windows.first, tick, side="right"))
        self.join.move(low, high)

    def load(self, count: int) -> Loaded | GaveUp:
        places, score = self.join.best(max(self.loaded + count, self.asked))
        if not np.isfinite(score).all():  # an infinite component says nothing of the sum it goes into
            return GaveUp.NO_SUMS
        order = np.lexsort([*places[::-1], -score])
        begin, self.loaded = self.loaded, score.size
        complete = self.join.is_complete and score.size == self.join.score.size
        return Loaded(places[:, order[begin:]].T, score[order[begin:]], complete)
