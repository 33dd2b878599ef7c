"""Chop queries into pieces, and count the pieces that they have in common once.

Chop-connect is that of "Complex Event Analytics: Online Aggregation of Stream Sequence Patterns", section 4.2: a piece
has counters for each of its start events, whichever queries it serves; a start event of a later piece keeps a snapshot
of what came before it, by the start of the whole match, so that what leaves the window can still be told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from streamsift.logical import bound as b
from streamsift.physical.count import SEM_NS_PER_START, TWO_STACK_NS_PER_LEVEL
from streamsift.physical.plan import AggregatePlan, Branch
from streamsift.physical.share.prefix_trees import ROOT, TreeNode, common_query, negated_after, owned, signature

SHORTEST = 2  # steps of a piece that is worth sharing
# Nanoseconds for an event, from timings of a few workloads on one machine, rounded: only their ratios matter.
ALONE_NS = 70.0  # each query, to bring an event of a step into order, beside what the two stacks cost
PIECE_NS = 150.0  # each step of a piece, to bring it into order and find its counters
SNAPSHOT_NS = 120.0  # each connect, beside the starts that it looks at
ENDING_NS = 250.0  # each query, for an event that ends matches

Key = int  # the number of what a step accepts and what is negated after it


@dataclass(frozen=True, slots=True)
class ChoppedQueries:
    """Queries that one run counts by pieces. The nodes of a piece follow each other, those of depth 1 begin one."""

    query: b.BoundQuery  # with a variable for each step of each piece, and all columns that any query reads
    nodes: tuple[TreeNode, ...]
    first: tuple[int, ...]  # the first node of each piece, counted from 1
    routes: dict[str, tuple[int, ...]]  # the pieces of each query, in order
    keys: tuple[str, ...]
    most_starts: float  # so many start events of a piece in a window, on average, cost as much as no sharing

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(self.routes)

    def length(self, piece: int) -> int:
        after = self.first[piece + 1] if piece + 1 < len(self.first) else len(self.nodes) + 1
        return after - self.first[piece]

    def users(self, piece: int) -> list[str]:
        return [name for name, route in self.routes.items() if piece in route]


def chop(members: Mapping[str, AggregatePlan], asked: bool) -> ChoppedQueries | None:
    """The pieces of the queries that have one in common with another; None if none has, or if it never pays.

    `asked`: whatever it costs.
    """
    numbers: dict[object, Key] = {}
    keys = {name: tuple(_keys(plan, numbers)) for name, plan in members.items()}
    cuts = _cuts(keys)
    pieces = {name: _pieces(keys[name], cuts[name]) for name in keys}
    uses = Counter(piece for own in pieces.values() for piece in set(own))
    shared = {name: own for name, own in pieces.items() if any(uses[piece] > 1 for piece in own)}
    if not shared:
        return None
    most = inf if asked else _most_starts(shared)
    return _chopped({name: members[name] for name in shared}, shared, most) if most >= 1 else None


# --- where to cut ----------------------------------------------------------------------------------------------------


def _keys(plan: AggregatePlan, numbers: dict[object, Key]) -> Iterator[Key]:
    """Steps as numbers: they are compared often, and signatures are trees."""
    query, branch = plan.query, plan.branches[0]
    for place, step in enumerate(branch.alternative.steps):
        key = signature(query, step), frozenset(signature(query, n) for n in negated_after(branch, place))
        yield numbers.setdefault(key, len(numbers))


def _cuts(keys: Mapping[str, tuple[Key, ...]]) -> dict[str, list[tuple[int, int]]]:
    """The shared parts of each query as [begin, end): again and again the one that saves the most steps."""
    taken: dict[str, list[tuple[int, int]]] = {name: [] for name in keys}
    while True:
        found: dict[tuple[Key, ...], dict[str, int]] = {}
        for name, own in keys.items():
            for begin, end in _free_ranges(len(own), taken[name]):
                found.setdefault(own[begin:end], {}).setdefault(name, begin)
        saved = {part: (len(where) - 1) * len(part) for part, where in found.items() if len(where) > 1}
        if not saved:
            return taken
        best = max(saved, key=lambda part: (saved[part], len(part)))
        for name, begin in found[best].items():
            taken[name].append((begin, begin + len(best)))


def _free_ranges(length: int, taken: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    for begin in range(length):
        limit = min((start for start, stop in taken if stop > begin), default=length)
        yield from ((begin, end) for end in range(begin + SHORTEST, limit + 1))


def _pieces(own: tuple[Key, ...], taken: list[tuple[int, int]]) -> tuple[tuple[Key, ...], ...]:
    edges = sorted({0, len(own), *(edge for cut in taken for edge in cut)})
    return tuple(own[begin:end] for begin, end in pairwise(edges))


# --- cost ------------------------------------------------------------------------------------------------------------


def _most_starts(routes: Mapping[str, tuple[tuple[Key, ...], ...]]) -> float:
    """The number k of starts in a window up to which chopping costs no more, for one event of every step.

    Alone, an event costs each query the length of its pattern. Chopped, it costs its piece k; a snapshot costs k, or
    k for each start of the piece before it; the end of a match costs its query k twice: linear + quadratic k <= saved.
    """
    pieces = {piece for own in routes.values() for piece in own}
    connects = {own[:end] for own in routes.values() for end in range(2, len(own) + 1)}
    lengths = [sum(map(len, own)) for own in routes.values()]
    steps = sum(map(len, pieces))
    alone = sum((ALONE_NS + TWO_STACK_NS_PER_LEVEL * length) * length for length in lengths)
    saved = alone - PIECE_NS * steps - SNAPSHOT_NS * len(connects) - ENDING_NS * len(routes)
    linear = SEM_NS_PER_START * (steps + sum(len(c) == 2 for c in connects) + 2 * len(routes))
    quadratic = SEM_NS_PER_START * sum(len(c) > 2 for c in connects)
    if saved < 0 or quadratic == 0:
        return saved / linear
    return float((linear**2 + 4 * quadratic * saved) ** 0.5 - linear) / (2 * quadratic)


# --- the pieces ------------------------------------------------------------------------------------------------------


def _chopped(
    members: Mapping[str, AggregatePlan], routes: Mapping[str, tuple[tuple[Key, ...], ...]], most_starts: float
) -> ChoppedQueries:
    variables: list[b.Variable] = []
    nodes: list[TreeNode] = []
    first: list[int] = []
    numbers: dict[tuple[Key, ...], int] = {}

    def add(query: b.BoundQuery, branch: Branch, begin: int, piece: tuple[Key, ...]) -> None:
        numbers[piece] = len(first)
        first.append(len(nodes) + 1)
        for place in range(len(piece)):
            step = owned(variables, query, branch.alternative.steps[begin + place])
            negated = tuple(owned(variables, query, n) for n in negated_after(branch, begin + place))
            parent = len(nodes) if place else ROOT
            nodes.append(TreeNode(parent, place + 1, len(piece) - place, step, negated))

    for name, own in routes.items():
        begin = 0
        for piece in own:
            if piece not in numbers:
                add(members[name].query, members[name].branches[0], begin, piece)
            begin += len(piece)
    keys = next(iter(members.values())).branches[0].keys
    numbered = {name: tuple(numbers[piece] for piece in own) for name, own in routes.items()}
    return ChoppedQueries(common_query(members, variables), tuple(nodes), tuple(first), numbered, keys, most_starts)
