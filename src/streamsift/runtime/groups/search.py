"""Bound events and a plan of groups in, the matches with their groups out: ranges of buffers, until the output.

The strategy of "Optimizing Expressibility and Performance of Kleene Operators on Binary Tree-based Directed Graph in
Complex Event Processing": single events are joined first, elements are collected for the joined events, and groups and
choices of n are made of them last, so nothing is grouped that no match has. Memory is bounded by a chunk of anchors and
its elements; the assignments of one anchor are held together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from streamsift.logical.bound import BoundQuery, Column
from streamsift.physical.plan import Cache, Edge, FixedGroup, GroupNegation, Growth, Key, KleeneGroups, Order
from streamsift.runtime.arrays.dtypes import UNKNOWN, Bool, Int32, Int64
from streamsift.runtime.events.events import NO_LIMIT, Events
from streamsift.runtime.expressions.codes import codes, group_codes
from streamsift.runtime.groups import contested, growing
from streamsift.runtime.groups.by_key import Collected, by_key
from streamsift.runtime.groups.elements import CHUNK_ELEMENTS, ElementBuffer, Elements, Wanted, choose, parts
from streamsift.runtime.groups.maximal_groups import largest
from streamsift.runtime.groups.negations import GroupNegations
from streamsift.runtime.groups.rules import Field, Fixed, rules_of
from streamsift.runtime.groups.stream import Clock, GroupStream, Reach
from streamsift.runtime.matches import GroupMatches, GroupValues
from streamsift.runtime.resources import reserve, room


class GroupSearch:
    """Adds the Kleene variables to matches of single events, and decides which are matches of the pattern."""

    def __init__(self, query: BoundQuery, groups: KleeneGroups, events: Events, chunk: int, cache: Cache) -> None:
        self.query, self.groups, self.events, self.chunk = query, groups, events, chunk
        self.stream = stream = GroupStream(query, events, (*groups.steps, *groups.own_steps()))
        self.clock: Clock = stream.clock
        self.chosen = [ElementBuffer(stream, groups.steps[: c.first], c.step) for c in groups.chosen]
        singles = groups.steps[: groups.count_singles]
        self.growing = [ElementBuffer(stream, singles, g.step) for g in groups.growing]
        self.rules = rules_of(groups)
        self.negations = GroupNegations(query, groups, events, cache)
        self.occurrences = {id(n): Occurrences(query, n, events, chunk, cache) for n in groups.group_negations()}

    def matches(self, anchors: Iterable[Int32]) -> Iterator[GroupMatches]:
        """Chunks of matches; `anchors` are chunks [steps, m] of places."""
        if self.stream.size and self.events.width >= 0:
            for partials in anchors:
                yield from self.found(np.ascontiguousarray(partials), np.arange(partials.shape[1]))

    def found(self, partials: Int32, origins: Int64) -> Iterator[GroupMatches]:
        """The matches with these events; origins [m] are kept for the caller."""
        for singles, came_from in self._with_choices(0, partials, origins):
            for matches in self._with_groups(singles, came_from):
                valid = self._valid(matches)
                if self.groups.filters and len(valid):
                    keep = GroupValues(self.query, self.groups, self.events, valid).passing(self.groups.filters)
                    valid = valid.only(keep)
                if len(valid):
                    yield valid

    # --- [n] ---
    def _with_choices(self, number: int, partials: Int32, origins: Int64) -> Iterator[tuple[Int32, Int64]]:
        if number == len(self.chosen):
            yield partials, origins
            return
        group, buffer = self.groups.chosen[number], self.chosen[number]
        reach = self._reach(partials, origins, group.after, group.before)
        wanted = Wanted(buffer, reach, *buffer.ranges(reach, partials), apart=False)
        for begin, end, (part,) in parts([wanted]):
            some, came_from = np.ascontiguousarray(partials[:, begin:end]), origins[begin:end]
            elements = part.elements(np.vstack([some, self._taken(came_from)]))
            for which, longer in self._choices(group, some, elements):
                yield from self._with_choices(number + 1, longer, came_from[which])

    def _choices(self, group: FixedGroup, partials: Int32, elements: Elements) -> Iterator[tuple[Int32, Int32]]:
        cursor, chosen = np.zeros(1, np.int64), np.full(group.size, -1, np.int64)
        while cursor[0] < partials.shape[1]:
            out, which = np.empty((group.size, self.chunk), np.int32), np.empty(self.chunk, np.int32)
            count = choose(*elements, group.size, cursor, chosen, which, out)
            which, out = which[:count], out[:, :count]
            longer = np.vstack([partials[:, which], out])
            keep = self._are_together(longer)
            for column in group.agree:
                values = self._codes(group, column)[out]
                keep &= (values == values[0]).all(axis=0) & (values[0] != UNKNOWN)
            if keep.any():
                yield which[keep], np.ascontiguousarray(longer[:, keep])

    def _are_together(self, events: Int32) -> Bool:
        first, last = events.min(axis=0), events.max(axis=0)
        keep = self.clock.window_high[first] >= last
        if self.clock.length:
            keep &= self.clock.positions[last] - self.clock.positions[first] < self.clock.length
        return keep

    def _codes(self, group: FixedGroup, column: Column) -> Int64:
        places = self.stream.candidates(group.step)
        found = np.full(self.stream.size, UNKNOWN, np.int64)
        (found[places],) = codes([self.events.columns.at(column.name, self.stream.rows(places))], ordered=False)
        return found

    # --- + and * ---
    def _with_groups(self, singles: Int32, origins: Int64) -> Iterator[GroupMatches]:
        groups, orders = self.groups, self.groups.orders
        if not groups.growing:
            none = np.empty((0, singles.shape[1]), np.int64)
            yield GroupMatches(singles, np.empty(0, np.int32), none, none, origins)
            return
        every = [each for order in orders for each in self._wanted(order, singles, origins)]
        for begin, end, wanted in parts(every):
            part, came_from = singles[:, begin:end], origins[begin:end]
            bound = np.ascontiguousarray(np.vstack([part, self._taken(came_from)]))
            collected = Collected.of([each.elements(bound) for each in wanted], len(orders), end - begin)
            for key in groups.keys:
                collected = by_key(collected, key, self._key_codes(key), [g.may_be_empty for g in groups.growing])
            for at, places, first, stop in (
                [self._whole(part, collected)] if groups.independent else self._grown(part, collected)
            ):
                if at.size:
                    yield GroupMatches(part[:, at], places, first, stop, came_from[at])

    def _wanted(self, order: Order, singles: Int32, origins: Int64) -> Iterator[Wanted]:
        """The elements of each growing variable in one order of AND."""
        for number, buffer in enumerate(self.growing):
            reach = self._reach(singles, origins, order.after[number], order.before[number])
            apart = len({*order.after[number], *order.before[number]}) == singles.shape[0]
            yield Wanted(buffer, reach, *buffer.ranges(reach, singles), apart)

    def _whole(self, singles: Int32, collected: Collected) -> tuple[Int64, Int32, Int64, Int64]:
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
        return match, collected.places, first, stop

    def _grown(self, singles: Int32, collected: Collected) -> Iterator[tuple[Int64, Int32, Int64, Int64]]:
        """Groups that make room for each other: the match that each assignment is for, and its ranges.

        The assignments of a match come together, those of many matches a chunk at a time.
        """
        collected = collected.by_origin()
        at = collected.origins
        bounds = [np.full(at.size, -1, np.int32)] * 2
        if singles.shape[0]:
            bounds = [singles.min(axis=0)[at], singles.max(axis=0)[at]]
        fixed = Fixed(bounds[0], bounds[1], collected.closed, collected.some)
        field = Field(collected.places, collected.start, collected.stop)
        begin = 0
        while begin < at.size:
            places, most = collected.places, room()
            where = (at, begin, self.chunk, most)
            if self.groups.search.growth is Growth.ELEMENTS:
                begin, found, places, first, stop = contested.shared_out(field, self.rules, fixed, self.clock, *where)
            else:
                begin, found, first, stop = growing.grown(field, self.rules, fixed, self.clock, *where)
            if begin < 0:
                reserve(most + 1, "the groups of one choice of single events, which are compared with each other")
            yield at[found], places, first, stop

    def _key_codes(self, key: Key) -> Int64:
        """For each place a code of the key, equal where the values are; a null equals nothing but itself."""
        column = key.members[0][1]
        everywhere = np.arange(self.stream.size, dtype=np.int32)
        (found,), count = group_codes([[self.events.columns.at(column.name, self.stream.rows(everywhere))]])
        return np.where(found < 0, count + everywhere.astype(np.int64), found)

    # --- where elements may lie ---
    def _reach(self, partials: Int32, origins: Int64, after: tuple[int, ...], before: tuple[int, ...]) -> Reach:
        low, high, least, most = self._open(partials, origins)
        for step in after:
            low = np.maximum(low, self.clock.place_after[partials[step]])
        for step in before:
            high = np.minimum(high, self.clock.place_since[partials[step]])
        return Reach(low, high, least, most)

    def _open(self, partials: Int32, origins: Int64) -> Reach:
        """The window, as far as the bound events leave it."""
        if not partials.shape[0]:
            return _anywhere(origins.size, self.stream.size)
        return self.stream.window(partials.min(axis=0), partials.max(axis=0))

    def _taken(self, origins: Int64) -> Int32:
        """Events [k, m] of the patterns around that are no step, but must not be bound again."""
        return np.empty((0, origins.size), np.int32)

    # --- what groups decide ---
    def _valid(self, found: GroupMatches) -> GroupMatches:
        """The assignments that no negation forbids and no larger one contains."""
        if self.groups.decided:
            empty, forbidden = found.empty_groups(), np.zeros(len(found), np.bool_)
            # All elements of a match may be looked at beside each other: few matches at a time, if they are many.
            most = max(1, CHUNK_ELEMENTS // max(1, int(found.sizes.sum(axis=0).max(initial=0))))
            for decided in self.groups.decided:
                which = np.flatnonzero(empty == decided.empty)
                for begin in range(0, which.size, most):
                    some = which[begin : begin + most]
                    forbidden[some] = self._forbidden(decided.empty, found.only(some))
            found = found.only(~forbidden)
        if self.groups.search.compared and len(found):
            found = found.only(self._largest(found))
        return found

    def _forbidden(self, empty: int, found: GroupMatches) -> Bool:
        events, inner = found.events(), self._taken(found.origins)
        if self.groups.search.crowded:
            inner = np.vstack([inner, found.elements()])
        forbidden = self.negations.forbidden(empty, events, inner)
        for negation in next(d.group_negations for d in self.groups.decided if d.empty == empty):
            rest = np.flatnonzero(~forbidden)
            if rest.size:
                edges = self._edges(found.origins[rest], events[:, rest])
                search = self.occurrences[id(negation)]
                forbidden[rest] = search.occurs(np.ascontiguousarray(events[:, rest]), edges, inner[:, rest])
        return forbidden

    def _edges(self, origins: Int64, events: Int32) -> Edges:
        """What the edges of a negation are where no neighbour bounds it."""
        first, last = events.min(axis=0), events.max(axis=0)
        return Edges(self.stream.window(first, last), self.clock.place_after[last])

    def _largest(self, found: GroupMatches) -> Bool:
        """Which of the assignments with the same single events, and for EMIT EACH the same end, are the largest."""
        same = np.zeros(len(found), np.bool_)
        same[1:] = (found.singles[:, 1:] == found.singles[:, :-1]).all(axis=0) & (np.diff(found.origins) == 0)
        ends = np.zeros(len(found), np.int32)
        if self.groups.search.each:
            ends = self.clock.place_after[found.events().max(axis=0)]
        return largest(np.cumsum(~same), ends, found.places, found.first, found.stop)


class Occurrences(GroupSearch):
    """Finds whether a negated pattern occurs between the events around it: its matches, up to the first."""

    def __init__(self, query: BoundQuery, negation: GroupNegation, events: Events, chunk: int, cache: Cache) -> None:
        super().__init__(query, negation.groups, events, chunk, cache)
        self.negation = negation
        self.clock = self.stream.unlimited
        self.interval, self.inner = _anywhere(0, 0), np.empty((0, 0), np.int32)

    def occurs(self, events: Int32, edges: Edges, inner: Int32) -> Bool:
        """For each match around, [steps, m], whether the pattern occurs; events of `inner` [k, m] do not count."""
        self.interval, self.inner = self._interval(events, edges), inner
        found = np.zeros(events.shape[1], np.bool_)
        for matches in self.found(events, np.arange(events.shape[1])):
            found[matches.origins] = True
        return found

    def _interval(self, events: Int32, edges: Edges) -> Reach:
        lower, upper = self.negation.lower, self.negation.upper
        low, high, least, most = edges.window
        anywhere = _anywhere(low.size, self.stream.size)
        if lower.steps:
            low, least = self.clock.place_after[events[list(lower.steps)]].max(axis=0), anywhere.least
        if upper.steps:
            high, most = self.clock.place_since[events[list(upper.steps)]].min(axis=0), anywhere.most
        elif upper.edge is Edge.MATCH_END:
            high, most = edges.match_end, anywhere.most
        return Reach(low, high, least, most)

    def _open(self, partials: Int32, origins: Int64) -> Reach:
        return Reach(*(bound[origins] for bound in self.interval))

    def _taken(self, origins: Int64) -> Int32:
        return self.inner[:, origins]

    def _edges(self, origins: Int64, events: Int32) -> Edges:
        inherited = self._open(events, origins)
        return Edges(inherited, inherited.high)


class Edges(NamedTuple):
    """The bounds of negations that no neighbour bounds."""

    window: Reach
    match_end: Int32  # [m] the first place after the match


def _anywhere(count: int, places: int) -> Reach:
    return Reach(
        np.zeros(count, np.int32),
        np.full(count, places, np.int32),
        np.full(count, -1, np.int32),
        np.full(count, NO_LIMIT, np.int32),
    )
