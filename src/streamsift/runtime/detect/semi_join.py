"""Reduce the candidates of steps with semi-joins: keep those that have a partner in every related step.

A pair of steps is reduced by order, window and equalities together with one other comparison at a time: an event is
kept if its window contains a partner that satisfies these. The largest value in a sliding window takes one pass, so the
cost is linear in the events of the pair, whatever the size of the window. If few combinations match, most of the
benefit of condensing comes from this reduction.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.physical.plan import MIRRORED
from streamsift.runtime.arrays.comparing import GREATER_EQUAL, LESS, LESS_EQUAL, OPERATORS
from streamsift.runtime.arrays.dtypes import NO_LIMIT, UNKNOWN, Bool, Int32, Int64
from streamsift.runtime.arrays.grouping import chosen, group_entries
from streamsift.runtime.detect.join_packing import Packing
from streamsift.runtime.detect.relations import Comparison, Lookup
from streamsift.runtime.events.reach import Reach

ORDERED = ("<", "<=", ">", ">=")
NO_CODES = np.empty(0, np.int64)
MANY = 16  # a step is not reduced by a step with more than this many times its events: that costs more than it saves
GO_ON = 0.5  # continue while a round keeps at most this share, so that all rounds cost at most twice the first


@njit(cache=True, nogil=True)
def have_partner(
    places: Int32,
    offsets: Int64,
    codes: Int64,
    other_places: Int32,
    other_offsets: Int64,
    other_codes: Int64,
    first: Int32,
    last: Int32,
    beyond: int,
    operator: int,
) -> Bool:
    """Return a mask of the places with a partner: another place of the group in [first, last + beyond) that passes.

    It passes if `code operator other code`; without codes every place does. places [n] and other_places [m] ascend
    within each group, given by offsets and other_offsets [groups + 1]. codes, other_codes, first and last are by place;
    first and last ascend. This is one function because a call retains and releases every array that it takes.
    """
    has_partner = np.zeros(places.size, np.bool_)
    queue = np.empty(other_places.size, np.int32)  # monotonic queue of the window: codes that no later code surpasses
    compares = codes.size > 0
    wants_large = operator in (LESS, LESS_EQUAL)
    or_equal = operator in (LESS_EQUAL, GREATER_EQUAL)
    for group in range(offsets.size - 1):
        end, stop = other_offsets[group], other_offsets[group + 1]
        head = tail = 0
        i, end_of_group = offsets[group], offsets[group + 1]
        while i < end_of_group:
            beyond_last, since = last[places[i]] + beyond, first[places[i]]
            while end < stop and other_places[end] < beyond_last:
                other = other_places[end]
                if not compares:
                    head, tail = 0, 1
                    queue[0] = other
                elif other_codes[other] != UNKNOWN:
                    code = other_codes[other]
                    while tail > head and (
                        code >= other_codes[queue[tail - 1]] if wants_large else code <= other_codes[queue[tail - 1]]
                    ):
                        tail -= 1
                    queue[tail] = other
                    tail += 1
                end += 1
            while head < tail and queue[head] < since:
                head += 1
            # The best partner stays the same until the next one enters the window or this one leaves it.
            comes_in = other_places[end] if end < stop else NO_LIMIT
            goes_out = queue[head] if head < tail else NO_LIMIT
            until, width, widens = i + 1, 1, True
            while width > 0:
                stays = until + width <= end_of_group
                if stays:
                    place = places[until + width - 1]
                    stays = last[place] + beyond <= comes_in and first[place] <= goes_out
                if stays:
                    until += width
                widens = widens and stays
                width = 2 * width if widens else width >> 1
            if head < tail and not compares:
                has_partner[i:until] = True
            elif head < tail:
                limit = other_codes[goes_out]
                if wants_large:
                    for k in range(i, until):
                        code = codes[places[k]]
                        has_partner[k] = ((code < limit) | (or_equal & (code == limit))) & (code != UNKNOWN)
                else:
                    for k in range(i, until):
                        code = codes[places[k]]
                        has_partner[k] = (code > limit) | (or_equal & (code == limit))
            i = until
    return has_partner


@njit(cache=True, nogil=True)
def in_shared_groups(places: Int32, groups: Int32, other_places: Int32, other_groups: Int32, count: int) -> Int32:
    """Return the places whose group contains one of the other places. Groups are by place, -1 for none."""
    has_other = np.zeros(count + 1, np.bool_)  # at the group's number + 1
    for i in range(other_places.size):
        has_other[other_groups[other_places[i]] + 1] = True
    has_other[0] = False
    shared = np.empty(places.size, np.int32)
    kept = 0
    for i in range(places.size):
        shared[kept] = places[i]
        kept += has_other[groups[places[i]] + 1]
    return shared[:kept]


class Tie(NamedTuple):
    """Two related steps, which are reduced by each other."""

    steps: tuple[int, int]
    lookup: Lookup
    comparisons: tuple[Comparison, ...]  # only those with <, <=, > or >=


@dataclass(frozen=True)
class Reducer:
    """Reduce the candidates of one alternative, slice by slice."""

    packing: Packing
    reach: Reach

    def reduce(self, places: dict[int, Int32]) -> None:
        """Keep in `places`, by step, only the places that have a partner in every step tied to theirs."""
        partners: dict[tuple[int, int, int], int] = {}  # number of partners at the last reduction by each tie
        before, after = 1, 0
        while after <= GO_ON * before:
            before = sum(part.size for part in places.values())
            for number, tie in enumerate(self.ties):
                # Reduce the larger side first: the smaller one removes most of it.
                for step, other in sorted((tie.steps, tie.steps[::-1]), key=lambda steps: -places[steps[0]].size):
                    is_worth_it = places[other].size <= MANY * places[step].size
                    if is_worth_it and partners.get((number, step, other)) != places[other].size:
                        partners[number, step, other] = places[other].size
                        places[step] = self._kept(step, other, tie, places)
            after = max(1, sum(part.size for part in places.values()))

    @cached_property
    def ties(self) -> list[Tie]:
        """Return pairs with comparisons, first those without lookup groups, then those with; then neighbors in time."""
        ties = []
        for pair in combinations(range(len(self.packing.places)), 2):
            linked = self.packing.relations.link(pair[:1], pair[1:])
            between = (c for c in linked.comparisons if {c[0][0], c[2][0]} == {*pair} and c[1] in ORDERED)
            tie = Tie(pair, linked.lookup, tuple(between))
            if tie.lookup or tie.comparisons or pair[1] == pair[0] + 1:
                ties.append(tie)
        return sorted(ties, key=lambda tie: 1 if tie.lookup else 0 if tie.comparisons else 2)

    def _kept(self, step: int, other: int, tie: Tie, places: dict[int, Int32]) -> Int32:
        """Return the places of one step of a tie that have a partner in the other."""
        this, others, order = places[step], places[other], None
        offsets, other_offsets = (np.array([0, part.size], np.int64) for part in (this, others))
        if tie.lookup:
            by_step, groups = self.packing.group(tie.lookup)
            # Testing for shared groups costs a fraction of sorting by group, and may leave little to sort.
            this = in_shared_groups(this, by_step[step], others, by_step[other], groups)
            offsets, order = group_entries(by_step[step][this], groups)
            other_offsets, other_order = group_entries(by_step[other][others], groups)
            others = others[other_order]
        grouped = this if order is None else this[order]
        keep = np.ones(grouped.size, np.bool_)
        edges = self.edges(step, other)
        compared = [self._codes(step, comparison) for comparison in tie.comparisons]
        for codes, other_codes, operator in compared or [(NO_CODES, NO_CODES, LESS)]:  # order alone
            keep &= have_partner(grouped, offsets, codes, others, other_offsets, other_codes, *edges, operator)
        if order is None:
            return chosen(this, keep)
        kept = np.zeros(this.size, np.bool_)
        kept[chosen(order, keep)] = True
        return chosen(this, kept)

    def _codes(self, step: int, comparison: Comparison) -> tuple[Int64, Int64, int]:
        """Return the codes of a step, the codes of the other step, and the operator between them."""
        (left, right), op = self.packing.coded(comparison), comparison[1]
        is_left = comparison[0][0] == step
        return (left, right, OPERATORS[op]) if is_left else (right, left, OPERATORS[MIRRORED[op]])

    def edges(self, bound: int, step: int) -> tuple[Int32, Int32, int]:
        """Return by place of a bound event the places [first, last + beyond) that order and window allow for a step."""
        if self.packing.relations.before[bound, step]:
            return self.reach.place_after, self.reach.window_high, 1
        return self.reach.window_low, self.reach.place_since, 0
