"""Queries chopped into pieces and their events in, the counts of every query over time out: one pass for all of them.

A piece has counters [node, start] for each of its start events in the window. A start event of a later piece keeps a
snapshot: for each start event of the whole match that is in the window, how many matches of the pieces before it begin
there or later. So one number of it, that of the first start still in the window, is all that the pieces before count.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamsift.physical.plan import Alternative
from streamsift.physical.share import ChoppedQueries
from streamsift.runtime.arrays.dtypes import Int64
from streamsift.runtime.count import Groups, Timeline
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.stamps import Clock
from streamsift.runtime.share.alphabet import Found, letters_of, packed, steps_of
from streamsift.runtime.share.chop_kernels import Connects, Ends, Pieces, connect_pieces, empty_state, starts_in_window
from streamsift.runtime.share.tree import LARGEST_COUNT

MOST_NUMBERS = 1 << 24  # of counters and snapshots, 128 MB


class Routes(NamedTuple):
    """The routes of the queries, and the places where they connect pieces: queries that go the same way share those."""

    connects: list[tuple[int, ...]]  # the pieces up to there
    ends: list[tuple[int, ...]]  # the distinct routes


def count_chopped(chopped: ChoppedQueries, events: Events, clock: Clock, groups: Groups) -> dict[str, Timeline] | None:
    """The counts of every query; None if the data make it cost more than counting each alone, or pass 64 bits."""
    steps_of_letters, lists = letters_of(chopped.query, chopped.nodes)
    found = candidates(Alternative(chopped.query, steps_of_letters, ()), events)
    steps, used = steps_of(found, [True] * len(lists), events, clock, groups)
    most, total, seen = starts_in_window(len(lists), steps)
    letter_of = np.zeros(len(chopped.nodes) + 1, np.int64)
    for letter, entries in enumerate(lists):
        letter_of[[entry for entry in entries if entry > 0]] = letter
    starting = letter_of[list(chopped.first)]
    if total[starting].sum() > chopped.most_starts * max(seen[starting].sum(), 1):
        return None
    if _largest_count(chopped, most[letter_of]) >= LARGEST_COUNT:
        return None
    routes = _routes(chopped)
    room = np.array([1 << (max(int(starts), 1) - 1).bit_length() for starts in most[starting]])
    connects = _connects(routes, room)
    if int(connects.offset[-1]) + len(chopped.nodes) * 2 * int(room.max()) > MOST_NUMBERS:
        return None
    ends = _ends(chopped, routes, np.array([part.size for part in found])[letter_of])
    first = np.array([*chopped.first, len(chopped.nodes) + 1])
    piece_of = np.append(0, np.repeat(np.arange(room.size), np.diff(first)))
    pieces = Pieces(packed(lists, chopped.nodes), piece_of, first, room)
    size = int(ends.room[-1])
    out = Found(np.empty(size, np.int32), np.empty(size, np.int64), np.empty(size, np.int64))
    filled = ends.room[:-1].copy()
    connect_pieces(pieces, connects, ends, steps, empty_state(pieces, connects, ends, steps), out, filled)
    own = {route: slice(ends.room[end], filled[end]) for end, route in enumerate(routes.ends)}
    return {
        name: Found(used[out.group[own[route]]], out.stamp[own[route]], out.total[own[route]]).timeline()
        for name, route in chopped.routes.items()
    }


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
