"""Condense the levels of a join order: join events with equal values once, as a group.

After "Accelerating Sequence Event Detection through Condensed Composition": the condensation terms of a step are what
comparisons with later steps read of it; its events with equal terms are one group. A group is compared with a group of
the other step once, and keeps the list of its successors, in order of time. The search then follows lists and compares
nothing. Past the paper: an event none of whose groups' successors can follow it in time is left out beforehand, from
the last step back to the first, so combinations that lead nowhere are not even begun; and the search sees a stream of
the events that are left, so its arrays are as short as those are few.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit

from streamsift.errors import PlanTooLargeError
from streamsift.physical.plan import MIRRORED
from streamsift.runtime.arrays.comparing import OPERATORS, holds
from streamsift.runtime.arrays.dtypes import Int32, Int64
from streamsift.runtime.arrays.grouping import entries_from, group_entries
from streamsift.runtime.arrays.growing import longer
from streamsift.runtime.arrays.numbering import numbered
from streamsift.runtime.arrays.searching import first_from
from streamsift.runtime.detect.join_packing import Condensed, Packing
from streamsift.runtime.detect.relations import Comparison, Linked, Lookup
from streamsift.runtime.detect.semi_join import Reducer
from streamsift.runtime.events.reach import Reach
from streamsift.runtime.resources import room

LIST_BYTES = 24  # for each entry of a list: itself, and copies of it while lists grow
NO_OFFSETS, NO_LINKS = np.empty(0, np.int64), np.empty(0, np.int32)


@njit(cache=True, nogil=True)
def successor_lists(
    left_groups: Int32,
    left_codes: Int64,
    left_reach: Int32,
    operators: Int64,
    right_offsets: Int64,
    right_order: Int32,
    right_places: Int32,
    right_terms: Int32,
    right_codes: Int64,
    most: int,
) -> tuple[Int64, Int32]:
    """Return (offsets [lefts + 1], entries): for each group of equal left terms the right entries that may follow it.

    left_codes [P, lefts] and right_codes [P, rights] have the terms of each group, for P comparisons; left_groups
    [lefts] is the lookup group of the left terms (-1: none), left_reach [2, lefts] the first place and the one after
    the last that order and window leave for any event of the group. right_order has the right entries by lookup group,
    ascending within each, right_places their places in that order; right_terms [entries] are groups of equal terms.
    Offsets are empty if there would be more than `most` entries.
    """
    lefts, rights, comparisons = left_groups.size, right_codes.shape[1], operators.size
    offsets = np.zeros(lefts + 1, np.int64)
    found = np.empty(max(16, right_order.size), np.int32)
    known = np.zeros(rights, np.int64)  # left + 1 where the comparison with that left group was made
    passes = np.zeros(rights, np.bool_)
    count = 0
    for left in range(lefts):
        group = left_groups[left]
        if group >= 0:
            stop = right_offsets[group + 1]
            for number in range(first_from(right_places, right_offsets[group], stop, left_reach[0, left]), stop):
                if right_places[number] >= left_reach[1, left]:
                    break
                entry = right_order[number]
                right = right_terms[entry]
                if known[right] != left + 1:
                    known[right] = left + 1
                    fits = True
                    for pair in range(comparisons):
                        fits = fits and holds(operators[pair], left_codes[pair, left], right_codes[pair, right])
                    passes[right] = fits
                if passes[right]:
                    if count == most:
                        return offsets[:0], found[:0]
                    if count == found.size:
                        found = longer(found)
                    found[count] = entry
                    count += 1
        offsets[left + 1] = count
    return offsets, found[:count]


@njit(cache=True, nogil=True)
def numbers_from(kept: Int32, bounds: Int32) -> Int32:
    """Return for each bound the number of the first kept place there or later; one merge, where both ascend.

    The windows of keys end where they end: those bounds go back and forth, a window at most.
    """
    found = np.empty(bounds.size, np.int32)
    number = 0
    for i in range(bounds.size):
        while number > 0 and kept[number - 1] >= bounds[i]:
            number -= 1
        while number < kept.size and kept[number] < bounds[i]:
            number += 1
        found[i] = number
    return found


def reach_among(reach: Reach, kept: Int32) -> Reach:
    """Return what order and windows leave of the kept places, by their numbers."""
    windows = np.empty((reach.own_windows.shape[0], kept.size), np.int32)
    for row in range(0, windows.shape[0], 2):
        windows[row] = numbers_from(kept, reach.own_windows[row, kept])
        windows[row + 1] = numbers_from(kept, reach.own_windows[row + 1, kept] + np.int32(1)) - np.int32(1)
    return Reach(
        place_after=numbers_from(kept, reach.place_after[kept]),
        place_since=numbers_from(kept, reach.place_since[kept]),
        window_low=numbers_from(kept, reach.window_low[kept]),
        window_high=numbers_from(kept, reach.window_high[kept] + np.int32(1)) - np.int32(1),
        widest_window=reach.widest_window,
        own_windows=windows,
    )


@dataclass(frozen=True, slots=True)
class Left:
    """The events that are left of a slice."""

    kept: Int32  # their places, ascending
    places: dict[int, Int32]  # those of each step
    numbers: dict[int, Int32]  # the same, as numbers of kept places

    @classmethod
    def of(cls, places: dict[int, Int32], low: int, reached: int) -> Left:
        is_kept = np.zeros(reached - low, np.bool_)
        for part in places.values():
            is_kept[part - low] = True
        kept = (np.flatnonzero(is_kept) + low).astype(np.int32)
        return cls(kept, places, {step: numbers_from(kept, part) for step, part in places.items()})


class Condenser:
    """Condenses the levels of one alternative, slice by slice."""

    def __init__(self, packing: Packing, reach: Reach) -> None:
        self.packing, self.reducer = packing, Reducer(packing, reach)
        self.left = 0  # events of the last slice that were not left out beforehand

    def levels(self, steps: Sequence[int], low: int, high: int, reached: int) -> tuple[list[Condensed], Int32]:
        """Return the condensed levels of steps bound one by one, for matches that start at places [low, high).

        No event of such a match lies at `reached` or later. The levels have numbers of the places that come second.
        """
        places = self._candidates(steps, low, high, reached)
        self.reducer.reduce(places)
        left = Left.of(places, low, reached)
        found: list[Condensed] = []
        for number, step in enumerate(steps):
            linked = self.packing.relations.link(steps[:number], (step,))
            partner = _partner(linked, step)
            if partner is None:
                found.append(Condensed(left.numbers[step], NO_OFFSETS, NO_LINKS, -1, linked.comparisons, 1.0))
            else:
                found.append(self._level(linked, step, partner, left))
        self.left = sum(part.size for part in places.values())
        return found, left.kept

    def _candidates(self, steps: Sequence[int], low: int, high: int, reached: int) -> dict[int, Int32]:
        """Return of each step those that a match can have; the first in time starts it."""
        found = {}
        for step in steps:
            places = self.packing.places[step]
            found[step] = places[slice(*entries_from(places, [low, high if step == min(steps) else reached]))]
        return found

    def _level(self, linked: Linked, step: int, partner: int, left: Left) -> Condensed:
        own, others = left.places[step], left.places[partner]
        lookup = linked.lookup if linked.lookup and linked.lookup[0][0][0] == partner else ()
        joined = [c for c in linked.comparisons if _other(c, step) == partner and not linked.limits]
        links = np.full(left.kept.size, -1, np.int32)
        if lookup and not joined:
            # Equality alone: the groups of the lookup are the groups of equal terms.
            of_bound, of_own, groups = self.packing.group(lookup)
            offsets, order = group_entries(of_own[own], groups)
            links[left.numbers[partner]] = of_bound[others]
            numbers, degree = left.numbers[step][order], groups / max(1, own.size)
            return Condensed(numbers, offsets, links, partner, linked.comparisons, degree)
        left_groups, left_terms, left_codes = self._terms(lookup, partner, joined, others, is_bound=True)
        right_groups, right_terms, right_codes = self._terms(lookup, step, joined, own, is_bound=False)
        groups = self.packing.group(lookup)[2] if lookup else 1
        right_offsets, right_order = group_entries(right_groups[right_terms], groups)
        operators = [OPERATORS[c[1] if c[0][0] == partner else MIRRORED[c[1]]] for c in joined]
        offsets, entries = successor_lists(
            left_groups,
            left_codes,
            self._reach_of(partner, step, others, left_terms, left_groups.size),
            np.array(operators, np.int64),
            right_offsets,
            right_order,
            own[right_order],
            right_terms,
            right_codes,
            room() // LIST_BYTES,
        )
        if not offsets.size:
            raise PlanTooLargeError(
                "the lists of events that may follow each other, which condensing makes, do not fit into the memory"
                ' limit: leave it to the cost model, use condense="off", or give a smaller window.'
            )
        links[left.numbers[partner]] = left_terms
        rest = tuple(c for c in linked.comparisons if c not in joined)
        rest += tuple((known, "=", other) for known, other in linked.lookup if not lookup)
        degree = left_groups.size / max(1, others.size) * right_groups.size / max(1, own.size)
        return Condensed(left.numbers[step][entries], offsets, links, partner, rest, degree)

    def _reach_of(self, partner: int, step: int, places: Int32, terms: Int32, groups: int) -> Int32:
        """Return [2, groups] where a step's events may lie for any of a partner's events with equal terms."""
        least, most = np.zeros(groups, np.int32), np.zeros(groups, np.int32)
        least[terms[::-1]] = places[::-1]
        most[terms] = places
        first, last, beyond = self.reducer.edges(partner, step)
        return np.stack([first[least], last[most] + np.int32(beyond)])

    def _terms(
        self, lookup: Lookup, step: int, joined: Sequence[Comparison], places: Int32, *, is_bound: bool
    ) -> tuple[Int32, Int32, Int64]:
        """Return (lookup group of each group of equal terms, group of each place, codes [P, groups]) of one side."""
        columns: list[Int64] = []
        if lookup:
            of_bound, of_own, _ = self.packing.group(lookup)
            columns.append((of_bound if is_bound else of_own)[places].astype(np.int64))
        for comparison in joined:
            side = 0 if comparison[0][0] == step else 1
            columns.append(self.packing.coded(comparison)[side][places])
        first, terms = _equal_rows(columns, places.size)
        codes = columns[1:] if lookup else columns
        groups = columns[0][first].astype(np.int32) if lookup else np.zeros(first.size, np.int32)
        stacked = np.stack([column[first] for column in codes]) if codes else np.empty((0, first.size), np.int64)
        return groups, terms, stacked


def _partner(linked: Linked, step: int) -> int | None:
    """Return the earlier step whose lists the search follows: that of the lookup, or the one with most to compare.

    Lists reach as far as the statement's window: where a definition's window leaves few events, they are compared.
    """
    if linked.lookup:
        return linked.lookup[0][0][0]
    if linked.limits:
        return None
    tied = Counter(_other(comparison, step) for comparison in linked.comparisons)
    tied.pop(step, None)
    return tied.most_common(1)[0][0] if tied else None


def _other(comparison: Comparison, step: int) -> int:
    """Return the other step of a comparison."""
    return comparison[2][0] if comparison[0][0] == step else comparison[0][0]


def _equal_rows(columns: Sequence[Int64], count: int) -> tuple[Int64, Int32]:
    """Return (a row of each group of equal rows, the group of each row)."""
    if not columns or not count:
        return np.zeros(min(1, count), np.int64), np.zeros(count, np.int32)
    group, groups = numbered(columns[0])
    for column in columns[1:]:
        second, seconds = numbered(column)
        group, groups = numbered(group.astype(np.int64) * seconds + second)
    some = np.empty(groups, np.int64)
    some[group] = np.arange(count)
    return some, group
