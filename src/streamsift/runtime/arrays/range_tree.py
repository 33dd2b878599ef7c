"""Whole numbers in a row in, on demand the greatest of any stretch of them out, greatest first.

A tree of maxima is built once; a stretch costs what is taken from it times a logarithm, however long it is.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Int64
from streamsift.runtime.arrays.growing import longer

NOTHING = np.iinfo(np.int64).min  # a number that is never taken


@njit(cache=True, nogil=True)
def tree_of(values: Int64) -> Int64:
    """Node i has the children 2i and 2i + 1; the leaves are the second half."""
    size = 1
    while size < values.size:
        size *= 2
    tree = np.full(2 * size, NOTHING, np.int64)
    tree[size : size + values.size] = values
    for node in range(size - 1, 0, -1):
        tree[node] = max(tree[2 * node], tree[2 * node + 1])
    return tree


@njit(cache=True, nogil=True)
def greatest(tree: Int64, low: int, high: int, floor: int, most: int) -> Int64:
    """Where in [low, high) the numbers from the floor on are, greatest first, and so many of them at most."""
    size = tree.size // 2
    heap, count = np.empty(64, np.int64), 0
    found, taken = np.empty(64, np.int64), 0
    left, right = low + size, high + size
    while left < right:  # the nodes that make up the stretch
        if left & 1:
            heap, count = _pushed(tree, heap, count, left, floor)
            left += 1
        if right & 1:
            right -= 1
            heap, count = _pushed(tree, heap, count, right, floor)
        left >>= 1
        right >>= 1
    while count and taken < most:
        node = heap[0]
        count -= 1
        _sink(tree, heap, count, heap[count])
        while node < size:  # one of the children is as great as the node
            child = 2 * node if tree[2 * node] == tree[node] else 2 * node + 1
            heap, count = _pushed(tree, heap, count, child ^ 1, floor)
            node = child
        if taken == found.size:
            found = longer(found)
        found[taken] = node - size
        taken += 1
    return found[:taken].copy()


@njit(cache=True, nogil=True)
def _pushed(tree: Int64, heap: Int64, count: int, node: int, floor: int) -> tuple[Int64, int]:
    if tree[node] == NOTHING or tree[node] < floor:
        return heap, count
    if count == heap.size:
        heap = longer(heap)
    place = count
    while place > 0 and tree[heap[(place - 1) >> 1]] < tree[node]:
        heap[place] = heap[(place - 1) >> 1]
        place = (place - 1) >> 1
    heap[place] = node
    return heap, count + 1


@njit(cache=True, nogil=True)
def _sink(tree: Int64, heap: Int64, count: int, moved: int) -> None:
    """Puts a node where the first was."""
    place = 0
    while 2 * place + 1 < count:
        child = 2 * place + 1
        if child + 1 < count and tree[heap[child + 1]] > tree[heap[child]]:
            child += 1
        if tree[heap[child]] <= tree[moved]:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = moved
