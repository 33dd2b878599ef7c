"""Build the stratified graph of a sequence's weighted candidates: best chains on both sides of cuts.

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


class Chains(NamedTuple):
    """The best chain of each entry on one side of its cut, by the step at the chain's other end.

    `tree` is a segment tree: over ranges of entries, the one with the best sum; among equal sums with the earliest
    chain.
    """

    sum: Float64  # [L, n] -inf for none
    follow: Int32  # [L, n] the next entry of the chain
    order: Int32  # [L, n] of the chains among equal sums; [1, n] if their first events distinguish them
    tree: Int32  # [L, 2n]


class Graph(NamedTuple):
    """Entries are the candidates of all steps, step by step, each by (group, place). n entries, L steps.

    front[j, e] is a chain of the steps from e's own to j that begins with e and ends before e's cut; back[j, e] one of
    the steps from j to e's own that ends with e and begins behind e's cut.
    """

    offsets: Int64  # [L, groups + 1] where the entries of a group begin
    place: Int32  # [n]
    rank: Int32  # [n]
    ties: Int32  # [levels, n] what orders equal sums, level by level; the last distinguishes all entries
    weight: Float64  # [n]
    after: Int64  # [n] the first later entry of the next step, in the same group
    until: Int64  # [n] the end of the earlier entries of the step before
    front: Chains
    back: Chains
    pairs: Int64  # [pairs, PAIR_FIELDS] comparisons between steps
    codes: Int64  # [2 * pairs, n] the two sides of each, by entry
    repeats: Int32  # [2, n] of equivalent entries, see equivalence.py; [2, 0] if paths are not enumerated by classes
    repeats_tree: Int32  # [2, 2n] segment tree of their minima


EARLIER, THIS, OPERATOR, PAIR_FIELDS = range(4)  # columns of Graph.pairs


class Windows(NamedTuple):
    """Windows [low, high) of ascending bounds, and their cuts."""

    low: Int32
    cut: Int32
    high: Int32


# --- segment trees over ranges of entries


@njit(cache=True, nogil=True)
def build_tree(chains: Chains, row: int) -> None:
    """Leaf n + e of a row is entry e, every inner node the better of its two."""
    sums, orders, tree = chains.sum, chains.order, chains.tree[row]
    n, order_row = sums.shape[1], min(row, orders.shape[0] - 1)
    for entry in range(n):
        tree[n + entry] = entry if sums[row, entry] > -np.inf else -1
    for node in range(n - 1, 0, -1):
        tree[node] = better_of(sums, orders, row, order_row, tree[2 * node], tree[2 * node + 1])


@njit(cache=True, nogil=True, inline="always")
def best_in(chains: Chains, row: int, start: int, stop: int) -> int:
    """Return the best entry of [start, stop), or -1. Rows are not sliced: a view costs more than a look."""
    best, order_row = -1, min(row, chains.order.shape[0] - 1)
    low, high = start + chains.sum.shape[1], stop + chains.sum.shape[1]
    while low < high:
        if low & 1:
            best = better_of(chains.sum, chains.order, row, order_row, best, chains.tree[row, low])
            low += 1
        if high & 1:
            high -= 1
            best = better_of(chains.sum, chains.order, row, order_row, best, chains.tree[row, high])
        low >>= 1
        high >>= 1
    return best


@njit(cache=True, nogil=True)
def better_of(sums: Float64, orders: Int32, row: int, order_row: int, one: int, two: int) -> int:
    """Return the entry with the greater sum, then with the earlier chain, by the given rows; -1 is no entry."""
    if one < 0 or two < 0:
        return max(one, two)
    if sums[row, one] != sums[row, two]:
        return one if sums[row, one] > sums[row, two] else two
    return one if orders[order_row, one] < orders[order_row, two] else two


# --- cuts and chains


@njit(cache=True, nogil=True)
def cut_windows(low: Int32, high: Int32, places: int) -> tuple[Windows, Int32, Int32]:
    """Cut windows [low, high) of ascending bounds; return the block of each place in front and in back as well.

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
    return Windows(low, cut, high), front, back


@njit(cache=True, nogil=True)
def rank_pairs(one: Int32, two: Int32, base: int, end: int, ranked: Int32) -> None:
    """Number the entries [base, end) in order of the pairs (one, two), equal pairs alike: ranked [n]."""
    width = np.int64(1) << 31
    keys = np.empty(end - base, np.int64)
    for entry in range(base, end):
        keys[entry - base] = one[entry] * width + two[entry]
    number, last = base - 1, np.int64(-1)
    for place in np.argsort(keys):
        number += keys[place] != last
        last = keys[place]
        ranked[base + place] = number


@njit(cache=True, nogil=True)
def order_chains(ties: Int32, follow: Int32, base: int, end: int, is_front: bool, orders: Int32) -> None:
    """Fill orders [levels, n] for the entries [base, end): the order of their chains, given that of the chains' rests.

    Chains compare by the first level of all their events, first events first, then by the next level. In front an entry
    comes before the rest of its chain, in back behind it.
    """
    rest, ranked = np.empty_like(follow), np.empty_like(follow)
    for level in range(ties.shape[0]):
        own = ties[level]
        for entry in range(base, end):
            rest[entry] = orders[level, follow[entry]] if follow[entry] >= 0 else 0
        first, second = (own, rest) if is_front else (rest, own)
        if level == 0:
            rank_pairs(first, second, base, end, orders[0])
        else:
            rank_pairs(orders[level - 1], first, base, end, ranked)
            rank_pairs(ranked, second, base, end, orders[level])


@njit(cache=True, nogil=True)
def fill_chains(graph: Graph, block: Int32, is_front: bool, end: int, chains: Chains) -> None:
    """Fill a row of the chains: those between each entry and step `end`, inside their blocks [n], -1 for none.

    In front chains are summed up backwards in time, in back forwards: `way` turns the comparisons round.
    """
    offsets, rank, ties, weight, groups = (
        graph.offsets,
        graph.rank,
        graph.ties,
        graph.weight,
        graph.offsets.shape[1] - 1,
    )
    sums, follow, groups = chains.sum[end : end + 1], chains.follow[end], offsets.shape[1] - 1
    way = -1 if is_front else 1
    sums[:] = -np.inf
    follow[:] = -1
    for entry in range(offsets[end, 0], offsets[end, groups]):
        if block[entry] >= 0:
            sums[0, entry] = weight[entry]
    # In front, single events distinguish chains that begin with them.
    in_order = is_front and ties.shape[0] == 1
    orders, level = ties if in_order else ties.copy(), ties.shape[0] - 1
    for step in range(end + way, -1 if is_front else offsets.shape[0], way):
        for group in range(groups):
            first, count = offsets[step, group], offsets[step, group + 1] - offsets[step, group]
            near, near_end = offsets[step - way, group], offsets[step - way, group + 1]
            if is_front:
                first, near, near_end = first + count - 1, near_end - 1, near - 1
            best, best_block = -1, -2
            for number in range(count):
                entry = first + way * number
                bound = way * rank[entry]
                while near != near_end and way * rank[near] < bound:
                    if block[near] != best_block:
                        best, best_block = -1, block[near]
                    if sums[0, near] > -np.inf:
                        best = better_of(sums, orders, 0, level, best, near)
                    near += way
                if best >= 0 and best_block == block[entry]:
                    sums[0, entry] = weight[entry] + sums[0, best]
                    follow[entry] = best
        if not in_order:
            order_chains(ties, follow, offsets[step, 0], offsets[step, groups], is_front, orders)
    chains.order[min(end, chains.order.shape[0] - 1)] = orders[level]
    build_tree(chains, end)


@njit(cache=True, nogil=True)
def neighbours(offsets: Int64, rank: Int32, after: Int64, until: Int64) -> None:
    """Fill after and until [n] of a graph."""
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
def new_chains(steps: int, orders: int, n: int) -> Chains:
    return Chains(
        sum=np.empty((steps, n)),
        follow=np.empty((steps, n), np.int32),
        order=np.empty((orders, n), np.int32),
        tree=np.full((steps, 2 * n), -1, np.int32),
    )


@njit(cache=True, nogil=True)
def build_graph(
    offsets: Int64, place: Int32, rank: Int32, ties: Int32, weight: Float64, front_block: Int32, back_block: Int32
) -> Graph:
    """Return the graph of entries whose blocks [n] are given, without comparisons."""
    steps, n = offsets.shape[0], place.size
    graph = Graph(
        offsets=offsets,
        place=place,
        rank=rank,
        ties=ties,
        weight=weight,
        after=np.zeros(n, np.int64),
        until=np.zeros(n, np.int64),
        front=new_chains(steps, steps if ties.shape[0] > 1 else 1, n),
        back=new_chains(steps, steps, n),
        pairs=np.empty((0, PAIR_FIELDS), np.int64),
        codes=np.empty((0, n), np.int64),
        repeats=np.empty((2, 0), np.int32),
        repeats_tree=np.empty((2, 0), np.int32),
    )
    neighbours(offsets, rank, graph.after, graph.until)
    for step in range(steps):
        fill_chains(graph, front_block, True, step, graph.front)
        fill_chains(graph, back_block, False, step, graph.back)
    return graph
