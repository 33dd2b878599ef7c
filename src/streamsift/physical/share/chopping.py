"""Chop queries into pieces, and count the pieces that they have in common once.

Chop-connect is that of "Complex Event Analytics: Online Aggregation of Stream Sequence Patterns", section 4.2: a piece
has counters for each of its start events, whichever queries it serves; a start event of a later piece keeps a snapshot
of what came before it, by the start of the whole match, so that what leaves the window can still be subtracted.
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

SHORTEST = 2  # steps of a piece that is worth sharing
# Nanoseconds for an event, from timings of a few workloads on one machine, rounded: only their ratios matter.
ALONE_NS = 70.0  # each query, to bring an event of a step into order, beside what the two stacks cost
PIECE_NS = 150.0  # each step of a piece, to bring it into order and find its counters
SNAPSHOT_NS = 120.0  # each connect, beside the starts that it reads
ENDING_NS = 250.0  # each query, for an event that ends matches

Piece = tuple[int, ...]  # steps, by the number of what each accepts and what is negated after it
Routes = Mapping[str, tuple[Piece, ...]]  # the pieces of each query, in order


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
        return (*self.first, len(self.nodes) + 1)[piece + 1] - self.first[piece]


def chop(members: Members, always: bool) -> ChoppedQueries | None:
    """Return the pieces of the queries that have one in common with another; None if none has, or if it never pays.

    With `always`, whatever it costs.
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
    """Return the shared parts of each query as [begin, end): again and again the one that saves the most steps."""
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
    """Return the number k of starts in a window up to which chopping costs no more, for one event of every step.

    Alone, an event costs each query the length of its pattern. Chopped, it costs its piece k; a snapshot costs k, or
    k for each start of the piece before it; the end of a match costs its query k twice: linear + quadratic k <= saved.
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
