"""Find the matches of a plain sequence by extending its first events step by step in time order.

The candidates of each step are sorted by lookup key and time, so that a range of them extends a partial match.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from streamsift.logical.bound import Expr, WindowKind
from streamsift.logical.expressions import anonymous
from streamsift.physical.detect import window_bound
from streamsift.physical.plan import Alternative, Step
from streamsift.runtime.arrays.comparing import GREATER_EQUAL, LESS_EQUAL, OPERATORS
from streamsift.runtime.arrays.dtypes import NO_LIMIT, Int32, Int64, Places
from streamsift.runtime.arrays.grouping import ascends_in_groups, entries_from, group_entries, successors
from streamsift.runtime.arrays.growing import Parts
from streamsift.runtime.detect import sequence_kernel
from streamsift.runtime.detect.sequence_kernel import Buffers, extend
from streamsift.runtime.events.comparisons import CandidateCodes, Lookups
from streamsift.runtime.events.events import Events, earliest_ends
from streamsift.runtime.events.reach import limit_rows, own_limits
from streamsift.runtime.matches import Stage, passing, stages_of


class SequenceSearch:
    """Find the matches of a plan; `candidates` are the places that each step can bind, none empty.

    The search processes `chunk` partial matches at a time, and returns about `enough` matches at a time.
    """

    def __init__(self, plan: Alternative, events: Events, candidates: Sequence[Int32], chunk: int, enough: int) -> None:
        self.plan, self.events, self.chunk, self.enough = plan, events, chunk, enough
        self.buffers, self.places = SequencePacking(plan, events, candidates).packed()

    def matches(self, low: int, high: int) -> Iterator[Int32]:
        """Yield the matches that start in [low, high), in chunks of places [steps, m]."""
        # The first stage is step 0: its entries are the first partial matches.
        filters = [step.filters for step in self.plan.steps]
        first, rest = Stage(0, 0, filters[0]), stages_of(filters[1:], 1)
        starts = np.arange(*entries_from(self.places[0], [low, high]), dtype=np.int32)[None, :]
        size = self.chunk if first.filters or not rest else max(1, starts.shape[1])
        for begin in range(0, starts.shape[1], size):
            entries = self._passing(first, starts[:, begin : begin + size], as_places=False)
            yield from self._extended(rest, entries) if rest else (self._places(entries),)

    def _extended(self, rest: Sequence[Stage], partials: Int32) -> Iterator[Int32]:
        """Extend partial matches (entries) to matches (places), stage by stage, depth first over chunks."""
        stage, *later = rest
        match = np.zeros(stage.last + 1, np.int32)
        ranges = np.zeros((stage.last + 1, 2), np.int64)
        cursor = np.zeros(sequence_kernel.CURSOR_FIELDS, np.int64)
        partials = np.ascontiguousarray(partials)
        size = self.chunk if stage.filters or later else self.enough
        while not cursor[sequence_kernel.DONE]:
            out = np.empty((stage.last + 1, size), np.int32)
            count = extend(self.buffers, partials, stage.first, stage.last, not later, cursor, match, ranges, out)
            longer = self._passing(stage, out[:, :count], as_places=not later)
            if longer.shape[1]:
                yield from self._extended(later, longer) if later else (longer,)

    def _places(self, entries: Int32) -> Int32:
        """Return the places of entries [steps so far, m]."""
        return np.stack([places[numbers] for places, numbers in zip(self.places, entries, strict=False)])

    def _passing(self, stage: Stage, partials: Int32, *, as_places: bool) -> Int32:
        """Return the partial matches that pass the filters of a stage."""
        if not stage.filters:
            return partials
        places = partials if as_places else self._places(partials)
        return partials[:, passing(self.plan, self.events, stage.filters, places)]


# --- packing -------------------------------------------------------------------------------------------------------


class StepLookup(NamedTuple):
    """How a step looks up its candidates by the event of an earlier step."""

    earlier: int  # -1 without a lookup: all candidates are one group
    by_step: dict[int, Int32]  # the group of each candidate (-1 for none), for all steps that share the key
    groups: int


def find_lookups(steps: Sequence[Step], places: Sequence[Int32], codes: CandidateCodes) -> list[StepLookup]:
    """Return the lookup of each step. Steps that share a key (`[id]`) are encoded together, so values are read once."""
    lookups, coded = [], dict[int, tuple[dict[int, Int32], int]]()
    for number, (step, family) in enumerate(zip(steps, _families(steps), strict=True)):
        if not family:
            one_group = {k: np.zeros(places[k].size, np.int32) for k in {0, max(0, number - 1), number}}
            lookups.append(StepLookup(-1, one_group, 1))
            continue
        if id(family) not in coded:
            of_members = [[(places[member], side) for side in sides] for member, sides in family.items()]
            parts, groups = codes.groups(zip(*of_members, strict=True))
            coded[id(family)] = dict(zip(family, parts, strict=True)), groups
        lookups.append(StepLookup(step.lookup[0].earlier, *coded[id(family)]))
    return lookups


def _families(steps: Sequence[Step]) -> list[dict[int, tuple[Expr, ...]]]:
    """Return for each step the steps that share its lookup key, with the expressions they read; empty if no lookup."""
    families: list[dict[int, tuple[Expr, ...]]] = []
    by_member: dict[tuple[int, tuple[Expr, ...]], dict[int, tuple[Expr, ...]]] = {}
    for number, step in enumerate(steps):
        family: dict[int, tuple[Expr, ...]] = {}
        if step.lookup:
            this, earlier = tuple(p.this_side for p in step.lookup), tuple(p.earlier_side for p in step.lookup)
            key, family = tuple(map(anonymous, this)), {step.lookup[0].earlier: earlier}
            if key == tuple(map(anonymous, earlier)):
                family = by_member[number, key] = by_member.setdefault((step.lookup[0].earlier, key), family)
            family[number] = this
        families.append(family)
    return families


class SequencePacking:
    """Collect the buffers, step by step."""

    def __init__(self, plan: Alternative, events: Events, places: Sequence[Int32]) -> None:
        self.plan, self.events, self.places = plan, events, places
        self.values = CandidateCodes(plan.query, events)
        self.step_lookups = find_lookups(plan.steps, places, self.values)
        counts_rows = events.window is not None and events.window.kind is WindowKind.COUNT
        self.in_partitions = bool(plan.query.partition_by) and counts_rows
        # True if the events of the first and the previous step determine where a step's entries begin and end.
        self.direct = [
            not k or (not self.in_partitions and {0, k - 1} <= self.step_lookups[k].by_step.keys())
            for k in range(len(places))
        ]
        self.ranks = [events.rank[part] for part in places]
        # For each candidate, the first place at which a match through it can end, given only the order of times. Only
        # candidates whose end is inside the window are tried, which saves work if the last events are rare.
        self.ends = [places[-1]]
        for number in reversed(range(len(places) - 1)):
            self.ends.insert(0, earliest_ends(self.ranks[number], self.ranks[number + 1], self.ends[0], NO_LIMIT))
        self.limit = events.window_limit(places[0])
        self.window_rows, self.own_windows = limit_rows(plan.query), own_limits(plan.query, events)
        self.lookups = Lookups()
        self.entries, self.rank, self.position, self.pointers, self.codes = (Parts() for _ in range(5))
        self.orders: list[Int32 | None] = []
        self.pairs: list[tuple[int, int, int, int]] = []

    def packed(self) -> tuple[Buffers, list[Int32]]:
        """Return the buffers of all steps, and the place of each entry."""
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
        """Add a step's candidates, sorted by lookup group, and pointers from earlier events to their ranges."""
        lookup, position = self.step_lookups[number], self.events.window_position
        this, offsets, order = lookup.by_step[number], np.array([0, self.places[number].size], np.int64), None
        if lookup.earlier >= 0:
            offsets, order = group_entries(this, lookup.groups)
        self.orders.append(order)
        entries = self._in_order(self.places[number], number)
        row[sequence_kernel.PLACES_BASE] = self.entries.add(entries)
        row[sequence_kernel.CHECK_WINDOW] = 0
        if not self.direct[number] or not all(self.direct[number + 1 : number + 2]):
            row[sequence_kernel.BASE] = self.rank.add(self._in_order(self.ranks[number], number))
            self.position.add(position[entries])
        if number and self.direct[number]:
            ranks, starts = self.ranks, offsets[:-1]
            after = successors(ranks[number - 1], lookup.by_step[number - 1], ranks[number], this, starts)
            last_end = np.minimum(self.limit, NO_LIMIT - 1)
            until = successors(last_end, lookup.by_step[0], self.ends[number], this, starts)
            row[sequence_kernel.AFTER_BASE] = self.pointers.add(self._in_order(after, number - 1))
            row[sequence_kernel.UNTIL_BASE] = self.pointers.add(until)
        elif number:
            # In a group that spans partitions, window positions need not ascend; places always do.
            mixed = self.in_partitions and not ascends_in_groups(position[entries], offsets)
            row[sequence_kernel.CHECK_WINDOW] = int(mixed)
            row[sequence_kernel.LINK_STEP] = earlier = lookup.earlier
            links = None if earlier < 0 else self._in_order(lookup.by_step[earlier], earlier)
            row[sequence_kernel.OFFSETS_BASE], row[sequence_kernel.LINK_BASE] = self.lookups.add(offsets, links)

    def _add_pairs(self, row: Int64, number: int) -> None:
        """Add the comparisons of a step, then its bounds from definition windows, whose codes are places."""
        entries = self.entries.arrays
        pairs = [(pair, window_bound(pair.earlier_side, pair.this_side)) for pair in self.plan.steps[number].pairs]
        row[sequence_kernel.PAIRS_START] = len(self.pairs)
        for pair, window in pairs:
            if window is None:
                sides = (self.places[pair.earlier], pair.earlier_side), (self.places[number], pair.this_side)
                earlier, this = self.values.compared(pair.op, *sides)
                earlier, this = self._in_order(earlier, pair.earlier), self._in_order(this, number)
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

    def _add_pair(self, step: int, operator: int, earlier: Places, this: Places) -> None:
        bases = (self.codes.add(side.astype(np.int64, copy=False)) for side in (earlier, this))
        self.pairs.append((step, operator, next(bases), next(bases)))

    def _in_order(self, column: Places, number: int) -> Places:
        """Reorder a column of a step's candidates to the order of its entries."""
        order = self.orders[number]
        return column if order is None else column[order]
