"""Anchors of an alternative with Kleene variables in, its matches out: groups as ranges of buffers, until the output.

The strategy of "Optimizing Expressibility and Performance of Kleene Operators on Binary Tree-based Directed Graph in
Complex Event Processing": single events are joined first, elements are collected for the joined events, and groups and
choices of n are made of them last, so nothing is grouped that no match has. Memory is bounded by a chunk of anchors and
its elements; the assignments of one anchor are held together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from streamsift.logical.bound import Column
from streamsift.physical.groups import Chosen, Groups, Growth, Key, Order
from streamsift.physical.plan import Alternative
from streamsift.runtime import growth, shared
from streamsift.runtime.codes import codes, group_codes
from streamsift.runtime.elements import ElementBuffer, Elements, Reach, choose
from streamsift.runtime.events import NO_LIMIT, Events
from streamsift.runtime.group_negations import GroupNegations
from streamsift.runtime.group_stream import GroupStream
from streamsift.runtime.growth import Clock, Field, Fixed, Rules
from streamsift.runtime.kernels import UNKNOWN, Bool, Int32, Int64
from streamsift.runtime.keys import Collected, by_key

CHUNK_ELEMENTS = 1 << 21


@dataclass(frozen=True, slots=True)
class GroupMatches:
    """Matches as places: single events [steps, m], and for each growing variable the elements places[first:stop]."""

    singles: Int32
    places: Int32
    first: Int64  # [growing, m]
    stop: Int64  # [growing, m]

    def __len__(self) -> int:
        return self.first.shape[1]

    def only(self, keep: Bool | Int64 | slice) -> GroupMatches:
        return GroupMatches(self.singles[:, keep], self.places, self.first[:, keep], self.stop[:, keep])

    @property
    def sizes(self) -> Int64:
        """[growing, m]"""
        return self.stop - self.first

    def empty_groups(self) -> Int64:
        """For each match the bit mask of its empty groups."""
        bits = np.left_shift(1, np.arange(self.first.shape[0], dtype=np.int64))
        return ((self.sizes == 0) * bits[:, None]).sum(axis=0)

    def ends(self) -> Int32:
        """The first and last element of each group [2 * growing, m], where it is empty some event of the match."""
        count = len(self)
        found = np.full((2 * self.first.shape[0], count), -1, np.int32)
        for group, (first, stop) in enumerate(zip(self.first, self.stop, strict=True)):
            bound = stop > first
            found[2 * group, bound] = self.places[first[bound]]
            found[2 * group + 1, bound] = self.places[stop[bound] - 1]
        some = np.vstack([self.singles, found]).max(axis=0, initial=-1)
        return np.where(found < 0, some, found).astype(np.int32)


class GroupSearch:
    """Finds the matches of one alternative with Kleene variables."""

    def __init__(self, alternative: Alternative, events: Events, chunk: int) -> None:
        assert alternative.groups is not None
        self.groups: Groups = alternative.groups
        self.alternative, self.events, self.chunk = alternative, events, chunk
        groups = self.groups
        self.stream = stream = GroupStream(alternative, events, (*groups.steps, *groups.element_steps()))
        self.chosen = [ElementBuffer(stream, groups.steps[: c.first], c.step) for c in groups.chosen]
        self.count_singles = len(groups.steps) - 2 * len(groups.growing)
        singles = groups.steps[: self.count_singles]
        self.growing = [ElementBuffer(stream, singles, g.step) for g in groups.growing]
        self.negations = GroupNegations(alternative, events)
        self.clock = Clock(
            stream.place_after,
            stream.place_since,
            stream.window_low,
            stream.window_high,
            stream.positions,
            stream.rows_in_partition,
        )
        self.rules = _rules(groups)

    def matches(self, anchors: Iterable[Int32]) -> Iterator[GroupMatches]:
        """Chunks of matches; `anchors` are chunks of the places of the single variables."""
        if self.stream.size and self.events.width >= 0:
            for partials in anchors:
                for singles in self._with_choices(0, np.ascontiguousarray(partials)):
                    for found in self._with_groups(singles):
                        valid = self._valid(found)
                        if len(valid):
                            yield valid

    # --- [n] ---
    def _with_choices(self, number: int, partials: Int32) -> Iterator[Int32]:
        if number == len(self.chosen):
            yield partials
            return
        group, buffer = self.groups.chosen[number], self.chosen[number]
        reach = self._reach(partials, group.after, group.before)
        for part, (wanted,) in _parts(partials, [_Wanted(buffer, reach, *buffer.ranges(reach, partials), False)]):
            for longer in self._choices(group, part, wanted.elements(part)):
                yield from self._with_choices(number + 1, longer)

    def _choices(self, group: Chosen, partials: Int32, elements: Elements) -> Iterator[Int32]:
        cursor, chosen = np.zeros(1, np.int64), np.full(group.size, -1, np.int64)
        while cursor[0] < partials.shape[1]:
            out, origins = np.empty((group.size, self.chunk), np.int32), np.empty(self.chunk, np.int32)
            count = choose(*elements, group.size, cursor, chosen, origins, out)
            longer = np.vstack([partials[:, origins[:count]], out[:, :count]])
            keep = self._are_together(longer)
            for column in group.agree:
                values = self._codes(group, column)[out[:, :count]]
                keep &= (values == values[0]).all(axis=0) & (values[0] != UNKNOWN)
            if keep.any():
                yield np.ascontiguousarray(longer[:, keep])

    def _are_together(self, events: Int32) -> Bool:
        first, last = events.min(axis=0), events.max(axis=0)
        keep = self.stream.window_high[first] >= last
        if length := self.stream.rows_in_partition:
            keep &= self.stream.positions[last] - self.stream.positions[first] < length
        return keep

    def _codes(self, group: Chosen, column: Column) -> Int64:
        places = self.stream.candidates(group.step)
        found = np.full(self.stream.size, UNKNOWN, np.int64)
        (found[places],) = codes([self.events.columns.at(column.name, self.stream.rows(places))], ordered=False)
        return found

    # --- + and * ---
    def _with_groups(self, singles: Int32) -> Iterator[GroupMatches]:
        groups, orders = self.groups, self.groups.orders
        if not groups.growing:
            none = np.empty((0, singles.shape[1]), np.int64)
            yield GroupMatches(singles, np.empty(0, np.int32), none, none)
            return
        for part, wanted in _parts(singles, [each for order in orders for each in self._wanted(order, singles)]):
            collected = Collected.of([each.elements(part) for each in wanted], len(orders), part.shape[1])
            for key in groups.keys:
                collected = by_key(collected, key, self._key_codes(key), [g.may_be_empty for g in groups.growing])
            found = self._whole(part, collected) if groups.independent else self._assignments(part, collected)
            if len(found):
                yield found

    def _wanted(self, order: Order, singles: Int32) -> Iterator[_Wanted]:
        """The elements of each growing variable in one order of AND."""
        for number, buffer in enumerate(self.growing):
            reach = self._reach(singles, order.after[number], order.before[number])
            apart = len({*order.after[number], *order.before[number]}) == singles.shape[0]
            yield _Wanted(buffer, reach, *buffer.ranges(reach, singles), apart)

    def _whole(self, singles: Int32, collected: Collected) -> GroupMatches:
        """Groups that have all their elements, as nothing stands between them."""
        some = collected.stop > collected.start
        complete = (some | self.rules.may_be_empty[None, :, None]).all(axis=1)
        if not singles.shape[0]:
            complete &= some.any(axis=1)
        order, match = np.nonzero(complete)
        if len(self.groups.orders) > 1:
            by_match = np.argsort(match, kind="stable")
            order, match = order[by_match], match[by_match]
        first, stop = (found[order, :, match].T for found in (collected.start, collected.stop))
        return GroupMatches(singles[:, match], collected.places, first, stop)

    def _assignments(self, singles: Int32, collected: Collected) -> GroupMatches:
        at = collected.origins
        nothing = np.full(at.size, -1, np.int32)
        has_single = singles.shape[0] > 0
        fixed = Fixed(
            singles.min(axis=0)[at] if has_single else nothing,
            singles.max(axis=0)[at] if has_single else nothing,
            collected.closed,
            collected.some,
        )
        field = Field(collected.places, collected.start, collected.stop)
        places = collected.places
        if self.groups.growth is Growth.ELEMENTS:
            origins, places, first, stop = shared.shared_out(field, self.rules, fixed, self.clock)
        else:
            origins, first, stop = growth.grown(field, self.rules, fixed, self.clock)
        origins = at[origins]
        order = np.argsort(origins, kind="stable")
        return GroupMatches(singles[:, origins[order]], places, first[:, order], stop[:, order])

    def _key_codes(self, key: Key) -> Int64:
        """For each place a code of the key, equal where the values are; a null equals nothing but itself."""
        column = key.members[0][1]
        everywhere = np.arange(self.stream.size, dtype=np.int32)
        (found,), count = group_codes([[self.events.columns.at(column.name, self.stream.rows(everywhere))]])
        return np.where(found < 0, count + everywhere.astype(np.int64), found)

    # --- reach ---
    def _reach(self, partials: Int32, after: tuple[int, ...], before: tuple[int, ...]) -> Reach:
        stream, count = self.stream, partials.shape[1]
        everything = np.full(count, -1, np.int32), np.full(count, NO_LIMIT, np.int32)
        if not partials.shape[0]:
            return Reach(np.zeros(count, np.int32), np.full(count, stream.size, np.int32), *everything)
        first, last = partials.min(axis=0), partials.max(axis=0)
        low, high = stream.window_low[last], stream.window_high[first] + 1
        for step in after:
            low = np.maximum(low, stream.place_after[partials[step]])
        for step in before:
            high = np.minimum(high, stream.place_since[partials[step]])
        if length := stream.rows_in_partition:
            everything = stream.positions[last] - (length - 1), stream.positions[first] + (length - 1)
        return Reach(low, high, *everything)

    # --- what groups decide ---
    def _valid(self, found: GroupMatches) -> GroupMatches:
        """The assignments that no negation forbids and no larger one contains."""
        empty_groups = found.empty_groups() if self.groups.negations else np.empty(0, np.int64)
        forbidden = np.zeros(len(found), np.bool_)
        for empty in np.unique(empty_groups):
            which = np.flatnonzero(empty_groups == empty)
            some = found.only(which)
            events = np.vstack([some.singles, some.ends()])
            forbidden[which] = self.negations.forbidden(int(empty), events, self._inner(some, events))
        found = found.only(~forbidden) if forbidden.any() else found
        if self.groups.compared and len(found):
            found = found.only(self._largest(found))
        return found

    def _inner(self, found: GroupMatches, events: Int32) -> Int32:
        """All elements [most elements, m] of each match's groups, filled up with events of the match."""
        if not self.groups.crowded:
            return np.empty((0, len(found)), np.int32)
        sizes = found.sizes
        inner = np.repeat(events[:1], int(sizes.sum(axis=0).max()), axis=0)
        used = np.zeros(len(found), np.int64)
        for first, size in zip(found.first, sizes, strict=True):
            for number in range(int(size.max())):
                has = np.flatnonzero(size > number)
                inner[used[has], has] = found.places[first[has] + number]
                used[has] += 1
        return inner

    def _largest(self, found: GroupMatches) -> Bool:
        """Which of the assignments with the same single events, and for EMIT EACH the same end, are the largest."""
        same = np.zeros(len(found), np.bool_)
        same[1:] = (found.singles[:, 1:] == found.singles[:, :-1]).all(axis=0)
        ends = np.zeros(len(found), np.int32)
        if self.groups.each:
            ends = self.stream.place_after[np.vstack([found.singles, found.ends()]).max(axis=0)]
        return shared.largest(np.cumsum(~same), ends, found.places, found.first, found.stop)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Where the elements of a Kleene variable lie for each match so far."""

    buffer: ElementBuffer
    reach: Reach
    start: Int64
    stop: Int64
    apart: bool  # no bound event can be among them

    def elements(self, singles: Int32) -> Elements:
        return self.buffer.elements(self.reach, singles, self.start, self.stop, apart=self.apart)

    def part(self, begin: int, end: int) -> _Wanted:
        reach = Reach(*(bound[begin:end] for bound in self.reach))
        return _Wanted(self.buffer, reach, self.start[begin:end], self.stop[begin:end], self.apart)


def _parts(partials: Int32, wanted: list[_Wanted]) -> Iterator[tuple[Int32, list[_Wanted]]]:
    """The matches so far in parts that have few elements at a time."""
    total = np.zeros(partials.shape[1], np.int64)
    for each in wanted:
        total += each.stop - each.start
    part = np.cumsum(total) // CHUNK_ELEMENTS
    borders = np.flatnonzero(np.diff(part)) + 1
    if not borders.size:
        yield partials, wanted
        return
    for begin, end in zip([0, *borders], [*borders, partials.shape[1]], strict=True):
        yield np.ascontiguousarray(partials[:, begin:end]), [each.part(begin, end) for each in wanted]


def _rules(groups: Groups) -> Rules:
    count, orders = len(groups.growing), groups.orders

    def bits(members: Iterable[int]) -> int:
        return sum(1 << member for member in members)

    preceding = np.array([[bits(p) for p in order.preceding] for order in orders], np.int64).reshape(len(orders), count)
    following = np.array(
        [[bits(g for g in range(count) if n in order.preceding[g]) for n in range(count)] for order in orders], np.int64
    ).reshape(len(orders), count)
    most = max((len(order.swapped) for order in orders), default=0)
    swapped = np.full((len(orders), most, growth.SIDE_FIELDS), -1, np.int64)
    for number, order in enumerate(orders):
        for place, (left, right) in enumerate(order.swapped):
            swapped[number, place] = (left.has_single, bits(left.growing), right.has_single, bits(right.growing))
    return Rules(
        preceding,
        following,
        np.array([order.sequence for order in orders], np.int64).reshape(len(orders), count),
        np.array([g.may_be_empty for g in groups.growing], np.bool_),
        swapped,
        groups.by_end,
        groups.keeps_end,
        groups.compared and not groups.by_end,
    )
