"""Reduce the candidates of steps by semi-joins: keep those that have a partner in each other step.

A pair of steps is reduced by its order, its window, its equalities and each of its other comparisons by itself: an
event stays if the window holds one with equal values on the right side of it. The largest value in a window that moves
along needs one pass, so a pair costs its events, whatever the window holds. Where few combinations survive this is
most of what condensing gains.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations

import numpy as np
from numba import njit

from streamsift.physical.plan import MIRRORED
from streamsift.runtime.arrays.comparing import GREATER_EQUAL, LESS, LESS_EQUAL, OPERATORS
from streamsift.runtime.arrays.dtypes import UNKNOWN, Bool, Int32, Int64
from streamsift.runtime.arrays.grouping import chosen, group_entries
from streamsift.runtime.detect.join_packing import Packing
from streamsift.runtime.detect.relations import Comparison, Linked
from streamsift.runtime.events.reach import Reach

ORDERED = ("<", "<=", ">", ">=")
NO_CODES = np.empty(0, np.int64)
MANY = 16  # a step is not reduced by one with more than so many times its events: that costs them, and gains few
NEVER = np.iinfo(np.int32).max  # no place
GO_ON = 0.5  # another round is made while the last one left at most this share: all rounds cost two of the first


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
    """Return whether each place's group has another place in [first, last + beyond) with `code operator other code`.

    places [n] and other_places [m] ascend within each group, offsets and other_offsets [groups + 1]. codes and
    other_codes, first and last are by place; first and last ascend. No codes: nothing is compared.
    One function, as a call retains and releases every array that it takes.
    """
    found = np.zeros(places.size, np.bool_)
    queue = np.empty(other_places.size, np.int32)  # of the others in the window those that no later one surpasses
    compares = codes.size > 0
    wants_large = operator in (LESS, LESS_EQUAL)
    or_equal = operator in (LESS_EQUAL, GREATER_EQUAL)
    for group in range(offsets.size - 1):
        end, stop = other_offsets[group], other_offsets[group + 1]
        head = tail = 0
        i, own_stop = offsets[group], offsets[group + 1]
        while i < own_stop:
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
            # The best of the others stays the same up to where the next one comes in, or this one goes out.
            comes_in = other_places[end] if end < stop else NEVER
            goes_out = queue[head] if head < tail else NEVER
            until, width, widens = i + 1, 1, True
            while width > 0:
                stays = until + width <= own_stop
                if stays:
                    place = places[until + width - 1]
                    stays = last[place] + beyond <= comes_in and first[place] <= goes_out
                if stays:
                    until += width
                widens = widens and stays
                width = 2 * width if widens else width >> 1
            if head < tail and not compares:
                found[i:until] = True
            elif head < tail:
                limit = other_codes[goes_out]
                if wants_large:
                    for k in range(i, until):
                        code = codes[places[k]]
                        found[k] = ((code < limit) | (or_equal & (code == limit))) & (code != UNKNOWN)
                else:
                    for k in range(i, until):
                        code = codes[places[k]]
                        found[k] = (code > limit) | (or_equal & (code == limit))
            i = until
    return found


@njit(cache=True, nogil=True)
def in_shared_groups(places: Int32, groups: Int32, other_places: Int32, other_groups: Int32, count: int) -> Int32:
    """Return the places whose group some other place is in, too. Groups are by place, -1 is none."""
    has_other = np.zeros(count + 1, np.bool_)  # a group is at its number + 1
    for i in range(other_places.size):
        has_other[other_groups[other_places[i]] + 1] = True
    has_other[0] = False
    found = np.empty(places.size, np.int32)
    kept = 0
    for i in range(places.size):
        found[kept] = places[i]
        kept += has_other[groups[places[i]] + 1]
    return found[:kept]


@dataclass(frozen=True, slots=True)
class Tie:
    """Two steps, and what one asks of the other."""

    steps: tuple[int, int]
    linked: Linked  # of the first of them, bound before the other

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Those that have a largest or smallest value."""
        both = {*self.steps}
        return tuple(c for c in self.linked.comparisons if {c[0][0], c[2][0]} == both and c[1] in ORDERED)


@dataclass(frozen=True)
class Reducer:
    """Reduces the candidates of one alternative, slice by slice."""

    packing: Packing
    reach: Reach

    def reduce(self, places: dict[int, Int32]) -> None:
        """Leave in `places`, by step, those that have a partner in every step that theirs is tied to."""
        asked_of: dict[tuple[int, int, int], int] = {}  # how many partners a step had when it was reduced by a tie
        before, after = 1, 0
        while after <= GO_ON * before:
            before = sum(part.size for part in places.values())
            for number, tie in enumerate(self.ties):
                # The side with fewer events leaves out most of the other.
                for step, other in sorted((tie.steps, tie.steps[::-1]), key=lambda steps: -places[steps[0]].size):
                    is_worth_it = places[other].size <= MANY * places[step].size
                    if is_worth_it and asked_of.get((number, step, other)) != places[other].size:
                        asked_of[number, step, other] = places[other].size
                        places[step] = self._kept(step, other, tie, places)
            after = max(1, sum(part.size for part in places.values()))

    @cached_property
    def ties(self) -> list[Tie]:
        """Pairs with something to compare, first those without groups to make; then neighbours in time."""
        steps = range(len(self.packing.places))
        link = self.packing.relations.link
        pairs = (Tie((step, other), link([step], (other,))) for step, other in combinations(steps, 2))
        tied = [tie for tie in pairs if tie.linked.lookup or tie.comparisons or tie.steps[1] == tie.steps[0] + 1]
        return sorted(tied, key=lambda tie: 1 if tie.linked.lookup else 0 if tie.comparisons else 2)

    def _kept(self, step: int, other: int, tie: Tie, places: dict[int, Int32]) -> Int32:
        """Return the places of one step of a tie that have a partner in the other."""
        if tie.linked.lookup:
            # To look whether a group is there costs a fraction of sorting by groups, and may leave little to sort.
            places = {**places, step: self._with_others(step, tie, places[step], places[other])}
        own, own_offsets, order = self._grouped(step, tie, places[step])
        others, other_offsets, _ = self._grouped(other, tie, places[other])
        edges = self.edges(step, other)
        have = (
            have_partner(own, own_offsets, codes, others, other_offsets, other_codes, *edges, operator)
            for codes, other_codes, operator in self._compared(step, tie)
        )
        keep = reduce(np.logical_and, have)
        if order is None:
            return chosen(own, keep)
        kept = np.zeros(places[step].size, np.bool_)
        kept[chosen(order, keep)] = True
        return chosen(places[step], kept)

    def _with_others(self, step: int, tie: Tie, places: Int32, other_places: Int32) -> Int32:
        of_bound, of_own, groups = self.packing.group(tie.linked.lookup)
        own, other = (of_bound, of_own) if step == tie.steps[0] else (of_own, of_bound)
        return in_shared_groups(places, own, other_places, other, groups)

    def _compared(self, step: int, tie: Tie) -> list[tuple[Int64, Int64, int]]:
        """(own codes, the other's codes, operator) of each comparison, seen from one step; without one, order alone."""
        found = []
        for comparison in tie.comparisons:
            left, right = self.packing.coded(comparison)
            if comparison[0][0] == step:
                found.append((left, right, OPERATORS[comparison[1]]))
            else:
                found.append((right, left, OPERATORS[MIRRORED[comparison[1]]]))
        return found or [(NO_CODES, NO_CODES, LESS)]

    def _grouped(self, step: int, tie: Tie, places: Int32) -> tuple[Int32, Int64, Int32 | None]:
        """Return the places by lookup group, where groups start, and the order that groups them; None: as they were."""
        if not tie.linked.lookup:
            return places, np.array([0, places.size], np.int64), None
        of_bound, of_own, groups = self.packing.group(tie.linked.lookup)
        offsets, order = group_entries((of_bound if step == tie.steps[0] else of_own)[places], groups)
        return places[order], offsets, order

    def edges(self, bound: int, step: int) -> tuple[Int32, Int32, int]:
        """Return by place of a bound event, what order and window leave for a step: [first, last + beyond)."""
        if self.packing.relations.before[bound, step]:
            return self.reach.place_after, self.reach.window_high, 1
        return self.reach.window_low, self.reach.place_since, 0
