"""Find the elements of one Kleene variable for each match so far: a range of a buffer.

A buffer is sorted by (key, place), so without further predicates the elements of a match are a range of it as it
stands: nothing is copied. Where each element must be tested, those that pass are copied to a buffer of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.physical.detect import window_bound
from streamsift.physical.plan import Alternative, Step
from streamsift.runtime.arrays.comparing import holds
from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64
from streamsift.runtime.arrays.grouping import group_entries
from streamsift.runtime.arrays.searching import first_from
from streamsift.runtime.events.comparisons import Comparisons
from streamsift.runtime.groups.stream import GroupStream, Interval
from streamsift.runtime.matches import passing

EARLIER, OPERATOR, PAIR_FIELDS = range(3)
WINDOW_ROW, IS_UPPER, LIMIT_FIELDS = range(1, 4)  # after EARLIER
CHUNK_ELEMENTS = 1 << 21


class Buffer(NamedTuple):
    """The candidates of one variable, by lookup group and place."""

    places: Int32  # [entries]
    offsets: Int64  # [groups + 1] where each group's entries start
    link: Int32  # [places of the stream] the group that an event of the step `link_step` looks up, -1 for none
    link_step: int  # -1: all entries are one group
    pairs: Int64  # [pairs, PAIR_FIELDS]
    codes: Int64  # [2 * pairs, places of the stream] the two sides of each pair
    limits: Int64  # [limits, LIMIT_FIELDS] by definitions' windows
    own_windows: Int32  # [2 * definitions, places of the stream] as `own_limits` has them


class Elements(NamedTuple):
    """For each match so far the elements places[start:stop]."""

    places: Int32
    start: Int64  # [matches]
    stop: Int64  # [matches]


class ElementBuffer:
    """The candidates of a Kleene variable, given the steps that are bound before it."""

    def __init__(self, stream: GroupStream, bound: Sequence[Step], step: Step) -> None:
        self.stream, self.bound, self.step = stream, bound, step
        own, codes = stream.candidates(step), stream.codes
        entries, offsets, link, link_step = own, np.array([0, own.size], np.int64), np.empty(0, np.int32), -1
        if step.lookup:
            link_step = step.lookup[0].earlier
            others = stream.candidates(bound[link_step])
            (earlier, this), groups = codes.groups(
                [(others, pair.earlier_side), (own, pair.this_side)] for pair in step.lookup
            )
            offsets, order = group_entries(this, groups)
            entries, link = own[order], codes.by_place(others, earlier)
        comparisons = Comparisons()
        for pair in step.pairs:
            window = window_bound(pair.earlier_side, pair.this_side)
            if window is None:
                others = stream.candidates(bound[pair.earlier])
                sides = codes.compared_by_place(pair.op, (others, pair.earlier_side), (own, pair.this_side))
                comparisons.add((pair.earlier,), pair.op, sides)
            else:
                comparisons.add_limit(pair.earlier, window, stream.window_rows)
        tables = comparisons.tables(PAIR_FIELDS, stream.size)
        self.buffer = Buffer(entries, offsets, link, link_step, *tables, stream.own_windows)

    def candidates(self, interval: Interval, partials: Int32, *, apart: bool) -> ElementRanges:
        """Return the entries that may be elements: their group, inside the reach."""
        start, stop = np.zeros(interval.low.size, np.int64), np.zeros(interval.low.size, np.int64)
        find_ranges(self.buffer, interval, partials, start, stop)
        return ElementRanges(self, start, stop, apart)


@dataclass(frozen=True, slots=True)
class ElementRanges:
    """Where the elements of a Kleene variable lie for each match so far: entries [start, stop) of its buffer."""

    buffer: ElementBuffer
    start: Int64
    stop: Int64
    apart: bool  # no bound event can be among them

    def part(self, begin: int, end: int) -> ElementRanges:
        return ElementRanges(self.buffer, self.start[begin:end], self.stop[begin:end], self.apart)

    def elements(self, bound: Int32) -> Elements:
        """Return those that may be bound beside events [k, m]; the steps come first, others may follow them."""
        buffer, step = self.buffer, self.buffer.step
        if self.apart and not buffer.buffer.pairs.size and not step.filters:
            return Elements(buffer.buffer.places, self.start, self.stop)
        places = np.empty(int((self.stop - self.start).sum()), np.int32)
        counts = np.empty(self.start.size, np.int64)
        total = keep_passing(buffer.buffer, bound, self.start, self.stop, places, counts)
        places = places[:total]
        if step.filters and total:
            keep = self._passing(bound, np.repeat(np.arange(counts.size), counts), places)
            ends = np.concatenate([[0], np.cumsum(keep)])
            borders = ends[np.concatenate([[0], np.cumsum(counts)])]
            return Elements(places[keep], borders[:-1], borders[1:])
        ends = np.cumsum(counts)
        return Elements(places, ends - counts, ends)

    def _passing(self, bound: Int32, origins: Int64, places: Int32) -> Bool:
        stream, step, reads = self.buffer.stream, self.buffer.step, list(self.buffer.step.reads)
        chain = (*(self.buffer.bound[number] for number in reads), step)
        some = np.vstack([bound[reads][:, origins], places])
        return passing(Alternative(stream.query, chain, ()), stream.events, step.filters, some)


def parts(wanted: list[ElementRanges]) -> Iterator[tuple[int, int, list[ElementRanges]]]:
    """Split the matches so far into parts [begin, end) that have few elements at a time."""
    part = np.cumsum(sum(each.stop - each.start for each in wanted)) // CHUNK_ELEMENTS
    borders = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), part.size]
    for begin, end in pairwise(borders):
        yield begin, end, [each.part(begin, end) for each in wanted]


@njit(cache=True, nogil=True)
def find_ranges(buffer: Buffer, interval: Interval, partials: Int32, start: Int64, stop: Int64) -> None:
    """Write for each partial [k, P] its entries [start, stop) of the buffer."""
    for partial in range(start.size):
        group = 0 if buffer.link_step < 0 else buffer.link[partials[buffer.link_step, partial]]
        if group >= 0:
            begin, end = buffer.offsets[group], buffer.offsets[group + 1]
            low, high = interval.low[partial], interval.high[partial]
            for limit in range(buffer.limits.shape[0]):
                edge = buffer.own_windows[
                    buffer.limits[limit, WINDOW_ROW], partials[buffer.limits[limit, EARLIER], partial]
                ]
                if buffer.limits[limit, IS_UPPER] == 1:
                    high = min(high, edge + np.int32(1))
                else:
                    low = max(low, edge)
            start[partial] = first_from(buffer.places, begin, end, low)
            stop[partial] = first_from(buffer.places, start[partial], end, high)


@njit(cache=True, nogil=True)
def keep_passing(buffer: Buffer, partials: Int32, start: Int64, stop: Int64, places: Int32, counts: Int64) -> int:
    """Copy the entries of each partial [k, P] that pass every pair and are not bound; return how many in all."""
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
    """Write every choice of `size` elements of each match, in stream order, to out [size, C]; return how many.

    The choices of one match differ from each other in as few last elements as possible: the rest of the one before is
    used again ("Optimizing Expressibility and Performance of Kleene Operators on Binary Tree-based Directed Graph in
    Complex Event Processing", algorithm 3). When `out` is full the state is in cursor [1] (the match) and chosen [size]
    (its next choice, -1 first for none yet); all is done when cursor[0] == the number of matches.
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
