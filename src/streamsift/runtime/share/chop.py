"""Count queries that are chopped into pieces: one pass returns the counts of every query over time.

A piece has counters [node, start] for each of its start events in the window. A start event of a later piece keeps a
snapshot: for each start event of the whole match that is in the window, how many matches of the pieces before it begin
there or later. So one number of it, that of the first start still in the window, is all that the pieces before count.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from streamsift.physical.share import ChoppedQueries
from streamsift.runtime.arrays.dtypes import Int32, Int64
from streamsift.runtime.count import LARGEST_COUNT, AggregateInput, Timeline, Totals, arrange, tree_of
from streamsift.runtime.share.alphabet import parts_of
from streamsift.runtime.share.chop_kernels import (
    ChopCounts,
    Connects,
    Ends,
    Pieces,
    Steps,
    connect_pieces,
    empty_state,
    starts_in_window,
)

MAX_NUMBERS = 1 << 24  # of counters and snapshots, 128 MB


class Routes(NamedTuple):
    """The routes of the queries, and the places where they connect pieces: queries that go the same way share those."""

    connects: list[tuple[int, ...]]  # the pieces up to there
    ends: list[tuple[int, ...]]  # the distinct routes


def count_chopped(chopped: ChoppedQueries, given: AggregateInput) -> dict[str, Timeline] | None:
    """Return the counts of every query; None if they might pass 64 bits, or cost more than counting each alone."""
    steps, used = _steps(chopped, given)
    most, total, seen = starts_in_window(steps)
    operations, symbol_of = steps.operations, np.zeros(len(chopped.nodes) + 1, np.int64)
    for symbol, (begin, end) in enumerate(pairwise(operations.first_node)):
        nodes = operations.nodes[begin:end]
        symbol_of[nodes[nodes > 0]] = symbol
    starting = symbol_of[list(chopped.first)]
    if total[starting].sum() > chopped.most_starts * max(seen[starting].sum(), 1):
        return None
    if _largest_count(chopped, most[symbol_of]) >= LARGEST_COUNT:
        return None
    routes = _routes(chopped)
    room = np.array([1 << (max(int(starts), 1) - 1).bit_length() for starts in most[starting]])
    connects = _connects(routes, room)
    if int(connects.offset[-1]) + len(chopped.nodes) * 2 * int(room.max()) > MAX_NUMBERS:
        return None
    ends = _ends(chopped, routes, seen[symbol_of])
    first = np.array([*chopped.first, len(chopped.nodes) + 1])
    pieces = Pieces(np.append(0, np.repeat(np.arange(room.size), np.diff(first))), first, room)
    size, filled = int(ends.room[-1]), ends.room[:-1].copy()
    out = ChopCounts(np.empty(size, np.int32), np.empty(size, np.int64), np.empty(size, np.int64))
    connect_pieces(pieces, connects, ends, steps, empty_state(pieces, connects, ends), out, filled)
    timelines = {}
    for end, route in enumerate(routes.ends):
        written = slice(ends.room[end], filled[end])
        counts = out.total[written, None]
        totals = Totals(counts, counts.astype(np.float64), np.empty((counts.size, 0), np.int64))
        group, is_end = used[out.key[written]], np.ones(counts.size, np.bool_)
        timelines[route] = Timeline(group, out.stamp[written], is_end, totals)
    return {name: timelines[route] for name, route in chopped.routes.items()}


def _steps(chopped: ChoppedQueries, given: AggregateInput) -> tuple[Steps, Int32]:
    """Return the events in order, and the group of each key."""
    tree = tree_of([node.parent for node in chopped.nodes], ())
    layout = arrange(parts_of(chopped.query, chopped.nodes, given.events), tree, given, given.groups.of_place)
    operations = layout.operations
    is_last = np.ones(operations.place.size, np.bool_)
    is_last[:-1] = np.diff(given.events.rank[operations.place]) != 0
    is_last[operations.offsets[1:] - 1] = True
    until = np.zeros(given.events.rank.size, np.int64)
    until[operations.place] = 1
    present = np.flatnonzero(until)
    until[present] = given.clock.leaves(present.astype(np.int32)) - 1
    return Steps(operations, is_last, until[operations.place]), layout.group


def _largest_count(chopped: ChoppedQueries, most: Int64) -> float:
    """A bound for every count: the product of the most events of each step in one window."""
    worth = [
        math.prod(max(float(events), 1.0) for events in most[first : first + chopped.length(piece)])
        for piece, first in enumerate(chopped.first)
    ]
    return max(math.prod(worth[piece] for piece in route) for route in chopped.routes.values())


def _routes(chopped: ChoppedQueries) -> Routes:
    ends = list(dict.fromkeys(chopped.routes.values()))
    connects = dict.fromkeys(route[:end] for route in ends for end in range(2, len(route) + 1))
    return Routes(sorted(connects, key=len), ends)


def _connects(routes: Routes, room: Int64) -> Connects:
    number = {route: place for place, route in enumerate(routes.connects)}
    target = np.array([route[-1] for route in routes.connects], np.int64)
    tag = np.array([route[0] for route in routes.connects], np.int64)
    by_target = np.argsort(target, kind="stable")
    return Connects(
        source=np.array([route[-2] for route in routes.connects], np.int64),
        target=target,
        tag=tag,
        before=np.array([number.get(route[:-1], -1) for route in routes.connects], np.int64),
        offset=np.append(0, np.cumsum(room[target] * room[tag])).astype(np.int64),
        row=np.append(0, np.cumsum(room[target])).astype(np.int64),
        first=np.searchsorted(target[by_target], np.arange(room.size + 1)),
        of_piece=by_target,
    )


def _ends(chopped: ChoppedQueries, routes: Routes, candidates_of_node: Int64) -> Ends:
    number = {route: place for place, route in enumerate(routes.connects)}
    piece = np.array([route[-1] for route in routes.ends], np.int64)
    by_piece = np.argsort(piece, kind="stable")
    last = np.array([chopped.first[p] + chopped.length(p) - 1 for p in piece])
    return Ends(
        piece=piece,
        connect=np.array([number.get(route, -1) for route in routes.ends], np.int64),
        first=np.searchsorted(piece[by_piece], np.arange(len(chopped.first) + 1)),
        of_piece=by_piece,
        room=np.append(0, np.cumsum(candidates_of_node[last])).astype(np.int64),
    )
