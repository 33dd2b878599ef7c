"""A stratified graph and the kinds of its entries in, the best entry of a kind not split off out.

Two entries of a step are of one kind if they share the key, every value that the score reads and both sides of every
comparison. Paths of the same kinds have the same score, to the last bit, and the same comparisons hold. So where very
many sums are too close to be told apart, it is enough to look at one path of each kind: in front of a cut the one whose
entries are the first of their kinds to follow each other, for they leave most to follow; behind it, where paths are
chosen backwards, the one whose entries are the last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Float64, Int32, Int64
from streamsift.runtime.paths.graph import Graph


class Kinds(NamedTuple):
    """Kinds of different steps or groups are different."""

    kind: Int32  # [n]
    starts: Int64  # [kinds + 1] where the members of each begin
    members: Int32  # [n] entries, kind by kind, each in order


def told_by_kinds(graph: Graph, kinds: Kinds) -> Graph:
    """The graph with repeats: the last entry of the same kind before each, and the next one behind it, negated."""
    n, members = graph.place.size, kinds.members
    repeats = np.empty((2, n), np.int32)
    is_repeat = kinds.kind[members[1:]] == kinds.kind[members[:-1]]
    repeats[0, members] = np.append(-1, np.where(is_repeat, members[:-1], -1))
    repeats[1, members] = -np.append(np.where(is_repeat, members[1:], n), n)
    tree = np.empty((2, 2 * n), np.int32)
    least_over_ranges(repeats, tree)
    return graph._replace(repeats=repeats, repeats_tree=tree)


@njit(cache=True, nogil=True)
def least_over_ranges(values: Int32, tree: Int32) -> None:
    n = values.shape[1]
    for side in range(values.shape[0]):
        for entry in range(n):
            tree[side, n + entry] = values[side, entry]
        for node in range(n - 1, 0, -1):
            tree[side, node] = min(tree[side, 2 * node], tree[side, 2 * node + 1])


@njit(cache=True, nogil=True)
def best_below(
    graph: Graph, value: Float64, tree: Int32, row: int, side: int, limit: int, node: int, found: int
) -> int:
    """The best of `found` and the entries under a node with repeats below the limit: depth first, without a stack."""
    root, n = node, value.shape[1]
    while True:
        entry, is_done = tree[row, node], True
        if entry >= 0 and (found < 0 or value[row, entry] > value[row, found]):
            if graph.repeats[side, entry] < limit:
                found = entry
            else:
                is_done = node >= n or graph.repeats_tree[side, node] >= limit
        if not is_done:
            node *= 2
            continue
        while node != root and node & 1:
            node >>= 1
        if node == root:
            return found
        node += 1


@njit(cache=True, nogil=True)
def best_new_in(graph: Graph, split: int, decision: int, start: int, stop: int, low: int, high: int) -> int:
    """The best of the entries [start, stop) that is the first of its kind from `low` on, or the last before `high`."""
    is_front = decision < split
    value, tree = (graph.front, graph.front_tree) if is_front else (graph.back, graph.back_tree)
    row, side, limit = (split - 1, 0, low) if is_front else (split, 1, 1 - high)
    found, left, right = -1, start + value.shape[1], stop + value.shape[1]
    while left < right:
        if left & 1:
            found = best_below(graph, value, tree, row, side, limit, left, found)
            left += 1
        if right & 1:
            right -= 1
            found = best_below(graph, value, tree, row, side, limit, right, found)
        left >>= 1
        right >>= 1
    return found


@njit(cache=True, nogil=True)
def firsts_of_kinds(kind: Int32, paths: Int32, limit: int) -> Int32:
    """Those of the paths [m, L] that are among the first `limit` of their kinds; all if kind [n] is empty."""
    if kind.size == 0 or paths.shape[0] <= limit:
        return paths
    room = 1
    while room < 2 * paths.shape[0]:
        room *= 2
    table, seen = (
        np.full(room, -1, np.int32),
        np.zeros(paths.shape[0], np.int64),
    )  # a path of each kind, how many so far
    found, count = np.empty_like(paths), 0
    for path in range(paths.shape[0]):
        slot = np.int64(0)
        for step in range(paths.shape[1]):
            slot = (slot ^ np.int64(kind[paths[path, step]])) * np.int64(0x9E3779B97F4A7C1) & np.int64((1 << 62) - 1)
        slot = (slot ^ (slot >> 31)) & (room - 1)
        while table[slot] >= 0 and not (kind[paths[table[slot]]] == kind[paths[path]]).all():
            slot = (slot + 1) & (room - 1)
        if table[slot] < 0:
            table[slot] = path
        seen[table[slot]] += 1
        if seen[table[slot]] <= limit:
            found[count] = paths[path]
            count += 1
    return found[:count]
