"""Sets of paths in, the one with the best path out: a binary heap of Numba arrays that grow.

Best is the greatest sum, then the earliest events, step by step: the order of the ranking itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Float64, Int32


class Heap(NamedTuple):
    """Sets of paths, each with its best one; rows are numbered as they come."""

    paths: Int32  # [nodes, L] the best path, as entries
    sums: Float64  # [nodes]
    nodes: Int32  # [nodes, 5] root, split, decision, and the entries [start, stop) that it chooses from
    order: Int32  # [nodes] a binary heap of their numbers


@njit(cache=True, nogil=True)
def precedes(ties: Int32, sums: Float64, paths: Int32, one: int, two: int) -> bool:
    """Whether node `one` comes out before `two`: greater sum, then earlier events, step by step, level by level."""
    if sums[one] != sums[two]:
        return sums[one] > sums[two]
    for level in range(ties.shape[0]):
        for step in range(paths.shape[1]):
            left, right = ties[level, paths[one, step]], ties[level, paths[two, step]]
            if left != right:
                return left < right
    return one < two


@njit(cache=True, nogil=True)
def heap_push(ties: Int32, sums: Float64, paths: Int32, order: Int32, size: int, node: int) -> None:
    place = size
    while place > 0:
        parent = (place - 1) >> 1
        if not precedes(ties, sums, paths, node, order[parent]):
            break
        order[place] = order[parent]
        place = parent
    order[place] = node


@njit(cache=True, nogil=True)
def heap_pop(ties: Int32, sums: Float64, paths: Int32, order: Int32, size: int) -> int:
    """Removes and returns the first of `size` nodes."""
    top, moved, place = order[0], order[size - 1], 0
    size -= 1
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and precedes(ties, sums, paths, order[child + 1], order[child]):
            child += 1
        if not precedes(ties, sums, paths, order[child], moved):
            break
        order[place] = order[child]
        place = child
    order[place] = moved
    return top


@njit(cache=True, nogil=True)
def in_order(ties: Int32, paths: Int32, sums: Float64) -> tuple[Int32, Float64]:
    """Paths [m, L] and their sums, best first: those of sets whose sums round are read in nearly this order."""
    order, size = np.empty(sums.size, np.int32), sums.size
    for node in range(size):
        heap_push(ties, sums, paths, order, node, node)
    sorted_paths, sorted_sums = np.empty_like(paths), np.empty_like(sums)
    for place in range(size):
        node = heap_pop(ties, sums, paths, order, size - place)
        sorted_paths[place], sorted_sums[place] = paths[node], sums[node]
    return sorted_paths, sorted_sums
