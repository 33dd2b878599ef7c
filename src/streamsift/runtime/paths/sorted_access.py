"""Read the best paths of a pattern's component window by window, best first and on demand: sorted access.

Two ways: `PathComponent` enumerates every window anew, `BufferedPathComponent` begins a window with what the one before
it leaves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamsift.physical.plan import PathPlan
from streamsift.physical.rank import MAX_PATHS
from streamsift.runtime.arrays.dtypes import Float64, Int32
from streamsift.runtime.arrays.row_set import are_known
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.update_ticks import UpdateTicks
from streamsift.runtime.paths.best import SLACK, next_paths, owners_of, windowed
from streamsift.runtime.paths.enumerate import new_search, read_paths
from streamsift.runtime.paths.strata import GaveUp, Strata, one_bucket, strata, tick_buckets
from streamsift.runtime.paths.top_k_buffer import RESERVE, moved_buffer, new_buffer, opened_buffer, trimmed
from streamsift.runtime.paths.weights import ROUNDING

NONE = np.empty(0, np.int32)  # no GROUP BY
RESUME = np.empty(0, np.int64)  # no buckets: go on where an enumeration was left
OPERATIONS = 16  # that round while sums are scaled and merged, at most, but for those of the sums themselves


@dataclass(frozen=True, slots=True)
class Loaded:
    """The next matches [m, steps of the component] of a window, as places, best first."""

    places: Int32
    score: Float64
    complete: bool  # True if there are no others


def path_component(
    plan: PathPlan, events: Events, ticks: UpdateTicks | None, *, keeps: bool
) -> EmptyComponent | PathComponent | BufferedPathComponent | GaveUp:
    """With `keeps`, what stays inside when the window moves is kept."""
    found = strata(plan, events, ticks)
    if found is None:
        return EmptyComponent()
    if isinstance(found, GaveUp):
        return found
    return BufferedPathComponent(found) if keeps and ticks is not None else PathComponent(found, ticks)


class EmptyComponent:
    """A component that has no match anywhere."""

    ticks = np.empty(0, np.int64)
    error = 0.0

    def open(self, tick: int) -> None:
        pass

    def load(self, count: int) -> Loaded | GaveUp:
        raise AssertionError("it has no window")


class PathComponent:
    """Best paths of the graph of all windows; the enumeration in the current window stands where it was left."""

    def __init__(self, found: Strata, ticks: UpdateTicks | None) -> None:
        buckets = one_bucket(found) if ticks is None else tick_buckets(found, ticks, NONE)
        self.graph, self.unit, self.error = found.graph, found.unit, _error(found)
        self.ticks, self.starts, self.roots = buckets.tick, buckets.starts, buckets.roots
        self.rule = next_paths(found, 0)._replace(slack=-1.0)
        self.search = new_search(found.graph.offsets.shape[0])

    def open(self, tick: int) -> None:
        window = int(np.searchsorted(self.ticks, tick))
        self.search, *_ = read_paths(self.graph, self.roots, self.starts[window : window + 2], self.rule, self.search)

    def load(self, count: int) -> Loaded | GaveUp:
        rule = self.rule._replace(limit=count)
        self.search, paths, sums, _, gave_up = read_paths(self.graph, self.roots, RESUME, rule, self.search)
        if gave_up[0]:
            return GaveUp.TOO_MANY
        return Loaded(self.graph.place[paths], sums * self.unit, self.search.is_exhausted)


class BufferedPathComponent:
    """Best paths of the graph of all windows; a window begins with what the one before it leaves (iNSSP)."""

    def __init__(self, found: Strata) -> None:
        self.space, self.unit, self.ticks, self.error = windowed(found), found.unit, found.tick, _error(found)
        self.owners = owners_of(found, NONE)
        self.rule = next_paths(found, 1)._replace(slack=SLACK * found.error)
        steps = found.graph.offsets.shape[0]
        self.search, self.buffer = new_search(steps), new_buffer(steps)
        self.window, self.loaded, self.asked, self.is_open = -1, 0, 0, False

    def open(self, tick: int) -> None:
        windows, window, before = self.space.windows, int(np.searchsorted(self.ticks, tick)), self.window
        self.asked = max(self.loaded, self.asked // 2)  # what was asked for before will be again
        self.window, self.loaded = window, 0
        if window == before:
            return
        self.is_open = self.is_open and windows.cut[before] == windows.cut[window]
        if self.is_open:
            buffer = trimmed(self.space.graph, self.rule, self.buffer, max(RESERVE.filled * self.asked, 1))
            self.search, self.buffer, gave_up = moved_buffer(
                self.space, window, self.owners.lasts, int(windows.high[before]), self.rule, self.search, buffer
            )
            self.is_open = not gave_up

    def load(self, count: int) -> Loaded | GaveUp:
        end = self.loaded + max(count, self.asked - self.loaded)
        if not self.is_open or (self.buffer.sums.size < end and not self.buffer.is_complete):
            self._read_all(RESERVE.filled * end)
            if not self.is_open:
                return GaveUp.TOO_MANY
        buffer, begin = self.buffer, self.loaded
        self.loaded = min(end, buffer.sums.size)
        paths, sums = buffer.paths[begin : self.loaded], buffer.sums[begin : self.loaded]
        complete = buffer.is_complete and self.loaded == buffer.sums.size
        return Loaded(self.space.graph.place[paths], sums * self.unit, complete)

    def _read_all(self, wanted: int) -> None:
        """Fill the buffer with so many paths of the window, those that were loaded first, unless that is too much."""
        self.search, buffer, gave_up = opened_buffer(
            self.space, self.window, self.owners.firsts, min(wanted, MAX_PATHS), self.rule, self.search
        )
        given = self.buffer.paths[: self.loaded]
        # Sums that round may come out in another order: what was loaded is recognized by its events.
        others = np.flatnonzero(~are_known(buffer.paths, given))
        self.buffer = buffer._replace(
            paths=np.concatenate([given, buffer.paths[others]]),
            sums=np.concatenate([self.buffer.sums[: self.loaded], buffer.sums[others]]),
        )
        self.is_open = not gave_up


def _error(found: Strata) -> float:
    """Return by how much sums of a component's paths may differ from what they are as written."""
    largest = float(np.abs(found.graph.weight).max(initial=0.0)) * found.graph.offsets.shape[0]
    return (found.error + ROUNDING * OPERATIONS * largest) * found.unit
