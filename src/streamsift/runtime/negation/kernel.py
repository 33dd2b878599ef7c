"""Packed patterns and partial matches in, longer matches out, or whether a negation occurs: the nested search.

Outer events first, then the search inside the intervals between them, as in "Processing Nested Complex Sequence Pattern
Queries over Event Streams". The pattern is enumerated depth first. Once all is bound that a negation reads, its
sub-pattern is searched for, one level down, with its own negations one level further; the first hit ends that search.

A search for existence goes earliest events first, with conflict-directed backjumping ("Hybrid algorithms for the
constraint satisfaction problem", Prosser, 1993): REASONS of a step has a bit for each step of the same negation whose
other choice could help it. A later choice of an earlier step only narrows what is left, so order alone is no reason;
but an earlier choice of that step would widen it, so what kept it from being earlier is one. If an inner negation
occurs, the steps that it reads are the reason.

It is one function, as a call with this many arrays costs more than what it would do.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from streamsift.runtime.arrays.comparing import holds
from streamsift.runtime.arrays.dtypes import Int32, Int64
from streamsift.runtime.arrays.searching import first_above
from streamsift.runtime.events.reach import Reach
from streamsift.runtime.negation import layout as r
from streamsift.runtime.negation.layout import NO_LIMIT, Frames, Ring, Tree

# Values of PHASE.
BEGIN, ENTER, OPEN, NEXT, CHILDREN, LEAVE = range(6)
# What a search for existence says; ASKS: it goes on when Arrow has evaluated a predicate.
NO, YES, ASKS = range(3)
EXHAUSTED, TAKEN, WAITS, FULL = range(4)
TRIAL = 4096  # questions after which the share of those that were answered without a search decides
SPREAD = 2_654_435_761  # odd, 32 bits: "The Art of Computer Programming", section 6.4, on multiplicative hashing


@njit(cache=True, nogil=True)
def search(
    tree: Tree,
    stream: Reach,
    ring: Ring,
    frames: Frames,
    turns: Int64,
    said: Int64,
    partials: Int32,
    last: int,
    out: Int32,
) -> int:
    """Goes on with the searches of some frames, each in its turn.

    A frame extends partial matches [k, P] by the steps k to `last`; the number of those that were written to
    out [last + 1, C] is returned. When `out` is full it stops; fewer than C mean that it is done. Negations that need
    Arrow are left to the caller, who has frames search for ONE_NEGATION each: said [frames] is NO, YES or ASKS then.
    """
    nodes, steps, numbers, places = tree.nodes, tree.steps, tree.numbers, tree.places
    count = 0
    for frame in turns:
        marks, levels, status = frames.marks[frame], frames.levels[frame], frames.status[frame]
        level, phase = status[r.LEVEL], status[r.PHASE]
        answer = NO
        while True:
            node, number = levels[level, r.NODE], levels[level, r.STEP]
            first = nodes[node, r.FIRST]
            if phase == BEGIN:
                if status[r.NEXT_PARTIAL] == partials.shape[1]:
                    break
                for other in range(partials.shape[0]):
                    marks[other, r.EVENT] = partials[other, status[r.NEXT_PARTIAL]]
                status[r.NEXT_PARTIAL] += 1
                levels[0, r.STEP] = number = partials.shape[0]
                phase = OPEN
            elif phase == ENTER:
                # --- the interval of a negation ---
                low, high = 0, stream.place_after.size
                if nodes[node, r.LOWER_EDGE] != r.BY_STEPS or nodes[node, r.UPPER_EDGE] != r.BY_STEPS:
                    earliest = latest = marks[0, r.EVENT]
                    for other in range(1, nodes[0, r.COUNT]):
                        earliest, latest = min(earliest, marks[other, r.EVENT]), max(latest, marks[other, r.EVENT])
                    if nodes[node, r.LOWER_EDGE] == r.BY_WINDOW:
                        low = stream.window_low[latest]
                    if nodes[node, r.UPPER_EDGE] == r.BY_MATCH:
                        high = stream.place_after[latest]
                    elif nodes[node, r.UPPER_EDGE] == r.BY_WINDOW:
                        high = stream.window_high[earliest] + 1
                for at in range(nodes[node, r.LOWER_START], nodes[node, r.LOWER_STOP]):
                    event = marks[numbers[at], r.EVENT]
                    if nodes[node, r.LOWER_EDGE] == r.BY_OWN_WINDOW:
                        low = max(low, stream.own_windows[nodes[node, r.OWN_WINDOW], event])
                    else:
                        low = max(low, stream.place_after[event])
                if nodes[node, r.UPPER_EDGE] == r.BY_OWN_END:
                    high = 0
                for at in range(nodes[node, r.UPPER_START], nodes[node, r.UPPER_STOP]):
                    event = marks[numbers[at], r.EVENT]
                    if nodes[node, r.UPPER_EDGE] == r.BY_OWN_WINDOW:
                        high = min(high, stream.own_windows[nodes[node, r.OWN_WINDOW] + 1, event] + 1)
                    elif nodes[node, r.UPPER_EDGE] == r.BY_OWN_END:
                        high = max(high, stream.place_after[event])
                    else:
                        high = min(high, stream.place_since[event])
                marks[first, r.LOW], marks[first, r.HIGH], marks[first, r.ASKED_HIGH] = low, high, high
                marks[first, r.KEPT] = -1
                answer = ASKS if low < high else NO
                # --- what is known of it ---
                asked = ring.asked[node]
                given_up = asked >= TRIAL and ring.answered[node] < asked * ring.least_answered
                if answer == ASKS and nodes[node, r.RING_BASE] >= 0 and not given_up:
                    slot, entry = np.int64(low), np.int64(-1)
                    reads, reads_stop = nodes[node, r.READS_START], nodes[node, r.READS_STOP]
                    is_known = True
                    for read in range(reads, reads_stop):
                        value = tree.values[
                            tree.reads[read, r.READ_BASE] + marks[tree.reads[read, r.READ_STEP], r.EVENT]
                        ]
                        is_known = is_known and value >= 0
                        slot += (np.int64(value) * SPREAD) >> 13
                    if is_known:
                        entry = nodes[node, r.RING_BASE] + (slot & nodes[node, r.RING_MASK])
                        is_same = ring.keys[entry, 0] == low
                        for read in range(reads, reads_stop):
                            event = marks[tree.reads[read, r.READ_STEP], r.EVENT]
                            value = tree.values[tree.reads[read, r.READ_BASE] + event]
                            is_same = is_same and ring.keys[entry, 1 + read - reads] == value
                            ring.keys[entry, 1 + read - reads] = value
                        if not is_same:
                            ring.keys[entry, 0] = low
                            ring.hits[entry], ring.misses[entry] = NO_LIMIT, low
                        ring.asked[node] += 1
                        if high >= ring.hits[entry]:
                            answer = YES
                        elif high <= ring.misses[entry]:
                            answer = NO
                        elif nodes[node, r.EARLIEST] == 1:
                            # The first hit ends earliest: sought as far as a match reaches, it answers for every end.
                            marks[first, r.HIGH] = max(high, stream.window_high[low] + 1)
                        if answer == ASKS:
                            marks[first, r.KEPT] = entry
                        else:
                            ring.answered[node] += 1
                levels[level, r.STEP] = number = first
                phase = OPEN if answer == ASKS else LEAVE
            row = nodes[node, r.STEPS] + number - first
            if phase == OPEN:
                # --- the candidates of a step: in one window with all that is bound, or in the negation's interval ---
                low = marks[first, r.LOW]
                if level == 0:
                    low, marks[number, r.HIGH] = 0, stream.place_after.size
                    if number > 0:
                        earliest = latest = marks[0, r.EVENT]
                        for other in range(1, number):
                            earliest, latest = min(earliest, marks[other, r.EVENT]), max(latest, marks[other, r.EVENT])
                        low, marks[number, r.HIGH] = stream.window_low[latest], stream.window_high[earliest] + 1
                for at in range(steps[row, r.AFTER_START], steps[row, r.AFTER_STOP]):
                    low = max(low, stream.place_after[marks[numbers[at], r.EVENT]])
                upper = NO_LIMIT
                for at in range(steps[row, r.LIMITS_START], steps[row, r.LIMITS_STOP]):
                    edge = stream.own_windows[tree.limits[at, r.WINDOW_ROW], marks[tree.limits[at, r.EARLIER], r.EVENT]]
                    if tree.limits[at, r.IS_UPPER] == 1:
                        upper = min(upper, edge)
                    else:
                        low = max(low, edge)
                marks[number, r.REASONS] = marks[number, r.PENDING] = marks[number, r.ENTRY] = marks[number, r.STOP] = 0
                group, link_step = np.int64(0), steps[row, r.LINK_STEP]
                if link_step >= 0:
                    group = np.int64(tree.links[steps[row, r.LINK_BASE] + marks[link_step, r.EVENT]])
                    if level > 0 and link_step >= first:
                        marks[number, r.REASONS] = 1 << (link_step - first)
                if group >= 0:
                    at = steps[row, r.OFFSETS_BASE] + group
                    found = first_above(places, 0, tree.offsets[at], tree.offsets[at + 1], tree.hints[at], low - 1)
                    tree.hints[at] = marks[number, r.ENTRY] = found
                    marks[number, r.STOP] = tree.offsets[at + 1]
                    if steps[row, r.LIMITS_START] < steps[row, r.LIMITS_STOP]:
                        marks[number, r.STOP] = first_above(places, 0, found, tree.offsets[at + 1], found, upper)
                for at in range(steps[row, r.LIMITS_START], steps[row, r.LIMITS_STOP]):
                    if level > 0 and tree.limits[at, r.EARLIER] >= first:
                        marks[number, r.REASONS] |= 1 << (tree.limits[at, r.EARLIER] - first)
                phase = NEXT
            if phase == NEXT:
                # --- the next of them that is distinct, and true for every pair and every filter ---
                interval, own = (number, NO_LIMIT) if level == 0 else (first, first)
                high = marks[interval, r.HIGH]
                others, others_stop = steps[row, r.OTHERS_START], steps[row, r.OTHERS_STOP]
                pairs, pairs_stop = steps[row, r.PAIRS_START], steps[row, r.PAIRS_STOP]
                asks = level > 0 and steps[row, r.FILTERED] == 1
                is_whole = level == 0 and number == last and steps[row, r.GUARDED] == 0
                entry, stop, reasons = marks[number, r.ENTRY], marks[number, r.STOP], marks[number, r.REASONS]
                taken = EXHAUSTED
                while taken == EXHAUSTED and entry < stop and places[entry] < high:
                    place = places[entry]
                    fits = True
                    for at in range(others, others_stop):
                        if fits and marks[numbers[at], r.EVENT] == place:
                            fits = False
                            if numbers[at] >= own:
                                reasons |= 1 << (numbers[at] - own)
                    for pair in range(pairs, pairs_stop):
                        if fits:
                            earlier = tree.pairs[pair, r.EARLIER]
                            left = tree.codes[2 * pair, marks[earlier, r.EVENT]]
                            fits = holds(tree.pairs[pair, r.OPERATOR], left, tree.codes[2 * pair + 1, place])
                            if not fits and earlier >= own:
                                reasons |= 1 << (earlier - own)
                    if fits and asks:
                        if marks[number, r.PENDING] == 0:
                            taken = WAITS
                        else:
                            fits = marks[number, r.ANSWERS] & 1 == 1
                            marks[number, r.ANSWERS] >>= 1
                            marks[number, r.PENDING] -= 1
                            if not fits:
                                reasons |= steps[row, r.FILTER_READS]
                    if taken == EXHAUSTED:
                        entry += 1
                        if fits and is_whole:
                            for other in range(last):
                                out[other, count] = marks[other, r.EVENT]
                            out[last, count] = place
                            count += 1
                            if count == out.shape[1]:
                                taken = FULL
                        elif fits:
                            marks[number, r.EVENT] = place
                            taken = TAKEN
                marks[number, r.ENTRY], marks[number, r.REASONS] = entry, reasons
                if taken == TAKEN:
                    levels[level, r.CHILD] = nodes[node, r.CHILDREN_START]
                    phase = CHILDREN
                elif taken == FULL:
                    break
                elif taken == WAITS:
                    answer = ASKS
                    break
                elif level == 0:
                    levels[0, r.STEP] = number - 1
                    if number == partials.shape[0]:
                        phase = BEGIN
                else:
                    # --- back to the last step whose other choice could help ---
                    for other in range(number - first):
                        if steps[row, r.ORDER] >> other & 1:
                            reasons |= marks[first + other, r.REASONS]
                    if reasons != 0:
                        back = number - first - 1
                        while not reasons >> back & 1:
                            back -= 1
                        marks[first + back, r.REASONS] |= reasons & ~(1 << back)
                        levels[level, r.STEP] = first + back
                    else:
                        answer, phase = NO, LEAVE
                        if marks[first, r.KEPT] >= 0:
                            kept = marks[first, r.KEPT]
                            ring.misses[kept] = max(ring.misses[kept], marks[first, r.HIGH])
            if phase == CHILDREN:
                # --- the negations that this step decides, then the next step ---
                child, children_stop = levels[level, r.CHILD], nodes[node, r.CHILDREN_STOP]
                while child < children_stop and (
                    nodes[child, r.READY] != number or (level == 0 and nodes[child, r.NEEDS_ARROW] == 1)
                ):
                    child += 1
                levels[level, r.CHILD] = child
                if child < children_stop:
                    level += 1
                    levels[level, r.NODE] = child
                    phase = ENTER
                elif level == 0 and number == last:
                    for other in range(last + 1):
                        out[other, count] = marks[other, r.EVENT]
                    count += 1
                    phase = NEXT
                    if count == out.shape[1]:
                        break
                elif level == 0 or number < first + nodes[node, r.COUNT] - 1:
                    levels[level, r.STEP] = number + 1
                    phase = OPEN
                else:
                    # --- an occurrence ---
                    answer, phase = YES, LEAVE
                    if marks[first, r.KEPT] >= 0:
                        end, kept = np.int64(0), marks[first, r.KEPT]
                        for other in range(first, number + 1):
                            end = max(end, marks[other, r.EVENT] + 1)
                        ring.hits[kept] = min(ring.hits[kept], end)
                        if nodes[node, r.EARLIEST] == 1:
                            ring.misses[kept] = end - 1
                        answer = YES if end <= marks[first, r.ASKED_HIGH] else NO
            elif phase == LEAVE:
                level -= 1
                if level == 0 and status[r.ONE_NEGATION] == 1:
                    break
                if answer == NO:
                    levels[level, r.CHILD] += 1
                    phase = CHILDREN
                else:
                    phase = NEXT
                    tested, around = levels[level, r.STEP], nodes[levels[level, r.NODE], r.FIRST]
                    if nodes[node, r.STAYS] == 1:
                        marks[tested, r.ENTRY] = marks[tested, r.STOP]  # it forbids all later candidates too
                    if level > 0:
                        marks[tested, r.REASONS] |= nodes[node, r.CONFLICTS] & ((1 << (tested - around)) - 1)
        status[r.LEVEL], status[r.PHASE] = level, phase
        said[frame] = answer
    return count
