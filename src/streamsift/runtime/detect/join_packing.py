"""Pack the events of an alternative as the levels of the join kernel, for any order of its parts.

Predicates are re-read for the order at hand, by the relations of the steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from streamsift.physical.plan import Alternative, JoinLeaf, Tree, steps_of
from streamsift.runtime.arrays.dtypes import UNKNOWN, Int32, Int64
from streamsift.runtime.arrays.grouping import entries_from, group_entries
from streamsift.runtime.arrays.parts import Parts
from streamsift.runtime.detect import join_kernel
from streamsift.runtime.detect.join_kernel import Levels
from streamsift.runtime.detect.relations import Comparison, Linked, Lookup, Relations, Side
from streamsift.runtime.events.comparisons import CandidateCodes, Comparisons, Lookups, Read
from streamsift.runtime.events.definition_windows import limit_rows
from streamsift.runtime.events.events import Events


@dataclass(frozen=True, slots=True)
class Condensed:
    """A level whose comparisons with one earlier step are made: lists of what may follow each group of its events."""

    places: Int32  # list after list, or all events that may be bound if there is no partner: numbers of kept places
    offsets: Int64  # where the list of each group starts; one more for the end
    links: Int32  # by kept place: the group of the partner's event, -1 for none
    partner: int  # the earlier step; -1: none
    comparisons: tuple[Comparison, ...]  # what is left to compare
    degree: float  # groups that were compared, as a share of the events: the condensation degree of both sides


class Packing:
    """The candidates of all steps, and the levels of any order of parts; what orders share is computed once."""

    def __init__(self, alternative: Alternative, events: Events, places: Sequence[Int32], relations: Relations) -> None:
        self.places, self.relations = places, relations
        self.window_rows = limit_rows(alternative.query)
        self._values = CandidateCodes(alternative.query, events)
        self._coded: dict[Comparison, list[Int64]] = {}
        self._groups: dict[Lookup, tuple[Int32, Int32, int]] = {}

    def levels(
        self,
        units: Sequence[Tree],
        blocks: Mapping[Tree, Int32],
        owner: int | None,
        low: int,
        high: int,
        *,
        by_end: bool = False,
    ) -> tuple[Levels, list[Int32]]:
        """Return the levels of the units for events at places [low, high), and for each block the order of its entries.

        `blocks` has the members [steps, entries] of each unit that is no leaf, by ascending first place. `owner` is
        the step whose level limits where a match may start. With `by_end` the entries of the last unit, a block,
        ascend by their last place.
        """
        packed = LevelArrays(len(units))
        orders: list[Int32] = []
        bound: list[int] = []
        block_base = 0
        for number, (row, unit) in enumerate(zip(packed.table, units, strict=True)):
            part = steps_of(unit)
            linked = self.relations.link(bound, part)
            entries = self._entries(unit, blocks, low, high)
            order = self._look_up(packed, row, part, linked.lookup, entries, slice(low, high))
            if isinstance(unit, JoinLeaf):
                row[join_kernel.ENTRIES_BASE] = packed.places.add(entries[0] if order is None else entries[0][order])
            else:
                orders.append(np.arange(entries.shape[1], dtype=np.int32) if order is None else order)
                row[join_kernel.ENTRIES_BASE] = block_base
                block_base += orders[-1].size
            is_by_end = by_end and number == len(units) - 1
            packed.add_index(row, entries[int(np.argmax(part) if is_by_end else np.argmin(part))])
            packed.add_relations(row, part, linked, self.window_rows, owner)
            self._compare(packed, row, linked.comparisons, slice(low, high))
            bound += part
        return packed.levels(low, high - low), orders

    def condensed_levels(self, steps: Sequence[int], condensed: Sequence[Condensed], kept: Int32) -> Levels:
        """Return the levels of steps that are all condensed: places are numbers of `kept` ones."""
        packed = LevelArrays(len(steps))
        for number, (row, level) in enumerate(zip(packed.table, condensed, strict=True)):
            row[join_kernel.ENTRIES_BASE] = packed.places.add(level.places)
            if level.partner >= 0:
                packed.add_lookup(row, level.partner, level.offsets, level.links)
            packed.add_index(row, level.places)
            linked = self.relations.link(steps[:number], steps[number : number + 1])
            packed.add_relations(row, (steps[number],), linked, self.window_rows, min(steps))
            self._compare(packed, row, level.comparisons, kept)
        return packed.levels(0, kept.size)

    def _entries(self, unit: Tree, blocks: Mapping[Tree, Int32], low: int, high: int) -> Int32:
        """Return the places [steps of the unit, entries] that a level may bind."""
        if isinstance(unit, JoinLeaf):
            places = self.places[unit.step]
            return places[None, slice(*entries_from(places, [low, high]))]
        return blocks[unit][list(steps_of(unit))]

    def _look_up(
        self, packed: LevelArrays, row: Int64, part: Sequence[int], lookup: Lookup, entries: Int32, within: slice
    ) -> Int32 | None:
        """Group the entries of a level by its lookup; return the order that groups them, None if they stay."""
        if not lookup:
            row[join_kernel.OFFSETS_BASE], _ = packed.lookups.add(np.array([0, entries.shape[1]], np.int64), None)
            return None
        of_bound, of_own, groups = self.group(lookup)
        (bound, _), (own, _) = lookup[0]
        starts, order = group_entries(of_own[entries[list(part).index(own)]], groups)
        packed.add_lookup(row, bound, starts, of_bound[within])
        return order

    def _compare(
        self, packed: LevelArrays, row: Int64, comparisons: Sequence[Comparison], places: slice | Int32
    ) -> None:
        row[join_kernel.PAIRS_START] = len(packed.comparisons.rows)
        for comparison in comparisons:
            (left, _), op, (right, _) = comparison
            packed.comparisons.add((left, right), op, (side[places] for side in self.coded(comparison)))
        row[join_kernel.PAIRS_STOP] = len(packed.comparisons.rows)

    def _read(self, side: Side) -> Read:
        return self.places[side[0]], side[1]

    def group(self, lookup: Lookup) -> tuple[Int32, Int32, int]:
        """Return by place of a candidate the group of the bound side and that of the own side; -1 for none."""
        if lookup not in self._groups:
            parts, groups = self._values.groups([[self._read(known), self._read(own)] for known, own in lookup])
            of_bound, of_own = (
                self._values.by_place(self.places[step], part) for (step, _), part in zip(lookup[0], parts, strict=True)
            )
            self._groups[lookup] = of_bound, of_own, groups
        return self._groups[lookup]

    def coded(self, comparison: Comparison) -> list[Int64]:
        """Return by place of a candidate the codes of both sides."""
        if comparison not in self._coded:
            left, op, right = comparison
            self._coded[comparison] = self._values.compared_by_place(op, self._read(left), self._read(right))
        return self._coded[comparison]

    def known(self, comparison: Comparison, places: tuple[Int32, Int32]) -> list[Int64] | None:
        """Return codes of both sides at some places, that compare as the values do; None if there are none yet."""
        left, _, right = comparison
        if ((left, right),) in self._groups:
            of_left, of_right, _ = self._groups[(left, right),]
            groups = of_left[places[0]], of_right[places[1]]
            return [np.where(group < 0, UNKNOWN, group) for group in groups]
        columns = self._coded.get(comparison)
        return None if columns is None else [side[at] for side, at in zip(columns, places, strict=True)]


class LevelArrays:
    """Collects the arrays of `Levels`. A row of its table is filled by the methods that take it."""

    def __init__(self, count: int) -> None:
        self.table = np.full((count, join_kernel.LEVEL_FIELDS), -1, np.int64)
        self.steps, self.bounds, self.places, self.index = (Parts() for _ in range(4))
        self.lookups, self.comparisons = Lookups(), Comparisons()

    def add_lookup(self, row: Int64, step: int, offsets: Int64, links: Int32) -> None:
        row[join_kernel.LINK_STEP] = step
        row[join_kernel.OFFSETS_BASE], row[join_kernel.LINK_BASE] = self.lookups.add(offsets, links)

    def add_index(self, row: Int64, starts: Int32) -> None:
        """Add to a level without lookup the first entry from each place on, from its first entry's to its last's."""
        if row[join_kernel.LINK_STEP] >= 0:
            return
        low, high = (int(starts[0]), int(starts[-1]) + 1) if starts.size else (0, 0)
        # bincount: how many entries start at each place; summed up, how many start before it.
        counts = np.bincount(starts - low, minlength=high - low) if starts.size else np.empty(0, np.int64)
        row[join_kernel.INDEX_BASE] = self.index.add(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
        row[join_kernel.INDEX_LOW], row[join_kernel.INDEX_HIGH] = low, high

    def add_relations(
        self, row: Int64, part: Sequence[int], linked: Linked, window_rows: dict[str, int], owner: int | None
    ) -> None:
        """Add the steps that a level binds, and what order and definitions' windows ask of them."""
        row[join_kernel.IS_BLOCK] = len(part) > 1
        row[join_kernel.OWNS] = owner in part
        row[join_kernel.STEPS_START] = self.steps.add(np.array(part, np.int64))
        row[join_kernel.STEPS_STOP] = self.steps.size
        row[join_kernel.LOWER_START] = self.bounds.add(np.array(linked.lower, np.int64))
        row[join_kernel.LOWER_STOP] = row[join_kernel.UPPER_START] = self.bounds.size
        self.bounds.add(np.array(linked.upper, np.int64))
        row[join_kernel.UPPER_STOP] = self.bounds.size
        row[join_kernel.LIMITS_START] = len(self.comparisons.limits)
        for step, window in linked.limits:
            self.comparisons.add_limit(step, window, window_rows)
        row[join_kernel.LIMITS_STOP] = len(self.comparisons.limits)

    def levels(self, low: int, places: int) -> Levels:
        """Return the levels of `places` places from `low` on."""
        offsets, hints, links = self.lookups.tables()
        pairs, codes, limits = self.comparisons.tables(join_kernel.PAIR_FIELDS, places)
        return Levels(
            table=self.table,
            steps=self.steps.joined(np.int64),
            bounds=self.bounds.joined(np.int64),
            places=self.places.joined(np.int32),
            offsets=offsets,
            hints=hints,
            first_entry=self.index.joined(np.int32),
            links=links,
            pairs=pairs,
            codes=codes,
            limits=limits,
            low=low,
        )
