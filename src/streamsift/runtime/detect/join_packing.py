"""Pack the events of an alternative as levels of the join kernel, for any order of its parts.

The relations between steps determine which predicates each level tests in a given order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from streamsift.logical.bound import Column
from streamsift.physical.plan import Alternative, JoinLeaf, Tree, steps_of
from streamsift.runtime.arrays.dtypes import UNKNOWN, Int32, Int64
from streamsift.runtime.arrays.grouping import entries_from, group_entries
from streamsift.runtime.arrays.growing import Parts
from streamsift.runtime.detect import join_kernel
from streamsift.runtime.detect.join_kernel import Levels
from streamsift.runtime.detect.relations import Comparison, Linked, Lookup, Relations, Side
from streamsift.runtime.events.comparisons import CandidateCodes, Comparisons, Lookups, Read
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.reach import limit_rows

MOST_PLACES = 0.5


class Packing:
    """Pack the levels of any order of parts; data that several orders use is computed once."""

    def __init__(self, alternative: Alternative, events: Events, places: Sequence[Int32], relations: Relations) -> None:
        self.places, self.relations = places, relations
        self.window_rows = limit_rows(alternative.query)
        self._values = CandidateCodes(alternative.query, events)
        self._coded: dict[Comparison, list[Int64]] = {}
        self._groups: dict[Lookup, tuple[dict[int, Int32], int]] = {}
        self._by_columns: dict[tuple[str, ...], tuple[Int32, int]] = {}  # of all places, -1 for none
        # If the steps bind most places, columns are coded once for all of them.
        self._codes_places = sum(part.size for part in places) >= MOST_PLACES * events.rank.size
        self._partitions = events.partitions

    def levels(
        self,
        units: Sequence[Tree],
        blocks: Mapping[Tree, Int32],
        owner: int | None,
        low: int,
        high: int,
        *,
        by_end: bool,
    ) -> tuple[Levels, list[Int32]]:
        """Return the levels of the units for events at places [low, high), and the members of each block, in order.

        `blocks` has the members [steps, entries] of each unit that is not a leaf, sorted by first place. `owner` is the
        step whose level limits where a match can start. With `by_end`, the last unit is a block whose entries are
        sorted by last place.
        """
        packed = LevelArrays(len(units))
        in_order: list[Int32] = []
        bound: tuple[int, ...] = ()
        for row, unit in zip(packed.table, units, strict=True):
            part = steps_of(unit)
            linked = self.relations.link(bound, part)
            if isinstance(unit, JoinLeaf):
                places = self.places[unit.step]
                entries = {unit.step: places[slice(*entries_from(places, [low, high]))]}
            else:
                entries = {step: blocks[unit][step] for step in part}
            order: Int32 | slice = slice(None)
            if linked.lookup:
                (bound_step, _), (step, _) = linked.lookup[0]
                by_step, groups = self.group(linked.lookup)
                offsets, order = group_entries(by_step[step][entries[step]], groups)
                packed.add_lookup(row, bound_step, offsets, by_step[bound_step][low:high])
            if isinstance(unit, JoinLeaf):
                row[join_kernel.ENTRIES_BASE] = packed.places.add(entries[unit.step][order])
            else:
                row[join_kernel.ENTRIES_BASE] = sum(members.shape[1] for members in in_order)
                # Indexing, even where a slice would do, makes the members of an entry contiguous in memory.
                whole = np.arange(blocks[unit].shape[1], dtype=np.int32)
                in_order.append(blocks[unit][:, whole[order]])
            packed.add_index(row, entries[max(part) if by_end and unit is units[-1] else min(part)])
            self.relate(packed, row, part, linked, owner, slice(low, high))
            bound += part
        return packed.levels(low, high - low), in_order

    def relate(
        self, packed: LevelArrays, row: Int64, part: Sequence[int], linked: Linked, owner: int | None, at: slice | Int32
    ) -> None:
        """Add the steps that a level binds and their relations to bound steps; `at` selects the packed places."""
        comparisons = packed.comparisons
        row[join_kernel.IS_BLOCK], row[join_kernel.OWNS] = len(part) > 1, owner in part
        row[join_kernel.STEPS_START], row[join_kernel.STEPS_STOP] = _listed(packed.steps, part)
        row[join_kernel.LOWER_START], row[join_kernel.LOWER_STOP] = _listed(packed.bounds, linked.lower)
        row[join_kernel.UPPER_START], row[join_kernel.UPPER_STOP] = _listed(packed.bounds, linked.upper)
        row[join_kernel.LIMITS_START], row[join_kernel.PAIRS_START] = len(comparisons.limits), len(comparisons.rows)
        for step, window in linked.limits:
            comparisons.add_limit(step, window, self.window_rows)
        for comparison in linked.comparisons:
            (left, _), op, (right, _) = comparison
            comparisons.add((left, right), op, (side[at] for side in self.coded(comparison)))
        row[join_kernel.LIMITS_STOP], row[join_kernel.PAIRS_STOP] = len(comparisons.limits), len(comparisons.rows)

    def _read(self, side: Side) -> Read:
        return self.places[side[0]], side[1]

    def group(self, lookup: Lookup) -> tuple[dict[int, Int32], int]:
        """Return the lookup groups by step and place of a candidate (-1 for none), and the number of groups."""
        if lookup not in self._groups and (names := self._same_columns(lookup)) is not None:
            if names not in self._by_columns:
                self._by_columns[names] = self._partitions(names)
            of_places, groups = self._by_columns[names]
            self._groups[lookup] = dict.fromkeys((step for step, _ in lookup[0]), of_places), groups
        elif lookup not in self._groups:
            parts, groups = self._values.groups([list(map(self._read, sides)) for sides in lookup])
            steps = [step for step, _ in lookup[0]]
            by_place = map(self._values.by_place, (self.places[step] for step in steps), parts)
            self._groups[lookup] = dict(zip(steps, by_place, strict=True)), groups
        return self._groups[lookup]

    def _same_columns(self, lookup: Lookup) -> tuple[str, ...] | None:
        """Return the columns that a lookup compares, if both sides always are the same one and most places need it."""
        names: list[str] = []
        for (_, one), (_, other) in lookup:
            if not (isinstance(one, Column) and isinstance(other, Column) and one.name == other.name):
                return None
            names.append(one.name)
        return tuple(names) if self._codes_places else None

    def coded(self, comparison: Comparison) -> list[Int64]:
        """Return the codes of both sides by place of a candidate."""
        if comparison not in self._coded:
            left, op, right = comparison
            self._coded[comparison] = self._values.compared_by_place(op, self._read(left), self._read(right))
        return self._coded[comparison]

    def codes_at(self, comparison: Comparison, places: tuple[Int32, Int32]) -> list[Int64] | None:
        """Return the codes of both sides at some places; None if they have not been computed yet."""
        left, _, right = comparison
        if ((left, right),) in self._groups:
            by_step, _ = self._groups[(left, right),]
            groups = by_step[left[0]][places[0]], by_step[right[0]][places[1]]
            return [np.where(group < 0, UNKNOWN, group) for group in groups]
        columns = self._coded.get(comparison)
        return None if columns is None else [side[at] for side, at in zip(columns, places, strict=True)]


class LevelArrays:
    """Collect the arrays of `Levels`. Methods that take a row fill it in."""

    def __init__(self, count: int) -> None:
        self.table = np.full((count, join_kernel.LEVEL_FIELDS), -1, np.int64)
        self.steps: list[int] = []
        self.bounds: list[int] = []
        self.places, self.index = Parts(), Parts()
        self.lookups, self.comparisons = Lookups(), Comparisons()

    def add_lookup(self, row: Int64, step: int, offsets: Int64, links: Int32) -> None:
        row[join_kernel.LINK_STEP] = step
        row[join_kernel.OFFSETS_BASE], row[join_kernel.LINK_BASE] = self.lookups.add(offsets, links)

    def add_index(self, row: Int64, starts: Int32) -> None:
        """For a level without lookup, add an index with the first entry from each place on."""
        if row[join_kernel.LINK_STEP] >= 0:
            return
        low, high = (int(starts[0]), int(starts[-1]) + 1) if starts.size else (0, 0)
        # bincount gives how many entries start at each place; the cumulative sum, how many start before it.
        counts = np.bincount(starts - low, minlength=high - low) if starts.size else np.empty(0, np.int64)
        row[join_kernel.INDEX_BASE] = self.index.add(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
        row[join_kernel.INDEX_LOW], row[join_kernel.INDEX_HIGH] = low, high

    def levels(self, low: int, places: int) -> Levels:
        """Return the packed levels of `places` places from `low` on."""
        offsets, hints, links = self.lookups.tables()
        pairs, codes, limits = self.comparisons.tables(join_kernel.PAIR_FIELDS, places)
        return Levels(
            table=self.table,
            steps=np.array(self.steps, np.int64),
            bounds=np.array(self.bounds, np.int64),
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


def _listed(numbers: list[int], more: Sequence[int]) -> tuple[int, int]:
    """Append numbers to a list; return where they start and stop."""
    numbers += more
    return len(numbers) - len(more), len(numbers)
