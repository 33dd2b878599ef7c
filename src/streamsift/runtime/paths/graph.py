"""The weighted candidates of a sequence in, the stratified graph of its matches out: best chains on both sides of cuts.

The stratified graph and its prefix minima are those of the CPR thesis, section 3.2 (PQ-Array). Its arrays change with
every move of the window. Here a window is cut in two at a place that all the windows of a block share. What lies before
the cut is summed up from the cut backwards, what lies behind it from the cut on: neither depends on where the window
begins or ends. Each place is in one front and one back part, so all windows together cost one pass over the events.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Float64, Int32, Int64


class Graph(NamedTuple):
    """Entries are the candidates of all steps, step by step, each by (group, place). n entries, L steps.

    front[j, e] is the best sum of a chain of the steps from e's own to j that begins with e and ends before e's cut;
    back[j, e] that of a chain of the steps from j to e's own that ends with e and begins behind e's cut; -inf for none.
    Trees hold, over ranges of entries, the one with the best sum; among equal sums the one with the earliest chain.
    """

    offsets: Int64  # [L, groups + 1] where the entries of a group begin
    place: Int32  # [n]
    rank: Int32  # [n]
    ties: Int32  # [levels, n] what orders equal sums, one level after the other; the last tells all entries apart
    weight: Float64  # [n]
    after: Int64  # [n] the first later entry of the next step, in the same group
    until: Int64  # [n] the end of the earlier entries of the step before
    front: Float64  # [L, n]
    front_next: Int32  # [L, n] the next entry of that chain
    front_lex: Int32  # [L, n] the order of the chains among equal sums; [1, n] if their first events tell them apart
    front_tree: Int32  # [L, 2n]
    back: Float64  # [L, n]
    back_next: Int32  # [L, n] the entry before e in that chain
    back_lex: Int32  # [L, n] the order of the chains, first events first
    back_tree: Int32  # [L, 2n]
    repeats: Int32  # [2, n] where sets are told by kinds: see path_kinds.py; [2, 0] where they are not
    repeats_tree: Int32  # [2, 2n] the least of them over ranges of entries


@njit(cache=True, nogil=True)
def better(value: Float64, lex: Int32, one: int, two: int) -> int:
    """The entry with the greater sum, then with the earlier chain; -1 is no entry."""
    if one < 0 or two < 0:
        return max(one, two)
    if value[one] != value[two]:
        return one if value[one] > value[two] else two
    return one if lex[one] < lex[two] else two


@njit(cache=True, nogil=True)
def build_tree(value: Float64, lex: Int32, tree: Int32) -> None:
    """tree [2n]: leaf n + e is entry e, every inner node the better of its two."""
    n = value.size
    for entry in range(n):
        tree[n + entry] = entry if value[entry] > -np.inf else -1
    for node in range(n - 1, 0, -1):
        tree[node] = better(value, lex, tree[2 * node], tree[2 * node + 1])


@njit(cache=True, nogil=True, inline="always")
def best_in(value: Float64, lex: Int32, tree: Int32, row: int, lex_row: int, start: int, stop: int) -> int:
    """The best entry of [start, stop) by the given rows, or -1. Rows are not sliced: a view costs more than a look."""
    found = -1
    low, high = start + value.shape[1], stop + value.shape[1]
    while low < high:
        if low & 1:
            found = better_of(value, lex, row, lex_row, found, tree[row, low])
            low += 1
        if high & 1:
            high -= 1
            found = better_of(value, lex, row, lex_row, found, tree[row, high])
        low >>= 1
        high >>= 1
    return found


@njit(cache=True, nogil=True, inline="always")
def better_of(value: Float64, lex: Int32, row: int, lex_row: int, one: int, two: int) -> int:
    """The entry with the greater sum, then with the earlier chain, by the given rows; -1 is no entry."""
    if one < 0 or two < 0:
        return max(one, two)
    if value[row, one] != value[row, two]:
        return one if value[row, one] > value[row, two] else two
    return one if lex[lex_row, one] < lex[lex_row, two] else two


@njit(cache=True, nogil=True)
def cut_windows(low: Int32, high: Int32, places: int) -> tuple[Int32, Int32, Int32]:
    """For windows [low, high) of ascending bounds: (the cut of each, the block of each place in front and in back).

    A cut is the end of the first window of its block; it serves the windows that begin before it.
    """
    cut = np.empty(low.size, np.int32)
    front = np.full(places, -1, np.int32)
    back = np.full(places, -1, np.int32)
    block, first, current, end = -1, 0, -1, 0
    for window in range(low.size + 1):
        if window == low.size or low[window] >= current:
            for place in range(first, current):
                front[place] = block
            for place in range(max(current, 0), end):
                back[place] = block
            if window == low.size:
                break
            block += 1
            first = low[window]
            current = high[window]
        cut[window] = current
        end = high[window]
    return cut, front, back


@njit(cache=True, nogil=True)
def rank_pairs(one: Int32, two: Int32, base: int, end: int, found: Int32) -> None:
    """Numbers the entries [base, end) in order of the pairs (one, two), equal pairs alike: found [n]."""
    width = np.int64(1) << 31
    keys = np.empty(end - base, np.int64)
    for entry in range(base, end):
        keys[entry - base] = one[entry] * width + two[entry]
    number, last = base - 1, np.int64(-1)
    for place in np.argsort(keys):
        number += keys[place] != last
        last = keys[place]
        found[base + place] = number


@njit(cache=True, nogil=True)
def order_chains(ties: Int32, follow: Int32, base: int, end: int, is_front: bool, lexes: Int32) -> None:
    """Fills lexes [levels, n] for the entries [base, end): the order of their chains, given that of the chains' rests.

    Chains compare by the first level of all their events, first events first, then by the next level. In front an entry
    comes before the rest of its chain, in back behind it.
    """
    rest, ranked = np.empty_like(follow), np.empty_like(follow)
    for level in range(ties.shape[0]):
        own = ties[level]
        for entry in range(base, end):
            rest[entry] = lexes[level, follow[entry]] if follow[entry] >= 0 else 0
        first, second = (own, rest) if is_front else (rest, own)
        if level == 0:
            rank_pairs(first, second, base, end, lexes[0])
        else:
            rank_pairs(lexes[level - 1], first, base, end, ranked)
            rank_pairs(ranked, second, base, end, lexes[level])


@njit(cache=True, nogil=True)
def fill_front(
    offsets: Int64,
    rank: Int32,
    ties: Int32,
    weight: Float64,
    block: Int32,
    last: int,
    value: Float64,
    follow: Int32,
    lex: Int32,
) -> None:
    """value, follow, lex [n] for chains that end with step `last`; `block` [n] is that of entries in front, or -1."""
    value[:] = -np.inf
    follow[:] = -1
    groups = offsets.shape[1] - 1
    for entry in range(offsets[last, 0], offsets[last, groups]):
        if block[entry] >= 0:
            value[entry] = weight[entry]
    lexes = ties.copy() if ties.shape[0] > 1 else ties
    for step in range(last - 1, -1, -1):
        for group in range(groups):
            later = offsets[step + 1, group + 1] - 1
            best, best_block = -1, -2
            for entry in range(offsets[step, group + 1] - 1, offsets[step, group] - 1, -1):
                while later >= offsets[step + 1, group] and rank[later] > rank[entry]:
                    if block[later] != best_block:
                        best, best_block = -1, block[later]
                    if value[later] > -np.inf:
                        best = better(value, lexes[-1], best, later)
                    later -= 1
                if best >= 0 and best_block == block[entry]:
                    value[entry] = weight[entry] + value[best]
                    follow[entry] = best
        if ties.shape[0] > 1:
            order_chains(ties, follow, offsets[step, 0], offsets[step, groups], True, lexes)
    lex[:] = lexes[-1]


@njit(cache=True, nogil=True)
def fill_back(
    offsets: Int64,
    rank: Int32,
    ties: Int32,
    weight: Float64,
    block: Int32,
    first: int,
    value: Float64,
    follow: Int32,
    lex: Int32,
) -> None:
    """value, follow, lex [n] for chains that begin with step `first`; `block` [n] is that of entries in back, or -1."""
    value[:] = -np.inf
    follow[:] = -1
    groups = offsets.shape[1] - 1
    for entry in range(offsets[first, 0], offsets[first, groups]):
        if block[entry] >= 0:
            value[entry] = weight[entry]
    lexes = ties.copy()
    for step in range(first + 1, offsets.shape[0]):
        for group in range(groups):
            earlier = offsets[step - 1, group]
            best, best_block = -1, -2
            for entry in range(offsets[step, group], offsets[step, group + 1]):
                while earlier < offsets[step - 1, group + 1] and rank[earlier] < rank[entry]:
                    if block[earlier] != best_block:
                        best, best_block = -1, block[earlier]
                    if value[earlier] > -np.inf:
                        best = better(value, lexes[-1], best, earlier)
                    earlier += 1
                if best >= 0 and best_block == block[entry]:
                    value[entry] = weight[entry] + value[best]
                    follow[entry] = best
        order_chains(ties, follow, offsets[step, 0], offsets[step, groups], False, lexes)
    lex[:] = lexes[-1]


@njit(cache=True, nogil=True)
def neighbours(offsets: Int64, rank: Int32, after: Int64, until: Int64) -> None:
    """Fills after and until [n]: where the entries of the next step begin that an entry precedes, and so on."""
    for step in range(offsets.shape[0] - 1):
        for group in range(offsets.shape[1] - 1):
            later = offsets[step + 1, group]
            for entry in range(offsets[step, group], offsets[step, group + 1]):
                while later < offsets[step + 1, group + 1] and rank[later] <= rank[entry]:
                    later += 1
                after[entry] = later
            earlier = offsets[step, group]
            for entry in range(offsets[step + 1, group], offsets[step + 1, group + 1]):
                while earlier < offsets[step, group + 1] and rank[earlier] < rank[entry]:
                    earlier += 1
                until[entry] = earlier


@njit(cache=True, nogil=True)
def build_graph(
    offsets: Int64, place: Int32, rank: Int32, ties: Int32, weight: Float64, front_block: Int32, back_block: Int32
) -> Graph:
    """The graph of entries whose blocks [n] are given."""
    steps, n = offsets.shape[0], place.size
    front, back = np.empty((steps, n), np.float64), np.empty((steps, n), np.float64)
    front_next, back_next = np.empty((steps, n), np.int32), np.empty((steps, n), np.int32)
    front_lex, back_lex = np.empty((steps if ties.shape[0] > 1 else 1, n), np.int32), np.empty((steps, n), np.int32)
    front_tree, back_tree = np.full((steps, 2 * n), -1, np.int32), np.full((steps, 2 * n), -1, np.int32)
    after, until = np.zeros(n, np.int64), np.zeros(n, np.int64)
    neighbours(offsets, rank, after, until)
    for step in range(steps):
        lex = front_lex[min(step, front_lex.shape[0] - 1)]
        fill_front(offsets, rank, ties, weight, front_block, step, front[step], front_next[step], lex)
        build_tree(front[step], lex, front_tree[step])
        fill_back(offsets, rank, ties, weight, back_block, step, back[step], back_next[step], back_lex[step])
        build_tree(back[step], back_lex[step], back_tree[step])
    return Graph(
        offsets,
        place,
        rank,
        ties,
        weight,
        after,
        until,
        front,
        front_next,
        front_lex,
        front_tree,
        back,
        back_next,
        back_lex,
        back_tree,
        np.empty((2, 0), np.int32),
        np.empty((2, 0), np.int32),
    )
