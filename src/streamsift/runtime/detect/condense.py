"""Condense the levels of a join order: compare events with equal values once, as a group.

This follows "Accelerating Sequence Event Detection through Condensed Composition". The condensation terms of a step are
the values that comparisons with later steps read from it; its events with equal terms form a group. Each pair of groups
of two steps is compared once, and a group keeps the list of its successors in time order. The search then follows lists
and compares nothing. In addition to the paper, a semi-join reduction first drops events that cannot be in any match,
and the remaining events are renumbered, so that the arrays of the search are short.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.errors import PlanTooLargeError
from streamsift.physical.plan import MIRRORED
from streamsift.runtime.arrays.comparing import OPERATORS, first_from, holds
from streamsift.runtime.arrays.dtypes import Int32, Int64
from streamsift.runtime.arrays.grouping import distinct, entries_from, group_entries
from streamsift.runtime.arrays.growing import grown
from streamsift.runtime.arrays.hashing import numbered
from streamsift.runtime.detect.join_kernel import ENTRIES_BASE, Levels
from streamsift.runtime.detect.join_packing import LevelArrays, Packing
from streamsift.runtime.detect.relations import Comparison, Linked, Lookup
from streamsift.runtime.detect.semi_join import Reducer
from streamsift.runtime.events.reach import Reach
from streamsift.runtime.resources import room

LIST_BYTES = 24  # per list entry, including copies while lists grow


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
    """Return (offsets [lefts + 1], entries): for each group of equal left terms, the right entries that can follow it.

    left_codes [P, lefts] and right_codes [P, rights] are the terms of each group, for P comparisons. left_groups
    [lefts] is the lookup group of the left terms (-1: none). left_reach [2, lefts] is the range of places that order
    and window allow for any event of the group. right_order has the right entries sorted by lookup group and place,
    right_places their places in that order, right_terms [entries] their groups of equal terms. Offsets are empty if
    there would be more than `most` entries.
    """
    lefts, rights, comparisons = left_groups.size, right_codes.shape[1], operators.size
    offsets = np.zeros(lefts + 1, np.int64)
    entries = np.empty(max(16, right_order.size), np.int32)
    compared_with = np.zeros(rights, np.int64)  # left + 1 of the last left group that each was compared with
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
                if compared_with[right] != left + 1:
                    compared_with[right] = left + 1
                    fits = True
                    for pair in range(comparisons):
                        fits = fits and holds(operators[pair], left_codes[pair, left], right_codes[pair, right])
                    passes[right] = fits
                if passes[right]:
                    if count == most:
                        return offsets[:0], entries[:0]
                    if count == entries.size:
                        entries = grown(entries)
                    entries[count] = entry
                    count += 1
        offsets[left + 1] = count
    return offsets, entries[:count]


@njit(cache=True, nogil=True)
def numbers_from(kept: Int32, bounds: Int32) -> Int32:
    """Return for each bound the number of the first kept place >= bound; bounds may decrease, by at most a window."""
    numbers = np.empty(bounds.size, np.int32)
    number = 0
    for i in range(bounds.size):
        while number > 0 and kept[number - 1] >= bounds[i]:
            number -= 1
        while number < kept.size and kept[number] < bounds[i]:
            number += 1
        numbers[i] = number
    return numbers


def reach_among(reach: Reach, kept: Int32) -> Reach:
    """Translate the bounds of order and windows to numbers of kept places."""

    def first(bounds: Int32) -> Int32:
        return numbers_from(kept, bounds[kept])

    def last(bounds: Int32) -> Int32:
        return numbers_from(kept, bounds[kept] + np.int32(1)) - np.int32(1)

    rows = [last(bounds) if row % 2 else first(bounds) for row, bounds in enumerate(reach.own_windows)]
    windows = np.array(rows, np.int32).reshape(len(rows), kept.size)
    after, since = first(reach.place_after), first(reach.place_since)
    return Reach(after, since, first(reach.window_low), last(reach.window_high), reach.widest_window, windows)


class Left(NamedTuple):
    """The events of a slice that the semi-join reduction kept."""

    kept: Int32  # their places, ascending
    places: dict[int, Int32]  # the places of each step
    numbers: dict[int, Int32]  # the places of each step, as indices into `kept`


class Condenser:
    """Condense the levels of one alternative, slice by slice."""

    def __init__(self, packing: Packing, reach: Reach) -> None:
        self.packing, self.reducer = packing, Reducer(packing, reach)
        self.left = 0  # events of the last slice that the semi-join reduction kept

    def levels(self, steps: tuple[int, ...], low: int, high: int, reached: int) -> tuple[Levels, Int32]:
        """Return the condensed levels of steps bound one by one, and the kept places, which the levels refer to.

        Matches start at places [low, high); none of their events lies at `reached` or later.
        """
        places = {}
        for step in steps:  # a match starts with its first step in time
            candidates = self.packing.places[step]
            places[step] = candidates[slice(*entries_from(candidates, [low, high if step == min(steps) else reached]))]
        self.reducer.reduce(places)
        self.left = sum(part.size for part in places.values())
        kept = distinct(np.concatenate(list(places.values())))
        left = Left(kept, places, {step: numbers_from(kept, part) for step, part in places.items()})
        packed = LevelArrays(len(steps))
        for number, (row, step) in enumerate(zip(packed.table, steps, strict=True)):
            linked = self.packing.relations.link(steps[:number], (step,))
            entries, rest = left.numbers[step], linked.comparisons
            if (partner := _partner(linked, step)) is not None:
                entries, rest = self._look_up(packed, row, linked, step, partner, left)
            row[ENTRIES_BASE] = packed.places.add(entries)
            packed.add_index(row, entries)
            self.packing.relate(packed, row, (step,), replace(linked, comparisons=rest), min(steps), kept)
        return packed.levels(0, kept.size), kept

    def _look_up(
        self, packed: LevelArrays, row: Int64, linked: Linked, step: int, partner: int, left: Left
    ) -> tuple[Int32, tuple[Comparison, ...]]:
        """Add the successor lists of a partner's groups; return their entries and the remaining comparisons."""
        joined = [c for c in linked.comparisons if _other(c, step) == partner and not linked.limits]
        links = np.full(left.kept.size, -1, np.int32)
        if joined:
            offsets, entries, links[left.numbers[partner]] = self._lists(linked.lookup, joined, step, partner, left)
        else:
            # Only equalities: the lookup groups are the groups of equal terms.
            by_step, groups = self.packing.group(linked.lookup)
            offsets, entries = group_entries(by_step[step][left.places[step]], groups)
            links[left.numbers[partner]] = by_step[partner][left.places[partner]]
        packed.add_lookup(row, partner, offsets, links)
        return left.numbers[step][entries], tuple(c for c in linked.comparisons if c not in joined)

    def _lists(
        self, lookup: Lookup, joined: Sequence[Comparison], step: int, partner: int, left: Left
    ) -> tuple[Int64, Int32, Int32]:
        """Return the offsets of each group's list, the entries of all lists, and the group of each partner event."""
        this, others = left.places[step], left.places[partner]
        left_groups, left_terms, left_codes = self._terms(lookup, partner, joined, others)
        right_groups, right_terms, right_codes = self._terms(lookup, step, joined, this)
        groups = self.packing.group(lookup)[1] if lookup else 1
        right_offsets, right_order = group_entries(right_groups[right_terms], groups)
        operators = [OPERATORS[c[1] if c[0][0] == partner else MIRRORED[c[1]]] for c in joined]
        # The range of places for a step, over all events of a partner with equal terms.
        least, most = np.zeros((2, left_groups.size), np.int32)
        least[left_terms[::-1]], most[left_terms] = others[::-1], others
        first, last, beyond = self.reducer.edges(partner, step)
        offsets, entries = successor_lists(
            left_groups,
            left_codes,
            np.stack([first[least], last[most] + np.int32(beyond)]),
            np.array(operators, np.int64),
            right_offsets,
            right_order,
            this[right_order],
            right_terms,
            right_codes,
            room() // LIST_BYTES,
        )
        if not offsets.size:
            raise PlanTooLargeError(
                "condensing does not fit in the memory limit: too many pairs of events that can follow each other\n"
                'Hint: remove condense="on" or shorten WITHIN.'
            )
        return offsets, entries, left_terms

    def _terms(
        self, lookup: Lookup, step: int, joined: Sequence[Comparison], places: Int32
    ) -> tuple[Int32, Int32, Int64]:
        """Group one side by equal terms; return the lookup group of each group, the group of each place, and codes."""
        codes = [self.packing.coded(comparison)[comparison[0][0] != step][places] for comparison in joined]
        columns, in_groups = codes, np.zeros(places.size, np.int32)
        if lookup:
            in_groups = self.packing.group(lookup)[0][step][places]
            columns = [in_groups.astype(np.int64), *codes]
        terms, count = numbered(columns[0])
        for column in columns[1:]:
            others, factor = numbered(column)
            terms, count = numbered(terms.astype(np.int64) * factor + others)
        some = np.empty(count, np.int64)  # a place of each group
        some[terms] = np.arange(places.size)
        return in_groups[some], terms, np.stack([column[some] for column in codes])


def _partner(linked: Linked, step: int) -> int | None:
    """Return the earlier step whose lists the search follows: that of the lookup, or the one with most comparisons.

    Lists span the window of the query. If a definition window leaves few events, comparing them is cheaper than lists.
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
