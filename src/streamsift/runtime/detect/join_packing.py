"""An alternative, its events and an order of its parts in, the levels of the join kernel out.

Predicates are re-read for the order at hand, by the relations of the steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import Column
from streamsift.physical.plan import Alternative, JoinLeaf, Tree, steps_of
from streamsift.runtime.arrays.comparing import OPERATORS
from streamsift.runtime.arrays.dtypes import UNKNOWN, Int32, Int64
from streamsift.runtime.arrays.grouping import entries_from, group_entries
from streamsift.runtime.detect import join_kernel
from streamsift.runtime.detect.join_kernel import Levels
from streamsift.runtime.detect.relations import Comparison, Linked, Lookup, Relations, Side
from streamsift.runtime.detect.sequence_packing import Parts
from streamsift.runtime.events.candidates import stream_rows
from streamsift.runtime.events.definition_windows import limit_rows
from streamsift.runtime.events.events import Events
from streamsift.runtime.expressions.codes import codes, group_codes
from streamsift.runtime.expressions.evaluate import evaluate


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
        self.alternative, self.events, self.places, self.relations = alternative, events, places, relations
        self._rows = limit_rows(alternative.query)
        self._columns: dict[Comparison, tuple[Int64, Int64]] = {}
        self._groups: dict[Lookup, tuple[Int32, Int32, int]] = {}
        self._read: dict[tuple[int, str] | None, pa.Array] = {}
        self._alone: dict[int, tuple[pa.Array, Int64]] = {}  # by identity, as long as the column is kept beside it

    def levels(
        self,
        units: Sequence[Tree],
        blocks: dict[Tree, Int32],
        owner: int | None,
        low: int,
        high: int,
        condensed: Sequence[Condensed] = (),
        kept: Int32 | None = None,
        by_end: bool = False,
    ) -> tuple[Levels, list[Int32]]:
        """The levels of the units for events at places [low, high), and for each block the order of its entries.

        `blocks` has the members [steps, entries] of each unit that is no leaf, by ascending first place. `owner` is
        the step whose level limits where a match may start. `condensed` has the levels that are condensed: all or none;
        places are then numbers of `kept` ones.
        With `by_end` the entries of the last unit, a block, ascend by their last place.
        """
        table = np.full((len(units), join_kernel.LEVEL_FIELDS), -1, np.int64)
        steps, bounds, offsets, links, places, index = (Parts([]) for _ in range(6))
        pairs: list[tuple[int, int, int]] = []
        limits: list[tuple[int, int, int]] = []
        sides: list[Int64] = []
        orders: list[Int32] = []
        bound: list[int] = []
        block_base = 0
        for number, (row, unit) in enumerate(zip(table, units, strict=True)):
            part = steps_of(unit)
            linked = self.relations.link(bound, part)
            if condensed:
                comparisons, order = condensed[number].comparisons, None
                entries = condensed[number].places[None, :]
                self._follow(row, condensed[number], offsets, links)
            else:
                comparisons, entries = linked.comparisons, self._entries(unit, blocks, low, high)
                order = self._lookup(row, part, linked, entries, (low, high), offsets, links)
            if isinstance(unit, JoinLeaf):
                row[join_kernel.IS_BLOCK] = 0
                row[join_kernel.ENTRIES_BASE] = places.add(entries[0] if order is None else entries[0][order])
            else:
                row[join_kernel.IS_BLOCK] = 1
                row[join_kernel.ENTRIES_BASE] = block_base
                orders.append(np.arange(entries.shape[1], dtype=np.int32) if order is None else order)
                block_base += orders[-1].size
            if row[join_kernel.LINK_STEP] < 0:
                is_last = by_end and number == len(units) - 1
                _index(row, entries[int(np.argmax(part) if is_last else np.argmin(part))], index)
            row[join_kernel.STEPS_START] = steps.add(np.array(part, np.int64))
            row[join_kernel.STEPS_STOP] = steps.size
            row[join_kernel.LOWER_START] = bounds.add(np.array(linked.lower, np.int64))
            row[join_kernel.LOWER_STOP] = row[join_kernel.UPPER_START] = bounds.size
            bounds.add(np.array(linked.upper, np.int64))
            row[join_kernel.UPPER_STOP] = bounds.size
            row[join_kernel.LIMITS_START] = len(limits)
            for step, window in linked.limits:
                limits.append((step, self._rows[window.definition] + window.is_upper, int(window.is_upper)))
            row[join_kernel.LIMITS_STOP] = len(limits)
            row[join_kernel.PAIRS_START] = len(pairs)
            for comparison in comparisons:
                pairs.append((comparison[0][0], OPERATORS[comparison[1]], comparison[2][0]))
                sides += (side[low:high] if kept is None else side[kept] for side in self.coded(comparison))
            row[join_kernel.PAIRS_STOP] = len(pairs)
            row[join_kernel.OWNS] = int(owner in part)
            bound += part
        all_offsets = offsets.joined(np.int64)
        return Levels(
            table=table,
            steps=steps.joined(np.int64),
            bounds=bounds.joined(np.int64),
            places=places.joined(np.int32),
            offsets=all_offsets,
            hints=np.stack([all_offsets, all_offsets]),
            first_entry=index.joined(np.int32),
            links=links.joined(np.int32),
            pairs=np.array(pairs, np.int64).reshape(-1, join_kernel.PAIR_FIELDS),
            codes=np.stack(sides) if sides else np.empty((0, high - low), np.int64),
            limits=np.array(limits, np.int64).reshape(-1, join_kernel.LIMIT_FIELDS),
            low=low if kept is None else 0,
        ), orders

    def _entries(self, unit: Tree, blocks: dict[Tree, Int32], low: int, high: int) -> Int32:
        """The places [steps of the unit, entries] that a level may bind."""
        if isinstance(unit, JoinLeaf):
            places = self.places[unit.step]
            return places[None, slice(*entries_from(places, [low, high]))]
        return blocks[unit][list(steps_of(unit))]

    def _lookup(
        self,
        row: Int64,
        part: Sequence[int],
        linked: Linked,
        entries: Int32,
        within: tuple[int, int],
        offsets: Parts,
        links: Parts,
    ) -> Int32 | None:
        """Groups the entries of a level by its lookup; returns the order that groups them, None if they stay."""
        if not linked.lookup:
            row[join_kernel.OFFSETS_BASE] = offsets.add(np.array([0, entries.shape[1]], np.int64))
            return None
        of_bound, of_own, groups = self.group(linked.lookup)
        own = entries[list(part).index(linked.lookup[0][1][0])]
        starts, order = group_entries(of_own[own], groups)
        row[join_kernel.OFFSETS_BASE] = offsets.add(starts)
        row[join_kernel.LINK_STEP] = linked.lookup[0][0][0]
        row[join_kernel.LINK_BASE] = links.add(of_bound[slice(*within)])
        return order

    @staticmethod
    def _follow(row: Int64, level: Condensed, offsets: Parts, links: Parts) -> None:
        if level.partner >= 0:
            row[join_kernel.OFFSETS_BASE] = offsets.add(level.offsets)
            row[join_kernel.LINK_STEP] = level.partner
            row[join_kernel.LINK_BASE] = links.add(level.links)

    def group(self, lookup: Lookup) -> tuple[Int32, Int32, int]:
        """By place of a candidate, the group of the bound side and that of the own side; -1 for none."""
        if lookup not in self._groups:
            both = [[self._values(known), self._values(own)] for known, own in lookup]
            parts, groups = group_codes(both)
            columns = [self._by_place(step, part) for (step, _), part in zip(lookup[0], parts, strict=True)]
            self._groups[lookup] = columns[0], columns[1], groups
        return self._groups[lookup]

    def coded(self, comparison: Comparison) -> tuple[Int64, Int64]:
        """By place of a candidate, the codes of both sides."""
        if comparison not in self._columns:
            left, op, right = comparison
            values = [self._values(left), self._values(right)]
            if all(pa.types.is_floating(column.type) for column in values):
                both = [self._coded_alone(column) for column in values]
            else:
                both = codes(values, ordered=op not in ("=", "!="))
            columns = [self._by_place(step, part) for (step, _), part in zip((left, right), both, strict=True)]
            self._columns[comparison] = columns[0], columns[1]
        return self._columns[comparison]

    def known(self, comparison: Comparison, places: tuple[Int32, Int32]) -> list[Int64] | None:
        """Codes of both sides at some places, that compare as the values do; None if there are none yet."""
        left, _, right = comparison
        if ((left, right),) in self._groups:
            of_left, of_right, _ = self._groups[(left, right),]
            return [np.where(found < 0, UNKNOWN, found) for found in (of_left[places[0]], of_right[places[1]])]
        columns = self._columns.get(comparison)
        return None if columns is None else [side[at] for side, at in zip(columns, places, strict=True)]

    def _coded_alone(self, values: pa.Array) -> Int64:
        """Real numbers need no joint codes: a column is coded once for all comparisons that read it."""
        if id(values) not in self._alone:
            self._alone[id(values)] = values, codes([values])[0]
        return self._alone[id(values)][1]

    def _by_place(self, step: int, values: np.ndarray) -> np.ndarray:
        """The values of a step's candidates by place in the stream; what is at other places is never read."""
        places = self.places[step]
        if places.size == self.events.rank.size:
            return values
        column = np.empty(self.events.rank.size, values.dtype)
        column[places] = values
        return column

    def _values(self, side: Side) -> pa.Array:
        """What a comparison reads of a step's candidates; two steps with the same ones share a column."""
        step, expression = side
        key = (id(self.places[step]), expression.name) if isinstance(expression, Column) else None
        if key in self._read:
            return self._read[key]
        values = evaluate(expression, stream_rows(self.alternative, self.events, self.places[step]))
        if key is not None:
            self._read[key] = values
        return values


def _index(row: Int64, starts: Int32, index: Parts) -> None:
    """The first entry from each place on, between the first entry's place and the one after the last's."""
    low, high = (int(starts[0]), int(starts[-1]) + 1) if starts.size else (0, 0)
    # bincount: how many entries start at each place; summed up, how many start before it.
    counts = np.bincount(starts - low, minlength=high - low) if starts.size else np.empty(0, np.int64)
    row[join_kernel.INDEX_BASE] = index.add(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
    row[join_kernel.INDEX_LOW], row[join_kernel.INDEX_HIGH] = low, high
