"""Find the matches of an alternative with AND or negations, chunk by chunk.

A kernel enumerates the pattern depth first and checks negations as it goes. The enumeration is split into stages where
a predicate needs Arrow: at a step, or at a negation, with predicates that do not compare two events. To check such a
negation, the searches of many partial matches pause where they need a result, and Arrow evaluates their candidates in
rounds: one candidate per search at first, then twice as many in each round, so that few rounds are needed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.physical.plan import Alternative, Cache, Step
from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64
from streamsift.runtime.events.events import Events
from streamsift.runtime.matches import passing
from streamsift.runtime.negation import layout
from streamsift.runtime.negation.kernel import ENTER, OCCURS, UNDECIDED, conflicting_step, search
from streamsift.runtime.negation.layout import Frames, Tree
from streamsift.runtime.negation.packing import PackedPattern, pack

CHUNK_TESTS = 1 << 13  # partial matches whose negation is checked with Arrow at a time
MAX_AHEAD = 32  # candidates of a partial match that are checked per round
NOTHING = np.empty((0, 0), np.int32)


class NestedSearch:
    """Find the matches of one alternative, `enough` at a time; by default `chunk`, the number of partial matches."""

    def __init__(
        self, alternative: Alternative, events: Events, chunk: int, cache: Cache = Cache.AUTO, enough: int | None = None
    ) -> None:
        self.alternative, self.events, self.chunk = alternative, events, chunk
        self.enough = chunk if enough is None else enough
        self.packed = pack(alternative, events, cache)
        # By step: the nodes of the negations that are checked with Arrow once the step is bound.
        self.by_arrow = defaultdict[int, list[int]](list)
        for node, negation in enumerate(alternative.negations, start=1):
            if negation.needs_arrow:
                self.by_arrow[negation.ready].append(node)

    def matches(self) -> Iterator[Int32]:
        """Yield chunks [steps, m] of places. Each is a view of memory that the next chunk overwrites."""
        if self.packed is not None:
            yield from self._extended(self.packed, np.empty((0, 1), np.int32))

    def forbidden(self, matches: Int32) -> Bool:
        """Return a mask of the matches of single events [steps, m] that a negation forbids."""
        assert self.packed is not None, "there is a match, so every step has a candidate"
        forbidden = np.zeros(matches.shape[1], np.bool_)
        for node in range(1, 1 + len(self.alternative.negations)):
            rest = np.flatnonzero(~forbidden)
            if rest.size:
                forbidden[rest] = self._occurs(self.packed, node, matches[:, rest])
        return forbidden

    def _extended(self, packed: PackedPattern, partials: Int32) -> Iterator[Int32]:
        """Yield the matches that extend partial matches [k, P]."""
        if not partials.shape[1]:
            return
        if partials.shape[0] == len(self.alternative.steps):
            yield partials
            return
        steps, last = self.alternative.steps, partials.shape[0]
        while last < len(steps) - 1 and not steps[last].filters and last not in self.by_arrow:
            last += 1
        partials, frames = np.ascontiguousarray(partials), _frames(packed, 1)
        frame, outcome = np.zeros(1, np.int64), np.zeros(1, np.int64)
        size = self.chunk if steps[last].filters or last in self.by_arrow else self.enough
        out = np.empty((last + 1, size), np.int32)
        count = size
        while count == size:
            count = search(packed.tree, packed.reach, packed.ring, frames, frame, outcome, partials, last, out)
            yield from self._extended(packed, self._passing(packed, last, out[:, :count]))

    def _passing(self, packed: PackedPattern, last: int, partials: Int32) -> Int32:
        """Return the partial matches that pass the filters and negations that Arrow checks after a stage."""
        keep = self._passes(self.alternative.steps[: last + 1], partials)
        if keep is not None:
            partials = partials[:, keep]
        for node in self.by_arrow.get(last, ()):
            partials = partials[:, ~self._occurs(packed, node, partials)]
        return partials

    def _passes(self, chain: Sequence[Step], partials: Int32) -> Bool | None:
        """Return a mask of the partial matches that pass the last step's filters; None if it has none."""
        if not chain[-1].filters or not partials.shape[1]:
            return None
        bound = Alternative(self.alternative.query, tuple(chain), ())
        return passing(bound, self.events, chain[-1].filters, partials)

    # --- negations of given matches ---
    def _occurs(self, packed: PackedPattern, node: int, partials: Int32) -> Bool:
        """Return a mask of the partial matches in which a negated sub-pattern occurs."""
        parts = (partials[:, begin : begin + CHUNK_TESTS] for begin in range(0, partials.shape[1], CHUNK_TESTS))
        occurs = [self._occurs_by_rounds(packed, node, np.ascontiguousarray(part)) for part in parts]
        return np.concatenate([np.empty(0, np.bool_), *occurs])

    def _occurs_by_rounds(self, packed: PackedPattern, node: int, partials: Int32) -> Bool:
        """Search in rounds; each round continues until a search needs more results from Arrow."""
        tree, count = packed.tree, partials.shape[1]
        frames, most = _frames(packed, count), count * MAX_AHEAD
        checks = PendingChecks(np.full((packed.longest, most), -1, np.int32), *np.empty((2, most), np.int32))
        begin_searches(frames, node, partials)
        outcomes, waiting = np.full(count, UNDECIDED, np.int64), np.arange(count)
        while waiting.size:
            search(tree, packed.reach, packed.ring, frames, waiting, outcomes, NOTHING, 0, NOTHING)
            waiting = waiting[outcomes[waiting] == UNDECIDED]
            results = np.zeros(collect_checks(tree, frames, waiting, checks), np.bool_)
            rows = checks.rows[: results.size]
            for row in np.flatnonzero(np.bincount(rows)):
                which = np.flatnonzero(rows == row)
                results[which] = self._passes(packed.chains[row], checks.events[:, which])
            hand_back(tree, frames, checks, results)
        return outcomes == OCCURS


def _frames(packed: PackedPattern, count: int) -> Frames:
    return Frames(
        np.full((count, packed.longest, layout.MARK_FIELDS), -1, np.int64),
        np.zeros((count, 1 + packed.levels, layout.LEVEL_FIELDS), np.int64),
        np.zeros((count, layout.STATUS_FIELDS), np.int64),
    )


# --- predicates that Arrow evaluates for paused searches ---------------------------------------------------------


class PendingChecks(NamedTuple):
    """Candidates whose predicates Arrow has to evaluate."""

    events: Int32  # [steps on the longest path, checks]
    frames: Int32  # [checks] the frame of the paused search
    rows: Int32  # [checks] the row in Tree.steps of the step whose predicates are checked


@njit(cache=True, nogil=True)
def begin_searches(frames: Frames, node: int, partials: Int32) -> None:
    """Initialize one search for a negation per partial match [k, P]."""
    for frame in range(partials.shape[1]):
        frames.status[frame, layout.LEVEL], frames.status[frame, layout.PHASE] = 1, ENTER
        frames.status[frame, layout.ONE_NEGATION], frames.status[frame, layout.AHEAD] = 1, 1
        frames.levels[frame, 1, layout.NODE], frames.levels[frame, 1, layout.STEP] = node, 0
        for number in range(partials.shape[0]):
            frames.marks[frame, number, layout.EVENT] = partials[number, frame]


@njit(cache=True, nogil=True)
def collect_checks(tree: Tree, frames: Frames, waiting: Int64, checks: PendingChecks) -> int:
    """Write the next candidates of the steps at which searches are paused, at most MAX_AHEAD each; return how many."""
    count = 0
    for frame in waiting:
        marks, level = frames.marks[frame], frames.status[frame, layout.LEVEL]
        node, number = frames.levels[frame, level, layout.NODE], frames.levels[frame, level, layout.STEP]
        first = tree.nodes[node, layout.FIRST]
        row = tree.nodes[node, layout.STEPS] + number - first
        enough = count + frames.status[frame, layout.AHEAD]
        frames.status[frame, layout.AHEAD] = min(2 * frames.status[frame, layout.AHEAD], MAX_AHEAD)
        entry, stop, high = marks[number, layout.ENTRY], marks[number, layout.STOP], marks[first, layout.HIGH]
        while count < enough and entry < stop and tree.places[entry] < high:
            place = tree.places[entry]
            if conflicting_step(tree, marks, row, place) < 0:
                for other in range(number):
                    checks.events[other, count] = marks[other, layout.EVENT]
                checks.events[number, count] = place
                checks.frames[count], checks.rows[count] = frame, row
                count += 1
            entry += 1
    return count


@njit(cache=True, nogil=True)
def hand_back(tree: Tree, frames: Frames, checks: PendingChecks, results: Bool) -> None:
    """Store the results in the paused searches, one bit per candidate, in the order of the candidates."""
    for at in range(results.size):
        marks, number = frames.marks[checks.frames[at]], tree.steps[checks.rows[at], layout.NUMBER]
        if marks[number, layout.RESULT_COUNT] == 0:
            marks[number, layout.RESULTS] = 0
        if results[at]:
            marks[number, layout.RESULTS] |= 1 << marks[number, layout.RESULT_COUNT]
        marks[number, layout.RESULT_COUNT] += 1
