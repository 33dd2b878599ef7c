"""Describe prefixes of patterns as a tree, and the columns of measures that each prefix has.

One pattern is a tree of one path; queries that begin alike share a tree. A measure is loaded at the prefix whose last
event has the attribute, and carried through every prefix that extends it to the end of a query that needs it. Each of
these has a column for it; so the columns of the prefixes that extend a prefix lie side by side, like those prefixes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from streamsift.runtime.arrays.dtypes import Bool, Float64, Int64
from streamsift.runtime.count.extremes import NOTHING
from streamsift.runtime.count.measures import Measures, Totals


class PrefixTree(NamedTuple):
    """Prefixes [nodes], numbered depth first; number 0 is the empty prefix."""

    parent: Int64
    depth: Int64
    size: Int64  # how many prefixes extend it, itself included
    ends: Bool  # the pattern of a query ends there
    path: Int64  # [nodes, depths] the prefix of each length

    @property
    def levels(self) -> int:
        return self.path.shape[1] - 1


def tree_of(parents: Sequence[int], terminals: Sequence[int]) -> PrefixTree:
    """Return the tree whose prefixes, from number 1 on, extend `parents` by one step each."""
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


def tree_of_steps(steps: int) -> PrefixTree:
    """Return the tree of one pattern: prefix p has its first p steps."""
    return tree_of(range(steps), [steps])


# --- measures --------------------------------------------------------------------------------------------------------


class Loads(NamedTuple):
    """What an event adds as the last one of a prefix. Number 0 of integers and reals counts paths: it has no prefix."""

    integer_levels: Int64  # [integers] the prefix; 0: none
    integers: Int64  # [integers, places]
    real_levels: Int64  # [reals]
    reals: Float64  # [reals, places]
    least_levels: Int64  # [extremes]
    least: Int64  # [extremes, places]


def loads_of(measures: Measures, variables: Sequence[int]) -> Loads:
    """Return the measures by prefix instead of by variable; `variables` are those of the prefixes from number 1 on."""
    node_of = {variable: node for node, variable in enumerate(variables, start=1)}

    def levels(*of: int) -> Int64:
        return np.array([node_of.get(variable, 0) for variable in of], np.int64)

    places = measures.events.rank.size
    integers, reals, least = measures.integer_values, measures.real_values, measures.least_values
    counted = np.zeros((1, places))  # paths count themselves: no event adds to their number
    return Loads(
        np.append(0, levels(*measures.integer_variables)),
        np.vstack([counted.astype(np.int64), *integers]),
        np.append(0, levels(*measures.integer_variables, *measures.real_variables)),
        np.vstack([counted, *(np.abs(values.astype(np.float64)) for values in integers), *reals]),
        levels(*measures.least_variables),
        np.vstack(least) if least else np.empty((0, places), np.int64),
    )


INTEGERS, REALS, LEAST = 0, 1, 2  # the blocks of measures


class PrefixColumns(NamedTuple):
    """The columns of the three blocks [blocks, ..], and what each event adds to each measure [measures, places].

    The blocks of sums begin each prefix's columns with the number of paths.
    """

    first: Int64  # [.., nodes + 1] the columns of each prefix
    measure: Int64  # [.., columns]
    node: Int64  # [.., columns]
    loaded_at: Int64  # [.., columns] the prefix whose event adds to it; -1 for the number of paths
    before: Int64  # [.., columns] the column of the same measure in the prefix without its last step; -1 for none
    chain: Int64  # [.., columns, depths] that in the prefix of each length
    first_load: Int64  # [.., nodes + 1] where `loads` of each prefix begin
    loads: Int64  # [.., columns] the columns to which the last event of each prefix adds
    integer_loads: Int64
    real_loads: Float64
    least_loads: Int64

    def widths(self) -> tuple[int, int, int]:
        """Return how many columns each block has."""
        integers, reals, least = self.first[:, -1].tolist()
        return integers, reals, least

    def with_loads(self, loads: Loads) -> PrefixColumns:
        """Return the same columns, with what other events add."""
        return self._replace(integer_loads=loads.integers, real_loads=loads.reals, least_loads=loads.least)


def columns_of(tree: PrefixTree, loads: Loads, needed: Sequence[set[int]] | None = None) -> PrefixColumns:
    """`needed`: for each prefix the prefixes whose measures some query that goes through it needs; None: all."""
    nodes, depths = tree.path.shape
    levels = [loads.integer_levels, loads.real_levels, loads.least_levels]
    room = nodes * max(part.size for part in levels)
    first, first_load = np.zeros((3, nodes + 1), np.int64), np.zeros((3, nodes + 1), np.int64)
    measure, of_node, loaded_at, before, at_load = (np.zeros((3, room), np.int64) for _ in range(5))
    chain = np.full((3, room, depths), -1, np.int64)
    for block, loading in enumerate(levels):
        column_of: dict[tuple[int, int], int] = {}
        for node in range(nodes):
            for number, at in enumerate(loading.tolist()):
                counts_paths = number == 0 and block != LEAST
                if counts_paths or (at > 0 and at in tree.path[node] and (needed is None or at in needed[node])):
                    column = column_of[node, number] = len(column_of)
                    measure[block, column], of_node[block, column] = number, node
                    loaded_at[block, column] = -1 if counts_paths else at
            first[block, node + 1] = len(column_of)
        for (node, number), column in column_of.items():
            for depth in range(int(tree.depth[node]) + 1):
                chain[block, column, depth] = column_of.get((int(tree.path[node, depth]), number), -1)
            before[block, column] = chain[block, column, tree.depth[node] - 1] if node else -1
        loads_of_block = loaded_at[block, : len(column_of)]
        at_load[block, : len(column_of)] = np.argsort(loads_of_block, kind="stable")
        first_load[block] = np.searchsorted(np.sort(loads_of_block), np.arange(nodes + 1))
    return PrefixColumns(
        first=first,
        measure=measure,
        node=of_node,
        loaded_at=loaded_at,
        before=before,
        chain=chain,
        first_load=first_load,
        loads=at_load,
        integer_loads=loads.integers,
        real_loads=loads.reals,
        least_loads=loads.least,
    )


def totals_of(columns: PrefixColumns, node: int, integers: Int64, reals: Float64, least: Int64) -> Totals:
    """Return the records of a prefix as totals with a column for every measure: those that it lacks are empty."""

    def spread(block: int, values: np.ndarray, measures: int, empty: int) -> np.ndarray:
        present = columns.measure[block, columns.first[block, node] : columns.first[block, node + 1]]
        if present.size == measures:
            return values[:, :measures]
        # By columns, and zeros: those without a measure take no memory until they are touched.
        found = np.zeros((len(values), measures), values.dtype, order="F")
        if empty:
            found[:] = empty
        found[:, present] = values[:, : present.size]
        return found

    return Totals(
        spread(INTEGERS, integers, len(columns.integer_loads), 0),
        spread(REALS, reals, len(columns.real_loads), 0),
        spread(LEAST, least, len(columns.least_loads), NOTHING),
    )
