"""Find the matches of an alternative by a join tree: events are bound in the order of the tree.

A tree whose joins all have a leaf on one side is one depth-first search. Where both sides are joins, the right one is
a block: its sub-matches are built once and found again by interval, for every partial match that needs them. That is
the interval-driven caching of "Processing Nested Complex Sequence Pattern Queries over Event Streams": the stream is
cut into slices by the start of a match, a slice tells which interval of a block is needed (extraction), what is missing
at its end is built (expansion), what lies before it is forgotten (reduction).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from streamsift.errors import PlanTooLargeError
from streamsift.logical.bound import Expr
from streamsift.physical.plan import Alternative, Join, JoinLeaf, Tree, steps_of, units_of
from streamsift.runtime.arrays.dtypes import Int32, Int64
from streamsift.runtime.arrays.grouping import entries_from, gathered
from streamsift.runtime.detect import join_kernel
from streamsift.runtime.detect.condense import Condenser, reach_among
from streamsift.runtime.detect.join_kernel import Block, Levels, Slice
from streamsift.runtime.detect.join_packing import Packing
from streamsift.runtime.detect.relations import Relations
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.reach import Reach, reach_of
from streamsift.runtime.matches import Stage, passing, stages_of
from streamsift.runtime.resources import room

MAX_KEPT_ROWS = 1 << 25
KEPT_BYTES = 16  # for each step of a row that is kept: the row, and copies of it in the orders that searches need
NOTHING, NO_MEMBERS = np.empty(0, np.int32), np.empty((0, 0), np.int32)
NO_BLOCK = Block(NOTHING, NOTHING, NO_MEMBERS, NOTHING, NO_MEMBERS, False)


@dataclass(slots=True)
class Kept:
    """The sub-matches of a block that start in [low, high), by ascending first place; members [steps, entries]."""

    low: int
    high: int
    starts: Int32
    members: Int32


@dataclass(slots=True)
class JoinOrder:
    """One order of units, ready for the kernel."""

    units: list[Tree]
    levels: Levels
    block: Block
    stages: list[Stage]
    kept: Int32 | None = None  # condensed levels have numbers of these places
    rows: Int64 = field(init=False)  # how many partial matches each level made so far

    def __post_init__(self) -> None:
        self.rows = np.zeros(len(self.units), np.int64)

    def in_stream(self, places: Int32) -> Int32:
        """Places of the search as places of the stream."""
        return places if self.kept is None else gathered(self.kept, places)


class TreeSearch:
    """Finds the matches of one alternative, by any tree of its steps."""

    def __init__(
        self, alternative: Alternative, events: Events, places: Sequence[Int32], relations: Relations, chunk: int
    ) -> None:
        self.alternative, self.events, self.chunk = alternative, events, chunk
        self.packing = Packing(alternative, events, places, relations)
        self.reach = reach_of(alternative.query, events)
        self.condenser = Condenser(self.packing, self.reach)
        self._ordered: dict[Tree, JoinOrder] = {}
        self._kept: dict[Tree, Kept] = {}
        self.rows: dict[frozenset[int], int] = {}  # partial matches and sub-matches built, by their steps

    def matches(
        self, tree: Tree, low: int, high: int, *, condensed: bool = False, enough: int | None = None
    ) -> Iterator[Int32]:
        """The matches whose first event lies in [low, high), in chunks [steps, m] of places.

        A tree without blocks may be condensed. What the search needs beforehand is made at once, the matches when they
        are asked for, `enough` of them at a time.
        """
        ordered = self._condensed(tree, low, high) if condensed else self._order(tree, low, high)
        return self._found(ordered, low, high, self.chunk if enough is None else enough)

    def _found(self, ordered: JoinOrder, low: int, high: int, enough: int) -> Iterator[Int32]:
        if ordered.kept is None:
            reach, within = self.reach, Slice(low, high, self._end(low, high))
        else:
            reach = reach_among(self.reach, ordered.kept)
            first, beyond = entries_from(ordered.kept, [low, high]).tolist()
            within = Slice(first, beyond, ordered.kept.size)
        yield from self._extended(ordered, (reach, within), ordered.stages, np.empty((0, 1), np.int32), enough)
        bound: tuple[int, ...] = ()
        for unit, rows in zip(ordered.units, ordered.rows, strict=True):
            bound = (*bound, *steps_of(unit))
            self.rows[frozenset(bound)] = self.rows.get(frozenset(bound), 0) + int(rows)
        ordered.rows[:] = 0

    def _end(self, low: int, high: int) -> int:
        """The first place that no match can hold which starts in [low, high)."""
        return int(self.reach.window_high[low:high].max(initial=low - 1)) + 1

    # --- orders and blocks ---
    def _order(self, tree: Tree, low: int, high: int) -> JoinOrder:
        units = units_of(tree)
        if tree in self._ordered and all(isinstance(unit, JoinLeaf) for unit in units):
            return self._ordered[tree]
        reached = self._end(low, high)
        packed = (low, reached) if any(isinstance(unit, Join) for unit in units) else (0, self.reach.place_after.size)
        blocks = {unit: self._block(unit, low, reached) for unit in units if isinstance(unit, Join)}
        owner = min(steps_of(tree)) if self.alternative.is_sequence else None
        members: dict[Tree, Int32] = {unit: kept.members for unit, kept in blocks.items()}
        stages = self._stages(units)
        is_enclosed = self._is_enclosed(units) and len(stages) == 1
        if is_enclosed:
            last_places = members[units[-1]][max(steps_of(units[-1]))]
            members[units[-1]] = members[units[-1]][:, np.argsort(last_places, kind="stable")]
        levels, orders = self.packing.levels(units, members, owner, *packed, by_end=is_enclosed)
        sifts = owner in steps_of(units[0]) and len(stages) == 1 and self._is_plain_block(levels, is_enclosed)
        block = _packed(members, orders, sifts=sifts, by_end=is_enclosed)
        self._ordered[tree] = JoinOrder(units, levels, block, stages)
        return self._ordered[tree]

    def _condensed(self, tree: Tree, low: int, high: int) -> JoinOrder:
        units, reached = units_of(tree), self._end(low, high)
        steps = [step for unit in units for step in steps_of(unit)]
        condensed, kept = self.condenser.levels(steps, low, high, reached)
        levels = self.packing.condensed_levels(steps, condensed, kept)
        return JoinOrder(units, levels, NO_BLOCK, self._stages(units), kept)

    def _is_enclosed(self, units: Sequence[Tree]) -> bool:
        """Whether the last unit is a block between the first event and later ones, and nothing but order ties it."""
        *outer, last = units
        if not isinstance(last, Join) or not outer or not isinstance(outer[0], JoinLeaf):
            return False
        linked = self.packing.relations.link([step for unit in outer for step in steps_of(unit)], steps_of(last))
        between = linked.lower == steps_of(outer[0]) and bool(linked.upper)
        return between and not linked.lookup and not linked.comparisons

    def _is_plain_block(self, levels: Levels, is_enclosed: bool) -> bool:
        """Whether the last level binds a block of which nothing is asked but order and window."""
        last = levels.table[-1]
        nothing_asked = (
            last[join_kernel.PAIRS_START] == last[join_kernel.PAIRS_STOP] and last[join_kernel.INDEX_BASE] >= 0
        )
        is_last_in_time = last[join_kernel.UPPER_START] == last[join_kernel.UPPER_STOP] or is_enclosed
        return bool(last[join_kernel.IS_BLOCK] and nothing_asked and is_last_in_time)

    def _block(self, tree: Tree, low: int, high: int) -> Kept:
        """The sub-matches that start in [low, high): those kept from the last slice, and what is new."""
        count = len(self.alternative.steps)
        kept = self._kept.get(tree)
        if kept is None or kept.high <= low or low < kept.low:
            kept = Kept(low, low, np.empty(0, np.int32), np.empty((count, 0), np.int32))
        stays = int(entries_from(kept.starts, [low])[0])
        parts = [kept.members[:, stays:]]
        if high > kept.high:
            parts += [_by_start(part, steps_of(tree)) for part in self._sliced(tree, kept.high, high)]
        members = np.concatenate(parts, axis=1)
        self._kept[tree] = Kept(low, max(high, kept.high), members[min(steps_of(tree))], members)
        return self._kept[tree]

    def _sliced(self, tree: Tree, low: int, high: int) -> Iterator[Int32]:
        parts, rows = [], 0
        most = min(MAX_KEPT_ROWS, room() // (KEPT_BYTES * len(self.alternative.steps)))
        for part in self.matches(tree, low, high):
            parts.append(part)
            rows += part.shape[1]
            if rows > most:
                names = [
                    self.alternative.query.variables[self.alternative.steps[s].variable].name for s in steps_of(tree)
                ]
                raise PlanTooLargeError(
                    f"this plan keeps the sub-matches of ({', '.join(names)}), and there are more than"
                    f" {most:,} in one slice of the stream: leave the plan to the cost model, or give a"
                    " smaller window."
                )
        if parts:
            yield np.concatenate(parts, axis=1)

    def _stages(self, units: Sequence[Tree]) -> list[Stage]:
        """Return the levels cut after every one that completes a predicate which the kernel cannot test."""
        step_of = {step.variable: number for number, step in enumerate(self.alternative.steps)}
        waiting = [
            ({step_of[v] for v in expression.variables}, expression)
            for step in self.alternative.steps
            for expression in step.filters
        ]
        bound: set[int] = set()
        filters: list[tuple[Expr, ...]] = []
        for unit in units:
            own = set(steps_of(unit))
            bound |= own
            # A block was built with its own predicates tested.
            ready = [(steps, e) for steps, e in waiting if steps <= bound]
            filters.append(tuple(e for steps, e in ready if len(own) == 1 or not steps <= own))
            waiting = [each for each in waiting if each not in ready]
        return stages_of(filters)

    # --- searching ---
    def _extended(
        self, ordered: JoinOrder, where: tuple[Reach, Slice], stages: Sequence[Stage], partials: Int32, enough: int
    ) -> Iterator[Int32]:
        stage, *later = stages
        steps = len(self.alternative.steps)
        state = join_kernel.new_state(len(ordered.units), steps)
        partials = np.ascontiguousarray(partials)
        height = stage.last + 1 if later else steps
        size = self.chunk if later or stage.filters else enough
        is_block = sum(len(steps_of(unit)) for unit in ordered.units) < steps
        while not state.cursor[join_kernel.DONE]:
            out = np.full((height, size), -1, np.int32) if is_block else np.empty((height, size), np.int32)
            count = join_kernel.join(
                ordered.levels,
                ordered.block,
                *where,
                state,
                partials,
                stage.first,
                stage.last,
                not self.alternative.is_sequence,
                not later,
                out,
            )
            found = out[:, :count]
            if stage.filters and count:
                places = self._places(ordered, found) if later else found
                keep = passing(self.alternative, self.events, stage.filters, ordered.in_stream(places))
                found = found[:, keep]
            if later and found.shape[1]:
                yield from self._extended(ordered, where, later, found, enough)
            elif found.shape[1]:
                yield ordered.in_stream(found)
        ordered.rows += state.rows

    def _places(self, ordered: JoinOrder, entries: Int32) -> Int32:
        """The places [steps, m] that entries [levels so far, m] bind; -1 for steps that are not bound yet."""
        found = np.full((len(self.alternative.steps), entries.shape[1]), -1, np.int32)
        for row, unit, chosen in zip(ordered.levels.table, ordered.units, entries, strict=False):
            at = row[join_kernel.ENTRIES_BASE] + chosen
            for step in steps_of(unit):
                found[step] = (
                    ordered.block.members[step, at] if row[join_kernel.IS_BLOCK] else ordered.levels.places[at]
                )
        return found


def _by_start(members: Int32, steps: Sequence[int]) -> Int32:
    """Sub-matches of a sequence by their first event; a search that looks ahead finds them so."""
    starts = members[min(steps)]
    return members if (starts[1:] >= starts[:-1]).all() else members[:, np.argsort(starts, kind="stable")]


def _packed(blocks: Mapping[Tree, Int32], orders: Sequence[Int32], *, sifts: bool, by_end: bool) -> Block:
    """The members of all blocks of an order, end to end, each in the order of its lookup groups."""
    if not blocks:
        return NO_BLOCK
    parts = [members[:, order] for members, order in zip(blocks.values(), orders, strict=True)]
    starts = np.concatenate([part[min(steps_of(tree))] for tree, part in zip(blocks, parts, strict=True)])
    ends = np.concatenate([part[max(steps_of(tree))] for tree, part in zip(blocks, parts, strict=True)])
    members = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
    room = parts[-1].shape[1] + 1 if sifts else 0
    keys, inside = np.empty(room, np.int32), np.empty((members.shape[0], room), np.int32)
    return Block(starts, ends, members, keys, inside, by_end)
