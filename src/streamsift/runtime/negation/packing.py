"""Pack an alternative with AND or negations and its events for the nested search: its tree, the stream, the rings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from streamsift.logical.bound import Expr
from streamsift.physical.detect import value_reads, window_bound
from streamsift.physical.plan import Alternative, Cache, Edge, Negation, Step, is_sequence
from streamsift.runtime.arrays.dtypes import Int32, Int64
from streamsift.runtime.arrays.grouping import group_entries
from streamsift.runtime.arrays.parts import Parts
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.comparisons import CandidateCodes, Comparisons, Lookups, Read
from streamsift.runtime.events.definition_windows import limit_rows
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.reach import Reach, reach_of
from streamsift.runtime.negation import layout
from streamsift.runtime.negation.layout import Ring, Tree

EDGES = {
    Edge.AFTER: layout.BY_STEPS,
    Edge.BEFORE: layout.BY_STEPS,
    Edge.WINDOW_START: layout.BY_WINDOW,
    Edge.WINDOW_END: layout.BY_WINDOW,
    Edge.MATCH_END: layout.BY_MATCH,
}
OWN_EDGES = {**dict.fromkeys(EDGES, layout.BY_OWN_WINDOW), Edge.MATCH_END: layout.BY_OWN_END}  # of a definition
MAX_ENTRIES = 1 << 20  # of one negation's ring
MIN_ENTRIES = 1 << 6
MIN_HIT_RATE = 0.25  # for a ring to pay: a search costs about four times as much as an entry


@dataclass(frozen=True, slots=True)
class SearchNode:
    """The pattern (without a negation) or a negation at any depth."""

    negation: Negation | None
    chain: tuple[Step, ...]  # the steps of the patterns around, then its own
    first: int  # its first own step in the chain
    crossed: tuple[int, ...]  # steps of the patterns around whose events may lie in its interval
    children: tuple[Negation, ...]

    @property
    def steps(self) -> tuple[Step, ...]:
        return self.chain[self.first :]


@dataclass(frozen=True, slots=True)
class PackedPattern:
    tree: Tree
    stream: Reach
    ring: Ring
    chains: tuple[tuple[Step, ...], ...]  # for each row of Tree.steps the steps up to it
    longest: int  # steps on the longest path
    levels: int  # negations inside each other


def pack(alternative: Alternative, events: Events, cache: Cache) -> PackedPattern | None:
    """Return None if some step of the pattern has no candidate: then there is no match."""
    steps = tuple(alternative.all_steps())
    found = candidates(Alternative(alternative.query, steps, ()), events)
    stream = reach_of(alternative.query, events)
    places = {id(step): own for step, own in zip(steps, found, strict=True)}
    first = places[id(alternative.steps[0])]
    places[id(alternative.steps[0])] = first[stream.window_high[first] >= first]
    if any(not places[id(step)].size for step in alternative.steps):
        return None
    return _Packing(alternative, events, stream, places, cache).packed()


def nodes_of(alternative: Alternative) -> list[SearchNode]:
    """Return the pattern and its negations, breadth first, so that the children of a node are neighbors."""
    nodes = [SearchNode(None, alternative.steps, 0, (), alternative.negations)]
    for node in nodes:
        for negation in node.children:
            crossed = (*node.crossed, *negation.crossed(node.steps, node.first))
            chain = (*node.chain, *negation.steps)
            nodes.append(SearchNode(negation, chain, negation.first, crossed, negation.negations))
    return nodes


@dataclass(slots=True)
class _Packing:
    """Collects the lists of the tree."""

    alternative: Alternative
    events: Events
    stream: Reach
    candidates: dict[int, Int32]  # by id of the step
    cache: Cache
    numbers: list[int] = field(default_factory=list)
    places: Parts = field(default_factory=Parts)
    lookups: Lookups = field(default_factory=Lookups)
    comparisons: Comparisons = field(default_factory=Comparisons)
    reads: list[tuple[int, int]] = field(default_factory=list)
    values: Parts = field(default_factory=Parts)
    entries: int = 0  # of all rings
    codes: CandidateCodes = field(init=False)
    window_rows: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.codes = CandidateCodes(self.alternative.query, self.events)
        self.window_rows = limit_rows(self.alternative.query)

    def packed(self) -> PackedPattern:
        nodes = nodes_of(self.alternative)
        table = np.zeros((len(nodes), layout.NODE_FIELDS), np.int64)
        steps: list[Int64] = []
        children = 1
        for row, node in zip(table, nodes, strict=True):
            row[layout.FIRST], row[layout.COUNT], row[layout.STEPS] = node.first, len(node.steps), len(steps)
            row[layout.CHILDREN_START], row[layout.CHILDREN_STOP] = children, children + len(node.children)
            children += len(node.children)
            steps += [self._step(node, number) for number in range(node.first, len(node.chain))]
            if node.negation is not None:
                self._negation(row, node, node.negation)
        for parent, node in zip(table, nodes, strict=True):
            for child in range(parent[layout.CHILDREN_START], parent[layout.CHILDREN_STOP]):
                table[child, layout.CONFLICTS] = _conflicts(node, nodes[child])
        offsets, hints, links = self.lookups.tables()
        pairs, codes, limits = self.comparisons.tables(layout.PAIR_FIELDS, self.events.rank.size)
        tree = Tree(
            nodes=table,
            steps=np.stack(steps),
            numbers=np.array(self.numbers, np.int64),
            places=self.places.joined(np.int32),
            offsets=offsets,
            hints=hints[0],
            links=links,
            pairs=pairs,
            codes=codes,
            limits=limits,
            reads=np.array(self.reads, np.int64).reshape(-1, layout.READ_FIELDS),
            values=self.values.joined(np.int32),
        )
        chains = tuple(node.chain[: number + 1] for node in nodes for number in range(node.first, len(node.chain)))
        depth = max(_depth(negation) for negation in self.alternative.negations) if self.alternative.negations else 0
        return PackedPattern(tree, self.stream, self._ring(table), chains, max(map(len, chains)), max(depth, 1))

    # --- steps ---
    def _step(self, node: SearchNode, number: int) -> Int64:
        step, chain = node.chain[number], node.chain
        row = np.zeros(layout.STEP_FIELDS, np.int64)
        row[layout.NUMBER] = number
        row[layout.AFTER_START], row[layout.AFTER_STOP] = self._listed(step.after)
        row[layout.ORDER] = _bits(node.first, _all_before(chain, number, node.first)) if node.negation else 0
        own = () if is_sequence(node.steps, node.first) else range(node.first, number)
        row[layout.OTHERS_START], row[layout.OTHERS_STOP] = self._listed((*node.crossed, *own))
        row[layout.GUARDED] = any(child.ready == number and not child.needs_arrow for child in node.children)
        row[layout.FILTERED] = bool(step.filters)
        row[layout.FILTER_READS] = _bits(node.first, step.reads) if node.negation else 0
        entries, offsets, links = self._looked_up(step, chain)
        offsets = offsets + self.places.add(entries)
        row[layout.LINK_STEP] = step.lookup[0].earlier if step.lookup else -1
        row[layout.OFFSETS_BASE], row[layout.LINK_BASE] = self.lookups.add(offsets, links)
        compared = self.comparisons
        row[layout.PAIRS_START], row[layout.LIMITS_START] = len(compared.rows), len(compared.limits)
        for pair in step.pairs:
            if (window := window_bound(pair.earlier_side, pair.this_side)) is None:
                sides = self._read(chain[pair.earlier], pair.earlier_side), self._read(step, pair.this_side)
                compared.add((pair.earlier,), pair.op, self.codes.compared_by_place(pair.op, *sides))
            else:
                compared.add_limit(pair.earlier, window, self.window_rows)
        row[layout.PAIRS_STOP], row[layout.LIMITS_STOP] = len(compared.rows), len(compared.limits)
        return row

    def _looked_up(self, step: Step, chain: Sequence[Step]) -> tuple[Int32, Int64, Int32 | None]:
        """Return the step's candidates by lookup group, where each group starts, and by place the group of others."""
        own = self.candidates[id(step)]
        if not step.lookup:
            return own, np.array([0, own.size], np.int64), None
        earlier = chain[step.lookup[0].earlier]
        equalities = [(self._read(earlier, p.earlier_side), self._read(step, p.this_side)) for p in step.lookup]
        (of_earlier, of_own), groups = self.codes.groups(equalities)
        offsets, order = group_entries(of_own, groups)
        return own[order], offsets, self.codes.by_place(self.candidates[id(earlier)], of_earlier)

    def _read(self, step: Step, side: Expr) -> Read:
        return self.candidates[id(step)], side

    def _listed(self, numbers: Sequence[int]) -> tuple[int, int]:
        self.numbers += numbers
        return len(self.numbers) - len(numbers), len(self.numbers)

    # --- negations ---
    def _negation(self, row: Int64, node: SearchNode, negation: Negation) -> None:
        row[layout.READY] = negation.ready
        row[layout.LOWER_EDGE], row[layout.UPPER_EDGE] = (
            (OWN_EDGES if limit.definition else EDGES)[limit.edge] for limit in (negation.lower, negation.upper)
        )
        own = negation.lower.definition or negation.upper.definition
        row[layout.OWN_WINDOW] = self.window_rows[own] if own else -1
        row[layout.LOWER_START], row[layout.LOWER_STOP] = self._listed(negation.lower.steps)
        row[layout.UPPER_START], row[layout.UPPER_STOP] = self._listed(negation.upper.steps)
        row[layout.NEEDS_ARROW], row[layout.EARLIEST] = negation.needs_arrow, negation.first_hit_ends_earliest
        row[layout.RING_BASE], row[layout.HOLDS_FOR_LATER_EVENTS] = -1, negation.stays
        if self.cache is Cache.OFF or negation.never_cached:
            return
        row[layout.READS_START] = len(self.reads)
        for number, sides in sorted(value_reads(negation).items()):
            step = node.chain[number]
            (classes,), _ = self.codes.groups([[self._read(step, side)] for side in sides])
            self.reads.append((number, self.values.add(self.codes.by_place(self.candidates[id(step)], classes))))
        row[layout.READS_STOP] = len(self.reads)
        # A window's events, and a few values for each if the result depends on some.
        wanted = (self.stream.widest_window + 1) * (4 if row[layout.READS_STOP] > row[layout.READS_START] else 1)
        size = 1 << int(np.clip(wanted, MIN_ENTRIES, MAX_ENTRIES) - 1).bit_length()
        row[layout.RING_BASE], row[layout.RING_MASK] = self.entries, size - 1
        self.entries += size

    def _ring(self, nodes: Int64) -> Ring:
        width = 1 + int((nodes[:, layout.READS_STOP] - nodes[:, layout.READS_START]).max())
        return Ring(
            keys=np.full((self.entries, width), -1, np.int32),
            occurs_from=np.zeros(self.entries, np.int32),
            absent_until=np.zeros(self.entries, np.int32),
            lookups=np.zeros(len(nodes), np.int64),
            cache_hits=np.zeros(len(nodes), np.int64),
            min_hit_rate=MIN_HIT_RATE if self.cache is Cache.AUTO else 0.0,
        )


def _conflicts(parent: SearchNode, child: SearchNode) -> int:
    """Return the parent's own steps another choice of which could change whether the child occurs, as bits."""
    if parent.negation is None or child.negation is None:
        return 0
    return _bits(parent.first, {*child.negation.steps_used(), *child.crossed} & set(range(len(parent.chain))))


def _bits(first: int, numbers: Iterable[int]) -> int:
    return sum(1 << (number - first) for number in set(numbers) if number >= first)


def _all_before(chain: Sequence[Step], number: int, first: int) -> set[int]:
    """Return the steps from `first` on that come before a step, at any distance."""
    before: set[int] = set()
    for other in chain[number].after:
        if other >= first:
            before |= {other} | _all_before(chain, other, first)
    return before


def _depth(negation: Negation) -> int:
    return 1 + max((_depth(inner) for inner in negation.negations), default=0)
