"""A plan and its events in, the packed buffers of the kernels out: each step's candidates, grouped by lookup key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamsift.logical.bound import Expr, WindowKind
from streamsift.logical.expressions import anonymous
from streamsift.physical.detect import window_bound
from streamsift.physical.plan import Alternative, Pair, Step
from streamsift.runtime.arrays.comparing import GREATER_EQUAL, LESS_EQUAL, OPERATORS
from streamsift.runtime.arrays.dtypes import Int32, Int64
from streamsift.runtime.arrays.grouping import ascends_in_groups, group_entries, successors
from streamsift.runtime.detect import sequence_kernel
from streamsift.runtime.detect.sequence_kernel import Buffers
from streamsift.runtime.events import order_kernels
from streamsift.runtime.events.candidates import step_rows, stream_rows
from streamsift.runtime.events.definition_windows import is_limit, limit_rows, own_limits
from streamsift.runtime.events.events import NO_LIMIT, Events
from streamsift.runtime.expressions.codes import codes, group_codes
from streamsift.runtime.expressions.evaluate import evaluate


@dataclass(frozen=True, slots=True)
class Packed:
    """The kernels' buffers, and for each step the table row of each of its entries."""

    buffers: Buffers
    rows: tuple[Int32, ...]


@dataclass(frozen=True, slots=True)
class Lookup:
    """How a step finds its candidates. Codes are one per candidate of a step, in order of the stream; -1 finds nothing.

    `by_step` has the codes of every earlier step whose event tells the group: the lookup's own, and all that the
    equalities so far make equal to it.
    """

    earlier: int  # -1: no lookup, all candidates are one group
    by_step: dict[int, Int32]
    this: Int32
    groups: int


@dataclass(slots=True)
class Parts:
    """Arrays to be laid end to end."""

    arrays: list[np.ndarray]
    size: int = 0

    def add(self, array: np.ndarray) -> int:
        """Appends an array and returns where it starts."""
        self.arrays.append(array)
        self.size += array.size
        return self.size - array.size

    def joined(self, dtype: type) -> np.ndarray:
        return np.concatenate([np.empty(0, dtype), *self.arrays])


def pack(plan: Alternative, events: Events, places: Sequence[Int32]) -> Packed:
    """The buffers of all steps; `places` are the candidates of each, none of them empty."""
    return _assemble(plan, events, places, find_lookups(plan, events, places))


# --- lookups -------------------------------------------------------------------------------------------------------


def find_lookups(plan: Alternative, events: Events, places: Sequence[Int32]) -> list[Lookup]:
    """Codes for every lookup. Steps that share a key (`[id]`) are coded together, so each value is read once."""
    rows = [stream_rows(plan, events, part) for part in places]
    families = _families(plan.steps)
    shared: dict[int, tuple[dict[int, Int32], int]] = {}
    found: list[Lookup] = []
    for number, step in enumerate(plan.steps):
        if not step.lookup:
            ones = {k: np.zeros(places[k].size, np.int32) for k in {0, max(0, number - 1)}}
            found.append(Lookup(-1, ones, np.zeros(places[number].size, np.int32), 1))
            continue
        earlier = step.lookup[0].earlier
        family = families[number]
        if family is None:
            sides = [
                [evaluate(p.earlier_side, rows[earlier]), evaluate(p.this_side, rows[number])] for p in step.lookup
            ]
            (earlier_codes, this_codes), groups = group_codes(sides)
            found.append(Lookup(earlier, {earlier: earlier_codes}, this_codes, groups))
            continue
        root, key, members = family
        if root not in shared:
            parts, groups = group_codes([[evaluate(side, rows[member]) for member in members] for side in key])
            shared[root] = dict(zip(members, parts, strict=True)), groups
        by_step, groups = shared[root]
        found.append(Lookup(earlier, {k: c for k, c in by_step.items() if k < number}, by_step[number], groups))
    return found


Family = tuple[int, tuple[Expr, ...], list[int]]


def _families(steps: Sequence[Step]) -> list[Family | None]:
    """For each step the family of its lookup: a number, the key, and the steps that lookups of that key tie together.

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


def _assemble(plan: Alternative, events: Events, places: Sequence[Int32], lookups: Sequence[Lookup]) -> Packed:
    in_partitions = (
        bool(plan.query.partition_by) and events.window is not None and events.window.kind is WindowKind.COUNT
    )
    direct = [not in_partitions and {0, max(0, k - 1)} <= lookups[k].by_step.keys() for k in range(len(places))]
    direct[0] = True
    limit = events.window_limit(places[0])
    ranks = [events.rank[part] for part in places]
    ends, last_end = _earliest_ends(places, ranks), np.minimum(limit, NO_LIMIT - 1)
    table = np.full((len(places), sequence_kernel.STEP_FIELDS), -1, np.int64)
    all_rows, rank, position, pointers, links, all_offsets, code_parts = (Parts([]) for _ in range(7))
    pairs: list[tuple[int, int, int, int]] = []
    orders: list[Int32 | None] = []
    ordered: list[Int32] = []
    rows: list[Int32] = []
    own = OwnLimits(limit_rows(plan.query), own_limits(plan.query, events))
    for number, step in enumerate(plan.steps):
        lookup, row = lookups[number], table[number]
        offsets, order = _grouped(lookup)
        orders.append(order)
        entries = places[number] if order is None else places[number][order]
        ordered.append(entries)
        rows.append(events.rows_at(entries))
        row[sequence_kernel.ROWS_BASE] = all_rows.add(rows[number])
        row[sequence_kernel.CHECK_WINDOW] = 0
        if not direct[number] or not direct[min(number + 1, len(places) - 1)]:
            row[sequence_kernel.BASE] = rank.add(_in_order(ranks[number], order))
            position.add(events.window_position[entries])
        if number and direct[number]:
            after = successors(ranks[number - 1], lookup.by_step[number - 1], ranks[number], lookup.this, offsets[:-1])
            until = successors(last_end, lookup.by_step[0], ends[number], lookup.this, offsets[:-1])
            row[sequence_kernel.AFTER_BASE] = pointers.add(_in_order(after, orders[number - 1]))
            row[sequence_kernel.UNTIL_BASE] = pointers.add(until)
        elif number:
            # Positions within partitions may mix in a group that spans partitions; places in the stream never do.
            mixed = in_partitions and not ascends_in_groups(events.window_position[entries], offsets)
            row[sequence_kernel.CHECK_WINDOW] = int(mixed)
            row[sequence_kernel.OFFSETS_BASE] = all_offsets.add(offsets)
            if lookup.earlier >= 0:
                row[sequence_kernel.LINK_STEP] = lookup.earlier
                row[sequence_kernel.LINK_BASE] = links.add(
                    _in_order(lookup.by_step[lookup.earlier], orders[lookup.earlier])
                )
        row[sequence_kernel.PAIRS_START] = len(pairs)
        pairs += [_coded(plan, events, pair, rows, code_parts) for pair in step.pairs if not is_limit(pair)]
        row[sequence_kernel.PAIRS_STOP] = row[sequence_kernel.LIMITS_START] = len(pairs)
        pairs += [own.limit(pair, ordered, code_parts) for pair in step.pairs if is_limit(pair)]
        row[sequence_kernel.LIMITS_STOP] = len(pairs)
        row[sequence_kernel.PLAIN] = int(
            row[sequence_kernel.PAIRS_START] == row[sequence_kernel.PAIRS_STOP]
            and not row[sequence_kernel.CHECK_WINDOW]
        )
    offsets = all_offsets.joined(np.int64)
    buffers = Buffers(
        steps=table,
        rows=all_rows.joined(np.int32),
        pointers=pointers.joined(np.int32),
        rank=rank.joined(np.int32),
        position=position.joined(np.int32),
        limit=limit,
        links=links.joined(np.int32),
        offsets=offsets,
        hints=np.stack([offsets, offsets]),
        pairs=np.array(pairs, np.int64).reshape(-1, sequence_kernel.PAIR_FIELDS),
        codes=code_parts.joined(np.int64),
    )
    return Packed(buffers, tuple(rows))


def _earliest_ends(places: Sequence[Int32], ranks: Sequence[Int32]) -> list[Int32]:
    """For each candidate of each step the first place at which a match through it can end, by the order of times alone.

    A candidate is inside the window only if that place is: without this, a search whose last events are rare would try
    every combination of the others.
    """
    found = [places[-1]]
    for number in reversed(range(len(places) - 1)):
        found.insert(0, order_kernels.earliest_ends(ranks[number], ranks[number + 1], found[0], NO_LIMIT))
    return found


def _grouped(lookup: Lookup) -> tuple[Int64, Int32 | None]:
    """Where each group's entries start, and the order that groups them; None if they stay as they are."""
    if lookup.earlier < 0:
        return np.array([0, lookup.this.size], np.int64), None
    offsets, order = group_entries(lookup.this, lookup.groups)
    return offsets, order


def _in_order(column: Int32, order: Int32 | None) -> Int32:
    return column if order is None else column[order]


@dataclass(frozen=True, slots=True)
class OwnLimits:
    """The windows of definitions, as `own_limits` has them."""

    rows: dict[str, int]
    limits: Int32

    def limit(self, pair: Pair, entries: Sequence[Int32], code_parts: Parts) -> tuple[int, int, int, int]:
        """The limit's row of Buffers.pairs; `entries` are the places of the steps so far, the last of them this one."""
        found = window_bound(pair.earlier_side, pair.this_side)
        assert found is not None
        bounds = self.limits[self.rows[found.definition] + found.is_upper][entries[pair.earlier]]
        operator = GREATER_EQUAL if found.is_upper else LESS_EQUAL
        return (
            pair.earlier,
            operator,
            code_parts.add(bounds.astype(np.int64)),
            code_parts.add(entries[-1].astype(np.int64)),
        )


def _coded(
    plan: Alternative, events: Events, pair: Pair, rows: Sequence[Int32], code_parts: Parts
) -> tuple[int, int, int, int]:
    """The pair's row of Buffers.pairs; `rows` are those of the steps so far, the last of them this one."""
    earlier = evaluate(pair.earlier_side, step_rows(plan, events, rows[pair.earlier]))
    this = evaluate(pair.this_side, step_rows(plan, events, rows[-1]))
    earlier_codes, this_codes = codes([earlier, this], ordered=pair.op not in ("=", "!="))
    return pair.earlier, OPERATORS[pair.op], code_parts.add(earlier_codes), code_parts.add(this_codes)
