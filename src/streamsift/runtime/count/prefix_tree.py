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


class PrefixColumns(NamedTuple):
    """The columns of one block of measures. A block of sums begins each prefix's columns with the number of paths."""

    first: Int64  # [nodes + 1] the columns of each prefix
    measure: Int64  # [columns]
    node: Int64  # [columns]
    loaded_at: Int64  # [columns] the prefix whose event adds to it; -1 for the number of paths
    first_load: Int64  # [nodes + 1] where `loads` of each prefix begin
    loads: Int64  # the columns to which the last event of each prefix adds
    chain: Int64  # [columns, depths] the column of the same measure in the prefix of each length; -1 for none
    before: Int64  # [columns] the one in the prefix without its last step


class Blocks(NamedTuple):
    """The columns of the three blocks, and what each event adds to each measure [measures, places]."""

    integers: PrefixColumns
    reals: PrefixColumns
    least: PrefixColumns
    integer_loads: Int64
    real_loads: Float64
    least_loads: Int64


def blocks_of(tree: PrefixTree, loads: Loads, needed: Sequence[set[int]] | None = None) -> Blocks:
    """`needed`: for each prefix the prefixes whose measures some query that goes through it needs; None: all."""
    counted = np.array([-1])
    return Blocks(
        _columns(tree, np.append(counted, loads.integer_levels[1:]), needed),
        _columns(tree, np.append(counted, loads.real_levels[1:]), needed),
        _columns(tree, loads.least_levels, needed),
        loads.integers,
        loads.reals,
        loads.least,
    )


def _columns(tree: PrefixTree, loaded_at: Int64, needed: Sequence[set[int]] | None) -> PrefixColumns:
    path, number = tree.path, dict[tuple[int, int], int]()
    first = [0]
    for node in range(path.shape[0]):
        for measure, at in enumerate(loaded_at.tolist()):
            if at < 0 or (at > 0 and at in path[node] and (needed is None or at in needed[node])):
                number[node, measure] = len(number)
        first.append(len(number))
    chain = np.full((len(number), path.shape[1]), -1, np.int64)
    before = np.full(len(number), -1, np.int64)
    for (node, measure), column in number.items():
        for depth in range(int(tree.depth[node]) + 1):
            chain[column, depth] = number.get((int(path[node, depth]), measure), -1)
        before[column] = chain[column, tree.depth[node] - 1] if node else -1
    nodes, measures = (np.array([pair[part] for pair in number], np.int64) for part in (0, 1))
    loading = loaded_at[measures]
    loads = np.argsort(loading, kind="stable")
    first_load = np.searchsorted(loading[loads], np.arange(path.shape[0] + 1))
    return PrefixColumns(np.array(first), measures, nodes, loading, first_load, loads, chain, before)


def totals_of(blocks: Blocks, node: int, integers: Int64, reals: Float64, least: Int64) -> Totals:
    """Return the records of a prefix as totals with a column for every measure: those that it lacks are empty."""

    def spread(columns: PrefixColumns, values: np.ndarray, measures: int, empty: int) -> np.ndarray:
        present = columns.measure[columns.first[node] : columns.first[node + 1]]
        if present.size == measures:
            return values[:, :measures]
        # By columns, and zeros: those without a measure take no memory until they are touched.
        found = np.zeros((len(values), measures), values.dtype, order="F")
        if empty:
            found[:] = empty
        found[:, present] = values[:, : present.size]
        return found

    return Totals(
        spread(blocks.integers, integers, len(blocks.integer_loads), 0),
        spread(blocks.reals, reals, len(blocks.real_loads), 0),
        spread(blocks.least, least, len(blocks.least_loads), NOTHING),
    )
