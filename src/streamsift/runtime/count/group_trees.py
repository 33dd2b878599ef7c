"""Keep the totals of each group as a tree over its keys, so that a result row costs what changed.

A leaf holds the totals of one key, a node the sum of its children; the totals of a group are the sum of its root's
nodes. When the totals of a key change, the nodes above it are added up again from their children. Nothing is
subtracted, so sums of doubles do not cancel and minima need no second structure.

The nodes of a family are siblings with consecutive numbers. The tree of a group grows to the right, and upwards when
all families on its right edge are full, so the number of a leaf never changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64
from streamsift.runtime.arrays.growing import with_room
from streamsift.runtime.count.extremes import NOTHING
from streamsift.runtime.count.groups import KeyTotals, Timeline, is_last
from streamsift.runtime.count.measures import Totals, no_totals

SIBLINGS = 8  # nodes of a family
LEVELS = 22  # more than a tree can have
NONE = -1


class Trees(NamedTuple):
    """Families of nodes: family f has the nodes from f * SIBLINGS on."""

    parent: Int64  # [families] the node above, or NONE - group for the root of a group
    used: Int64  # [families] nodes in use
    edge: Int64  # [groups, LEVELS] the last family of each level, leaves first
    height: Int64  # [groups] levels of the tree


@njit(cache=True, nogil=True, inline="always")
def add_up(nodes: Totals, family: int, to: Totals, row: int) -> None:
    """Write the sum of a family to a row."""
    first = family * SIBLINGS
    for c in range(to.integers.shape[1]):
        whole = nodes.integers[first, c]
        for node in range(first + 1, first + SIBLINGS):
            whole += nodes.integers[node, c]
        to.integers[row, c] = whole
    for c in range(to.reals.shape[1]):
        real = nodes.reals[first, c]
        for node in range(first + 1, first + SIBLINGS):
            real += nodes.reals[node, c]
        to.reals[row, c] = real
    for c in range(to.least.shape[1]):
        least = nodes.least[first, c]
        for node in range(first + 1, first + SIBLINGS):
            least = min(least, nodes.least[node, c])
        to.least[row, c] = least


@njit(cache=True, nogil=True)
def add_leaves(trees: Trees, nodes: Totals, families: int, groups: Int64, begin: int, leaves: Int64) -> tuple[int, int]:
    """Number leaves [begin, ...) of the given groups, until families run out; return the next leaf and family."""
    for i in range(begin, groups.size):
        group = groups[i]
        if families + LEVELS > trees.parent.size:
            return i, families
        level = 0
        while level < trees.height[group] and trees.used[trees.edge[group, level]] == SIBLINGS:
            level += 1
        if level == trees.height[group]:
            family = families
            families += 1
            trees.parent[family] = NONE - group
            if level > 0:
                old = trees.edge[group, level - 1]
                trees.parent[old] = family * SIBLINGS
                trees.used[family] = 1
                add_up(nodes, old, nodes, family * SIBLINGS)
            trees.edge[group, level] = family
            trees.height[group] = level + 1
        while level > 0:
            above = trees.edge[group, level]
            level -= 1
            trees.parent[families] = above * SIBLINGS + trees.used[above]
            trees.used[above] += 1
            trees.edge[group, level] = families
            families += 1
        family = trees.edge[group, 0]
        leaves[i] = family * SIBLINGS + trees.used[family]
        trees.used[family] += 1
    return groups.size, families


@njit(cache=True, nogil=True)
def set_leaves(
    trees: Trees, nodes: Totals, roots: Totals, runs: Int64, groups: Int64, leaves: Int64, changed: Totals, rows: Totals
) -> None:
    """Set the leaves of each run of records, which have the same group, and write the group's totals to its row.

    `runs` [runs + 1] are the offsets of the runs.
    """
    touched = np.empty(max(1, leaves.size), np.int64)  # families of one level whose sum changed
    mark = np.full(trees.parent.size, NONE, np.int64)  # the last run that touched each family
    for run in range(runs.size - 1):
        group, count = groups[runs[run]], 0
        for i in range(runs[run], runs[run + 1]):
            leaf = leaves[i]
            nodes.integers[leaf] = changed.integers[i]
            nodes.reals[leaf] = changed.reals[i]
            nodes.least[leaf] = changed.least[i]
            if mark[leaf // SIBLINGS] != run:
                mark[leaf // SIBLINGS] = run
                touched[count] = leaf // SIBLINGS
                count += 1
        for _ in range(trees.height[group] - 1):
            families, count = count, 0
            for i in range(families):
                node = trees.parent[touched[i]]
                add_up(nodes, touched[i], nodes, node)
                if mark[node // SIBLINGS] != run:
                    mark[node // SIBLINGS] = run
                    touched[count] = node // SIBLINGS
                    count += 1
        add_up(nodes, touched[0], roots, group)
        rows.integers[run] = roots.integers[group]
        rows.reals[run] = roots.reals[group]
        rows.least[run] = roots.least[group]


class GroupTrees:
    """The current totals of each group, from the totals of the keys of all branches."""

    def __init__(self, shape: tuple[int, int, int], branches: int) -> None:
        self._shape = shape
        self._nodes, self._roots = no_totals(0, shape), no_totals(0, shape)
        none = np.zeros(0, np.int64)
        self._trees = Trees(none, none, np.zeros((0, LEVELS), np.int64), none)
        self._leaves = [none] * branches  # [branch][slots] the leaf of each key
        self._keys = [0] * branches
        self._families = 0

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in (*self._nodes, *self._roots, *self._trees, *self._leaves))

    def clear(self) -> None:
        """Forget the totals of all keys."""
        for totals in (self._nodes, self._roots):
            totals.integers[:], totals.reals[:], totals.least[:] = 0, 0.0, NOTHING

    def at_ends(self, branches: Sequence[KeyTotals]) -> Timeline:
        """Apply the changes of all branches; return the totals of a group wherever one of its matches ends."""
        rows = self._changed(branches)
        return rows.at(np.flatnonzero(rows.ends))

    def at_ticks(self, branches: Sequence[KeyTotals], first: int, last: int) -> Timeline:
        """Apply the changes of all branches; return the totals of each group from the first to the last tick."""
        positive = np.flatnonzero(self._roots.reals[:, 0] > 0)
        before = Timeline(
            positive.astype(np.int32),
            np.full(positive.size, first),
            np.zeros(positive.size, np.bool_),
            self._roots.at(positive),
        )
        rows = _joined(before, self._changed(branches))
        rows = rows.at(np.lexsort((rows.stamp, rows.group)))  # stable: a change at the first tick follows what it ends
        closing = rows.at(np.flatnonzero(is_last(rows.group)))
        rows = _joined(
            rows, Timeline(closing.group, np.full(closing.group.size, last + 1), closing.ends & False, closing.totals)
        )
        return rows.at(np.lexsort((rows.stamp, rows.group)))

    def _changed(self, branches: Sequence[KeyTotals]) -> Timeline:
        """Apply records in order of group and stamp; return the totals of each group after each of its stamps."""
        leaves = np.concatenate([self._leaves[b][keys.key] for b, keys in enumerate(branches)])
        joined = _joined(*branches)
        order = np.lexsort((joined.stamp, joined.group))  # stable: the records of a key stay in order
        order = order[joined.group[order] >= 0]
        changes, leaves = joined.at(order), leaves[order]
        last = np.flatnonzero(is_last(changes.group, changes.stamp))
        runs = np.append(0, last + 1)
        rows = no_totals(last.size, self._shape)
        totals = Totals._make(map(np.ascontiguousarray, changes.totals))
        groups = changes.group.astype(np.int64)
        set_leaves(self._trees, self._nodes, self._roots, runs, groups, leaves, totals, rows)
        ends: Bool = np.add.reduceat(changes.ends, runs[:-1]) > 0 if last.size else changes.ends
        return Timeline(changes.group[last], changes.stamp[last], ends, rows)

    def add_keys(self, branch: int, groups: Int32) -> None:
        """Make a leaf for each new key of a branch; `groups` [slots] are the groups of all its keys so far."""
        earlier = self._keys[branch]
        if groups.size == earlier:
            return
        leaves = self._leaves[branch] = with_room(self._leaves[branch], groups.size, fill=NONE)
        self._keys[branch], at = groups.size, earlier
        most = int(groups[earlier:].max()) + 1
        height, edge = with_room(self._trees.height, most), with_room(self._trees.edge, most)
        self._trees = self._trees._replace(height=height, edge=edge)
        self._roots = _with_room(self._roots, most)
        grouped = earlier + np.flatnonzero(groups[earlier:] >= 0)
        numbers, new = np.empty(grouped.size, np.int64), groups[grouped].astype(np.int64)
        at = 0
        while at < grouped.size:
            self._grow(self._families + LEVELS + (grouped.size - at) // (SIBLINGS - 1))
            at, self._families = add_leaves(self._trees, self._nodes, self._families, new, at, numbers)
        leaves[grouped] = numbers

    def _grow(self, families: int) -> None:
        parent, used = with_room(self._trees.parent, families), with_room(self._trees.used, families)
        self._trees = self._trees._replace(parent=parent, used=used)
        self._nodes = _with_room(self._nodes, parent.size * SIBLINGS)


def _with_room(totals: Totals, needed: int) -> Totals:
    integers, reals = with_room(totals.integers, needed), with_room(totals.reals, needed)
    return Totals(integers, reals, with_room(totals.least, needed, fill=NOTHING))


def _joined(*parts: Timeline) -> Timeline:
    group, stamp, ends = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("group", "stamp", "ends")
    )
    return Timeline(
        group, stamp, ends, Totals(*map(np.concatenate, zip(*(part.totals for part in parts), strict=True)))
    )
