"""Read the best paths of one component of a pattern, window by window, best first and on demand (sorted access).

`PathComponent` enumerates each window from scratch. `BufferedPathComponent` starts a window with the surviving paths of
the previous one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamsift.physical.plan import PathPlan
from streamsift.physical.rank import MAX_PATHS
from streamsift.runtime.arrays.dtypes import Float64, Int32, Int64
from streamsift.runtime.arrays.hashing import contains_rows
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.update_ticks import UpdateTicks
from streamsift.runtime.paths.best import SLACK, next_paths, owners_of
from streamsift.runtime.paths.enumerate import new_search, read_paths
from streamsift.runtime.paths.heap import SIZE
from streamsift.runtime.paths.strata import GaveUp, Strata, buckets_of, build_strata
from streamsift.runtime.paths.top_k_buffer import RESERVE, moved_buffer, new_buffer, opened_buffer, trimmed
from streamsift.runtime.paths.weights import ROUNDING

NONE = np.empty(0, np.int32)  # no GROUP BY
RESUME = np.empty(0, np.int64)  # no buckets: resume the enumeration
OPERATIONS = 16  # upper bound for the roundings while sums are scaled and merged


@dataclass(frozen=True, slots=True)
class Loaded:
    """The next matches of a window, best first."""

    places: Int32  # [m, steps of the component]
    score: Float64
    complete: bool  # True if there are no more


def path_component(
    plan: PathPlan, events: Events, ticks: UpdateTicks | None, *, keeps: bool
) -> PathComponent | BufferedPathComponent | GaveUp | None:
    """Return sorted access to a component, None if it has no match; `keeps` lets windows start with surviving paths."""
    strata = build_strata(plan, events, ticks)
    if strata is None or isinstance(strata, GaveUp):
        return strata
    return BufferedPathComponent(strata) if keeps and ticks is not None else PathComponent(strata, ticks)


class PathComponent:
    """Enumerate each window from scratch, and resume the enumeration of the current window on demand."""

    def __init__(self, strata: Strata, ticks: UpdateTicks | None) -> None:
        self.graph, self.unit, self.error = strata.graph, strata.unit, _error(strata)
        self.buckets = buckets_of(strata, ticks, NONE)
        self.ticks = self.buckets.tick  # the windows that can have matches, ascending
        self.rule = next_paths(strata, 0)._replace(slack=-1.0)
        self.search = new_search(strata.graph)

    def open(self, tick: int) -> None:
        """Start at the best match of a window."""
        window = int(np.searchsorted(self.ticks, tick))
        self._read(self.buckets.starts[window : window + 2], 0)

    def load(self, count: int) -> Loaded | GaveUp:
        """Return about `count` more matches."""
        return self._read(RESUME, count)

    def _read(self, starts: Int64, count: int) -> Loaded | GaveUp:
        self.search, paths, sums, _, gave_up = read_paths(
            self.graph, self.buckets.roots, starts, self.rule._replace(limit=count), self.search
        )
        if gave_up[0]:
            return GaveUp.TOO_MANY
        return Loaded(self.graph.place[paths], sums * self.unit, bool(self.search.heap.counts[SIZE] == 0))


class BufferedPathComponent:
    """Start each window with the surviving paths of the previous one (iNSSP)."""

    def __init__(self, strata: Strata) -> None:
        self.graph, self.unit, self.ticks, self.error = strata.graph, strata.unit, strata.tick, _error(strata)
        self.owners = owners_of(strata, NONE)
        self.rule = next_paths(strata, 1)._replace(slack=SLACK * strata.error)
        self.search, self.buffer = new_search(self.graph), new_buffer(self.graph.offsets.shape[0])
        self.window, self.loaded, self.wanted, self.is_open = -1, 0, 0, False

    def open(self, tick: int) -> None:
        windows, window, before = self.graph.windows, int(np.searchsorted(self.ticks, tick)), self.window
        self.wanted = max(self.loaded, self.wanted // 2)  # expect about as many reads as in the last window
        self.window, self.loaded = window, 0
        if window == before:
            return
        self.is_open = self.is_open and windows.cut[before] == windows.cut[window]
        if self.is_open:
            buffer = trimmed(self.graph, self.rule, self.buffer, max(RESERVE.filled * self.wanted, 1))
            self.search, self.buffer, gave_up = moved_buffer(
                self.graph, window, self.owners.lasts, int(windows.high[before]), self.rule, self.search, buffer
            )
            self.is_open = not gave_up

    def load(self, count: int) -> Loaded | GaveUp:
        end = max(self.loaded + count, self.wanted)
        if not self.is_open or (self.buffer.sums.size < end and not self.buffer.is_complete):
            wanted, given = min(RESERVE.filled * end, MAX_PATHS), self.buffer.paths[: self.loaded]
            self.search, buffer, gave_up = opened_buffer(
                self.graph, self.window, self.owners.firsts, wanted, self.rule, self.search
            )
            self.is_open = not gave_up
            if gave_up:
                return GaveUp.TOO_MANY
            # Rounded sums may come in a different order: recognize the paths already loaded by their events.
            others = np.flatnonzero(~contains_rows(given, buffer.paths))
            paths = np.concatenate([given, buffer.paths[others]])
            sums = np.concatenate([self.buffer.sums[: self.loaded], buffer.sums[others]])
            self.buffer = buffer._replace(paths=paths, sums=sums)
        buffer, begin = self.buffer, self.loaded
        self.loaded = min(end, buffer.sums.size)
        paths, sums = buffer.paths[begin : self.loaded], buffer.sums[begin : self.loaded]
        complete = buffer.is_complete and self.loaded == buffer.sums.size
        return Loaded(self.graph.place[paths], sums * self.unit, complete)


def _error(strata: Strata) -> float:
    """Return the largest difference between the sum of a component's path and the score as written."""
    largest = float(np.abs(strata.graph.weight).max(initial=0.0)) * strata.graph.offsets.shape[0]
    return (strata.error + ROUNDING * OPERATIONS * largest) * strata.unit
