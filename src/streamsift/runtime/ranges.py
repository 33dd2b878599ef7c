"""Partial matches and intervals in, extended matches or the mere existence of one out: the search inside bounds.

All events are places in the stream. An interval is [low, high) in places, and [least, most] in window positions, which
differ from places only for count windows within partitions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.kernels import Bool, Int32, Int64
from streamsift.runtime.search import holds

NEXT_PARTIAL, NEXT_ENTRY, CURSOR_FIELDS = range(3)
# Columns of Candidates.steps.
PLACES_BASE, OFFSETS_BASE, LINK_BASE, LINK_STEP, PAIRS_START, PAIRS_STOP, AFTER, STEP_FIELDS = range(8)
# Columns of Candidates.pairs.
EARLIER, OPERATOR, PAIR_FIELDS = range(3)


class Candidates(NamedTuple):
    """The events that some steps may bind, packed. The places of a step ascend within each of its lookup groups."""

    steps: Int64  # [steps, STEP_FIELDS]; AFTER is a bit mask of steps of the same packing
    places: Int32  # PLACES_BASE + entry
    offsets: Int64  # OFFSETS_BASE + group: where the group's entries start; one more for the end
    links: Int32  # LINK_BASE + place of the event of LINK_STEP: its group, -1 for none
    pairs: Int64  # [pairs, PAIR_FIELDS]
    codes: Int64  # [2 * pairs, places] the two sides of each pair
    positions: Int32  # [places] window positions
    place_after: Int32  # [places] the first place that is later than this one


class Interval(NamedTuple):
    """Where each partial match may be extended; all [partials]."""

    low: Int32
    high: Int32
    least: Int32
    most: Int32


@njit(cache=True, nogil=True)
def first_from(places: Int32, start: int, stop: int, low: int) -> int:
    """The first i in [start, stop) with places[i] >= low, or stop."""
    while start < stop:
        middle = (start + stop) >> 1
        if places[middle] < low:
            start = middle + 1
        else:
            stop = middle
    return start


@njit(cache=True, nogil=True)
def extend_one(
    candidates: Candidates, interval: Interval, partials: Int32, cursor: Int64, out: Int32, origins: Int32
) -> int:
    """Extends partial matches [k, P] by step 0 of the packing; returns how many it wrote to out [k + 1, C].

    origins [C] says which partial each extends. When `out` is full the search stops with its state in the cursor; it is
    done when cursor[NEXT_PARTIAL] == P.
    """
    step = candidates.steps[0]
    bound, count = partials.shape[0], 0
    partial, entry = cursor[NEXT_PARTIAL], cursor[NEXT_ENTRY]
    while partial < partials.shape[1]:
        group = 0 if step[LINK_STEP] < 0 else candidates.links[step[LINK_BASE] + partials[step[LINK_STEP], partial]]
        if group >= 0:
            stop = candidates.offsets[step[OFFSETS_BASE] + group + 1]
            if entry < 0:
                start = candidates.offsets[step[OFFSETS_BASE] + group]
                entry = first_from(candidates.places, start, stop, interval.low[partial])
            while entry < stop and candidates.places[entry] < interval.high[partial]:
                place = candidates.places[entry]
                position = candidates.positions[place]
                fits = interval.least[partial] <= position <= interval.most[partial]
                for other in range(bound):
                    fits = fits and partials[other, partial] != place
                if fits:
                    for number in range(step[PAIRS_START], step[PAIRS_STOP]):
                        earlier = partials[candidates.pairs[number, EARLIER], partial]
                        left, right = candidates.codes[2 * number, earlier], candidates.codes[2 * number + 1, place]
                        if not holds(candidates.pairs[number, OPERATOR], left, right):
                            fits = False
                            break
                if fits:
                    if count == out.shape[1]:
                        cursor[NEXT_PARTIAL], cursor[NEXT_ENTRY] = partial, entry
                        return count
                    for other in range(bound):
                        out[other, count] = partials[other, partial]
                    out[bound, count] = place
                    origins[count] = partial
                    count += 1
                entry += 1
        partial += 1
        entry = -1
    cursor[NEXT_PARTIAL], cursor[NEXT_ENTRY] = partial, -1
    return count


@njit(cache=True, nogil=True)
def exists(candidates: Candidates, interval: Interval, partials: Int32, found: Bool) -> None:
    """For each partial [k, P] whether some assignment of all steps lies in its interval; stops at the first.

    Depth first, earliest events first, with conflict-directed backjumping ("Hybrid algorithms for the constraint
    satisfaction problem", Prosser, 1993). conflicts[d] has a bit for each step whose other choice could help step d.
    A later choice of an earlier step only narrows what is left, so order alone is no conflict; but an earlier choice of it
    would widen that, so whatever kept it from being earlier is one.
    """
    steps = candidates.steps.shape[0]
    bound = partials.shape[0]
    chosen = np.zeros(steps, np.int64)
    entries = np.zeros(steps, np.int64)
    stops = np.zeros(steps, np.int64)
    conflicts = np.zeros(steps, np.int64)
    for partial in range(partials.shape[1]):
        depth, fresh = 0, True
        found[partial] = False
        high = interval.high[partial]
        while True:
            step = candidates.steps[depth]
            if fresh:
                conflicts[depth] = 0
                group = 0
                if step[LINK_STEP] >= bound:
                    group = candidates.links[step[LINK_BASE] + chosen[step[LINK_STEP] - bound]]
                    conflicts[depth] = 1 << (step[LINK_STEP] - bound)
                elif step[LINK_STEP] >= 0:
                    group = candidates.links[step[LINK_BASE] + partials[step[LINK_STEP], partial]]
                low = interval.low[partial]
                for other in range(depth):
                    if step[AFTER] >> other & 1:
                        low = max(low, candidates.place_after[chosen[other]])
                entries[depth] = stops[depth] = 0
                if group >= 0:
                    start = candidates.offsets[step[OFFSETS_BASE] + group]
                    stops[depth] = candidates.offsets[step[OFFSETS_BASE] + group + 1]
                    entries[depth] = first_from(candidates.places, start, stops[depth], low)
            taken = False
            while not taken and entries[depth] < stops[depth]:
                place = candidates.places[entries[depth]]
                if place >= high:
                    break
                entries[depth] += 1
                position = candidates.positions[place]
                if position < interval.least[partial] or position > interval.most[partial]:
                    continue
                taken = True
                for other in range(bound):
                    if partials[other, partial] == place:
                        taken = False
                for other in range(depth):
                    if chosen[other] == place:
                        conflicts[depth] |= 1 << other
                        taken = False
                for number in range(step[PAIRS_START], step[PAIRS_STOP]):
                    if not taken:
                        break
                    earlier = candidates.pairs[number, EARLIER]
                    event = chosen[earlier - bound] if earlier >= bound else partials[earlier, partial]
                    left, right = candidates.codes[2 * number, event], candidates.codes[2 * number + 1, place]
                    if not holds(candidates.pairs[number, OPERATOR], left, right):
                        if earlier >= bound:
                            conflicts[depth] |= 1 << (earlier - bound)
                        taken = False
                if taken:
                    chosen[depth] = place
            if taken and depth == steps - 1:
                found[partial] = True
                break
            if taken:
                depth += 1
                fresh = True
                continue
            reasons, before = conflicts[depth], step[AFTER]
            for other in range(depth - 1, -1, -1):
                if before >> other & 1:
                    reasons |= conflicts[other]
                    before |= candidates.steps[other, AFTER]
            if reasons == 0:
                break
            back = depth - 1
            while not reasons >> back & 1:
                back -= 1
            conflicts[back] |= reasons & ~(1 << back)
            depth = back
            fresh = False
