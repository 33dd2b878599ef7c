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
import pyarrow as pa
from numba import njit

from streamsift.logical.bound import Expr
from streamsift.physical.detect import window_bound
from streamsift.physical.plan import Alternative, Step
from streamsift.runtime.arrays.comparing import OPERATORS, holds
from streamsift.runtime.arrays.dtypes import UNKNOWN, Bool, Int32, Int64
from streamsift.runtime.arrays.grouping import group_entries
from streamsift.runtime.arrays.searching import first_from
from streamsift.runtime.events.definition_windows import is_limit, limit_rows
from streamsift.runtime.expressions.codes import codes, group_codes
from streamsift.runtime.expressions.evaluate import Rows, evaluate
from streamsift.runtime.groups.stream import GroupStream, Reach
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
        own = stream.candidates(step)
        offsets, link, link_step = np.array([0, own.size], np.int64), np.empty(0, np.int32), -1
        if step.lookup:
            link_step = step.lookup[0].earlier
            others = stream.candidates(bound[link_step])
            sides = [[self._side(p.earlier_side, others), self._side(p.this_side, own)] for p in step.lookup]
            (earlier, this), groups = group_codes(sides)
            offsets, order = group_entries(this, groups)
            link = np.full(stream.size, -1, np.int32)
            link[others] = earlier
            own_grouped = own[order]
        else:
            own_grouped = own
        self.compared = [pair for pair in step.pairs if not is_limit(pair)]
        pairs = [(pair.earlier, OPERATORS[pair.op]) for pair in self.compared]
        columns = np.full((2 * len(pairs), stream.size), UNKNOWN, np.int64)
        for number, pair in enumerate(self.compared):
            others = stream.candidates(bound[pair.earlier])
            sides = [self._side(pair.earlier_side, others), self._side(pair.this_side, own)]
            columns[2 * number, others], columns[2 * number + 1, own] = codes(sides, ordered=pair.op not in ("=", "!="))
        table = np.array(pairs, np.int64).reshape(-1, PAIR_FIELDS)
        self.buffer = Buffer(own_grouped, offsets, link, link_step, table, columns, self._limits(), stream.own_windows)

    def _limits(self) -> Int64:
        rows, found = limit_rows(self.stream.query), []
        for pair in self.step.pairs:
            if (window := window_bound(pair.earlier_side, pair.this_side)) is not None:
                found.append((pair.earlier, rows[window.definition] + window.is_upper, int(window.is_upper)))
        return np.array(found, np.int64).reshape(-1, LIMIT_FIELDS)

    def _side(self, expression: Expr, places: Int32) -> pa.Array:
        columns, rows = self.stream.events.columns, self.stream.rows(places)
        return evaluate(expression, Rows(lambda _, name: columns.at(name, rows), rows.size, self.stream.query.text))

    def candidates(self, reach: Reach, partials: Int32, *, apart: bool) -> ElementRanges:
        """Return the entries that may be elements: their group, inside the reach."""
        start, stop = np.zeros(reach.low.size, np.int64), np.zeros(reach.low.size, np.int64)
        find_ranges(self.buffer, reach, partials, start, stop)
        return ElementRanges(self, reach, start, stop, apart)


@dataclass(frozen=True, slots=True)
class ElementRanges:
    """Where the elements of a Kleene variable lie for each match so far: entries [start, stop) of its buffer."""

    buffer: ElementBuffer
    reach: Reach
    start: Int64
    stop: Int64
    apart: bool  # no bound event can be among them

    def part(self, begin: int, end: int) -> ElementRanges:
        reach = Reach(*(bound[begin:end] for bound in self.reach))
        return ElementRanges(self.buffer, reach, self.start[begin:end], self.stop[begin:end], self.apart)

    def elements(self, bound: Int32) -> Elements:
        """Return those that may be bound beside events [k, m]; the steps come first, others may follow them."""
        buffer, clock, step = self.buffer, self.buffer.stream.clock, self.buffer.step
        if self.apart and not buffer.compared and not step.filters and not clock.length:
            return Elements(buffer.buffer.places, self.start, self.stop)
        places = np.empty(int((self.stop - self.start).sum()), np.int32)
        counts = np.empty(self.start.size, np.int64)
        total = keep_passing(buffer.buffer, self.reach, bound, self.start, self.stop, clock.positions, places, counts)
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
        rows = stream.rows(np.vstack([bound[reads][:, origins], places]))
        return passing(Alternative(stream.query, chain, ()), stream.events, step.filters, rows)


def parts(wanted: list[ElementRanges]) -> Iterator[tuple[int, int, list[ElementRanges]]]:
    """Split the matches so far into parts [begin, end) that have few elements at a time."""
    part = np.cumsum(sum(each.stop - each.start for each in wanted)) // CHUNK_ELEMENTS
    borders = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), part.size]
    for begin, end in pairwise(borders):
        yield begin, end, [each.part(begin, end) for each in wanted]


@njit(cache=True, nogil=True)
def find_ranges(buffer: Buffer, reach: Reach, partials: Int32, start: Int64, stop: Int64) -> None:
    """Write for each partial [k, P] its entries [start, stop) of the buffer."""
    for partial in range(start.size):
        group = 0 if buffer.link_step < 0 else buffer.link[partials[buffer.link_step, partial]]
        if group >= 0:
            begin, end = buffer.offsets[group], buffer.offsets[group + 1]
            low, high = reach.low[partial], reach.high[partial]
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
def keep_passing(
    buffer: Buffer,
    reach: Reach,
    partials: Int32,
    start: Int64,
    stop: Int64,
    positions: Int32,
    places: Int32,
    counts: Int64,
) -> int:
    """Copy the entries of each partial [k, P] that pass every pair and are not bound; return how many in all."""
    total = 0
    for partial in range(start.size):
        before = total
        for entry in range(start[partial], stop[partial]):
            place = buffer.places[entry]
            passes = reach.least[partial] <= positions[place] <= reach.most[partial]
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
