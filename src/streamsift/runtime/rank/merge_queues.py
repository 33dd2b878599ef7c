"""Fill the queues of a merge on demand, window by window; keep joined matches when the window moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.physical.plan import MergePlan
from streamsift.runtime.arrays.dtypes import Bool, Float64, Int32, Int64
from streamsift.runtime.arrays.growing import grown, wider
from streamsift.runtime.arrays.hashing import contains_rows
from streamsift.runtime.paths import BufferedPathComponent, GaveUp, Loaded, PathComponent
from streamsift.runtime.rank.join import RankJoin

RankedComponent = PathComponent | BufferedPathComponent | RankJoin  # sorted access to its matches
FIRST_LOAD = 16
FIRST_ROOM = 256  # matches


class MergeQueues(NamedTuple):
    """The paths of m components of a pattern in one window, at most n of each, best first.

    Only paths with the same key can be joined. `following` links the paths of a queue with the same key, in order: with
    lookups, those loaded and not read yet; otherwise, those read. Column 1 links only paths that are not carried.
    """

    score: Float64  # [m, n]
    rows: Int32  # [m, n, steps] the places of the events, -1 for the steps of other components
    key: Int32  # [m, n]
    carried: Bool  # [m, n] True if read in the previous window, where carried paths were joined with each other
    following: Int32  # [m, n, 2] -1 for none
    head: Int32  # [m, 2, keys] the first path with the key, -1 for none
    tail: Int32  # [m, 2, keys] the last path with the key
    fetched: Int32  # [m, keys] the last path with the key that was looked up, -1 for none
    loaded: Int64  # [m] how many paths are loaded
    read: Int64  # [m] how many paths were read by sorted access
    fetches: Int64  # [m] how many paths were read by random access
    complete: Bool  # [m] True if all paths are loaded


class MergeMatches(NamedTuple):
    """The matches so far, and the best of their scores."""

    rows: Int32  # [matches, steps]
    score: Float64  # [matches]
    best: Float64  # [kept] descending
    counts: Int64  # [2] number of matches, number of entries in `best`


def new_queues(components: int, room: int, steps: int, keys: int) -> MergeQueues:
    return MergeQueues(
        score=np.empty((components, room)),
        rows=np.empty((components, room, steps), np.int32),
        key=np.empty((components, room), np.int32),
        carried=np.zeros((components, room), np.bool_),
        following=np.empty((components, room, 2), np.int32),
        head=np.full((components, 2, keys), -1, np.int32),
        tail=np.full((components, 2, keys), -1, np.int32),
        fetched=np.full((components, keys), -1, np.int32),
        loaded=np.zeros(components, np.int64),
        read=np.zeros(components, np.int64),
        fetches=np.zeros(components, np.int64),
        complete=np.zeros(components, np.bool_),
    )


def new_matches(steps: int, kept: int) -> MergeMatches:
    return MergeMatches(
        np.empty((FIRST_ROOM, steps), np.int32), np.empty(FIRST_ROOM), np.empty(kept), np.zeros(2, np.int64)
    )


@njit(cache=True, nogil=True)
def is_exhausted(queues: MergeQueues, queue: int) -> bool:
    return bool(queues.complete[queue] and queues.read[queue] == queues.loaded[queue])


@njit(cache=True, nogil=True)
def link(queues: MergeQueues, queue: int, begin: int, end: int) -> None:
    """Link paths [begin, end) to the paths of their queue with the same key."""
    for path in range(begin, end):
        key = queues.key[queue, path]
        for row in range(1 if queues.carried[queue, path] else 2):
            last = queues.tail[queue, row, key]
            queues.following[queue, path, row] = -1
            if queues.head[queue, row, key] < 0:
                queues.head[queue, row, key] = path
            if last >= 0:
                queues.following[queue, last, row] = path
            queues.tail[queue, row, key] = path


@njit(cache=True, nogil=True)
def add_match(matches: MergeMatches, row: Int32, score: float) -> MergeMatches:
    """Add a match, and insert its score into the best."""
    count, slot = matches.counts[0], matches.counts[1]
    if count == matches.score.size:
        matches = MergeMatches(grown(matches.rows), grown(matches.score), matches.best, matches.counts)
    matches.rows[count], matches.score[count], best = row, score, matches.best
    matches.counts[0] += 1
    if slot < best.size:
        matches.counts[1] += 1
    elif score > best[slot - 1]:
        slot -= 1
    else:
        return matches
    while slot > 0 and best[slot - 1] < score:
        best[slot] = best[slot - 1]
        slot -= 1
    best[slot] = score
    return matches


@njit(cache=True, nogil=True)
def add_inside(matches: MergeMatches, rows: Int32, score: Float64, low: int) -> MergeMatches:
    """Add the matches whose events all lie at `low` or later."""
    for match in range(score.size):
        if rows[match].min() >= low:
            matches = add_match(matches, rows[match], score[match])
    return matches


@dataclass(frozen=True, slots=True)
class MergeMemory:
    """The state kept for the next window: the paths read [n, steps] per component, and matches above a threshold."""

    paths: list[Int32]
    rows: Int32
    score: Float64
    threshold: float

    @staticmethod
    def nothing(components: int, steps: int) -> MergeMemory:
        none = np.empty((0, steps), np.int32)
        return MergeMemory([none] * components, none, np.empty(0), -np.inf)


class WindowQueues:
    """The queues of the current window."""

    def __init__(self, plan: MergePlan, components: list[RankedComponent], key_of: list[Int32], keys: int) -> None:
        self.plan, self.components, self.key_of = plan, components, key_of
        self.carried: list[Int32] = []
        self.arrays = new_queues(len(components), FIRST_LOAD, len(plan.alternative.steps), keys)

    def open(self, tick: int, memory: MergeMemory, low: int, kept: int) -> MergeMatches:
        """Start a window with the kept matches that lie at `low` or later."""
        arrays, self.carried = self.arrays, memory.paths
        for queue, component in enumerate(self.components):
            used = arrays.key[queue, : arrays.loaded[queue]]
            arrays.head[queue][:, used] = -1
            arrays.tail[queue][:, used] = -1
            arrays.fetched[queue, used] = -1
            component.open(tick)
        if self.plan.looks_up:  # failed lookups are marked too
            arrays.fetched[:] = -1
        for counts in (arrays.loaded, arrays.read, arrays.fetches, arrays.complete):
            counts[:] = 0
        return add_inside(new_matches(arrays.rows.shape[2], kept), memory.rows, memory.score, low)

    def load(self, queue: int) -> GaveUp | None:
        """Load more matches of a component; with lookups, load all of them."""
        while True:
            more = self.components[queue].load(max(FIRST_LOAD, int(self.arrays.loaded[queue])))
            if isinstance(more, GaveUp):
                return more
            self._append(queue, more)
            if more.complete or not self.plan.looks_up:
                return None

    def _append(self, queue: int, more: Loaded) -> None:
        component, begin = self.plan.components[queue], int(self.arrays.loaded[queue])
        end = begin + more.score.size
        while self.arrays.score.shape[1] < end:
            growing = ("score", "rows", "key", "carried", "following")
            self.arrays = self.arrays._replace(**{name: wider(getattr(self.arrays, name)) for name in growing})
        arrays = self.arrays
        rows = np.full((more.score.size, arrays.rows.shape[2]), -1, np.int32)
        rows[:, list(component.steps)] = more.places
        arrays.rows[queue, begin:end] = rows
        arrays.score[queue, begin:end] = more.score * component.scale
        arrays.carried[queue, begin:end] = contains_rows(self.carried[queue], rows)
        step = self.plan.key[queue][0] if self.plan.key else component.steps[0]
        arrays.key[queue, begin:end] = self.key_of[queue][rows[:, step]]
        arrays.loaded[queue], arrays.complete[queue] = end, more.complete
        if self.plan.looks_up:
            link(arrays, queue, begin, end)

    def memory(self, matches: MergeMatches, threshold: float) -> MergeMemory:
        """Return the paths and matches that the next window can use.

        A kept match is dropped if not all of its paths were read again in this window: if they were read in the next
        window, they would be joined a second time.
        """
        arrays, count = self.arrays, matches.counts[0]
        keep = matches.score[:count] >= threshold
        rows, score = matches.rows[:count][keep], matches.score[:count][keep]
        paths = [arrays.rows[queue, : arrays.read[queue]].copy() for queue in range(len(self.components))]
        were_read = np.ones(score.size, np.bool_)
        for component, read in zip(self.plan.components, paths, strict=True):
            part = np.full(rows.shape, -1, np.int32)
            part[:, list(component.steps)] = rows[:, list(component.steps)]
            were_read &= contains_rows(read, part)
        return MergeMemory(paths, rows[were_read], score[were_read], threshold)
