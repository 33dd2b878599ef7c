"""Read the largest integers of any range of an array, in descending order, from a segment tree of maxima.

The tree is built once. Each number that is read costs O(log n), however long the range is.
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Int64

NOTHING = np.iinfo(np.int64).min  # padding, never returned


@njit(cache=True, nogil=True)
def tree_of(values: Int64) -> Int64:
    """Return a tree in which node i has the children 2i and 2i + 1; the second half are the leaves."""
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
    """Return the indices in [low, high) of the `most` largest numbers that are >= floor, in descending order."""
    size, floor = tree.size // 2, max(floor, NOTHING + 1)
    heap = [(np.int64(0), np.int64(0)) for _ in range(0)]  # (-maximum, node): subtrees that are not read yet
    places, taken = np.empty(max(0, min(most, high - low)), np.int64), 0
    left, right = low + size, high + size
    while left < right:  # push the nodes that cover the range
        if left & 1:
            if tree[left] >= floor:
                heappush(heap, (-tree[left], np.int64(left)))
            left += 1
        if right & 1:
            right -= 1
            if tree[right] >= floor:
                heappush(heap, (-tree[right], np.int64(right)))
        left >>= 1
        right >>= 1
    while heap and taken < most:
        _, node = heappop(heap)
        while node < size:  # descend to the child that holds the maximum
            child = 2 * node if tree[2 * node] == tree[node] else 2 * node + 1
            if tree[child ^ 1] >= floor:
                heappush(heap, (-tree[child ^ 1], child ^ 1))
            node = child
        places[taken] = node - size
        taken += 1
    return places[:taken]
