"""The best paths of one window and the move to the next in, those of the next out: what stays, and what is new.

k-DSSP of the CPR thesis (section 3.2) keeps the paths that stay inside, and looks apart for those that end with a new
event. So does a board, on the graph that all windows share: it holds every path of the window down to a floor, about
twice as many as are asked for. A move drops those that begin too early and adds those that end with a new event and
reach the floor, which are few where the step is small. Only when too few are left is the window looked at as a whole,
and where a new cut begins: then nothing behind the cut is known.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Float64, Int32, Int64
from streamsift.runtime.arrays.growing import grown, longer
from streamsift.runtime.paths.enumerate import Search, new_search, read_paths
from streamsift.runtime.paths.graph import Graph
from streamsift.runtime.paths.heap import in_order
from streamsift.runtime.paths.kinds import firsts_of_kinds
from streamsift.runtime.paths.sets import Roots, Rule, is_behind, is_below, is_later

COUNT, COMPLETE = range(2)  # of Board.state
RESERVE = 2  # times what is asked for: what a board holds at first
MOST_RESERVES = 4  # times that, before the worst are dropped
FEW_MOVES = 4  # windows that share a cut: below, each is looked at as a whole
MARGIN = 5 / 6  # of the slack: so much below the last one read, paths are all there, whatever the order of rounded sums


class Cast(NamedTuple):
    """The entries of the first and the last step by owner and place. An owner is what has best paths of its own."""

    first_starts: Int64  # [owners + 1]
    firsts: Int32
    last_starts: Int64  # [owners + 1]
    lasts: Int32
    group_of: Int32  # [n]
    pairs: Int64  # as those of Roots
    codes: Int64


class Views(NamedTuple):
    """Windows [low, high) of ascending bounds, and their cuts."""

    low: Int32
    cut: Int32
    high: Int32


class Board(NamedTuple):
    """The paths of a window down to the floor, best first."""

    paths: Int32  # [room, L]
    sums: Float64  # [room]
    floor: Float64  # [1]
    floor_path: Int32  # [L]
    state: Int64  # [2] how many there are, whether there are no others


@njit(cache=True, nogil=True)
def new_board(steps: int) -> Board:
    return Board(
        np.empty((16, steps), np.int32),
        np.empty(16),
        np.full(1, -np.inf),
        np.zeros(steps, np.int32),
        np.zeros(2, np.int64),
    )


@njit(cache=True, nogil=True)
def floored(rule: Rule, board: Board, less: float) -> Rule:
    """The rule for paths that belong on a board, or are below by so much."""
    return Rule(rule.limit, rule.slack, rule.most, board.floor[0] - less, board.floor_path, False)


@njit(cache=True, nogil=True)
def groups_inside(graph: Graph, cast: Cast, entries: Int32, low: int, high: int, stamps: Int64) -> Int32:
    """The groups of those of the entries that lie in [low, high); stamps [groups + 1] tell which were seen."""
    start, stop = 0, entries.size
    while start < stop:
        middle = (start + stop) >> 1
        if graph.place[entries[middle]] < low:
            start = middle + 1
        else:
            stop = middle
    found, count = np.empty(16, np.int32), 0
    stamps[-1] += 1
    while start < entries.size and graph.place[entries[start]] < high:
        group = cast.group_of[entries[start]]
        if stamps[group] != stamps[-1]:
            stamps[group] = stamps[-1]
            if count == found.size:
                found = longer(found)
            found[count] = group
            count += 1
            if count == stamps.size - 1:
                break
        start += 1
    return found[:count]


@njit(cache=True, nogil=True)
def roots_in(cast: Cast, groups: Int32, low: int, cut: int, high: int, since: int) -> Roots:
    count = groups.size
    return Roots(
        groups,
        np.full(count, low, np.int32),
        np.full(count, cut, np.int32),
        np.full(count, high, np.int32),
        np.full(count, -1, np.int32),
        np.full(count, since, np.int32),
        cast.pairs,
        cast.codes,
    )


@njit(cache=True, nogil=True)
def is_better(graph: Graph, total: float, path: Int32, other_total: float, other: Int32) -> bool:
    """Whether a path comes before another: greater sum, then earlier events."""
    return bool(total > other_total) if total != other_total else not is_later(graph.ties, path, other)


@njit(cache=True, nogil=True)
def with_new(graph: Graph, rule: Rule, board: Board, low: int, paths: Int32, sums: Float64) -> Board:
    """A board without the paths that begin before `low`, and with those of others, best first, that belong on it."""
    count, more = board.state[COUNT], sums.size
    room = max(16, board.sums.size)
    while room < count + more:
        room *= 2
    found = Board(
        np.empty((room, paths.shape[1]), np.int32),
        np.empty(room),
        board.floor,
        board.floor_path,
        board.state,
    )
    written, old, new, limit = 0, 0, 0, floored(rule, board, 0.0)
    while True:
        while old < count and graph.place[board.paths[old, 0]] < low:
            old += 1
        while new < more and is_below(graph, limit, sums[new], paths[new]):
            new += 1
        if old == count and new == more:
            break
        if new == more or (old < count and is_better(graph, board.sums[old], board.paths[old], sums[new], paths[new])):
            found.paths[written], found.sums[written] = board.paths[old], board.sums[old]
            old += 1
        else:
            found.paths[written], found.sums[written] = paths[new], sums[new]
            new += 1
        written += 1
    found.state[COUNT] = written
    return found


@njit(cache=True, nogil=True)
def trimmed(graph: Graph, rule: Rule, board: Board, wanted: int) -> None:
    """Drops what comes after the wanted ones, and sets the floor to the last of them."""
    count = board.state[COUNT]
    if wanted >= count:
        return
    board.floor[0] = board.sums[wanted - 1]
    board.floor_path[:] = board.paths[wanted - 1]
    limit = floored(rule, board, 0.0)
    while wanted < count and not is_below(graph, limit, board.sums[wanted], board.paths[wanted]):
        wanted += 1
    board.state[COUNT], board.state[COMPLETE] = wanted, 0


@njit(cache=True, nogil=True)
def opened_board(
    graph: Graph, cast: Cast, groups: Int32, low: int, cut: int, high: int, wanted: int, rule: Rule, search: Search
) -> tuple[Search, Board, bool]:
    """The board of a window that is looked at as a whole, and whether it was given up."""
    roots = roots_in(cast, groups, low, cut, high, -1)
    asked = Rule(wanted, rule.slack, rule.most, -np.inf, search.path, False)
    buckets = np.array([0, groups.size])
    search, paths, sums, _, gave_up = read_paths(graph, roots, buckets, asked, search)
    paths, sums = in_order(graph.ties, paths, sums)
    board = Board(
        paths,
        sums,
        np.full(1, -np.inf),
        np.zeros(paths.shape[1], np.int32),
        np.array([sums.size, 1]),
    )
    if sums.size >= wanted:
        board.floor[0], board.state[COMPLETE] = sums[wanted - 1] - MARGIN * rule.slack, 0
        board.floor_path[:] = paths[wanted - 1]
        while sums[board.state[COUNT] - 1] < board.floor[0]:
            board.state[COUNT] -= 1
    return search, board, bool(gave_up[0])


@njit(cache=True, nogil=True)
def moved_board(
    graph: Graph,
    cast: Cast,
    groups: Int32,
    low: int,
    cut: int,
    high: int,
    since: int,
    rule: Rule,
    search: Search,
    board: Board,
) -> tuple[Search, Board, bool]:
    """The board of the window after one that ended at `since`; `groups` are those with new last events."""
    roots = roots_in(cast, groups, low, cut, high, since)
    # Sums that round come out in another order than that of the paths: look a little below the floor.
    asked = floored(Rule(1 << 60, rule.slack, rule.most, 0.0, search.path, False), board, rule.slack)
    search, paths, sums, _, gave_up = read_paths(graph, roots, np.array([0, groups.size]), asked, search)
    paths, sums = in_order(graph.ties, paths, sums)
    return search, with_new(graph, rule, board, low, paths, sums), bool(gave_up[0])


@njit(cache=True, nogil=True)
def best_on(rule: Rule, board: Board) -> int:
    """How many paths of a board may be among the rule's best; -1 if some of those may not be on it."""
    count, limit = board.state[COUNT], rule.limit
    if count < limit:
        return int(count) if board.state[COMPLETE] else -1
    worst = board.sums[limit - 1]
    if not board.state[COMPLETE] and worst - MARGIN * rule.slack < board.floor[0]:
        return -1
    found = limit
    while found < count and not is_behind(rule, worst, board.sums[found]):
        found += 1
    return int(found)


@njit(cache=True, nogil=True)
def board_paths(
    graph: Graph, cast: Cast, views: Views, starts: Int64, visits: Int64, rule: Rule, kind: Int32
) -> tuple[Int32, Int64, bool]:
    """The best paths of the owners i in their windows visits[starts[i]:starts[i + 1]]: paths [m, L], counts, given up.

    They are those of `read_paths`, with all that may be as good as the last; of each kind only the first, if kinds of
    entries are given.
    """
    steps, groups = graph.offsets.shape[0], graph.offsets.shape[1] - 1
    out, written, counts = np.empty((1024, steps), np.int32), 0, np.zeros(visits.size, np.int64)
    stamps, search, board = np.zeros(groups + 1, np.int64), new_search(steps), new_board(steps)
    for owner in range(starts.size - 1):
        firsts = cast.firsts[cast.first_starts[owner] : cast.first_starts[owner + 1]]
        lasts = cast.lasts[cast.last_starts[owner] : cast.last_starts[owner + 1]]
        cut, since, wanted, is_few = -1, -1, rule.limit, True
        for visit in range(starts[owner], starts[owner + 1]):
            view = visits[visit]
            low, high, best, gave_up = int(views.low[view]), int(views.high[view]), -1, False
            if views.cut[view] != cut:
                cut, ahead = int(views.cut[view]), min(visit + FEW_MOVES - 1, starts[owner + 1] - 1)
                is_few = ahead < visit + FEW_MOVES - 1 or views.cut[visits[ahead]] != cut
                wanted = rule.limit if is_few else RESERVE * rule.limit
            elif not is_few:
                fresh = groups_inside(graph, cast, lasts, since, high, stamps)
                search, board, gave_up = moved_board(graph, cast, fresh, low, cut, high, since, rule, search, board)
                best = -1 if gave_up else best_on(rule, board)
                if best < 0:
                    wanted *= 2
                elif board.state[COUNT] > MOST_RESERVES * wanted:
                    trimmed(graph, rule, board, max(wanted, best))
            while best < 0:
                inside = groups_inside(graph, cast, firsts, low, high, stamps)
                search, board, gave_up = opened_board(graph, cast, inside, low, cut, high, wanted, rule, search)
                if gave_up and is_few:
                    return out[:0], counts, True
                if gave_up:  # a reserve is too much to ask
                    is_few, wanted = True, rule.limit
                    continue
                best = best_on(rule, board)
                wanted = wanted if best >= 0 else 2 * wanted
            some = firsts_of_kinds(kind, board.paths[:best], rule.limit)
            while written + some.shape[0] > out.shape[0]:
                out = grown(out)
            out[written : written + some.shape[0]] = some
            written, since = written + some.shape[0], high
            counts[visit] = some.shape[0]
    return out[:written], counts, False
