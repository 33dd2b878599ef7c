"""The parts of a pattern in, the queues that `merge_search` reads out: filled on demand, window after window."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from streamsift.physical.plan import MergePlan
from streamsift.runtime.arrays.dtypes import Float64, Int32
from streamsift.runtime.arrays.row_set import are_known
from streamsift.runtime.rank.merge_bounds import Queues, Rules
from streamsift.runtime.rank.merge_kernel import Found, add_match, link
from streamsift.runtime.rank.merge_parts import Part

FIRST_LOAD = 16
NO_MATCHES = 256  # room for them, at first


@dataclass(frozen=True, slots=True)
class Memory:
    """What is kept of a window: the paths read of each part [n, steps], and all matches of them above `floor`."""

    paths: list[Int32]
    rows: Int32
    score: Float64
    floor: float

    @staticmethod
    def nothing(parts: int, steps: int) -> Memory:
        none = np.empty((0, steps), np.int32)
        return Memory([none] * parts, none, np.empty(0), -np.inf)


@njit(cache=True, nogil=True)
def with_matches(found: Found, rows: Int32, score: Float64, low: int) -> Found:
    """Adds the matches whose events all lie at `low` or behind it."""
    for number in range(score.size):
        if rows[number].min() >= low:
            found = add_match(found, rows[number], score[number])
    return found


@njit(cache=True, nogil=True)
def link_from(queues: Queues, part: int, begin: int) -> None:
    for path in range(begin, queues.loaded[part]):
        link(queues, part, path)


class WindowQueues:
    """The queues of one window at a time."""

    def __init__(self, plan: MergePlan, parts: list[Part], key_of: list[Int32], keys: int, *, looks_up: bool) -> None:
        self.plan, self.parts, self.key_of, self.looks_up = plan, parts, key_of, looks_up
        self.known: list[Int32] = []
        count, steps = len(parts), len(plan.alternative.steps)
        self.arrays = Queues(
            np.empty((count, FIRST_LOAD)),
            np.empty((count, FIRST_LOAD, steps), np.int32),
            np.empty((count, FIRST_LOAD), np.int32),
            np.zeros((count, FIRST_LOAD), np.bool_),
            np.empty((count, 2, FIRST_LOAD), np.int32),
            np.full((count, 2, keys), -1, np.int32),
            np.full((count, 2, keys), -1, np.int32),
            np.full((count, keys), -1, np.int32),
            np.zeros(count, np.int64),
            np.zeros(count, np.int64),
            np.zeros(count, np.int64),
            np.zeros(count, np.bool_),
        )

    def open(self, tick: int, memory: Memory, low: int, rules: Rules) -> Found:
        """Begins a window; with lookups all matches of the parts are loaded when they are first asked for."""
        arrays = self.arrays
        for number in range(len(self.parts)):
            used = arrays.key[number, : arrays.loaded[number]]
            arrays.head[number][:, used] = -1
            arrays.tail[number][:, used] = -1
            arrays.fetched[number, used] = -1
        if self.looks_up:  # lookups that found nothing leave a mark too
            arrays.fetched[:] = -1
        for counts in (arrays.loaded, arrays.read, arrays.fetches, arrays.complete):
            counts[:] = 0
        self.known = memory.paths
        for part in self.parts:
            part.open(tick)
        steps = arrays.rows.shape[2]
        found = Found(
            np.empty((NO_MATCHES, steps), np.int32), np.empty(NO_MATCHES), np.empty(rules.kept), np.zeros(2, np.int64)
        )
        return with_matches(found, memory.rows, memory.score, low)

    def load(self, number: int) -> bool:
        """More matches of a part, as many as there are; False if that is too much to ask."""
        while self._load_some(number):
            if not self.looks_up or self.arrays.complete[number]:
                return True
        return False

    def _load_some(self, number: int) -> bool:
        component, begin = self.plan.components[number], int(self.arrays.loaded[number])
        more = self.parts[number].load(max(FIRST_LOAD, begin))
        if more is None:
            return False
        end = begin + more.score.size
        self._make_room(end)
        arrays = self.arrays
        rows = np.full((more.score.size, arrays.rows.shape[2]), -1, np.int32)
        rows[:, list(component.steps)] = more.places
        arrays.rows[number, begin:end] = rows
        arrays.score[number, begin:end] = more.score * component.scale
        arrays.known[number, begin:end] = are_known(rows, self.known[number])
        step = self.plan.key[number][0] if self.plan.key else component.steps[0]
        arrays.key[number, begin:end] = self.key_of[number][rows[:, step]]
        arrays.loaded[number], arrays.complete[number] = end, more.complete
        if self.looks_up:
            link_from(arrays, number, begin)
        return True

    def _make_room(self, count: int) -> None:
        room = self.arrays.score.shape[1]
        if count <= room:
            return
        while room < count:
            room *= 2

        def longer(array: np.ndarray) -> np.ndarray:
            larger = np.empty((array.shape[0], room, *array.shape[2:]), array.dtype)
            larger[:, : array.shape[1]] = array
            return larger

        queues = self.arrays
        links = np.moveaxis(longer(np.moveaxis(queues.following, 2, 1)), 1, 2)
        self.arrays = queues._replace(
            score=longer(queues.score),
            rows=longer(queues.rows),
            key=longer(queues.key),
            known=longer(queues.known),
            following=np.ascontiguousarray(links),
        )

    def memory(self, found: Found, floor: float) -> Memory:
        """What the next window may use of this one.

        A match of the window before whose paths were not all read again would be joined twice, should they be read in
        the next window: it is not kept.
        """
        arrays, count = self.arrays, found.counts[0]
        keep = found.score[:count] >= floor
        rows, score = found.rows[:count][keep], found.score[:count][keep]
        paths = [arrays.rows[number, : arrays.read[number]].copy() for number in range(len(self.parts))]
        were_read = np.ones(score.size, np.bool_)
        for component, read in zip(self.plan.components, paths, strict=True):
            own = np.full(rows.shape, -1, np.int32)
            own[:, list(component.steps)] = rows[:, list(component.steps)]
            were_read &= are_known(own, read)
        return Memory(paths, rows[were_read], score[were_read], floor)
