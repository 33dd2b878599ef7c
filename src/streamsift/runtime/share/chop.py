"""Count several queries that are chopped into pieces, and return the counts of each query over time.

A piece has counters [node, start] for each of its start events in the window. Each start event of a later piece takes a
snapshot of the pieces before it. For every start event of the whole match in the window, the snapshot has the number of
matches of these pieces that begin there or later. The entry of the first start that is still in the window is therefore
the number of matches to extend.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from streamsift.physical.share import ChoppedQueries
from streamsift.runtime.arrays.dtypes import Int32, Int64
from streamsift.runtime.arrays.grouping import distinct, group_entries
from streamsift.runtime.count import LARGEST_COUNT, AggregateInput, Timeline, TotalRecords, arrange, tree_of
from streamsift.runtime.share.chop_kernels import (
    Connects,
    Ends,
    Pieces,
    Steps,
    connect_pieces,
    empty_state,
    starts_in_window,
)
from streamsift.runtime.share.prefixes import parts_of

MAX_NUMBERS = 1 << 24  # counters and snapshots together: 128 MB


def count_chopped(chopped: ChoppedQueries, given: AggregateInput) -> dict[str, Timeline] | None:
    """Return the counts of every query; None if they might overflow 64 bits or cost more than counting each alone."""
    steps, group = _steps(chopped, given)
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
    routes = list(dict.fromkeys(chopped.routes.values()))
    room = np.array([1 << (max(int(starts), 1) - 1).bit_length() for starts in most[starting]])
    connects, ends = _connects(routes, room)
    if int(connects.offset[-1]) + len(chopped.nodes) * 2 * int(room.max()) > MAX_NUMBERS:
        return None
    first = np.array([*chopped.first, len(chopped.nodes) + 1])
    pieces = Pieces(np.append(0, np.repeat(np.arange(room.size), np.diff(first))), first, room)
    begin = np.append(0, np.cumsum(seen[symbol_of[first[ends.piece + 1] - 1]]))
    out, filled = TotalRecords.room(int(begin[-1])), begin[:-1].copy()
    connect_pieces(pieces, connects, ends, steps, empty_state(pieces, connects, ends), out, filled)
    timelines = {route: out.totals(slice(begin[n], filled[n]), group) for n, route in enumerate(routes)}
    return {name: timelines[route] for name, route in chopped.routes.items()}


def _steps(chopped: ChoppedQueries, given: AggregateInput) -> tuple[Steps, Int32]:
    """Return the ordered operations of all pieces, and the group of each key."""
    tree = tree_of([node.parent for node in chopped.nodes], ())
    layout = arrange(parts_of(chopped.query, chopped.nodes, given.events), tree, given, given.group_of)
    operations = layout.operations
    is_last = np.diff(given.events.rank[operations.place], append=-1) != 0
    is_last[operations.offsets[1:] - 1] = True
    until, places = np.zeros(given.events.rank.size, np.int64), distinct(operations.place)
    until[places] = given.clock.leaves(places) - 1
    return Steps(operations, is_last, until[operations.place]), layout.group


def _largest_count(chopped: ChoppedQueries, most: Int64) -> float:
    """Return an upper bound of all counts: the product of the maximum number of events of each step in one window."""
    worth = [
        math.prod(max(float(events), 1.0) for events in most[first : first + chopped.length(piece)])
        for piece, first in enumerate(chopped.first)
    ]
    return max(math.prod(worth[piece] for piece in route) for route in chopped.routes.values())


def _connects(routes: list[tuple[int, ...]], room: Int64) -> tuple[Connects, Ends]:
    """Return the connects of all routes, shared by routes with the same first pieces, and the ends of the routes."""
    ways = sorted(dict.fromkeys(route[:end] for route in routes for end in range(2, len(route) + 1)), key=len)
    number = {way: place for place, way in enumerate(ways)}
    target, source, tag = (np.array([way[at] for way in ways], np.int64) for at in (-1, -2, 0))
    first, of_piece = group_entries(target.astype(np.int32), room.size)
    connects = Connects(
        source=source,
        target=target,
        tag=tag,
        before=np.array([number.get(way[:-1], -1) for way in ways], np.int64),
        offset=np.append(0, np.cumsum(room[target] * room[tag])),
        row=np.append(0, np.cumsum(room[target])),
        first=first,
        of_piece=of_piece,
    )
    piece = np.array([route[-1] for route in routes])
    connect = np.array([number.get(route, -1) for route in routes])
    return connects, Ends(piece, connect, *group_entries(piece.astype(np.int32), room.size))
