"""Partial matches and a negation in, whether its sub-pattern occurs out: a search that ends at the first hit.

Depth first, earliest events first, with conflict-directed backjumping ("Hybrid algorithms for the constraint
satisfaction problem", Prosser, 1993): REASONS of a step has a bit for each step of the same negation whose other choice
could help it. A negation inside the negation is a search of its own, one level down, as soon as all that it reads is
bound; if it occurs, the steps that it reads are the reason why the candidate is none. Predicates that only Arrow can
evaluate are asked for: the search of a partial match halts, with its state in its frame, and goes on with the answers.
"""

from __future__ import annotations

from typing import NamedTuple

from numba import njit

from streamsift.runtime import ranges as r
from streamsift.runtime.kernels import Int64
from streamsift.runtime.ranges import NO_LIMIT, Stream, Tree
from streamsift.runtime.ring import TRIAL, Ring, entry_of

# Fields of Frames.levels.
NODE, STEP, CHILD, LEVEL_FIELDS = range(4)
# Fields of Frames.status.
LEVEL, PHASE, AHEAD, STATUS_FIELDS = range(4)
# Values of PHASE.
ENTER, OPEN, NEXT, CHILDREN, LEAVE = range(5)
# What a search says.
NO, YES, ASKS = range(3)
EXHAUSTED, TAKEN, WAITS = range(3)


class Frames(NamedTuple):
    """The state of one search for each partial match."""

    marks: Int64  # [partials, steps on the longest path, MARK_FIELDS]
    levels: Int64  # [partials, negations inside each other, LEVEL_FIELDS]
    status: Int64  # [partials, STATUS_FIELDS]


@njit(cache=True, nogil=True)
def enter(tree: Tree, stream: Stream, ring: Ring, marks: Int64, node: int) -> int:
    """Computes the interval of a negation; the answer if it is known without a search, else ASKS."""
    nodes, first = tree.nodes, tree.nodes[node, r.FIRST]
    low, high, least, most = 0, stream.positions.size, -1, NO_LIMIT
    if nodes[node, r.LOWER_EDGE] != r.BY_STEPS or nodes[node, r.UPPER_EDGE] != r.BY_STEPS:
        earliest = latest = marks[0, r.EVENT]
        for other in range(1, nodes[0, r.COUNT]):
            earliest, latest = min(earliest, marks[other, r.EVENT]), max(latest, marks[other, r.EVENT])
        if nodes[node, r.LOWER_EDGE] == r.BY_WINDOW:
            low = stream.window_low[latest]
            if stream.rows_in_partition > 0:
                least = stream.positions[latest] - (stream.rows_in_partition - 1)
        if nodes[node, r.UPPER_EDGE] == r.BY_MATCH:
            high = stream.place_after[latest]
        elif nodes[node, r.UPPER_EDGE] == r.BY_WINDOW:
            high = stream.window_high[earliest] + 1
            if stream.rows_in_partition > 0:
                most = stream.positions[earliest] + (stream.rows_in_partition - 1)
    low = r.after_steps(tree, stream, marks, nodes[node, r.LOWER_START], nodes[node, r.LOWER_STOP], low)
    high = r.before_steps(tree, stream, marks, nodes[node, r.UPPER_START], nodes[node, r.UPPER_STOP], high)
    if low >= high:
        return NO
    marks[first, r.LOW], marks[first, r.HIGH], marks[first, r.ASKED_HIGH] = low, high, high
    marks[first, r.LEAST], marks[first, r.MOST], marks[first, r.KEPT] = least, most, 0
    if nodes[node, r.RING_BASE] < 0:
        return ASKS
    return recall(tree, stream, ring, marks, node)


@njit(cache=True, nogil=True)
def recall(tree: Tree, stream: Stream, ring: Ring, marks: Int64, node: int) -> int:
    """The answer of a negation if it is kept, else ASKS."""
    asked, answered = ring.asked[node], ring.answered[node]
    if asked >= TRIAL and answered < asked * ring.least_answered:
        return ASKS
    first = tree.nodes[node, r.FIRST]
    entry = entry_of(tree, ring, marks, node)
    if entry < 0:
        return ASKS
    high = marks[first, r.HIGH]
    ring.asked[node] += 1
    if high >= ring.hits[entry]:
        ring.answered[node] += 1
        return YES
    if high <= ring.misses[entry]:
        ring.answered[node] += 1
        return NO
    marks[first, r.KEPT] = 1
    if tree.nodes[node, r.EARLIEST] == 1:
        # The first hit has the earliest end: looked for as far as any match reaches, it answers for every `high`.
        marks[first, r.HIGH] = max(high, stream.window_high[marks[first, r.LOW]] + 1)
    return ASKS


@njit(cache=True, nogil=True)
def conclude(tree: Tree, ring: Ring, marks: Int64, node: int, found: int) -> int:
    """The answer of a search that has ended, which is kept where it can be."""
    first = tree.nodes[node, r.FIRST]
    if marks[first, r.KEPT] == 0:
        return found
    entry = entry_of(tree, ring, marks, node)
    if found == NO:
        ring.misses[entry] = max(ring.misses[entry], marks[first, r.HIGH])
        return NO
    end = 0
    for number in range(first, first + tree.nodes[node, r.COUNT]):
        end = max(end, marks[number, r.EVENT] + 1)
    ring.hits[entry] = min(ring.hits[entry], end)
    if tree.nodes[node, r.EARLIEST] == 1:
        ring.misses[entry] = end - 1
    return YES if end <= marks[first, r.ASKED_HIGH] else NO


@njit(cache=True, nogil=True)
def next_candidate(tree: Tree, stream: Stream, marks: Int64, row: int, first: int) -> int:
    """Binds the step's next candidate: TAKEN, EXHAUSTED if there is none, or WAITS for a predicate of Arrow's."""
    number, high = tree.steps[row, r.NUMBER], marks[first, r.HIGH]
    while marks[number, r.ENTRY] < marks[number, r.STOP]:
        place = tree.places[marks[number, r.ENTRY]]
        if place >= high:
            break
        if r.admits(tree, stream, marks, row, first, place, first):
            passes = True
            if tree.steps[row, r.FILTERED] == 1:
                if marks[number, r.PENDING] == 0:
                    return WAITS
                passes = marks[number, r.ANSWERS] & 1 == 1
                marks[number, r.ANSWERS] >>= 1
                marks[number, r.PENDING] -= 1
                if not passes:
                    marks[number, r.REASONS] |= tree.steps[row, r.FILTER_READS]
            if passes:
                marks[number, r.ENTRY] += 1
                marks[number, r.EVENT] = place
                return TAKEN
        marks[number, r.ENTRY] += 1
    return EXHAUSTED


@njit(cache=True, nogil=True)
def jump_back(tree: Tree, marks: Int64, first: int, row: int) -> int:
    """The step to choose anew when this one has no candidate left, or -1 if no choice can help.

    A later choice of an earlier step only narrows what is left, so order alone is no reason; but an earlier choice of
    that step would widen it, so what kept it from being earlier is one.
    """
    number = tree.steps[row, r.NUMBER]
    reasons = marks[number, r.REASONS]
    for other in range(number - first):
        if tree.steps[row, r.ORDER] >> other & 1:
            reasons |= marks[first + other, r.REASONS]
    if reasons == 0:
        return -1
    back = number - first - 1
    while not reasons >> back & 1:
        back -= 1
    marks[first + back, r.REASONS] |= reasons & ~(1 << back)
    return first + back


@njit(cache=True, nogil=True)
def decide(tree: Tree, stream: Stream, ring: Ring, frames: Frames, frame: int) -> int:
    """Goes on with the search of a frame until it is decided (NO, YES), or until it ASKS."""
    marks, levels = frames.marks[frame], frames.levels[frame]
    level, phase = frames.status[frame, LEVEL], frames.status[frame, PHASE]
    answer = NO
    while True:
        node = levels[level, NODE]
        first = tree.nodes[node, r.FIRST]
        number = levels[level, STEP]
        row = tree.nodes[node, r.STEPS] + number - first
        if phase == ENTER:
            answer = enter(tree, stream, ring, marks, node)
            levels[level, STEP] = first
            phase = OPEN if answer == ASKS else LEAVE
        elif phase == OPEN:
            start, stop = tree.steps[row, r.AFTER_START], tree.steps[row, r.AFTER_STOP]
            low = r.after_steps(tree, stream, marks, start, stop, marks[first, r.LOW])
            r.open_step(tree, marks, row, first, low)
            phase = NEXT
        elif phase == NEXT:
            taken = next_candidate(tree, stream, marks, row, first)
            if taken == TAKEN:
                levels[level, CHILD] = tree.nodes[node, r.CHILDREN_START]
                phase = CHILDREN
            elif taken == EXHAUSTED:
                levels[level, STEP] = jump_back(tree, marks, first, row)
                if levels[level, STEP] < 0:
                    answer = conclude(tree, ring, marks, node, NO)
                    phase = LEAVE
            else:
                frames.status[frame, LEVEL], frames.status[frame, PHASE] = level, phase
                return ASKS
        elif phase == CHILDREN:
            child = levels[level, CHILD]
            while child < tree.nodes[node, r.CHILDREN_STOP] and tree.nodes[child, r.READY] != number:
                child += 1
            levels[level, CHILD] = child
            if child < tree.nodes[node, r.CHILDREN_STOP]:
                level += 1
                levels[level, NODE] = child
                phase = ENTER
            elif number < first + tree.nodes[node, r.COUNT] - 1:
                levels[level, STEP] = number + 1
                phase = OPEN
            else:
                answer = conclude(tree, ring, marks, node, YES)
                phase = LEAVE
        else:
            if level == 0:
                return answer
            level -= 1
            number = levels[level, STEP]
            if answer == YES:
                around = tree.nodes[levels[level, NODE], r.FIRST]
                marks[number, r.REASONS] |= tree.nodes[node, r.CONFLICTS] & ((1 << (number - around)) - 1)
                phase = NEXT
            else:
                levels[level, CHILD] += 1
                phase = CHILDREN


@njit(cache=True, nogil=True)
def start(frames: Frames, frame: int, node: int) -> None:
    frames.status[frame, LEVEL], frames.status[frame, PHASE], frames.status[frame, AHEAD] = 0, ENTER, 1
    frames.levels[frame, 0, NODE] = node
    frames.levels[frame, 0, STEP] = 0
