"""Keep sets of paths in a binary heap, with the best path on top.

The best path has the greatest sum, then the earliest events, step by step, as in the ranking.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Float64, Int32, Int64
from streamsift.runtime.arrays.growing import grown

USED, SIZE = range(2)  # of Heap.counts


class Heap(NamedTuple):
    """Sets of paths, each with its best path; nodes are numbered in order of creation."""

    paths: Int32  # [nodes, L] the best path, as entries
    sums: Float64  # [nodes]
    nodes: Int32  # [nodes, 5] root (its number in the bucket), split, decision, entries [start, end) to choose from
    order: Int32  # [nodes] a binary heap of node numbers
    counts: Int64  # [2] nodes created, nodes in the heap


@njit(cache=True, nogil=True)
def heap_of(paths: Int32, sums: Float64) -> Heap:
    """Return an empty heap that uses the arrays paths [m, L] and sums [m]."""
    nodes, order = np.empty((sums.size, 5), np.int32), np.empty(sums.size, np.int32)
    return Heap(paths, sums, nodes, order, np.zeros(2, np.int64))


@njit(cache=True, nogil=True)
def larger(heap: Heap) -> Heap:
    return Heap(grown(heap.paths), grown(heap.sums), grown(heap.nodes), grown(heap.order), heap.counts)


@njit(cache=True, nogil=True)
def tie_order(ties: Int32, paths: Int32, one: int, others: Int32, two: int) -> int:
    """Compare two paths by tie breakers, level by level, step by step; negative if the first path comes first."""
    for level in range(ties.shape[0]):
        for step in range(paths.shape[1]):
            left, right = ties[level, paths[one, step]], ties[level, others[two, step]]
            if left != right:
                return -1 if left < right else 1
    return 0


@njit(cache=True, nogil=True)
def precedes(ties: Int32, sums: Float64, paths: Int32, one: int, two: int) -> bool:
    """Return True if node `one` is read before `two`: greater sum, then earlier events."""
    if sums[one] != sums[two]:
        return sums[one] > sums[two]
    order = tie_order(ties, paths, one, paths, two)
    return order < 0 if order != 0 else one < two


@njit(cache=True, nogil=True, inline="always")
def heap_push(ties: Int32, heap: Heap, node: int) -> None:
    order, slot = heap.order, heap.counts[SIZE]
    heap.counts[SIZE] += 1
    while slot > 0:
        parent = (slot - 1) >> 1
        if not precedes(ties, heap.sums, heap.paths, node, order[parent]):
            break
        order[slot] = order[parent]
        slot = parent
    order[slot] = node


@njit(cache=True, nogil=True)
def heap_pop(ties: Int32, heap: Heap) -> int:
    """Remove and return the first node."""
    sums, paths, order, size = heap.sums, heap.paths, heap.order, heap.counts[SIZE] - 1
    heap.counts[SIZE] = size
    top, moved, slot = order[0], order[size], 0
    while 2 * slot + 1 < size:
        child = 2 * slot + 1
        if child + 1 < size and precedes(ties, sums, paths, order[child + 1], order[child]):
            child += 1
        if not precedes(ties, sums, paths, order[child], moved):
            break
        order[slot] = order[child]
        slot = child
    order[slot] = moved
    return top


@njit(cache=True, nogil=True)
def in_order(ties: Int32, paths: Int32, sums: Float64) -> tuple[Int32, Float64]:
    """Sort paths [m, L] and their sums, best first; rounded sums are only nearly in this order when they are read."""
    heap = heap_of(paths, sums)
    for node in range(sums.size):
        heap_push(ties, heap, node)
    sorted_paths, sorted_sums = np.empty_like(paths), np.empty_like(sums)
    for number in range(sums.size):
        node = heap_pop(ties, heap)
        sorted_paths[number], sorted_sums[number] = paths[node], sums[node]
    return sorted_paths, sorted_sums
