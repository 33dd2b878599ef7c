"""Pack an alternative with AND or negations, its candidates and its result caches into arrays for the nested search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from streamsift.physical.detect import value_reads
from streamsift.physical.plan import Alternative, Cache, Edge, Negation, Step, is_sequence
from streamsift.runtime.arrays.dtypes import Int64
from streamsift.runtime.arrays.growing import Parts
from streamsift.runtime.events.comparisons import Comparisons, Lookups, StepCandidates
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.reach import Reach
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
MIN_HIT_RATE = 0.25  # a search costs about four times as much as a cache entry


@dataclass(frozen=True, slots=True)
class SearchNode:
    """The pattern or a negation at any depth."""

    negation: Negation | None  # None for the pattern
    chain: tuple[Step, ...]  # the steps of the enclosing patterns, then those of this one
    first: int  # where the steps of this one start in the chain
    crossed: tuple[int, ...]  # steps of enclosing patterns whose events may lie in its interval
    children: tuple[Negation, ...]

    @property
    def steps(self) -> tuple[Step, ...]:
        return self.chain[self.first :]


@dataclass(frozen=True, slots=True)
class PackedPattern:
    tree: Tree
    reach: Reach
    ring: Ring
    chains: tuple[tuple[Step, ...], ...]  # for each row of Tree.steps, the steps up to it
    longest: int  # steps on the longest path
    levels: int  # depth of nested negations


def pack(alternative: Alternative, events: Events, cache: Cache) -> PackedPattern | None:
    """Pack an alternative; return None if a step has no candidate, so that there is no match."""
    candidates = StepCandidates(alternative.query, events, alternative.all_steps())
    first = candidates[alternative.steps[0]]
    candidates[alternative.steps[0]] = first[candidates.reach.window_high[first] >= first]
    if any(not candidates[step].size for step in alternative.steps):
        return None
    return PatternPacking(alternative, candidates, cache).packed()


def nodes_of(alternative: Alternative) -> list[SearchNode]:
    """Return the pattern and its negations, breadth first, so that the children of a node are contiguous."""
    nodes = [SearchNode(None, alternative.steps, 0, (), alternative.negations)]
    for node in nodes:
        for negation in node.children:
            crossed = (*node.crossed, *negation.crossed(node.steps, node.first))
            chain = (*node.chain, *negation.steps)
            nodes.append(SearchNode(negation, chain, negation.first, crossed, negation.negations))
    return nodes


class PatternPacking:
    """Collect the arrays of the tree and its rings."""

    def __init__(self, alternative: Alternative, candidates: StepCandidates, cache: Cache) -> None:
        self.alternative, self.candidates, self.cache = alternative, candidates, cache
        self.numbers: list[int] = []
        self.places, self.values = Parts(), Parts()
        self.lookups, self.comparisons = Lookups(), Comparisons()
        self.reads: list[tuple[int, int]] = []
        self.ring_entries = 0  # of all rings

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
        pairs, codes, limits = self.comparisons.tables(layout.PAIR_FIELDS, self.candidates.events.rank.size)
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
        depth = max(map(_depth, self.alternative.negations), default=1)
        return PackedPattern(tree, self.candidates.reach, self._ring(table), chains, max(map(len, chains)), depth)

    # --- steps ---
    def _step(self, node: SearchNode, number: int) -> Int64:
        step, chain = node.chain[number], node.chain
        row = np.zeros(layout.STEP_FIELDS, np.int64)
        row[layout.NUMBER] = number
        row[layout.AFTER_START], row[layout.AFTER_STOP] = self._listed(step.after)
        row[layout.ORDER] = _bits(node.first, _all_before(chain, number, node.first)) if node.negation else 0
        unordered = () if is_sequence(node.steps, node.first) else range(node.first, number)
        row[layout.OTHERS_START], row[layout.OTHERS_STOP] = self._listed((*node.crossed, *unordered))
        row[layout.GUARDED] = any(child.ready == number and not child.needs_arrow for child in node.children)
        row[layout.FILTERED] = bool(step.filters)
        row[layout.FILTER_READS] = _bits(node.first, step.reads) if node.negation else 0
        entries, offsets, links = self.candidates.grouped(step, chain)
        row[layout.LINK_STEP] = step.lookup[0].earlier if step.lookup else -1
        row[layout.OFFSETS_BASE], row[layout.LINK_BASE] = self.lookups.add(offsets + self.places.add(entries), links)
        pairs, limits = self.comparisons.rows, self.comparisons.limits
        row[layout.PAIRS_START], row[layout.LIMITS_START] = len(pairs), len(limits)
        self.candidates.compare(step, chain, self.comparisons)
        row[layout.PAIRS_STOP], row[layout.LIMITS_STOP] = len(pairs), len(limits)
        return row

    def _listed(self, numbers: Sequence[int]) -> tuple[int, int]:
        self.numbers += numbers
        return len(self.numbers) - len(numbers), len(self.numbers)

    # --- negations ---
    def _negation(self, row: Int64, node: SearchNode, negation: Negation) -> None:
        row[layout.READY] = negation.ready
        row[layout.LOWER_EDGE], row[layout.UPPER_EDGE] = (
            (OWN_EDGES if limit.definition else EDGES)[limit.edge] for limit in (negation.lower, negation.upper)
        )
        definition = negation.lower.definition or negation.upper.definition
        row[layout.OWN_WINDOW] = self.candidates.window_rows[definition] if definition else -1
        row[layout.LOWER_START], row[layout.LOWER_STOP] = self._listed(negation.lower.steps)
        row[layout.UPPER_START], row[layout.UPPER_STOP] = self._listed(negation.upper.steps)
        row[layout.NEEDS_ARROW], row[layout.EARLIEST] = negation.needs_arrow, negation.first_hit_ends_earliest
        row[layout.RING_BASE], row[layout.HOLDS_FOR_LATER_EVENTS] = -1, negation.holds_for_later_events
        if self.cache is Cache.OFF or negation.never_cached:
            return
        row[layout.READS_START] = len(self.reads)
        for number, sides in sorted(value_reads(negation).items()):
            places, codes = self.candidates[node.chain[number]], self.candidates.codes
            (classes,), _ = codes.groups([[(places, side)] for side in sides])
            self.reads.append((number, self.values.add(codes.by_place(places, classes))))
        row[layout.READS_STOP] = len(self.reads)
        # One entry per event of a window; four if the result depends on outer values.
        widest = self.candidates.reach.widest_window
        wanted = (widest + 1) * (4 if row[layout.READS_STOP] > row[layout.READS_START] else 1)
        size = 1 << int(np.clip(wanted, MIN_ENTRIES, MAX_ENTRIES) - 1).bit_length()
        row[layout.RING_BASE], row[layout.RING_MASK] = self.ring_entries, size - 1
        self.ring_entries += size

    def _ring(self, nodes: Int64) -> Ring:
        width = 1 + int((nodes[:, layout.READS_STOP] - nodes[:, layout.READS_START]).max())
        return Ring(
            keys=np.full((self.ring_entries, width), -1, np.int32),
            occurs_from=np.zeros(self.ring_entries, np.int32),
            absent_until=np.zeros(self.ring_entries, np.int32),
            lookups=np.zeros(len(nodes), np.int64),
            cache_hits=np.zeros(len(nodes), np.int64),
            min_hit_rate=MIN_HIT_RATE if self.cache is Cache.AUTO else 0.0,
        )


def _conflicts(parent: SearchNode, child: SearchNode) -> int:
    """Return as bits the parent's steps that affect whether the child occurs."""
    if parent.negation is None or child.negation is None:
        return 0
    return _bits(parent.first, {*child.negation.steps_used(), *child.crossed} & set(range(len(parent.chain))))


def _bits(first: int, numbers: Iterable[int]) -> int:
    return sum(1 << (number - first) for number in set(numbers) if number >= first)


def _all_before(chain: Sequence[Step], number: int, first: int) -> set[int]:
    """Return all steps from `first` on that must precede a step, directly or indirectly."""
    before: set[int] = set()
    for other in chain[number].after:
        if other >= first:
            before |= {other} | _all_before(chain, other, first)
    return before


def _depth(negation: Negation) -> int:
    return 1 + max(map(_depth, negation.negations), default=0)
