"""Build the tree of pattern prefixes, and lay out the measures of each prefix in columns.

One pattern is a tree with a single path; queries with a common prefix share a tree. A measure is loaded at the prefix
whose last event has the attribute. That prefix has a column for it, and so has every prefix between it and the end of a
query that needs the measure. Prefixes are numbered depth first, so the columns of a subtree are contiguous.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from streamsift.runtime.arrays.dtypes import Bool, Float64, Int32, Int64
from streamsift.runtime.count.extremes import NOTHING
from streamsift.runtime.count.groups import KeyTotals
from streamsift.runtime.count.measures import Addends, Measures, Totals


class PrefixTree(NamedTuple):
    """Prefixes [nodes], numbered depth first; number 0 is the empty prefix."""

    parent: Int64
    depth: Int64
    size: Int64  # the number of prefixes in its subtree, itself included
    ends: Bool  # True if the pattern of a query ends there
    path: Int64  # [nodes, depths] its prefix of each length

    @property
    def levels(self) -> int:
        return self.path.shape[1] - 1


def tree_of(parents: Sequence[int], terminals: Sequence[int]) -> PrefixTree:
    """Return the tree in which prefixes 1, 2, ... extend their `parents` by one step; queries end at `terminals`.

    One pattern of n steps is tree_of(range(n), [n]): prefix p has its first p steps.
    """
    nodes = len(parents) + 1
    parent, depth, size = np.array([0, *parents]), np.zeros(nodes, np.int64), np.ones(nodes, np.int64)
    for node in range(1, nodes):
        depth[node] = depth[parent[node]] + 1
    for node in range(nodes - 1, 0, -1):
        size[parent[node]] += size[node]
    path = np.zeros((nodes, int(depth.max()) + 1), np.int64)
    for node in range(1, nodes):
        path[node] = path[parent[node]]
        path[node, depth[node] :] = node
    ends = np.zeros(nodes, np.bool_)
    ends[list(terminals)] = True
    return PrefixTree(parent, depth, size, ends, path)


# --- measures --------------------------------------------------------------------------------------------------------


class Loads(NamedTuple):
    """The terms that an event adds as the last event of a prefix. Integer 0 and real 0 count paths: no prefix."""

    integer_levels: Int64  # [integers] the prefix that loads it; 0 for none
    real_levels: Int64  # [reals]
    least_levels: Int64  # [extremes]
    integers: Int64  # [integers, places]
    reals: Float64  # [reals, places]
    least: Int64  # [extremes, places]


def loads_of(measures: Measures, variables: Sequence[int]) -> Loads:
    """Return the measures by prefix instead of by variable; `variables` are the variables of prefixes 1, 2, ..."""
    node_of = {variable: node for node, variable in enumerate(variables, start=1)}

    def levels(block: Addends) -> Int64:
        return np.array([node_of.get(variable, 0) for variable, _ in block], np.int64)

    def values(block: Addends, dtype: type) -> np.ndarray:
        return np.vstack([np.empty((0, measures.events.rank.size), dtype), *(of_place for _, of_place in block)])

    integers, reals, least = measures.blocks
    added = values(integers, np.int64), values(reals, np.float64), values(least, np.int64)
    return Loads(levels(integers), levels(reals), levels(least), *added)


INTEGERS, REALS, LEAST = 0, 1, 2  # the blocks of measures


class PrefixColumns(NamedTuple):
    """The columns of the three blocks [blocks, ..], and the term of each event for each measure [measures, places].

    In the blocks of sums, the first column of each prefix is the number of paths.
    """

    first: Int64  # [.., nodes + 1] the first column of each prefix
    measure: Int64  # [.., columns]
    node: Int64  # [.., columns]
    loaded_at: Int64  # [.., columns] the prefix that loads it; -1 for the number of paths
    before: Int64  # [.., columns] the column of the same measure in the parent prefix; -1 for none
    chain: Int64  # [.., columns, depths] the column of the same measure in the prefix of each length
    first_load: Int64  # [.., nodes + 1] the offset of each prefix in `loads`
    loads: Int64  # [.., columns] the columns that each prefix loads
    integer_loads: Int64
    real_loads: Float64
    least_loads: Int64

    @property
    def widths(self) -> tuple[int, int, int]:
        """Return the maximum number of columns of a prefix in each block."""
        integers, reals, least = np.diff(self.first).max(axis=1).tolist()
        return integers, reals, least


def columns_of(tree: PrefixTree, loads: Loads, needed: Sequence[set[int]] | None = None) -> PrefixColumns:
    """Lay out the columns. `needed` lists for each prefix the prefixes whose measures it must carry; None for all."""
    nodes, depths = tree.path.shape
    room = nodes * max(levels.size for levels in loads[:3])
    names = ("measure", "node", "loaded_at", "before", "loads")
    of_columns: dict[str, Any] = {name: np.zeros((3, room), np.int64) for name in names}
    columns = PrefixColumns(
        first=np.zeros((3, nodes + 1), np.int64),
        first_load=np.zeros((3, nodes + 1), np.int64),
        chain=np.full((3, room, depths), -1, np.int64),
        **of_columns,
        integer_loads=loads.integers,
        real_loads=loads.reals,
        least_loads=loads.least,
    )
    for block, levels in enumerate(loads[:3]):
        column_of: dict[tuple[int, int], int] = {}
        for node in range(nodes):
            for number, at in enumerate(levels.tolist()):
                counts_paths = number == 0 and block != LEAST
                if counts_paths or (at > 0 and at in tree.path[node] and (needed is None or at in needed[node])):
                    column = column_of[node, number] = len(column_of)
                    columns.measure[block, column], columns.node[block, column] = number, node
                    columns.loaded_at[block, column] = -1 if counts_paths else at
            columns.first[block, node + 1] = len(column_of)
        for (node, number), column in column_of.items():
            for depth in range(int(tree.depth[node]) + 1):
                columns.chain[block, column, depth] = column_of.get((int(tree.path[node, depth]), number), -1)
            columns.before[block, column] = columns.chain[block, column, tree.depth[node] - 1] if node else -1
        loaded_at = columns.loaded_at[block, : len(column_of)]
        columns.loads[block, : len(column_of)] = np.argsort(loaded_at, kind="stable")
        columns.first_load[block] = np.searchsorted(np.sort(loaded_at), np.arange(nodes + 1))
    return columns


class TotalRecords(NamedTuple):
    """Totals over time as kernels write them: contiguous by prefix, then ordered by key and stamp."""

    key: Int32
    stamp: Int64
    ends: Bool
    integers: Int64  # [records, maximum number of columns of a prefix]
    reals: Float64
    least: Int64

    @staticmethod
    def room(records: int, widths: tuple[int, int, int] = (1, 1, 0)) -> TotalRecords:
        """Allocate records; the default widths are for COUNT alone."""
        stamps = np.empty(records, np.int32), np.empty(records, np.int64), np.empty(records, np.bool_)
        integers, least = (np.empty((records, width), np.int64) for width in (widths[0], widths[2]))
        return TotalRecords(*stamps, integers, np.empty((records, widths[1]), np.float64), least)

    def totals(self, written: slice, group: Int32, columns: PrefixColumns | None = None, node: int = 0) -> KeyTotals:
        """Return the records of a prefix; `group` [keys]. Measures without a column are empty."""
        key, values = self.key[written], Totals(self.integers[written], self.reals[written], self.least[written])
        if columns is not None:
            blocks = zip(values, columns[-3:], (0, 0, NOTHING), strict=True)
            values = Totals(*(_spread(columns, node, block, *of) for block, of in enumerate(blocks)))
        return KeyTotals(group[key], self.stamp[written], self.ends[written], values, key)


def _spread(columns: PrefixColumns, node: int, block: int, values: np.ndarray, loads: np.ndarray, empty: int) -> Any:
    """Return a column for every measure of a block; measures that the prefix does not carry are `empty`."""
    present = columns.measure[block, columns.first[block, node] : columns.first[block, node + 1]]
    if present.size == len(loads):
        return values[:, : len(loads)]
    # Column-major zeros: columns that are never written take no memory.
    spread = np.zeros((len(values), len(loads)), values.dtype, order="F")
    if empty:
        spread[:] = empty
    spread[:, present] = values[:, : present.size]
    return spread
