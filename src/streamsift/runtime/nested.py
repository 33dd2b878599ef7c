"""An alternative with AND or negations and its events in, the matches out: outer events first, then their intervals.

The strategy of "Processing Nested Complex Sequence Pattern Queries over Event Streams", set at a time: a chunk of
partial matches is extended by one step, then every negation that the steps so far decide is tested for the chunk.
Its interval is computed from the events around it; a sub-pattern that the kernel can test alone ends at the first hit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import Expr, WindowKind
from streamsift.physical.definitions import own_windows
from streamsift.physical.plan import Alternative, Edge, Limit, Negation, Step
from streamsift.runtime import kernels, ranges
from streamsift.runtime.buffers import OPERATORS
from streamsift.runtime.candidates import candidates, step_rows
from streamsift.runtime.codes import codes, group_codes
from streamsift.runtime.evaluate import Rows, evaluate, mask
from streamsift.runtime.events import Events
from streamsift.runtime.kernels import Bool, Int32, Int64
from streamsift.runtime.own_windows import Reach, reach
from streamsift.runtime.ranges import Candidates, Interval

NO_LIMIT = np.iinfo(np.int32).max
CHUNK_TESTS = 1 << 12  # partial matches whose negation is tested by enumeration at a time


@dataclass(frozen=True, slots=True)
class Stream:
    """What intervals are computed from; all [places]."""

    places: int
    place_after: Int32  # the first place later than this one
    place_since: Int32  # the first place of the same time
    positions: Int32  # window positions: the places themselves, but for count windows within partitions
    window_low: Int32  # the first place in one window with this one, as its last event
    window_high: Int32  # the last place in one window with this one, as its first event
    rows_in_partition: int  # the length of a count window within partitions, else 0


def stream_of(alternative: Alternative, events: Events) -> Stream:
    count = events.rank.size
    everywhere = np.arange(count, dtype=np.int32)
    after = np.searchsorted(events.rank, events.rank, side="right").astype(np.int32)
    since = np.searchsorted(events.rank, events.rank, side="left").astype(np.int32)
    window = events.window
    in_partition = window is not None and window.kind is WindowKind.COUNT and bool(alternative.query.partition_by)
    if in_partition:
        low, high = np.zeros(count, np.int32), np.full(count, count - 1, np.int32)
        return Stream(count, after, since, events.window_position, low, high, int(events.width))
    high = np.minimum(events.window_limit(everywhere), count - 1).astype(np.int32)
    low = np.searchsorted(high, everywhere, side="left").astype(np.int32)
    return Stream(count, after, since, everywhere, low, high, 0)


class NestedSearch:
    """Finds the matches of one alternative."""

    def __init__(self, alternative: Alternative, events: Events, chunk: int) -> None:
        self.alternative, self.events, self.chunk = alternative, events, chunk
        self.stream = stream_of(alternative, events)
        steps = tuple(alternative.all_steps())
        found = candidates(Alternative(alternative.query, steps, ()), events)
        self._places = {id(step): places for step, places in zip(steps, found, strict=True)}
        self._packed: dict[tuple[int, ...], Candidates] = {}
        self._reaches: dict[str, Reach] = {}

    def matches(self) -> Iterator[Int32]:
        """Chunks [steps, m] of places. They are views of memory that the next chunk overwrites."""
        steps = self.alternative.steps
        if any(not self._places[id(step)].size for step in steps):
            return
        first = self._places[id(steps[0])]
        first = first[self.stream.window_high[first] >= first]
        for begin in range(0, first.size, self.chunk):
            partials = self._decided(0, first[None, begin : begin + self.chunk])
            yield from self._extended(1, partials)

    def _extended(self, number: int, partials: Int32) -> Iterator[Int32]:
        steps = self.alternative.steps
        if not partials.shape[1]:
            return
        if number == len(steps):
            yield partials
            return
        chain = steps[: number + 1]
        for _, longer in self._by_one(chain, partials, self._window_of(steps[number], partials)):
            yield from self._extended(number + 1, self._decided(number, longer))

    def _decided(self, number: int, partials: Int32) -> Int32:
        """The partial matches that no negation forbids which the steps up to `number` decide."""
        partials = self._filtered(self.alternative.steps[: number + 1], partials)
        for negation in self.alternative.negations:
            if negation.ready == number and partials.shape[1]:
                partials = partials[:, ~self._occurs(negation, self.alternative.steps, partials, partials)]
        return partials

    def allowed(self, matches: Int32) -> Int32:
        """Those of the matches [steps, m] that no negation forbids."""
        for negation in self.alternative.negations:
            if matches.shape[1]:
                matches = matches[:, ~self._occurs(negation, self.alternative.steps, matches, matches)]
        return matches

    # --- steps ---
    def _window_of(self, step: Step, partials: Int32) -> Interval:
        """Where a step may bind: after the steps before it, in one window with all that is bound."""
        stream = self.stream
        first, last = partials.min(axis=0), partials.max(axis=0)
        low = stream.window_low[last]
        for earlier in step.after:
            low = np.maximum(low, stream.place_after[partials[earlier]])
        least, most = self._positions(first, last, lower=True, upper=True)
        return Interval(low, stream.window_high[first] + 1, least, most)

    def _positions(self, first: Int32, last: Int32, *, lower: bool, upper: bool) -> tuple[Int32, Int32]:
        """The window positions that a count window within a partition allows; all of them in other windows."""
        length, positions = self.stream.rows_in_partition, self.stream.positions
        everything = np.full(first.size, -1, np.int32), np.full(first.size, NO_LIMIT, np.int32)
        least = positions[last] - (length - 1) if length and lower else everything[0]
        most = positions[first] + (length - 1) if length and upper else everything[1]
        return least, most

    def _by_one(self, chain: Sequence[Step], partials: Int32, interval: Interval) -> Iterator[tuple[Int32, Int32]]:
        """(Which partial was extended, the longer partials), in chunks, by the last step of the chain."""
        packed = self._pack(chain, len(chain) - 1)
        partials = np.ascontiguousarray(partials)
        out = np.empty((partials.shape[0] + 1, self.chunk), np.int32)
        origins = np.empty(self.chunk, np.int32)
        cursor = np.array([0, -1], np.int64)
        while cursor[ranges.NEXT_PARTIAL] < partials.shape[1]:
            count = ranges.extend_one(packed, interval, partials, cursor, out, origins)
            if count:
                yield origins[:count], out[:, :count]

    def _filtered(self, chain: Sequence[Step], partials: Int32) -> Int32:
        keep = self._passes(chain, partials)
        return partials if keep is None else partials[:, keep]

    def _passes(self, chain: Sequence[Step], partials: Int32) -> Bool | None:
        """Which partials pass the last step's filters; None if it has none."""
        filters = chain[-1].filters
        if not filters or not partials.shape[1]:
            return None
        row_of = {step.variable: number for number, step in enumerate(chain)}
        gathered: dict[tuple[int, str], pa.Array] = {}

        def column(variable: int, name: str) -> pa.Array:
            if (variable, name) not in gathered:
                rows = self.events.rows_at(partials[row_of[variable]])
                gathered[variable, name] = self.events.columns.at(name, rows)
            return gathered[variable, name]

        seen = Rows(column, partials.shape[1], self.alternative.query.text)
        keep = np.ones(partials.shape[1], np.bool_)
        for predicate in filters:
            keep &= mask(predicate, seen)
        return keep

    # --- negations ---
    def _occurs(self, negation: Negation, outer: Sequence[Step], partials: Int32, match: Int32) -> Bool:
        """For each partial whether the negated sub-pattern occurs in its interval. `match` has the root's events."""
        outer = outer[: partials.shape[0]]
        interval = self._interval(negation, partials, match)
        chain = (*outer, *negation.steps)
        # Bound steps may be fewer than the plan's numbering when a negation is decided early: pad with no event.
        if negation.first > partials.shape[0]:
            missing = negation.first - partials.shape[0]
            partials = np.vstack([partials, np.full((missing, partials.shape[1]), -1, np.int32)])
            chain = (*self.alternative.steps, *negation.steps)
        found = np.zeros(partials.shape[1], np.bool_)
        if negation.is_simple:
            ranges.exists(self._pack(chain, negation.first), interval, np.ascontiguousarray(partials), found)
            return found
        for begin in range(0, partials.shape[1], CHUNK_TESTS):
            part = slice(begin, begin + CHUNK_TESTS)
            some = Interval(*(bound[part] for bound in interval))
            for origins in self._occurrences(negation, chain, partials[:, part], some, match[:, part]):
                found[begin + origins] = True
        return found

    def _occurrences(
        self, negation: Negation, chain: Sequence[Step], partials: Int32, interval: Interval, match: Int32
    ) -> Iterator[Int32]:
        """The partials that have an occurrence which passes filters and inner negations, in chunks."""

        def extended(number: int, longer: Int32, origins: Int32) -> Iterator[Int32]:
            if number == len(chain):
                for inner in negation.negations:
                    if longer.shape[1]:
                        stays = ~self._occurs(inner, chain, longer, match[:, origins])
                        longer, origins = longer[:, stays], origins[stays]
                yield origins
                return
            low = interval.low[origins]
            for earlier in chain[number].after:
                low = np.maximum(low, self.stream.place_after[longer[earlier]])
            inside = Interval(low, interval.high[origins], interval.least[origins], interval.most[origins])
            for which, more in self._by_one(chain[: number + 1], longer, inside):
                came_from = origins[which]
                keep = self._passes(chain[: number + 1], more)
                if keep is not None:
                    more, came_from = more[:, keep], came_from[keep]
                if more.shape[1]:
                    yield from extended(number + 1, more, came_from)

        yield from extended(negation.first, partials, np.arange(partials.shape[1], dtype=np.int32))

    def _interval(self, negation: Negation, partials: Int32, match: Int32) -> Interval:
        first, last = match.min(axis=0), match.max(axis=0)
        lower_is_window = negation.lower == Limit(Edge.WINDOW_START)
        upper_is_window = negation.upper == Limit(Edge.WINDOW_END)
        least, most = self._positions(first, last, lower=lower_is_window, upper=upper_is_window)
        low = self._place(negation.lower, partials, first, last)
        high = self._place(negation.upper, partials, first, last)
        return Interval(low, high, least, most)

    def _place(self, limit: Limit, partials: Int32, first: Int32, last: Int32) -> Int32:
        """A lower limit as the first place inside, an upper one as the first place outside."""
        stream = self.stream
        window_low, window_high = stream.window_low, stream.window_high
        if limit.definition is not None:
            own = partials[list(limit.steps)]
            first, last = own.min(axis=0), own.max(axis=0)
            window_low, window_high = self._reach(limit.definition)
        match limit.edge:
            case Edge.AFTER:
                return stream.place_after[partials[list(limit.steps)]].max(axis=0)
            case Edge.BEFORE:
                return stream.place_since[partials[list(limit.steps)]].min(axis=0)
            case Edge.WINDOW_START:
                return window_low[last]
            case Edge.WINDOW_END:
                return window_high[first] + 1
            case Edge.MATCH_END:
                return stream.place_after[last]

    def _reach(self, name: str) -> Reach:
        if name not in self._reaches:
            query = self.alternative.query
            definition = next(d for d in own_windows(query.pattern) if d.name == name)
            self._reaches[name] = reach(definition, query, self.events)
        return self._reaches[name]

    # --- packing ---
    def _pack(self, chain: Sequence[Step], first: int) -> Candidates:
        """The steps of the chain from `first` on, with the codes of all that they refer to."""
        key = (first, *(id(step) for step in chain))
        if key not in self._packed:
            self._packed[key] = self._packing(chain, first)
        return self._packed[key]

    def _packing(self, chain: Sequence[Step], first: int) -> Candidates:
        count = self.stream.places
        table = np.full((len(chain) - first, ranges.STEP_FIELDS), -1, np.int64)
        places: list[Int32] = []
        offsets: list[Int64] = []
        links: list[Int32] = []
        pairs: list[tuple[int, int]] = []
        sides: list[Int64] = []
        for row, step in zip(table, chain[first:], strict=True):
            own = self._places[id(step)]
            base = sum(part.size for part in places)
            row[ranges.PLACES_BASE] = base
            row[ranges.OFFSETS_BASE] = sum(part.size for part in offsets)
            row[ranges.AFTER] = sum(1 << (earlier - first) for earlier in step.after if earlier >= first)
            if step.lookup:
                earlier = step.lookup[0].earlier
                others = self._places[id(chain[earlier])]
                equalities = [[self._side(p.earlier_side, others), self._side(p.this_side, own)] for p in step.lookup]
                (earlier_codes, own_codes), groups = group_codes(equalities)
                starts, order = kernels.group_entries(own_codes, groups)
                own = own[order]
                link = np.full(count, -1, np.int32)
                link[others] = earlier_codes
                row[ranges.LINK_BASE] = sum(part.size for part in links)
                row[ranges.LINK_STEP] = earlier
                links.append(link)
            else:
                starts = np.array([0, own.size], np.int64)
            offsets.append(starts + base)
            places.append(own)
            row[ranges.PAIRS_START] = len(pairs)
            for pair in step.pairs:
                others, mine = self._places[id(chain[pair.earlier])], self._places[id(step)]
                both = codes(
                    [self._side(pair.earlier_side, others), self._side(pair.this_side, mine)],
                    ordered=pair.op not in ("=", "!="),
                )
                pairs.append((pair.earlier, OPERATORS[pair.op]))
                for at, values in zip((others, mine), both, strict=True):
                    column = np.full(count, kernels.UNKNOWN, np.int64)
                    column[at] = values
                    sides.append(column)
            row[ranges.PAIRS_STOP] = len(pairs)
        return Candidates(
            steps=table,
            places=np.concatenate([np.empty(0, np.int32), *places]),
            offsets=np.concatenate([np.empty(0, np.int64), *offsets]),
            links=np.concatenate([np.empty(0, np.int32), *links]),
            pairs=np.array(pairs, np.int64).reshape(-1, ranges.PAIR_FIELDS),
            codes=np.stack(sides) if sides else np.empty((0, count), np.int64),
            positions=self.stream.positions,
            place_after=self.stream.place_after,
        )

    def _side(self, expression: Expr, places: Int32) -> pa.Array:
        return evaluate(expression, step_rows(self.alternative, self.events, self.events.rows_at(places)))
