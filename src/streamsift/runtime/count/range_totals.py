"""Add sets of matches to ranges of result rows, and compute the total of every row, with a range-add segment tree.

The leaves of the tree are the candidate result rows, ordered by group and stamp. A set is added to the O(log n) nodes
that cover its range; at the end, every node is added to its children. Nothing is subtracted, so sums of doubles do not
cancel and minima need no second structure. Memory depends on the number of leaves, not of matches.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64
from streamsift.runtime.count.groups import KeyTotals, Timeline, is_last
from streamsift.runtime.count.measures import Totals, no_totals
from streamsift.runtime.events.stamps import NEVER


@njit(cache=True, nogil=True)
def first_leaves(leaf_groups: Int32, leaf_stamps: Int64, groups: Int32, stamps: Int64) -> Int64:
    first = np.zeros(groups.size, np.int64)
    for i in range(groups.size):
        low, high = 0, leaf_groups.size
        while low < high:
            middle = (low + high) // 2
            group = leaf_groups[middle]
            if group < groups[i] or (group == groups[i] and leaf_stamps[middle] < stamps[i]):
                low = middle + 1
            else:
                high = middle
        first[i] = low
    return first


class RangeTotals:
    """The totals of every leaf, and whether a match ends there."""

    def __init__(self, groups: Int32, stamps: Int64, shape: tuple[int, int, int]) -> None:
        """Create a leaf for each distinct (group, stamp), in order; skip pairs without a group or a stamp."""
        keep = (groups >= 0) & (stamps != NEVER)
        groups, stamps = groups[keep], stamps[keep]
        order = np.lexsort((stamps, groups))
        groups, stamps = groups[order], stamps[order]
        is_new = is_last(groups, stamps)
        self.group, self.stamp = groups[is_new], stamps[is_new]
        size = max(1, self.group.size)
        self.ends: Bool = np.zeros(size, np.bool_)
        self.nodes = no_totals(2 * size, shape)

    def index(self, groups: Int32, stamps: Int64) -> Int64:
        """Return for each pair the first leaf of its group at its stamp or later; the end of the group if none is."""
        return first_leaves(self.group, self.stamp, groups, stamps)

    def add(self, first: Int64, after: Int64, totals: Totals, ends: Bool) -> None:
        """Add each set of matches to the leaves [first, after); if `ends`, a match ends at leaf `first`."""
        self.ends[first[ends]] = True
        add_ranges(self.nodes, first, after, Totals._make(map(np.ascontiguousarray, totals)))

    def add_keys(self, keys: KeyTotals) -> None:
        """Add the totals of each key, each from its stamp to the next stamp of the key."""
        if not self.group.size:
            return
        enter = self.index(keys.group, keys.stamp)
        following = np.roll(enter, -1)
        ends_of_groups = np.searchsorted(self.group, keys.group, side="right")
        self.add(enter, np.where(is_last(keys.key), ends_of_groups, following), keys.totals, keys.ends)

    def timeline(self) -> Timeline:
        hand_down(self.nodes)
        size, count = self.ends.size, self.group.size
        totals = self.nodes.at(np.arange(size, size + count))
        return Timeline(self.group, self.stamp, self.ends[:count], totals)


@njit(cache=True, nogil=True, inline="always")
def add_to(nodes: Totals, node: int, more: Totals, i: int) -> None:
    for c in range(nodes.integers.shape[1]):
        nodes.integers[node, c] += more.integers[i, c]
    for c in range(nodes.reals.shape[1]):
        nodes.reals[node, c] += more.reals[i, c]
    for c in range(nodes.least.shape[1]):
        nodes.least[node, c] = min(nodes.least[node, c], more.least[i, c])


@njit(cache=True, nogil=True, inline="always")
def add_range_to(nodes: Totals, first: int, after: int, more: Totals, i: int) -> None:
    """Add set i to the nodes that cover leaves [first, after). Leaf k is node size + k; node n is above 2n, 2n + 1."""
    size = nodes.integers.shape[0] // 2
    low, high = first + size, after + size
    while low < high:
        if low & 1:
            add_to(nodes, low, more, i)
            low += 1
        if high & 1:
            high -= 1
            add_to(nodes, high, more, i)
        low >>= 1
        high >>= 1


@njit(cache=True, nogil=True)
def add_ranges(nodes: Totals, first: Int64, after: Int64, more: Totals) -> None:
    for i in range(first.size):
        add_range_to(nodes, first[i], after[i], more, i)


@njit(cache=True, nogil=True)
def hand_down(nodes: Totals) -> None:
    """Add every node to its two children, from the root down."""
    for node in range(2, nodes.integers.shape[0]):
        add_to(nodes, node, nodes, node // 2)
