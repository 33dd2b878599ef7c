"""Packed steps and partial matches in, longer matches out: candidates inside intervals, by kernels.

All events are places in the stream. An interval is [low, high) in places, and [least, most] in window positions, which
differ from places only for count windows within partitions. The steps of a pattern and of the negations inside it are
numbered along the path from the pattern down: a negation's steps go on from those of the pattern around it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.kernels import Int32, Int64
from streamsift.runtime.search import first_above, holds

# Columns of Tree.nodes: the pattern is node 0, the others are negations.
FIRST, COUNT, STEPS, CHILDREN_START, CHILDREN_STOP, READY, CONFLICTS = range(7)
LOWER_START, LOWER_STOP, UPPER_START, UPPER_STOP, LOWER_EDGE, UPPER_EDGE = range(7, 13)
NEEDS_ARROW, EARLIEST, RING_BASE, RING_MASK, READS_START, READS_STOP, NODE_FIELDS = range(13, 20)
# Values of LOWER_EDGE and UPPER_EDGE: the steps in LOWER_START:LOWER_STOP of Tree.numbers, or an edge of the window.
BY_STEPS, BY_WINDOW, BY_MATCH = range(3)
# Columns of Tree.steps.
NUMBER, OFFSETS_BASE, LINK_BASE, LINK_STEP, PAIRS_START, PAIRS_STOP, AFTER_START, AFTER_STOP = range(8)
ORDER, OTHERS_START, OTHERS_STOP, GUARDED, FILTERED, FILTER_READS, STEP_FIELDS = range(8, 15)
# Columns of Tree.pairs and of Tree.reads.
EARLIER, OPERATOR, PAIR_FIELDS = range(3)
READ_STEP, READ_BASE, READ_FIELDS = range(3)
# Fields of Frames.marks, for each step that is bound or being bound.
EVENT, ENTRY, STOP, REASONS, HIGH, LEAST, MOST, ANSWERS, PENDING = range(9)
# More of them, at a negation's first step.
LOW, ASKED_HIGH, KEPT, MARK_FIELDS = range(9, 13)
# Fields of the cursor: the next partial match, the step that is being bound.
NEXT_PARTIAL, DEPTH, CURSOR_FIELDS = range(3)
NO_LIMIT = np.iinfo(np.int32).max
NO_OWN_STEPS = 1 << 30  # for `first`: no step is the search's own, so nothing is noted as a conflict


class Tree(NamedTuple):
    """A pattern and its negations, and the events that their steps may bind, packed.

    The places of a step ascend within each of its lookup groups.
    """

    nodes: Int64  # [nodes, NODE_FIELDS]; the children of a node are neighbours
    steps: Int64  # [steps, STEP_FIELDS]; ORDER: bits of all steps of the node that come before this one
    numbers: Int64  # lists of step numbers; OTHERS: steps that could bind the same event
    places: Int32  # the candidates of all steps
    offsets: Int64  # OFFSETS_BASE + group: where the group's candidates start in `places`; one more for the end
    hints: Int64  # [offsets] where the last search in a group ended
    links: Int32  # LINK_BASE + place of the event of LINK_STEP: its group, -1 for none
    pairs: Int64  # [pairs, PAIR_FIELDS]
    codes: Int64  # [2 * pairs, places] the two sides of each pair
    reads: Int64  # [reads, READ_FIELDS] what the answer of a negation depends on, besides its interval
    values: Int32  # READ_BASE + place of the event of READ_STEP: equal for equal values, -1 where unknown


class Stream(NamedTuple):
    """What intervals are computed from; all [places]."""

    place_after: Int32  # the first place later than this one
    place_since: Int32  # the first place of the same time
    positions: Int32  # window positions: the places themselves, but for count windows within partitions
    window_low: Int32  # the first place in one window with this one, as its last event
    window_high: Int32  # the last place in one window with this one, as its first event
    rows_in_partition: int  # the length of a count window within partitions, else 0


@njit(cache=True, nogil=True)
def open_step(tree: Tree, marks: Int64, row: int, first: int, low: int) -> None:
    """Puts a step before its first candidate from `low` on. `first` is the first step that could be chosen anew."""
    number, link_step = tree.steps[row, NUMBER], tree.steps[row, LINK_STEP]
    marks[number, REASONS] = marks[number, PENDING] = marks[number, ENTRY] = marks[number, STOP] = 0
    group = 0
    if link_step >= 0:
        group = tree.links[tree.steps[row, LINK_BASE] + marks[link_step, EVENT]]
        if link_step >= first:
            marks[number, REASONS] = 1 << (link_step - first)
    if group >= 0:
        at = tree.steps[row, OFFSETS_BASE] + group
        start, stop = tree.offsets[at], tree.offsets[at + 1]
        entry = first_above(tree.places, 0, start, stop, tree.hints[at], low - 1)
        tree.hints[at] = marks[number, ENTRY] = entry
        marks[number, STOP] = stop


@njit(cache=True, nogil=True)
def admits(tree: Tree, stream: Stream, marks: Int64, row: int, first: int, place: int, interval: int) -> bool:
    """Whether a step may bind this place; what speaks against it is noted as the step's reasons.

    marks[interval] has the bounds in window positions.
    """
    number = tree.steps[row, NUMBER]
    if stream.rows_in_partition > 0:
        position = stream.positions[place]
        if position < marks[interval, LEAST] or position > marks[interval, MOST]:
            return False
    for at in range(tree.steps[row, OTHERS_START], tree.steps[row, OTHERS_STOP]):
        other = tree.numbers[at]
        if marks[other, EVENT] == place:
            if other >= first:
                marks[number, REASONS] |= 1 << (other - first)
            return False
    for pair in range(tree.steps[row, PAIRS_START], tree.steps[row, PAIRS_STOP]):
        earlier = tree.pairs[pair, EARLIER]
        left, right = tree.codes[2 * pair, marks[earlier, EVENT]], tree.codes[2 * pair + 1, place]
        if not holds(tree.pairs[pair, OPERATOR], left, right):
            if earlier >= first:
                marks[number, REASONS] |= 1 << (earlier - first)
            return False
    return True


@njit(cache=True, nogil=True)
def after_steps(tree: Tree, stream: Stream, marks: Int64, start: int, stop: int, low: int) -> int:
    """The first place from `low` on that is later than the events of all listed steps."""
    for at in range(start, stop):
        low = max(low, stream.place_after[marks[tree.numbers[at], EVENT]])
    return low


@njit(cache=True, nogil=True)
def before_steps(tree: Tree, stream: Stream, marks: Int64, start: int, stop: int, high: int) -> int:
    """The last of the ends up to `high` that leaves out the events of all listed steps, and what is later."""
    for at in range(start, stop):
        high = min(high, stream.place_since[marks[tree.numbers[at], EVENT]])
    return high


@njit(cache=True, nogil=True)
def open_in_window(tree: Tree, stream: Stream, marks: Int64, row: int) -> None:
    """Opens a step of the pattern: after the steps before it, in one window with all that is bound."""
    number = tree.steps[row, NUMBER]
    low, marks[number, HIGH] = 0, stream.positions.size
    marks[number, LEAST], marks[number, MOST] = -1, NO_LIMIT
    if number > 0:
        earliest = latest = marks[0, EVENT]
        for other in range(1, number):
            earliest, latest = min(earliest, marks[other, EVENT]), max(latest, marks[other, EVENT])
        low = after_steps(
            tree, stream, marks, tree.steps[row, AFTER_START], tree.steps[row, AFTER_STOP], stream.window_low[latest]
        )
        marks[number, HIGH] = stream.window_high[earliest] + 1
        if stream.rows_in_partition > 0:
            marks[number, LEAST] = stream.positions[latest] - (stream.rows_in_partition - 1)
            marks[number, MOST] = stream.positions[earliest] + (stream.rows_in_partition - 1)
    open_step(tree, marks, row, NO_OWN_STEPS, low)
