"""Pack the candidates of the steps of a sequence for its kernel, each step's grouped by lookup key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamsift.logical.bound import Expr, WindowKind
from streamsift.logical.expressions import anonymous
from streamsift.physical.detect import window_bound
from streamsift.physical.plan import Alternative, Step
from streamsift.runtime.arrays.comparing import GREATER_EQUAL, LESS_EQUAL, OPERATORS
from streamsift.runtime.arrays.dtypes import NO_LIMIT, Int32, Int64, Places
from streamsift.runtime.arrays.grouping import ascends_in_groups, group_entries, successors
from streamsift.runtime.arrays.parts import Parts
from streamsift.runtime.detect import sequence_kernel
from streamsift.runtime.detect.sequence_kernel import Buffers
from streamsift.runtime.events.comparisons import CandidateCodes, Lookups
from streamsift.runtime.events.definition_windows import limit_rows, own_limits
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.order_kernels import earliest_ends


@dataclass(frozen=True, slots=True)
class StepLookup:
    """How a step finds its candidates. Codes are one per candidate of a step, in order of the stream; -1 finds nothing.

    `by_step` has the codes of every earlier step whose event tells the group: the lookup's own, and all that the
    equalities so far make equal to it.
    """

    earlier: int  # -1: no lookup, all candidates are one group
    by_step: dict[int, Int32]
    this: Int32
    groups: int

    def grouped(self) -> tuple[Int64, Int32 | None]:
        """Return where each group's entries start, and the order that groups them; None if they stay as they are."""
        if self.earlier < 0:
            return np.array([0, self.this.size], np.int64), None
        return group_entries(self.this, self.groups)


def pack(plan: Alternative, events: Events, places: Sequence[Int32]) -> tuple[Buffers, list[Int32]]:
    """Return the buffers of all steps, and the place of each entry; `places` are the candidates of each, none empty."""
    return SequencePacking(plan, events, places).packed()


# --- lookups -------------------------------------------------------------------------------------------------------


def find_lookups(steps: Sequence[Step], places: Sequence[Int32], codes: CandidateCodes) -> list[StepLookup]:
    """Return the codes of every lookup. Steps that share a key (`[id]`) are coded together: each value is read once."""
    families = _families(steps)
    shared: dict[int, tuple[dict[int, Int32], int]] = {}
    found: list[StepLookup] = []
    for number, step in enumerate(steps):
        if not step.lookup:
            ones = {k: np.zeros(places[k].size, np.int32) for k in {0, max(0, number - 1)}}
            found.append(StepLookup(-1, ones, np.zeros(places[number].size, np.int32), 1))
            continue
        earlier = step.lookup[0].earlier
        family = families[number]
        if family is None:
            sides = [[(places[earlier], p.earlier_side), (places[number], p.this_side)] for p in step.lookup]
            (earlier_codes, this_codes), groups = codes.groups(sides)
            found.append(StepLookup(earlier, {earlier: earlier_codes}, this_codes, groups))
            continue
        root, key, members = family
        if root not in shared:
            parts, groups = codes.groups([[(places[member], side) for member in members] for side in key])
            shared[root] = dict(zip(members, parts, strict=True)), groups
        by_step, groups = shared[root]
        found.append(StepLookup(earlier, {k: c for k, c in by_step.items() if k < number}, by_step[number], groups))
    return found


Family = tuple[int, tuple[Expr, ...], list[int]]


def _families(steps: Sequence[Step]) -> list[Family | None]:
    """Return the family of each step's lookup: a number, the key, and the steps that lookups of that key tie together.

    None if the two sides of the lookup are different expressions.
    """
    found: list[Family | None] = []
    by_member: dict[tuple[int, tuple[Expr, ...]], Family] = {}
    for number, step in enumerate(steps):
        key = tuple(anonymous(pair.this_side) for pair in step.lookup)
        if not key or key != tuple(anonymous(pair.earlier_side) for pair in step.lookup):
            found.append(None)
            continue
        earlier = step.lookup[0].earlier
        family = by_member.setdefault((earlier, key), (number, key, [earlier]))
        family[2].append(number)
        by_member[number, key] = family
        found.append(family)
    return found


# --- packing -------------------------------------------------------------------------------------------------------


class SequencePacking:
    """Collects the buffers, step by step."""

    def __init__(self, plan: Alternative, events: Events, places: Sequence[Int32]) -> None:
        self.plan, self.events, self.places = plan, events, places
        self.values = CandidateCodes(plan.query, events)
        self.step_lookups = find_lookups(plan.steps, places, self.values)
        counts_rows = events.window is not None and events.window.kind is WindowKind.COUNT
        self.in_partitions = bool(plan.query.partition_by) and counts_rows
        # Whether the events of the first step and the one before tell where a step's entries begin and end.
        self.direct = [
            not k or (not self.in_partitions and {0, k - 1} <= self.step_lookups[k].by_step.keys())
            for k in range(len(places))
        ]
        self.ranks = [events.rank[part] for part in places]
        self.ends = _earliest_ends(places, self.ranks)
        self.limit = events.window_limit(places[0])
        self.window_rows, self.own_windows = limit_rows(plan.query), own_limits(plan.query, events)
        self.lookups = Lookups()
        self.entries, self.rank, self.position, self.pointers, self.codes = (Parts() for _ in range(5))
        self.orders: list[Int32 | None] = []
        self.pairs: list[tuple[int, int, int, int]] = []

    def packed(self) -> tuple[Buffers, list[Int32]]:
        table = np.full((len(self.places), sequence_kernel.STEP_FIELDS), -1, np.int64)
        for number, row in enumerate(table):
            self._add_entries(row, number)
            self._add_pairs(row, number)
        offsets, hints, links = self.lookups.tables()
        buffers = Buffers(
            steps=table,
            places=self.entries.joined(np.int32),
            pointers=self.pointers.joined(np.int32),
            rank=self.rank.joined(np.int32),
            position=self.position.joined(np.int32),
            limit=self.limit,
            links=links,
            offsets=offsets,
            hints=hints,
            pairs=np.array(self.pairs, np.int64).reshape(-1, sequence_kernel.PAIR_FIELDS),
            codes=self.codes.joined(np.int64),
        )
        return buffers, self.entries.arrays

    def _add_entries(self, row: Int64, number: int) -> None:
        """Add a step's candidates by lookup group, and where an earlier event finds its range of them."""
        lookup, position = self.step_lookups[number], self.events.window_position
        offsets, order = lookup.grouped()
        self.orders.append(order)
        entries = _in_order(self.places[number], order)
        row[sequence_kernel.PLACES_BASE] = self.entries.add(entries)
        row[sequence_kernel.CHECK_WINDOW] = 0
        if not self.direct[number] or not all(self.direct[number + 1 : number + 2]):
            row[sequence_kernel.BASE] = self.rank.add(_in_order(self.ranks[number], order))
            self.position.add(position[entries])
        if number and self.direct[number]:
            ranks, starts = self.ranks, offsets[:-1]
            after = successors(ranks[number - 1], lookup.by_step[number - 1], ranks[number], lookup.this, starts)
            last_end = np.minimum(self.limit, NO_LIMIT - 1)
            until = successors(last_end, lookup.by_step[0], self.ends[number], lookup.this, starts)
            row[sequence_kernel.AFTER_BASE] = self.pointers.add(_in_order(after, self.orders[number - 1]))
            row[sequence_kernel.UNTIL_BASE] = self.pointers.add(until)
        elif number:
            # Positions within partitions may mix in a group that spans partitions; places in the stream never do.
            mixed = self.in_partitions and not ascends_in_groups(position[entries], offsets)
            row[sequence_kernel.CHECK_WINDOW] = int(mixed)
            row[sequence_kernel.LINK_STEP] = earlier = lookup.earlier
            links = None if earlier < 0 else _in_order(lookup.by_step[earlier], self.orders[earlier])
            row[sequence_kernel.OFFSETS_BASE], row[sequence_kernel.LINK_BASE] = self.lookups.add(offsets, links)

    def _add_pairs(self, row: Int64, number: int) -> None:
        """Add the comparisons of a step, then the limits by definitions' windows, whose codes are places."""
        own, own_order, entries = self.places[number], self.orders[number], self.entries.arrays
        pairs = [(pair, window_bound(pair.earlier_side, pair.this_side)) for pair in self.plan.steps[number].pairs]
        row[sequence_kernel.PAIRS_START] = len(self.pairs)
        for pair, window in pairs:
            if window is None:
                others = self.places[pair.earlier], pair.earlier_side
                earlier, this = self.values.compared(pair.op, others, (own, pair.this_side))
                earlier, this = _in_order(earlier, self.orders[pair.earlier]), _in_order(this, own_order)
                self._add_pair(pair.earlier, OPERATORS[pair.op], earlier, this)
        row[sequence_kernel.PAIRS_STOP] = row[sequence_kernel.LIMITS_START] = len(self.pairs)
        for pair, window in pairs:
            if window is not None:
                bounds = self.own_windows[self.window_rows[window.definition] + window.is_upper]
                operator = GREATER_EQUAL if window.is_upper else LESS_EQUAL
                self._add_pair(pair.earlier, operator, bounds[entries[pair.earlier]], entries[number])
        row[sequence_kernel.LIMITS_STOP] = len(self.pairs)
        is_plain = row[sequence_kernel.PAIRS_START] == row[sequence_kernel.PAIRS_STOP]
        row[sequence_kernel.PLAIN] = int(is_plain and not row[sequence_kernel.CHECK_WINDOW])

    def _add_pair(self, step: int, operator: int, earlier: np.ndarray, this: np.ndarray) -> None:
        bases = (self.codes.add(side.astype(np.int64, copy=False)) for side in (earlier, this))
        self.pairs.append((step, operator, next(bases), next(bases)))


def _earliest_ends(places: Sequence[Int32], ranks: Sequence[Int32]) -> list[Int32]:
    """Return for each candidate the first place at which a match through it can end, by the order of times alone.

    A candidate is inside the window only if that place is: without this, a search whose last events are rare would try
    every combination of the others.
    """
    found = [places[-1]]
    for number in reversed(range(len(places) - 1)):
        found.insert(0, earliest_ends(ranks[number], ranks[number + 1], found[0], NO_LIMIT))
    return found


def _in_order(column: Places, order: Int32 | None) -> Places:
    return column if order is None else column[order]
