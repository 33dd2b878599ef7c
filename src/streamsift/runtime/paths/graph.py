"""Build the stratified graph of a sequence's weighted candidates, with best chains on both sides of cuts.

The stratified graph and its prefix minima are those of the CPR thesis, section 3.2 (PQ-Array), whose arrays change with
every window move. Here a window is split at a cut, a place that all windows of a block share. Chains before the cut are
summed backward from the cut, chains after it forward from the cut, so neither depends on where the window begins or
ends. Each place is in one front part and one back part, so one pass over the events serves all windows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Float64, Int32, Int64


class Chains(NamedTuple):
    """The best chain of each entry on one side of its cut, by the step at the other end of the chain."""

    sum: Float64  # [L, n] -inf for none
    follow: Int32  # [L, n] the next entry of the chain
    order: Int32  # [L, n] tie-break rank of the chain; [1, n] if first events distinguish chains
    tree: Int32  # [L, 2n] segment tree of the best entries: by sum, then by order


class Windows(NamedTuple):
    """Windows [low, high) with ascending bounds, and their cuts."""

    low: Int32
    cut: Int32
    high: Int32


class Graph(NamedTuple):
    """The n entries are the candidates of all L steps, step by step, each sorted by (group, place).

    front[j, e] is a chain from the step of e to step j that begins with e and ends before e's cut. back[j, e] is a
    chain from step j to the step of e that begins after e's cut and ends with e.
    """

    offsets: Int64  # [L, groups + 1] where the entries of a group start
    windows: Windows
    group: Int32  # [n]
    place: Int32  # [n]
    rank: Int32  # [n]
    ties: Int32  # [levels, n] tie breakers of equal sums, level by level; the last level distinguishes all entries
    weight: Float64  # [n]
    after: Int64  # [n] the first later entry of the next step, in the same group
    until: Int64  # [n] the end of the earlier entries of the previous step
    front: Chains
    back: Chains
    pairs: Int64  # [pairs, PAIR_FIELDS] comparisons between steps
    codes: Int64  # [2 * pairs, n] the two sides of each pair, by entry
    repeats: Int32  # [2, n] neighboring equivalent entries, see equivalence.py; [2, 0] if classes are not used
    repeats_tree: Int32  # [2, 2n] segment trees of minima of `repeats`


EARLIER, THIS, OPERATOR, PAIR_FIELDS = range(4)  # columns of Graph.pairs


# --- segment trees over ranges of entries


@njit(cache=True, nogil=True)
def build_tree(chains: Chains, row: int) -> None:
    """Fill a row of trees: leaf n + e is entry e, every inner node is the better of its two children."""
    sums, orders, tree = chains.sum, chains.order, chains.tree[row]
    n, order_row = sums.shape[1], min(row, orders.shape[0] - 1)
    for entry in range(n):
        tree[n + entry] = entry if sums[row, entry] > -np.inf else -1
    for node in range(n - 1, 0, -1):
        tree[node] = better_of(sums, orders, row, order_row, tree[2 * node], tree[2 * node + 1])


@njit(cache=True, nogil=True, inline="always")
def best_in(chains: Chains, row: int, start: int, end: int) -> int:
    """Return the best entry of [start, end), or -1. Rows are not sliced, because a view costs more than a read."""
    best, order_row = -1, min(row, chains.order.shape[0] - 1)
    low, high = start + chains.sum.shape[1], end + chains.sum.shape[1]
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
    """Return the entry with the greater sum, then the earlier chain, in the given rows; -1 is no entry."""
    if one < 0 or two < 0:
        return max(one, two)
    if sums[row, one] != sums[row, two]:
        return one if sums[row, one] > sums[row, two] else two
    return one if orders[order_row, one] < orders[order_row, two] else two


# --- cuts and chains


@njit(cache=True, nogil=True)
def cut_windows(low: Int32, high: Int32, places: int) -> tuple[Windows, Int32, Int32]:
    """Cut windows [low, high) with ascending bounds; also return the front block and the back block of each place.

    A cut is the end of the first window of its block. All windows that begin before the cut share it.
    """
    cut, front, back = np.empty(low.size, np.int32), np.full(places, -1, np.int32), np.full(places, -1, np.int32)
    block, first, current, end = -1, 0, -1, 0
    for window in range(low.size + 1):
        if window == low.size or low[window] >= current:
            front[first : max(current, 0)] = block
            back[max(current, 0) : end] = block
            if window == low.size:
                break
            block += 1
            first, current = low[window], high[window]
        cut[window], end = current, high[window]
    return Windows(low, cut, high), front, back


@njit(cache=True, nogil=True)
def rank_pairs(one: Int32, two: Int32, base: int, end: int, ranked: Int32) -> None:
    """Fill ranked [n] with the dense ranks of the pairs (one, two) of the entries [base, end)."""
    keys = one[base:end].astype(np.int64) * (1 << 31) + two[base:end]
    number, last = base - 1, np.int64(-1)
    for at in np.argsort(keys):
        number += keys[at] != last
        last = keys[at]
        ranked[base + at] = number


@njit(cache=True, nogil=True)
def order_chains(ties: Int32, follow: Int32, base: int, end: int, is_front: bool, orders: Int32) -> None:
    """Fill orders [levels, n] with the ranks of the chains of entries [base, end), given those of the chains' rests.

    Chains compare by the first level of all their events, from first to last, then by the next level. In front, an
    entry precedes the rest of its chain; in back, it follows.
    """
    rest, ranked = np.empty_like(follow), np.empty_like(follow)
    for level in range(ties.shape[0]):
        for entry in range(base, end):
            rest[entry] = orders[level, follow[entry]] if follow[entry] >= 0 else 0
        first, second = (ties[level], rest) if is_front else (rest, ties[level])
        if level == 0:
            rank_pairs(first, second, base, end, orders[0])
        else:
            rank_pairs(orders[level - 1], first, base, end, ranked)
            rank_pairs(ranked, second, base, end, orders[level])


@njit(cache=True, nogil=True)
def fill_chains(graph: Graph, block: Int32, is_front: bool, end: int, chains: Chains) -> None:
    """Fill a row of the chains: those between each entry and step `end`, within the entry's block [n] (-1 for none).

    In front, chains are summed backward in time; in back, forward. `way` reverses the comparisons.
    """
    offsets, rank, ties, groups = graph.offsets, graph.rank, graph.ties, graph.offsets.shape[1] - 1
    sums, follow, way = chains.sum[end], chains.follow[end], -1 if is_front else 1
    sums[:] = -np.inf
    follow[:] = -1
    for entry in range(offsets[end, 0], offsets[end, groups]):
        if block[entry] >= 0:
            sums[entry] = graph.weight[entry]
    # In front, chains are distinguished by their first events.
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
                    if sums[near] > -np.inf:
                        best = better_of(chains.sum, orders, end, level, best, near)
                    near += way
                if best >= 0 and best_block == block[entry]:
                    sums[entry], follow[entry] = graph.weight[entry] + sums[best], best
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
    offsets: Int64, place: Int32, rank: Int32, ties: Int32, weight: Float64, low: Int32, high: Int32, places: int
) -> Graph:
    """Return the graph of entries in the windows [low, high) of `places` events, without comparisons."""
    steps, n = offsets.shape[0], place.size
    windows, front_blocks, back_blocks = cut_windows(low, high, places)
    in_front, in_back = front_blocks[place], back_blocks[place]
    graph = Graph(
        offsets=offsets,
        windows=windows,
        group=np.empty(n, np.int32),
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
        for group in range(offsets.shape[1] - 1):
            graph.group[offsets[step, group] : offsets[step, group + 1]] = group
        fill_chains(graph, in_front, True, step, graph.front)
        fill_chains(graph, in_back, False, step, graph.back)
    return graph
