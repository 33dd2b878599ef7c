"""Batch the candidates of halted searches whose predicates Arrow evaluates, and hand the results back.

A partial match has one candidate checked first, then twice as many each time: one that is decided by its first
candidates costs little, one that needs many costs few rounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64
from streamsift.runtime.negation import layout
from streamsift.runtime.negation.kernel import ENTER, conflicting_step
from streamsift.runtime.negation.layout import Frames, Tree

MAX_AHEAD = 32  # candidates of a partial match that are checked at a time


class PendingChecks(NamedTuple):
    """Candidates that wait for a predicate of Arrow's."""

    events: Int32  # [steps on the longest path, checks]
    frames: Int32  # [checks] the search that waits
    rows: Int32  # [checks] the row in Tree.steps of the step whose predicates are checked

    @staticmethod
    def of(frames: int, longest: int) -> PendingChecks:
        most = frames * MAX_AHEAD
        return PendingChecks(np.full((longest, most), -1, np.int32), np.empty(most, np.int32), np.empty(most, np.int32))


@njit(cache=True, nogil=True)
def begin(frames: Frames, node: int, partials: Int32) -> None:
    """Put the searches of partial matches [k, P] for a negation before their start."""
    for frame in range(partials.shape[1]):
        frames.status[frame, layout.LEVEL], frames.status[frame, layout.PHASE] = 1, ENTER
        frames.status[frame, layout.ONE_NEGATION], frames.status[frame, layout.AHEAD] = 1, 1
        frames.levels[frame, 1, layout.NODE], frames.levels[frame, 1, layout.STEP] = node, 0
        for number in range(partials.shape[0]):
            frames.marks[frame, number, layout.EVENT] = partials[number, frame]


@njit(cache=True, nogil=True)
def collect(tree: Tree, frames: Frames, waiting: Int64, checks: PendingChecks) -> int:
    """Write the next candidates of the steps at which searches wait; return how many, at most MAX_AHEAD for each."""
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
    """Hand the results to the searches that wait, bit by bit in the order of the candidates."""
    for at in range(results.size):
        marks, number = frames.marks[checks.frames[at]], tree.steps[checks.rows[at], layout.NUMBER]
        if marks[number, layout.RESULT_COUNT] == 0:
            marks[number, layout.RESULTS] = 0
        if results[at]:
            marks[number, layout.RESULTS] |= 1 << marks[number, layout.RESULT_COUNT]
        marks[number, layout.RESULT_COUNT] += 1
