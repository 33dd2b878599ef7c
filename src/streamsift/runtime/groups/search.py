"""Add Kleene groups to matches of single events; groups stay ranges of buffers until the output.

This is the strategy of "Optimizing Expressibility and Performance of Kleene Operators on Binary Tree-based Directed
Graph in Complex Event Processing": join single events first, collect elements for the joined events, and build groups
last, so that no group is built outside a match. Anchors are the matches of single events. Memory is bounded by a chunk
of anchors and their elements; all assignments of one anchor are built together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from streamsift.logical.bound import BoundQuery, Column
from streamsift.physical.plan import Cache, Decided, Edge, FixedGroup, GroupNegation, Growth, KleeneGroups
from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64
from streamsift.runtime.events.comparisons import StepCandidates
from streamsift.runtime.events.events import Events
from streamsift.runtime.expressions.codes import group_codes
from streamsift.runtime.groups.contested import element_assignments
from streamsift.runtime.groups.elements import ElementBuffer, Elements, Interval, choose
from streamsift.runtime.groups.growing import are_maximal, range_assignments
from streamsift.runtime.groups.negations import GroupNegations
from streamsift.runtime.groups.problem import Problem, rules_of
from streamsift.runtime.matches import GroupMatches, GroupValues, parts_of
from streamsift.runtime.resources import reserve, room

CHUNK_ELEMENTS = 1 << 21


class Around(NamedTuple):
    """The bounds of a negated pattern, for each of m matches of the enclosing pattern."""

    interval: Interval  # where its events may lie
    taken: Int32  # [k, m] events that it must not bind, besides those of its steps


class GroupSearch:
    """Add Kleene groups to matches of single events, and select the matches of the pattern."""

    def __init__(self, query: BoundQuery, groups: KleeneGroups, events: Events, chunk: int, cache: Cache) -> None:
        self.query, self.groups, self.events, self.chunk = query, groups, events, chunk
        candidates = StepCandidates(query, events, (*groups.steps, *groups.own_steps()))
        self.reach = candidates.reach
        self.chosen = [ElementBuffer(candidates, groups.steps[: c.first], c.step) for c in groups.chosen]
        singles = groups.steps[: groups.count_singles]
        self.growing = [ElementBuffer(candidates, singles, g.step) for g in groups.growing]
        self.rules = rules_of(groups)
        self._column_codes: dict[str, Int64] = {}
        self.negations = GroupNegations(query, groups, events, cache)
        self.occurrences = {id(n): Occurrences(query, n, events, chunk, cache) for n in groups.group_negations()}

    def matches(self, anchors: Iterable[Int32]) -> Iterator[GroupMatches]:
        """Yield chunks of matches; `anchors` yields chunks of places [steps, m]."""
        if self.events.rank.size and self.events.width >= 0:
            for partials in anchors:
                yield from self._matches(np.ascontiguousarray(partials), np.arange(partials.shape[1]), None)

    def _matches(self, partials: Int32, origins: Int64, around: Around | None) -> Iterator[GroupMatches]:
        """Yield the matches with these events; origins [m] are passed through and number the enclosing matches."""
        for singles, came_from in self._with_choices(0, partials, origins, around):
            for matches in self._with_groups(singles, came_from, around):
                valid = self._valid(matches, around)
                if self.groups.filters and len(valid):
                    keep = GroupValues(self.query, self.groups, self.events, valid).passing(self.groups.filters)
                    valid = valid.only(keep)
                if len(valid):
                    yield valid

    # --- [n] ---
    def _with_choices(
        self, number: int, partials: Int32, origins: Int64, around: Around | None
    ) -> Iterator[tuple[Int32, Int64]]:
        if number == len(self.chosen):
            yield partials, origins
            return
        group, buffer = self.groups.chosen[number], self.chosen[number]
        interval = self._open_interval(partials, origins, around, group.after, group.before)
        start, stop = buffer.ranges(interval, partials)
        for part in parts_of((stop - start)[None], CHUNK_ELEMENTS):
            some, came_from = np.ascontiguousarray(partials[:, part]), origins[part]
            elements = buffer.elements(start[part], stop[part], _with_taken(some, came_from, around), apart=False)
            for which, longer in self._choices(group, some, elements):
                yield from self._with_choices(number + 1, longer, came_from[which], around)

    def _choices(self, group: FixedGroup, partials: Int32, elements: Elements) -> Iterator[tuple[Int32, Int32]]:
        cursor, chosen = np.zeros(1, np.int64), np.full(group.size, -1, np.int64)
        while cursor[0] < partials.shape[1]:
            out, which = np.empty((group.size, self.chunk), np.int32), np.empty(self.chunk, np.int32)
            count = choose(*elements, group.size, cursor, chosen, which, out)
            which, out = which[:count], out[:, :count]
            longer = np.vstack([partials[:, which], out])
            keep = self.reach.window_high[longer.min(axis=0)] >= longer.max(axis=0)
            for column in group.agree:
                values = self._codes(column)[out]
                keep &= (values == values[0]).all(axis=0)
            if keep.any():
                yield which[keep], np.ascontiguousarray(longer[:, keep])

    # --- + and * ---
    def _with_groups(self, singles: Int32, origins: Int64, around: Around | None) -> Iterator[GroupMatches]:
        groups = self.groups
        if not groups.growing:
            yield replace(GroupMatches.of_places(singles), origins=origins)
            return
        ranges = []
        for order in groups.orders:
            for buffer, after, before in zip(self.growing, order.after, order.before, strict=True):
                interval = self._open_interval(singles, origins, around, after, before)
                is_apart = len({*after, *before}) == singles.shape[0]
                ranges.append((buffer, is_apart, *buffer.ranges(interval, singles)))
        for part in parts_of(np.stack([stop - start for _, _, start, stop in ranges]), CHUNK_ELEMENTS):
            some, came_from = singles[:, part], origins[part]
            bound = np.ascontiguousarray(_with_taken(some, came_from, around))
            elements = [b.elements(start[part], stop[part], bound, apart=apart) for b, apart, start, stop in ranges]
            problem = Problem.of(elements, some, self.rules, self.reach)
            for key in groups.keys:
                problem = problem.by_key(key, self._codes(key.members[0][1]))
            if groups.keys:  # make the columns of a match contiguous
                problem = problem.columns(np.argsort(problem.origins, kind="stable"))
            whole = [self._whole(some, problem)] if groups.independent else None
            for at, places, first, stop in whole or self._assignments(problem):
                if at.size:
                    yield GroupMatches(some[:, at], places, first, stop, came_from[at])

    def _whole(self, singles: Int32, problem: Problem) -> tuple[Int64, Int32, Int64, Int64]:
        """Return groups with all their elements, for groups that do not constrain each other."""
        some = problem.stop > problem.start
        complete = (some | self.rules.may_be_empty[None, :, None]).all(axis=1)
        if not singles.shape[0]:
            complete &= some.any(axis=1)
        order, match = np.nonzero(complete)
        if len(self.groups.orders) > 1:
            by_match = np.argsort(match, kind="stable")
            order, match = order[by_match], match[by_match]
        first, stop = (bound[order, :, match].T for bound in (problem.start, problem.stop))
        return match, problem.places, first, stop

    def _assignments(self, problem: Problem) -> Iterator[tuple[Int64, Int32, Int64, Int64]]:
        """Yield chunks of assignments of groups that constrain each other: the match of each, and its ranges."""
        begin = 0
        while begin < problem.origins.size:
            places, most = problem.places, room()
            if self.groups.search.growth is Growth.ELEMENTS:
                begin, table, places = element_assignments(problem, begin, self.chunk, most)
            else:
                begin, table = range_assignments(problem, begin, self.chunk, most)
            if begin < 0:
                reserve(most + 1, "the Kleene groups of one combination of single events")
            (match,), first, stop = np.split(np.ascontiguousarray(table.T), [1, 1 + len(self.growing)])
            yield problem.origins[match], places, first, stop

    def _codes(self, column: Column) -> Int64:
        """Return a code of the column for each place; equal values have equal codes, and each null has its own."""
        if column.name not in self._column_codes:
            (values,), count = group_codes([[self.events.columns.at(column.name, self.events.rows)]])
            self._column_codes[column.name] = np.where(values < 0, count + np.arange(values.size), values)
        return self._column_codes[column.name]

    def _window(self, events: Int32) -> Interval:
        """Return the places that share a window with all of the events [k, m]."""
        return Interval(self.reach.window_low[events.max(axis=0)], self.reach.window_high[events.min(axis=0)] + 1)

    def _open_interval(
        self, partials: Int32, origins: Int64, around: Around | None, after: Sequence[int], before: Sequence[int]
    ) -> Interval:
        """Return where elements may lie: between the given steps, and in one window with the bound events."""
        if around is not None:
            low, high = _inherited(around, origins)
        elif partials.shape[0]:
            low, high = self._window(partials)
        else:
            low, high = np.zeros(origins.size, np.int32), np.full(origins.size, self.events.rank.size, np.int32)
        for step in after:
            low = np.maximum(low, self.reach.place_after[partials[step]])
        for step in before:
            high = np.minimum(high, self.reach.place_since[partials[step]])
        return Interval(low, high)

    # --- negations and maximality ---
    def _valid(self, matches: GroupMatches, around: Around | None) -> GroupMatches:
        """Return the assignments that no negation forbids and no larger assignment contains."""
        if self.groups.decided:
            empty, forbidden = matches.empty_groups(), np.zeros(len(matches), np.bool_)
            # A check may read all elements of a match: limit the number of matches if they have many elements.
            most = max(1, CHUNK_ELEMENTS // max(1, int(matches.sizes.sum(axis=0).max(initial=0))))
            for decided in self.groups.decided:
                which = np.flatnonzero(empty == decided.empty)
                for begin in range(0, which.size, most):
                    some = which[begin : begin + most]
                    forbidden[some] = self._forbidden(decided, matches.only(some), around)
            matches = matches.only(~forbidden)
        if self.groups.search.compared and len(matches):
            matches = matches.only(self._are_maximal(matches))
        return matches

    def _forbidden(self, decided: Decided, matches: GroupMatches, around: Around | None) -> Bool:
        events = matches.events()
        inner = _with_taken(np.empty((0, len(matches)), np.int32), matches.origins, around)
        if self.groups.search.crowded:
            inner = np.vstack([inner, matches.elements()])
        forbidden = self.negations.forbidden(decided, events, inner)
        for negation in decided.group_negations:
            rest = np.flatnonzero(~forbidden)
            if rest.size:
                left = np.ascontiguousarray(events[:, rest])
                # Where no step bounds the negation, the window or the end of the match does.
                window = self._window(left) if around is None else _inherited(around, matches.origins[rest])
                match_end = self.reach.place_after[left.max(axis=0)] if around is None else window.high
                forbidden[rest] = self.occurrences[id(negation)].occurs(left, window, match_end, inner[:, rest])
        return forbidden

    def _are_maximal(self, matches: GroupMatches) -> Bool:
        """Return a mask of the maximal assignments among those with the same single events (EMIT EACH: and end)."""
        same = np.zeros(len(matches), np.bool_)
        same[1:] = (matches.singles[:, 1:] == matches.singles[:, :-1]).all(axis=0) & (np.diff(matches.origins) == 0)
        ends = np.zeros(len(matches), np.int32)
        if self.groups.search.each:
            ends = self.reach.place_after[matches.events().max(axis=0)]
        return are_maximal(np.cumsum(~same), ends, matches.places, matches.first, matches.stop)


class Occurrences(GroupSearch):
    """Test whether a negated pattern with Kleene groups occurs between the events of an enclosing match."""

    def __init__(self, query: BoundQuery, negation: GroupNegation, events: Events, chunk: int, cache: Cache) -> None:
        super().__init__(query, negation.groups, events, chunk, cache)
        self.negation, count = negation, events.rank.size
        everywhere = np.zeros(count, np.int32), np.full(count, count - 1, np.int32)
        self.reach = self.reach._replace(window_low=everywhere[0], window_high=everywhere[1])

    def occurs(self, events: Int32, window: Interval, match_end: Int32, taken: Int32) -> Bool:
        """Return a mask of the enclosing matches [steps, m] in which the pattern occurs without events of `taken`."""
        lower, upper = self.negation.lower, self.negation.upper
        low, high = window
        if lower.steps:
            low = self.reach.place_after[events[list(lower.steps)]].max(axis=0)
        if upper.steps:
            high = self.reach.place_since[events[list(upper.steps)]].min(axis=0)
        elif upper.edge is Edge.MATCH_END:
            high = match_end
        occurs = np.zeros(events.shape[1], np.bool_)
        for matches in self._matches(events, np.arange(events.shape[1]), Around(Interval(low, high), taken)):
            occurs[matches.origins] = True
        return occurs


def _inherited(around: Around, origins: Int64) -> Interval:
    return Interval(*(bound[origins] for bound in around.interval))


def _with_taken(events: Int32, origins: Int64, around: Around | None) -> Int32:
    """Return the events [k, m], followed by those that the enclosing patterns bind."""
    return events if around is None else np.vstack([events, around.taken[:, origins]])
