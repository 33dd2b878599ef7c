"""Chop queries into pieces, and count common pieces once.

Chop-connect is from "Complex Event Analytics: Online Aggregation of Stream Sequence Patterns", section 4.2. A piece has
counters per start event, shared by all queries that use it. A start event of a later piece keeps a snapshot of the
earlier pieces, by the start event of the whole match, so that matches that leave the window can be subtracted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, pairwise
from math import inf

from streamsift.logical import bound as b
from streamsift.physical.count import SEM_NS_PER_START, TWO_STACK_NS_PER_LEVEL
from streamsift.physical.share.prefix_trees import ROOT, CommonVariables, Members, TreeNode, comparable_steps

SHORTEST = 2  # steps of a shared piece
# Nanoseconds per event, rounded from timings of a few workloads on one machine. Only their ratios matter.
ALONE_NS = 70.0  # per query, to sort an event of a step, in addition to the two stacks
PIECE_NS = 150.0  # per step of a piece, to sort an event and find its counters
SNAPSHOT_NS = 120.0  # per connect, in addition to the starts that it reads
ENDING_NS = 250.0  # per query, for an event that ends matches

Piece = tuple[int, ...]  # numbers of steps; steps with equal conditions and negations have equal numbers
Routes = Mapping[str, tuple[Piece, ...]]  # the pieces of each query, in order


@dataclass(frozen=True, slots=True)
class ChoppedQueries:
    """Queries that share pieces. The nodes of a piece are consecutive; a node of depth 1 begins a piece."""

    query: b.BoundQuery  # with a variable per step of each piece, and all columns that the queries read
    nodes: tuple[TreeNode, ...]
    first: tuple[int, ...]  # the first node of each piece, counted from 1
    routes: dict[str, tuple[int, ...]]  # the pieces of each query, in order
    keys: tuple[str, ...]
    most_starts: float  # average start events of a piece in a window at which sharing stops paying off

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(self.routes)

    def length(self, piece: int) -> int:
        return (*self.first, len(self.nodes) + 1)[piece + 1] - self.first[piece]


def chop(members: Members, always: bool) -> ChoppedQueries | None:
    """Return the pieces of the queries that share one; None if there are none, or if sharing never pays off.

    With `always`, ignore the cost.
    """
    numbers: dict[object, int] = {}  # steps are compared often, and keys are trees
    steps = {
        name: tuple(numbers.setdefault(key, len(numbers)) for key, _, _ in comparable_steps(plan))
        for name, plan in members.items()
    }
    routes = {name: _pieces(steps[name], cuts) for name, cuts in _cuts(steps).items()}
    uses = Counter(piece for route in routes.values() for piece in set(route))
    shared = {name: route for name, route in routes.items() if any(uses[piece] > 1 for piece in route)}
    if not shared:
        return None
    most = inf if always else _most_starts(shared)
    return _chopped({name: members[name] for name in shared}, shared, most) if most >= 1 else None


# --- where to cut ----------------------------------------------------------------------------------------------------


def _cuts(steps: Mapping[str, Piece]) -> dict[str, list[tuple[int, int]]]:
    """Return the shared parts of each query as [begin, end), taking greedily the part that saves the most steps."""
    taken: dict[str, list[tuple[int, int]]] = {name: [] for name in steps}
    while True:
        places: dict[Piece, dict[str, int]] = {}
        for name, of_query in steps.items():
            for begin, end in _free_ranges(len(of_query), taken[name]):
                places.setdefault(of_query[begin:end], {}).setdefault(name, begin)
        saved = {part: (len(where) - 1) * len(part) for part, where in places.items() if len(where) > 1}
        if not saved:
            return taken
        best = max(saved, key=lambda part: (saved[part], len(part)))
        for name, begin in places[best].items():
            taken[name].append((begin, begin + len(best)))


def _free_ranges(length: int, taken: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    for begin in range(length):
        limit = min((start for start, end in taken if end > begin), default=length)
        yield from ((begin, end) for end in range(begin + SHORTEST, limit + 1))


def _pieces(steps: Piece, cuts: list[tuple[int, int]]) -> tuple[Piece, ...]:
    edges = sorted({0, len(steps), *(edge for cut in cuts for edge in cut)})
    return tuple(steps[begin:end] for begin, end in pairwise(edges))


# --- cost ------------------------------------------------------------------------------------------------------------


def _most_starts(routes: Routes) -> float:
    """Return the number k of starts in a window up to which chopping pays off, for one event of every step.

    Alone, an event costs each query the length of its pattern. Chopped, it costs its piece k. A snapshot costs k, or k
    per start of the previous piece. The end of a match costs its query 2 k. Chopping pays off while
    linear * k + quadratic * k^2 <= saved.
    """
    pieces = {piece for route in routes.values() for piece in route}
    connects = {route[:end] for route in routes.values() for end in range(2, len(route) + 1)}
    lengths = [sum(map(len, route)) for route in routes.values()]
    steps = sum(map(len, pieces))
    alone = sum((ALONE_NS + TWO_STACK_NS_PER_LEVEL * length) * length for length in lengths)
    saved = alone - PIECE_NS * steps - SNAPSHOT_NS * len(connects) - ENDING_NS * len(routes)
    linear = SEM_NS_PER_START * (steps + sum(len(c) == 2 for c in connects) + 2 * len(routes))
    quadratic = SEM_NS_PER_START * sum(len(c) > 2 for c in connects)
    if saved < 0 or quadratic == 0:
        return saved / linear
    return float((linear**2 + 4 * quadratic * saved) ** 0.5 - linear) / (2 * quadratic)


# --- the pieces ------------------------------------------------------------------------------------------------------


def _chopped(members: Members, routes: Routes, most_starts: float) -> ChoppedQueries:
    common = CommonVariables()
    nodes: list[TreeNode] = []
    first: dict[Piece, int] = {}
    for name, route in routes.items():
        query, steps = members[name].query, comparable_steps(members[name])
        for piece in route:
            of_piece = list(islice(steps, len(piece)))
            if piece in first:
                continue
            first[piece] = len(nodes) + 1
            for place, (_, step, negated) in enumerate(of_piece):
                shared, *after = common.add(query, step, *negated)
                parent = len(nodes) if place else ROOT
                nodes.append(TreeNode(parent, place + 1, len(piece) - place, shared, tuple(after)))
    numbers = {piece: number for number, piece in enumerate(first)}
    numbered = {name: tuple(numbers[piece] for piece in route) for name, route in routes.items()}
    keys = next(iter(members.values())).branches[0].keys
    return ChoppedQueries(common.query(members), tuple(nodes), tuple(first.values()), numbered, keys, most_starts)
