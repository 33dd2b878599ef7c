"""Sets of matches that count during a range of result rows in, the totals of every result row out, without subtracting.

The candidates for result rows, ordered by group and stamp, are the leaves of a segment tree. A set is added to the few
nodes that cover its range; at the end every node hands its total down. Nothing is ever taken away again, so sums of
doubles do not cancel, and minima need no second structure. Memory is that of the leaves, however many the matches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Bool, Float64, Int32, Int64
from streamsift.runtime.count.measures import NOTHING, Totals
from streamsift.runtime.events.stamps import NEVER


@dataclass(frozen=True, slots=True)
class Leaves:
    """Candidates for result rows, ordered by (group, stamp)."""

    group: Int32
    stamp: Int64

    @staticmethod
    def of(groups: Int32, stamps: Int64) -> Leaves:
        """The distinct pairs, without those of no group and no time."""
        keep = (groups >= 0) & (stamps != NEVER)
        groups, stamps = groups[keep], stamps[keep]
        order = np.lexsort((stamps, groups))
        groups, stamps = groups[order], stamps[order]
        new = np.ones(groups.size, np.bool_)
        new[1:] = (np.diff(groups) != 0) | (np.diff(stamps) != 0)
        return Leaves(groups[new], stamps[new])

    def index(self, groups: Int32, stamps: Int64) -> Int64:
        """For each pair the first leaf of its group that is not earlier; the group's end if there is none."""
        return first_leaves(self.group, self.stamp, groups, stamps)


@njit(cache=True, nogil=True)
def first_leaves(leaf_groups: Int32, leaf_stamps: Int64, groups: Int32, stamps: Int64) -> Int64:
    found = np.zeros(groups.size, np.int64)
    for i in range(groups.size):
        low, high = 0, leaf_groups.size
        while low < high:
            middle = (low + high) // 2
            group = leaf_groups[middle]
            if group < groups[i] or (group == groups[i] and leaf_stamps[middle] < stamps[i]):
                low = middle + 1
            else:
                high = middle
        found[i] = low
    return found


class Canvas:
    """Totals for every leaf, and whether a match ends there."""

    def __init__(self, leaves: Leaves, totals_of_none: Totals) -> None:
        size = max(1, leaves.group.size)
        self.leaves = leaves
        self.ends: Bool = np.zeros(size, np.bool_)
        shapes = [block.shape[1] for block in totals_of_none]
        self.nodes = Totals(
            np.zeros((2 * size, shapes[0]), np.int64),
            np.zeros((2 * size, shapes[1]), np.float64),
            np.full((2 * size, shapes[2]), NOTHING, np.int64),
        )

    def paint(self, first: Int64, after: Int64, totals: Totals, ends: Bool) -> None:
        """Adds sets of matches to the leaves [first, after); where `ends`, a match ends at the first of them."""
        self.ends[first[ends]] = True
        add_ranges(*self.nodes, first, after, *totals)

    def finished(self) -> Totals:
        hand_down(*self.nodes)
        count = self.leaves.group.size
        return self.nodes.at(np.arange(self.ends.size, self.ends.size + count))


@njit(cache=True, nogil=True, inline="always")
def add_to(
    node_integers: Int64, node_reals: Float64, node_least: Int64, node: int, more: tuple[Int64, Float64, Int64], i: int
) -> None:
    for c in range(node_integers.shape[1]):
        node_integers[node, c] += more[0][i, c]
    for c in range(node_reals.shape[1]):
        node_reals[node, c] += more[1][i, c]
    for c in range(node_least.shape[1]):
        node_least[node, c] = min(node_least[node, c], more[2][i, c])


@njit(cache=True, nogil=True)
def add_ranges(
    node_integers: Int64,
    node_reals: Float64,
    node_least: Int64,
    first: Int64,
    after: Int64,
    integers: Int64,
    reals: Float64,
    least: Int64,
) -> None:
    """Adds set i to the nodes that cover leaves first[i] to after[i] - 1. Leaf k is node size + k, above 2n is n."""
    size = node_integers.shape[0] // 2
    more = (integers, reals, least)
    for i in range(first.size):
        low, high = first[i] + size, after[i] + size
        while low < high:
            if low & 1:
                add_to(node_integers, node_reals, node_least, low, more, i)
                low += 1
            if high & 1:
                high -= 1
                add_to(node_integers, node_reals, node_least, high, more, i)
            low >>= 1
            high >>= 1


@njit(cache=True, nogil=True)
def hand_down(node_integers: Int64, node_reals: Float64, node_least: Int64) -> None:
    """Adds every node to its two children, from the root down."""
    size = node_integers.shape[0] // 2
    more = (node_integers, node_reals, node_least)
    for node in range(2, 2 * size):
        add_to(node_integers, node_reals, node_least, node, more, node // 2)
