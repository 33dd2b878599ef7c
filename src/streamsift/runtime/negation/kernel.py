"""Search packed patterns depth first: extend partial matches, or test whether a negated sub-pattern occurs.

Outer events are bound first, then the intervals between them are searched, as in "Processing Nested Complex Sequence
Pattern Queries over Event Streams". As soon as every step that a negation reads is bound, the kernel searches for its
sub-pattern one level down, and for the sub-pattern's own negations one level further. It stops at the first hit.

A search for existence tries earliest events first, with conflict-directed backjumping ("Hybrid algorithms for the
constraint satisfaction problem", Prosser, 1993). REASONS of a step has a bit for each step of the same negation that
could help if it were bound to another event. Binding an earlier step to a later event only removes candidates, so order
alone is not a reason. Binding it to an earlier event would add candidates, so its own reasons count as well. If an
inner negation occurs, the steps that it reads are reasons.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from streamsift.runtime.arrays.comparing import first_above, holds
from streamsift.runtime.arrays.dtypes import NO_LIMIT, Int32, Int64
from streamsift.runtime.events.reach import Reach
from streamsift.runtime.negation import layout
from streamsift.runtime.negation.layout import Frames, Ring, Tree

# Values of PHASE.
BEGIN, ENTER, OPEN, NEXT, CHILDREN, LEAVE = range(6)
# Outcomes of a search for existence; UNDECIDED: it resumes once Arrow has evaluated a predicate.
ABSENT, OCCURS, UNDECIDED = range(3)
EXHAUSTED, TAKEN, WAITS, FULL = range(4)
TRIAL = 4096  # lookups before a cache can be abandoned
SPREAD = 2_654_435_761  # for multiplicative hashing: "The Art of Computer Programming", section 6.4


@njit(cache=True, nogil=True)
def search(
    tree: Tree,
    reach: Reach,
    ring: Ring,
    frames: Frames,
    active: Int64,
    outcomes: Int64,
    partials: Int32,
    last: int,
    out: Int32,
) -> int:
    """Resume the searches of the active frames, one after the other, and return how many matches were written.

    A frame extends partial matches [k, P] by the steps k to `last` and writes to out [last + 1, C]. It stops when `out`
    is full; fewer than C matches mean that it is done. Negations that need Arrow are left to the caller, which sets
    ONE_NEGATION in a frame per partial match: outcomes [frames] are their results.

    This is one loop because a call, inlined or not, retains and releases the arrays in its arguments. With inlined
    functions for the interval, the lookup and the candidates of a step, nested negations took 2.1 times as long; with
    calls, 4.5 times.
    """
    nodes, steps, numbers, places = tree.nodes, tree.steps, tree.numbers, tree.places
    count = 0
    for frame in active:
        marks, levels, status = frames.marks[frame], frames.levels[frame], frames.status[frame]
        level, phase = status[layout.LEVEL], status[layout.PHASE]
        outcome = ABSENT
        while True:
            node, number = levels[level, layout.NODE], levels[level, layout.STEP]
            first = nodes[node, layout.FIRST]
            if phase == BEGIN:
                if status[layout.NEXT_PARTIAL] == partials.shape[1]:
                    break
                for other in range(partials.shape[0]):
                    marks[other, layout.EVENT] = partials[other, status[layout.NEXT_PARTIAL]]
                status[layout.NEXT_PARTIAL] += 1
                levels[0, layout.STEP] = number = partials.shape[0]
                phase = OPEN
            elif phase == ENTER:
                # --- the interval of a negation ---
                low, high = 0, reach.place_after.size
                lower, upper = nodes[node, layout.LOWER_EDGE], nodes[node, layout.UPPER_EDGE]
                if lower != layout.BY_STEPS or upper != layout.BY_STEPS:
                    earliest, latest = ends_of(marks, nodes[0, layout.COUNT])
                    if lower == layout.BY_WINDOW:
                        low = reach.window_low[latest]
                    if upper == layout.BY_MATCH:
                        high = reach.place_after[latest]
                    elif upper == layout.BY_WINDOW:
                        high = reach.window_high[earliest] + 1
                for at in range(nodes[node, layout.LOWER_START], nodes[node, layout.LOWER_STOP]):
                    event = marks[numbers[at], layout.EVENT]
                    if lower == layout.BY_OWN_WINDOW:
                        low = max(low, reach.own_windows[nodes[node, layout.OWN_WINDOW], event])
                    else:
                        low = max(low, reach.place_after[event])
                if upper == layout.BY_OWN_END:
                    high = 0
                for at in range(nodes[node, layout.UPPER_START], nodes[node, layout.UPPER_STOP]):
                    event = marks[numbers[at], layout.EVENT]
                    if upper == layout.BY_OWN_WINDOW:
                        high = min(high, reach.own_windows[nodes[node, layout.OWN_WINDOW] + 1, event] + 1)
                    elif upper == layout.BY_OWN_END:
                        high = max(high, reach.place_after[event])
                    else:
                        high = min(high, reach.place_since[event])
                marks[first, layout.LOW] = low
                marks[first, layout.HIGH] = marks[first, layout.UNWIDENED_HIGH] = high
                # --- its cached result ---
                marks[first, layout.RING_ENTRY] = -1
                outcome = UNDECIDED if low < high else ABSENT
                lookups = ring.lookups[node]
                is_abandoned = lookups >= TRIAL and ring.cache_hits[node] < lookups * ring.min_hit_rate
                if outcome == UNDECIDED and nodes[node, layout.RING_BASE] >= 0 and not is_abandoned:
                    slot, is_cacheable = np.int64(low), True
                    reads, reads_stop = nodes[node, layout.READS_START], nodes[node, layout.READS_STOP]
                    for read in range(reads, reads_stop):
                        event = marks[tree.reads[read, layout.READ_STEP], layout.EVENT]
                        value = tree.values[tree.reads[read, layout.READ_BASE] + event]
                        is_cacheable = is_cacheable and value >= 0
                        slot += (np.int64(value) * SPREAD) >> 13
                    if is_cacheable:
                        entry = nodes[node, layout.RING_BASE] + (slot & nodes[node, layout.RING_MASK])
                        is_same = ring.keys[entry, 0] == low
                        for read in range(reads, reads_stop):
                            event = marks[tree.reads[read, layout.READ_STEP], layout.EVENT]
                            value = tree.values[tree.reads[read, layout.READ_BASE] + event]
                            is_same = is_same and ring.keys[entry, 1 + read - reads] == value
                            ring.keys[entry, 1 + read - reads] = value
                        if not is_same:
                            ring.keys[entry, 0] = low
                            ring.occurs_from[entry], ring.absent_until[entry] = NO_LIMIT, low
                        ring.lookups[node] += 1
                        if high >= ring.occurs_from[entry]:
                            outcome = OCCURS
                        elif high <= ring.absent_until[entry]:
                            outcome = ABSENT
                        elif nodes[node, layout.EARLIEST] == 1:
                            # The first hit ends earliest: search to the end of the window, to serve every interval end.
                            marks[first, layout.HIGH] = max(high, reach.window_high[low] + 1)
                        if outcome == UNDECIDED:
                            marks[first, layout.RING_ENTRY] = entry
                        else:
                            ring.cache_hits[node] += 1
                levels[level, layout.STEP] = number = first
                phase = OPEN if outcome == UNDECIDED else LEAVE
            row = nodes[node, layout.STEPS] + number - first
            if phase == OPEN:
                # --- the candidates of a step: in the window of all bound events, or in the negation's interval ---
                low = marks[first, layout.LOW]
                if level == 0:
                    low, marks[number, layout.HIGH] = 0, reach.place_after.size
                    if number > 0:
                        earliest, latest = ends_of(marks, number)
                        low, marks[number, layout.HIGH] = reach.window_low[latest], reach.window_high[earliest] + 1
                for at in range(steps[row, layout.AFTER_START], steps[row, layout.AFTER_STOP]):
                    low = max(low, reach.place_after[marks[numbers[at], layout.EVENT]])
                upper, reasons = NO_LIMIT, 0
                limits, limits_stop = steps[row, layout.LIMITS_START], steps[row, layout.LIMITS_STOP]
                for at in range(limits, limits_stop):
                    earlier = tree.limits[at, layout.EARLIER]
                    edge = reach.own_windows[tree.limits[at, layout.WINDOW_ROW], marks[earlier, layout.EVENT]]
                    if tree.limits[at, layout.IS_UPPER] == 1:
                        upper = min(upper, edge)
                    else:
                        low = max(low, edge)
                    if level > 0 and earlier >= first:
                        reasons |= 1 << (earlier - first)
                group, link_step = np.int64(0), steps[row, layout.LINK_STEP]
                if link_step >= 0:
                    group = np.int64(tree.links[steps[row, layout.LINK_BASE] + marks[link_step, layout.EVENT]])
                    if level > 0 and link_step >= first:
                        reasons |= 1 << (link_step - first)
                marks[number, layout.RESULT_COUNT] = marks[number, layout.ENTRY] = marks[number, layout.STOP] = 0
                if group >= 0:
                    at = steps[row, layout.OFFSETS_BASE] + group
                    start, stop = tree.offsets[at], tree.offsets[at + 1]
                    entry = first_above(places, 0, start, stop, tree.hints[at], low - 1)
                    tree.hints[at] = marks[number, layout.ENTRY] = entry
                    marks[number, layout.STOP] = stop
                    if limits < limits_stop:
                        marks[number, layout.STOP] = first_above(places, 0, entry, stop, entry, upper)
                marks[number, layout.REASONS] = reasons
                phase = NEXT
            if phase == NEXT:
                # --- the next candidate that is not bound yet and passes every comparison and filter ---
                interval, inner = (number, NO_LIMIT) if level == 0 else (first, first)
                high = marks[interval, layout.HIGH]
                needs_check = level > 0 and steps[row, layout.FILTERED] == 1
                is_whole = level == 0 and number == last and steps[row, layout.GUARDED] == 0
                entry, stop = marks[number, layout.ENTRY], marks[number, layout.STOP]
                reasons = marks[number, layout.REASONS]
                taken = EXHAUSTED
                while taken == EXHAUSTED and entry < stop and places[entry] < high:
                    place = places[entry]
                    conflict = conflicting_step(tree, marks, row, place)
                    fits = conflict < 0
                    if conflict >= inner:
                        reasons |= 1 << (conflict - inner)
                    if fits and needs_check:
                        if marks[number, layout.RESULT_COUNT] == 0:
                            taken = WAITS
                        else:
                            fits = marks[number, layout.RESULTS] & 1 == 1
                            marks[number, layout.RESULTS] >>= 1
                            marks[number, layout.RESULT_COUNT] -= 1
                            if not fits:
                                reasons |= steps[row, layout.FILTER_READS]
                    if taken == EXHAUSTED:
                        entry += 1
                        if fits and is_whole:
                            for other in range(last):
                                out[other, count] = marks[other, layout.EVENT]
                            out[last, count] = place
                            count += 1
                            if count == out.shape[1]:
                                taken = FULL
                        elif fits:
                            marks[number, layout.EVENT] = place
                            taken = TAKEN
                marks[number, layout.ENTRY], marks[number, layout.REASONS] = entry, reasons
                if taken == TAKEN:
                    levels[level, layout.CHILD] = nodes[node, layout.CHILDREN_START]
                    phase = CHILDREN
                elif taken == FULL:
                    break
                elif taken == WAITS:
                    outcome = UNDECIDED
                    break
                elif level == 0:
                    levels[0, layout.STEP] = number - 1
                    if number == partials.shape[0]:
                        phase = BEGIN
                else:
                    back = backjump(tree, marks, row, first, number)
                    if back >= 0:
                        levels[level, layout.STEP] = back
                    else:
                        outcome, phase = ABSENT, LEAVE
                        if marks[first, layout.RING_ENTRY] >= 0:
                            kept = marks[first, layout.RING_ENTRY]
                            ring.absent_until[kept] = max(ring.absent_until[kept], marks[first, layout.HIGH])
            if phase == CHILDREN:
                # --- the negations that can be checked at this step, then the next step ---
                child, children_stop = levels[level, layout.CHILD], nodes[node, layout.CHILDREN_STOP]
                while child < children_stop and (
                    nodes[child, layout.READY] != number or (level == 0 and nodes[child, layout.NEEDS_ARROW] == 1)
                ):
                    child += 1
                levels[level, layout.CHILD] = child
                if child < children_stop:
                    level += 1
                    levels[level, layout.NODE] = child
                    phase = ENTER
                elif level == 0 and number == last:
                    for other in range(last + 1):
                        out[other, count] = marks[other, layout.EVENT]
                    count += 1
                    phase = NEXT
                    if count == out.shape[1]:
                        break
                elif level == 0 or number < first + nodes[node, layout.COUNT] - 1:
                    levels[level, layout.STEP] = number + 1
                    phase = OPEN
                else:
                    # --- an occurrence; if the interval was widened, it may end too late ---
                    outcome, phase, kept = OCCURS, LEAVE, marks[first, layout.RING_ENTRY]
                    if kept >= 0:
                        end = np.int64(0)
                        for other in range(first, number + 1):
                            end = max(end, marks[other, layout.EVENT] + 1)
                        ring.occurs_from[kept] = min(ring.occurs_from[kept], end)
                        if nodes[node, layout.EARLIEST] == 1:
                            ring.absent_until[kept] = end - 1
                        outcome = OCCURS if end <= marks[first, layout.UNWIDENED_HIGH] else ABSENT
            elif phase == LEAVE:
                level -= 1
                if level == 0 and status[layout.ONE_NEGATION] == 1:
                    break
                if outcome == ABSENT:
                    levels[level, layout.CHILD] += 1
                    phase = CHILDREN
                else:
                    phase = NEXT
                    tested, around = levels[level, layout.STEP], nodes[levels[level, layout.NODE], layout.FIRST]
                    if nodes[node, layout.HOLDS_FOR_LATER_EVENTS] == 1:
                        marks[tested, layout.ENTRY] = marks[tested, layout.STOP]  # skip them: they are forbidden too
                    if level > 0:
                        marks[tested, layout.REASONS] |= nodes[node, layout.CONFLICTS] & ((1 << (tested - around)) - 1)
        status[layout.LEVEL], status[layout.PHASE] = level, phase
        outcomes[frame] = outcome
    return count


@njit(cache=True, nogil=True, inline="always")
def ends_of(marks: Int64, count: int) -> tuple[int, int]:
    """Return the earliest and the latest event of the first `count` steps."""
    earliest = latest = marks[0, layout.EVENT]
    for other in range(1, count):
        earliest, latest = min(earliest, marks[other, layout.EVENT]), max(latest, marks[other, layout.EVENT])
    return earliest, latest


@njit(cache=True, nogil=True, inline="always")
def conflicting_step(tree: Tree, marks: Int64, row: int, place: int) -> int:
    """Return a bound step that conflicts with binding a place to the step of this row; -1 if there is none."""
    conflict = -1
    for at in range(tree.steps[row, layout.OTHERS_START], tree.steps[row, layout.OTHERS_STOP]):
        if conflict < 0 and marks[tree.numbers[at], layout.EVENT] == place:
            conflict = tree.numbers[at]
    for pair in range(tree.steps[row, layout.PAIRS_START], tree.steps[row, layout.PAIRS_STOP]):
        if conflict < 0:
            earlier = tree.pairs[pair, layout.EARLIER]
            left = tree.codes[2 * pair, marks[earlier, layout.EVENT]]
            if not holds(tree.pairs[pair, layout.OPERATOR], left, tree.codes[2 * pair + 1, place]):
                conflict = earlier
    return conflict


@njit(cache=True, nogil=True, inline="always")
def backjump(tree: Tree, marks: Int64, row: int, first: int, number: int) -> int:
    """Return the last step that could help a step without candidates if it were rebound; -1 if there is none."""
    reasons = marks[number, layout.REASONS]
    for other in range(number - first):
        if tree.steps[row, layout.ORDER] >> other & 1:
            reasons |= marks[first + other, layout.REASONS]
    back = number - first - 1
    while reasons != 0 and not reasons >> back & 1:
        back -= 1
    if reasons != 0:
        marks[first + back, layout.REASONS] |= reasons & ~(1 << back)
    return first + back if reasons != 0 else -1
