"""Halted searches in, the candidates that they wait for out, and the answers of Arrow back into them.

A partial match asks about one candidate first, then about twice as many each time: one that is decided by its first
candidates costs little, one that needs many costs few rounds.
"""

from __future__ import annotations

from typing import NamedTuple

from numba import njit

from streamsift.runtime.arrays.comparing import holds
from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64
from streamsift.runtime.negation import layout as r
from streamsift.runtime.negation.kernel import ENTER
from streamsift.runtime.negation.layout import Frames, Tree

MOST_AHEAD = 32  # candidates that a partial match asks about at a time


class Questions(NamedTuple):
    """Candidates that wait for a predicate of Arrow's."""

    events: Int32  # [steps on the longest path, questions]
    frames: Int32  # [questions] who asks
    rows: Int32  # [questions] the row in Tree.steps of the step that is asked about


@njit(cache=True, nogil=True)
def begin(frames: Frames, node: int, partials: Int32) -> None:
    """Puts the searches of partial matches [k, P] for a negation before their start."""
    for frame in range(partials.shape[1]):
        frames.status[frame, r.LEVEL], frames.status[frame, r.PHASE] = 1, ENTER
        frames.status[frame, r.ONE_NEGATION], frames.status[frame, r.AHEAD] = 1, 1
        frames.levels[frame, 1, r.NODE], frames.levels[frame, 1, r.STEP] = node, 0
        for number in range(partials.shape[0]):
            frames.marks[frame, number, r.EVENT] = partials[number, frame]


@njit(cache=True, nogil=True)
def ask(tree: Tree, frames: Frames, waiting: Int64, questions: Questions) -> int:
    """Writes the next candidates of the steps at which searches wait; returns how many, MOST_AHEAD at most for each."""
    count = 0
    for frame in waiting:
        marks, level = frames.marks[frame], frames.status[frame, r.LEVEL]
        node, number = frames.levels[frame, level, r.NODE], frames.levels[frame, level, r.STEP]
        first = tree.nodes[node, r.FIRST]
        row = tree.nodes[node, r.STEPS] + number - first
        enough = count + frames.status[frame, r.AHEAD]
        frames.status[frame, r.AHEAD] = min(2 * frames.status[frame, r.AHEAD], MOST_AHEAD)
        entry = marks[number, r.ENTRY]
        while count < enough and entry < marks[number, r.STOP] and tree.places[entry] < marks[first, r.HIGH]:
            place = tree.places[entry]
            fits = True
            for at in range(tree.steps[row, r.OTHERS_START], tree.steps[row, r.OTHERS_STOP]):
                fits = fits and marks[tree.numbers[at], r.EVENT] != place
            for pair in range(tree.steps[row, r.PAIRS_START], tree.steps[row, r.PAIRS_STOP]):
                left = tree.codes[2 * pair, marks[tree.pairs[pair, r.EARLIER], r.EVENT]]
                fits = fits and holds(tree.pairs[pair, r.OPERATOR], left, tree.codes[2 * pair + 1, place])
            if fits:
                for other in range(number):
                    questions.events[other, count] = marks[other, r.EVENT]
                questions.events[number, count] = place
                questions.frames[count], questions.rows[count] = frame, row
                count += 1
            entry += 1
    return count


@njit(cache=True, nogil=True)
def hear(tree: Tree, frames: Frames, questions: Questions, answers: Bool) -> None:
    """Hands the answers to those who asked, bit by bit in the order of the candidates."""
    for at in range(answers.size):
        frame, number = questions.frames[at], tree.steps[questions.rows[at], r.NUMBER]
        if frames.marks[frame, number, r.PENDING] == 0:
            frames.marks[frame, number, r.ANSWERS] = 0
        if answers[at]:
            frames.marks[frame, number, r.ANSWERS] |= 1 << frames.marks[frame, number, r.PENDING]
        frames.marks[frame, number, r.PENDING] += 1
