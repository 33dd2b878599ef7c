"""Find the matches of an alternative with a join tree: bind events in the order of the tree.

A tree whose joins all have a leaf on one side is one depth-first search. If both sides of a join are joins, the right
one is a block, a materialized subplan: its sub-matches are built once and looked up by interval for every partial
match. This is the interval-driven caching of "Processing Nested Complex Sequence Pattern Queries over Event Streams":
the events are split into slices by the start of a match. A slice needs an interval of a block (extraction); the missing
part at its end is built (expansion), and the part before it is evicted (reduction).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from streamsift.errors import PlanTooLargeError
from streamsift.logical.bound import Expr
from streamsift.physical.plan import Alternative, Join, JoinLeaf, Tree, steps_of, units_of
from streamsift.runtime.arrays.dtypes import Int32
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
KEPT_BYTES = 16  # per step of a cached row, including sorted copies for searches
NOTHING, NO_MEMBERS = np.empty(0, np.int32), np.empty((0, 0), np.int32)
NO_BLOCK = Block(NOTHING, NOTHING, NO_MEMBERS, NOTHING, NO_MEMBERS, False)
KernelInputs = tuple[Levels, Block, Reach, Slice]


class Kept(NamedTuple):
    """The cached sub-matches of a block that start in [low, high), sorted by first place; members [steps, entries]."""

    low: int
    high: int
    members: Int32


class JoinOrder(NamedTuple):
    """A sequence of units, packed for the kernel."""

    units: list[Tree]
    levels: Levels
    block: Block
    stages: list[Stage]
    kept: Int32 | None = None  # condensed levels use indices into these places

    def in_stream(self, places: Int32) -> Int32:
        """Convert places of the search to places of the events."""
        return places if self.kept is None else gathered(self.kept, places)


class TreeSearch:
    """Find the matches of one alternative with any join tree of its steps."""

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
        """Yield the matches whose first event lies in [low, high), in chunks of places [steps, m].

        Only a tree without blocks can be condensed. The call packs the events and builds blocks; matches are found when
        they are consumed, `enough` at a time.
        """
        ordered = self._condensed(tree, low, high) if condensed else self._order(tree, low, high)
        if ordered.kept is None:
            reach, within = self.reach, Slice(low, high, self._end(low, high))
        else:
            reach = reach_among(self.reach, ordered.kept)
            first, beyond = entries_from(ordered.kept, [low, high]).tolist()
            within = Slice(first, beyond, ordered.kept.size)
        inputs = ordered.levels, ordered.block, reach, within
        enough = self.chunk if enough is None else enough
        return self._extended(ordered, inputs, ordered.stages, np.empty((0, 1), np.int32), enough)

    def _end(self, low: int, high: int) -> int:
        """Return the first place beyond all matches that start in [low, high)."""
        return int(self.reach.window_high[low:high].max(initial=low - 1)) + 1

    # --- orders and blocks ---
    def _order(self, tree: Tree, low: int, high: int) -> JoinOrder:
        units = units_of(tree)
        if tree in self._ordered and all(isinstance(unit, JoinLeaf) for unit in units):
            return self._ordered[tree]
        reached = self._end(low, high)
        blocks: dict[Tree, Int32] = {unit: self._block(unit, low, reached) for unit in units if isinstance(unit, Join)}
        packed = (low, reached) if blocks else (0, self.reach.place_after.size)
        owner = min(steps_of(tree)) if self.alternative.is_sequence else None
        *outer, last = units
        stages, linked = self._stages(units), self.packing.relations.link(_steps(outer), steps_of(last))
        is_free = isinstance(last, Join) and len(stages) == 1 and not linked.lookup and not linked.comparisons
        # A block between the first event and later events, related to them only by order, is searched by last place.
        by_end = is_free and isinstance(outer[0], JoinLeaf) and linked.lower == _steps(outer[:1]) and bool(linked.upper)
        if by_end:
            blocks[last] = blocks[last][:, np.argsort(blocks[last][max(steps_of(last))], kind="stable")]
        levels, members = self.packing.levels(units, blocks, owner, *packed, by_end=by_end)
        sifts = is_free and owner in steps_of(units[0]) and (by_end or not linked.upper)
        block = _packed(list(map(steps_of, blocks)), members, sifts=sifts, by_end=by_end)
        self._ordered[tree] = JoinOrder(units, levels, block, stages)
        return self._ordered[tree]

    def _condensed(self, tree: Tree, low: int, high: int) -> JoinOrder:
        units = units_of(tree)
        levels, kept = self.condenser.levels(_steps(units), low, high, self._end(low, high))
        return JoinOrder(units, levels, NO_BLOCK, self._stages(units), kept)

    def _block(self, tree: Tree, low: int, high: int) -> Int32:
        """Return the sub-matches that start in [low, high): those cached from the last slice, and new ones."""
        steps, kept = steps_of(tree), self._kept.get(tree)
        if kept is None or kept.high <= low or low < kept.low:
            kept = Kept(low, low, np.empty((len(self.alternative.steps), 0), np.int32))
        first = int(entries_from(kept.members[min(steps)], [low])[0])
        parts = [kept.members[:, first:]]
        if high > kept.high and (built := list(self._limited(tree, kept.high, high))):
            new = np.concatenate(built, axis=1)
            starts = new[min(steps)]  # ascending if the tree binds the first event first
            is_sorted = (starts[1:] >= starts[:-1]).all()
            parts.append(new if is_sorted else new[:, np.argsort(starts, kind="stable")])
        self._kept[tree] = Kept(low, max(high, kept.high), np.concatenate(parts, axis=1))
        return self._kept[tree].members

    def _limited(self, tree: Tree, low: int, high: int) -> Iterator[Int32]:
        """Yield the matches of a block; raise if they do not fit in memory."""
        rows, most = 0, min(MAX_KEPT_ROWS, room() // (KEPT_BYTES * len(self.alternative.steps)))
        for part in self.matches(tree, low, high):
            rows += part.shape[1]
            if rows > most:
                variables = [self.alternative.steps[step].variable for step in steps_of(tree)]
                names = [self.alternative.query.variables[variable].name for variable in variables]
                raise PlanTooLargeError(
                    f"the join plan does not fit in memory: more than {most:,} sub-matches of ({', '.join(names)}) in a"
                    " slice\nHint: remove the plan option or shorten WITHIN."
                )
            yield part

    def _stages(self, units: Sequence[Tree]) -> list[Stage]:
        """Split the levels after each one that binds the last variable of a predicate that needs Arrow."""
        step_of = {step.variable: number for number, step in enumerate(self.alternative.steps)}
        pending = [
            ({step_of[v] for v in expression.variables}, expression)
            for step in self.alternative.steps
            for expression in step.filters
        ]
        bound: set[int] = set()
        filters: list[tuple[Expr, ...]] = []
        for unit in units:
            part = set(steps_of(unit))
            bound |= part
            # Predicates within a block were tested when it was built.
            ready = [(steps, e) for steps, e in pending if steps <= bound]
            filters.append(tuple(e for steps, e in ready if len(part) == 1 or not steps <= part))
            pending = [each for each in pending if each not in ready]
        return stages_of(filters)

    # --- searching ---
    def _extended(
        self, ordered: JoinOrder, inputs: KernelInputs, stages: Sequence[Stage], partials: Int32, enough: int
    ) -> Iterator[Int32]:
        stage, *later = stages
        steps, distinct = len(self.alternative.steps), not self.alternative.is_sequence
        state = join_kernel.new_state(len(ordered.units), steps)
        partials = np.ascontiguousarray(partials)
        height = stage.last + 1 if later else steps
        size = self.chunk if later or stage.filters else enough
        is_block = len(_steps(ordered.units)) < steps
        while not state.cursor[join_kernel.DONE]:
            out = np.full((height, size), -1, np.int32) if is_block else np.empty((height, size), np.int32)
            count = join_kernel.join(*inputs, state, partials, stage.first, stage.last, distinct, not later, out)
            longer = out[:, :count]
            if stage.filters and count:
                places = self._places(ordered, longer) if later else longer
                keep = passing(self.alternative, self.events, stage.filters, ordered.in_stream(places))
                longer = longer[:, keep]
            if later and longer.shape[1]:
                yield from self._extended(ordered, inputs, later, longer, enough)
            elif longer.shape[1]:
                yield ordered.in_stream(longer)
        bound: frozenset[int] = frozenset()
        for unit, rows in zip(ordered.units, state.rows, strict=True):
            bound = bound.union(steps_of(unit))
            self.rows[bound] = self.rows.get(bound, 0) + int(rows)

    def _places(self, ordered: JoinOrder, entries: Int32) -> Int32:
        """Return the places [steps, m] that entries [levels so far, m] bind; -1 for steps that are not bound."""
        places = np.full((len(self.alternative.steps), entries.shape[1]), -1, np.int32)
        for row, unit, chosen in zip(ordered.levels.table, ordered.units, entries, strict=False):
            at = row[join_kernel.ENTRIES_BASE] + chosen
            for step in steps_of(unit):
                members = ordered.block.members[step] if row[join_kernel.IS_BLOCK] else ordered.levels.places
                places[step] = members[at]
        return places


def _steps(units: Sequence[Tree]) -> tuple[int, ...]:
    return tuple(step for unit in units for step in steps_of(unit))


def _packed(parts: Sequence[Sequence[int]], blocks: Sequence[Int32], *, sifts: bool, by_end: bool) -> Block:
    """Concatenate the members of the blocks of an order; `parts` are the steps of each block."""
    if not blocks:
        return NO_BLOCK
    starts = np.concatenate([block[min(steps)] for steps, block in zip(parts, blocks, strict=True)])
    ends = np.concatenate([block[max(steps)] for steps, block in zip(parts, blocks, strict=True)])
    members = blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)
    room = blocks[-1].shape[1] + 1 if sifts else 0
    keys, inside = np.empty(room, np.int32), np.empty((members.shape[0], room), np.int32)
    return Block(starts, ends, members, keys, inside, by_end)
