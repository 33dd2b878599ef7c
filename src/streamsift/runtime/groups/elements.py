"""Find the elements of one Kleene variable for each match so far, as ranges of a buffer.

A buffer is sorted by (key, place), so without further predicates the elements of a match are a range of it, and nothing
is copied. If elements must be tested one by one, those that pass are copied to another buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.physical.plan import Alternative, Step
from streamsift.runtime.arrays.comparing import first_from, holds
from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64
from streamsift.runtime.events.comparisons import Comparisons, StepCandidates
from streamsift.runtime.matches import passing

EARLIER, OPERATOR, PAIR_FIELDS = range(3)
WINDOW_ROW, IS_UPPER, LIMIT_FIELDS = range(1, 4)  # after EARLIER


class Interval(NamedTuple):
    """The places [low, high) where events may lie; both [matches]."""

    low: Int32
    high: Int32


class Buffer(NamedTuple):
    """The candidates of one variable, sorted by lookup group and place."""

    places: Int32  # [entries]
    offsets: Int64  # [groups + 1] where each lookup group starts
    link: Int32  # [events] the lookup group for an event of step `link_step`, -1 for none
    link_step: int  # -1 if all entries form one group
    pairs: Int64  # [pairs, PAIR_FIELDS]
    codes: Int64  # [2 * pairs, events] the two sides of each pair
    limits: Int64  # [limits, LIMIT_FIELDS] bounds from definition windows
    own_windows: Int32  # [2 * definitions, events] from `own_limits`


class Elements(NamedTuple):
    """The elements places[start:stop] of each match so far."""

    places: Int32
    start: Int64  # [matches]
    stop: Int64  # [matches]


class ElementBuffer:
    """The candidates of a Kleene variable, given the steps that are bound before it."""

    def __init__(self, candidates: StepCandidates, bound: Sequence[Step], step: Step) -> None:
        self.candidates, self.bound, self.step = candidates, bound, step
        entries, offsets, links = candidates.grouped(step, bound)
        comparisons, reach = Comparisons(), candidates.reach
        candidates.compare(step, bound, comparisons)
        tables = comparisons.tables(PAIR_FIELDS, reach.place_after.size)
        link_step, links = (-1, np.empty(0, np.int32)) if links is None else (step.lookup[0].earlier, links)
        self.buffer = Buffer(entries, offsets, links, link_step, *tables, reach.own_windows)

    def ranges(self, interval: Interval, partials: Int32) -> tuple[Int64, Int64]:
        """Return for each partial match [k, P] the entries [start, stop) of possible elements within the interval."""
        start, stop = np.zeros((2, interval.low.size), np.int64)
        find_ranges(self.buffer, interval, partials, start, stop)
        return start, stop

    def elements(self, start: Int64, stop: Int64, bound: Int32, *, apart: bool) -> Elements:
        """Return the entries that can be bound besides events [k, m]; with `apart`, no entry is one of these events."""
        if apart and not self.buffer.pairs.size and not self.step.filters:
            return Elements(self.buffer.places, start, stop)
        places, counts = np.empty(int((stop - start).sum()), np.int32), np.empty(start.size, np.int64)
        places = places[: keep_passing(self.buffer, bound, start, stop, places, counts)]
        borders = np.concatenate([[0], np.cumsum(counts)])
        if self.step.filters and places.size:
            keep = self._passing(bound, np.repeat(np.arange(counts.size), counts), places)
            places, borders = places[keep], np.concatenate([[0], np.cumsum(keep)])[borders]
        return Elements(places, borders[:-1], borders[1:])

    def _passing(self, bound: Int32, origins: Int64, places: Int32) -> Bool:
        query, reads = self.candidates.query, list(self.step.reads)
        chain = (*(self.bound[number] for number in reads), self.step)
        events = np.vstack([bound[reads][:, origins], places])
        return passing(Alternative(query, chain, ()), self.candidates.events, self.step.filters, events)


@njit(cache=True, nogil=True)
def find_ranges(buffer: Buffer, interval: Interval, partials: Int32, start: Int64, stop: Int64) -> None:
    """Write for each partial match [k, P] its entries [start, stop) of the buffer."""
    for partial in range(start.size):
        group = 0 if buffer.link_step < 0 else buffer.link[partials[buffer.link_step, partial]]
        if group >= 0:
            begin, end = buffer.offsets[group], buffer.offsets[group + 1]
            low, high = interval.low[partial], interval.high[partial]
            for limit in range(buffer.limits.shape[0]):
                event = partials[buffer.limits[limit, EARLIER], partial]
                edge = buffer.own_windows[buffer.limits[limit, WINDOW_ROW], event]
                if buffer.limits[limit, IS_UPPER] == 1:
                    high = min(high, edge + np.int32(1))
                else:
                    low = max(low, edge)
            start[partial] = first_from(buffer.places, begin, end, low)
            stop[partial] = first_from(buffer.places, start[partial], end, high)


@njit(cache=True, nogil=True)
def keep_passing(buffer: Buffer, partials: Int32, start: Int64, stop: Int64, places: Int32, counts: Int64) -> int:
    """Copy the entries of each partial match [k, P] that are not bound and pass every comparison; return how many."""
    total = 0
    for partial in range(start.size):
        before = total
        for entry in range(start[partial], stop[partial]):
            place = buffer.places[entry]
            passes = True
            for other in range(partials.shape[0]):
                passes = passes and partials[other, partial] != place
            for pair in range(buffer.pairs.shape[0]):
                if not passes:
                    break
                earlier = buffer.codes[2 * pair, partials[buffer.pairs[pair, EARLIER], partial]]
                passes = holds(buffer.pairs[pair, OPERATOR], earlier, buffer.codes[2 * pair + 1, place])
            if passes:
                places[total] = place
                total += 1
        counts[partial] = total - before
    return total


@njit(cache=True, nogil=True)
def choose(
    places: Int32, start: Int64, stop: Int64, size: int, cursor: Int64, chosen: Int64, origins: Int32, out: Int32
) -> int:
    """Write every combination of `size` elements of each match, in time order, to out [size, C]; return how many.

    Successive combinations of a match differ in as few trailing elements as possible, and reuse the others
    ("Optimizing Expressibility and Performance of Kleene Operators on Binary Tree-based Directed Graph in Complex Event
    Processing", algorithm 3). When `out` is full, the state is in cursor [1] (the match) and chosen [size] (its next
    combination; chosen[0] is -1 before the first). The enumeration is done when cursor[0] == the number of matches.
    """
    count, match = 0, cursor[0]
    while match < start.size:
        if stop[match] - start[match] < size:
            match += 1
            continue
        if chosen[0] < 0:
            for number in range(size):
                chosen[number] = start[match] + number
        while True:
            if count == out.shape[1]:
                cursor[0] = match
                return count
            origins[count] = match
            for number in range(size):
                out[number, count] = places[chosen[number]]
            count += 1
            last = size - 1
            while last >= 0 and chosen[last] == stop[match] - size + last:
                last -= 1
            if last < 0:
                break
            chosen[last] += 1
            for number in range(last + 1, size):
                chosen[number] = chosen[number - 1] + 1
        chosen[0] = -1
        match += 1
    cursor[0] = match
    return count
