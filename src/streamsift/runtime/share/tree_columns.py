"""A tree of prefixes and the measures of its queries in, columns of numbers for each prefix out.

A measure is loaded at the prefix whose last event has the attribute, and carried through every prefix that goes on from
there to the end of a query that asks for it. Each of these has a column for it; so columns of prefixes that go on from
a prefix lie side by side, like those prefixes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from streamsift.physical.share import SharedTree
from streamsift.runtime.arrays.dtypes import Float64, Int64
from streamsift.runtime.count import NOTHING, Measures, Totals


class Columns(NamedTuple):
    """The columns of one block of measures. A block of sums begins each prefix's columns with the number of paths."""

    first: Int64  # [nodes + 1] the columns of each prefix; number 0 is the empty prefix
    measure: Int64  # [columns]
    node: Int64  # [columns]
    loaded_at: Int64  # [columns] the prefix whose event adds to it; -1 for the number of paths
    first_load: Int64  # [nodes + 1] where `loads` of each prefix begin
    loads: Int64  # the columns to which the last event of each prefix adds
    chain: Int64  # [columns, depths] the column of the same measure in the prefix of each length; -1 for none
    before: Int64  # [columns] the one in the prefix without its last step


class Blocks(NamedTuple):
    """The three blocks, and what each event adds to each measure [measures, places]."""

    integers: Columns
    reals: Columns
    least: Columns
    integer_loads: Int64
    real_loads: Float64
    least_loads: Int64


def blocks_of(tree: SharedTree, measures: Measures, path: Int64, asked: Sequence[set[int]]) -> Blocks:
    """`asked`: for each prefix the variables that queries which go on from it ask for."""
    node_of = {node.step.variable: number for number, node in enumerate(tree.nodes, start=1)}
    counted = np.zeros((1, measures.events.rank.size))
    integers, reals = measures.integer_values, measures.real_values
    sizes = [np.abs(values.astype(np.float64)) for values in integers]
    of_integers = [node_of[variable] for variable in measures.integer_variables]
    of_reals = [node_of[variable] for variable in measures.real_variables]
    of_least = [node_of[variable] for variable in measures.least_variables]
    nodes = [{node_of[variable] for variable in variables} for variables in asked]
    return Blocks(
        _columns([-1, *of_integers], path, nodes),
        _columns([-1, *of_integers, *of_reals], path, nodes),
        _columns(of_least, path, nodes),
        np.vstack([counted.astype(np.int64), *integers]),
        np.vstack([counted, *sizes, *reals]),
        np.vstack(measures.least_values) if of_least else np.empty((0, counted.size), np.int64),
    )


def _columns(loaded_at: list[int], path: Int64, asked: Sequence[set[int]]) -> Columns:
    number: dict[tuple[int, int], int] = {}
    first = [0]
    for node in range(path.shape[0]):
        for measure, at in enumerate(loaded_at):
            if at < 0 or (at in path[node] and at in asked[node]):
                number[node, measure] = len(number)
        first.append(len(number))
    chain = np.full((len(number), path.shape[1]), -1, np.int64)
    before = np.full(len(number), -1, np.int64)
    for (node, measure), column in number.items():
        for depth, prefix in enumerate(_prefixes(path, node)):
            chain[column, depth] = number.get((prefix, measure), -1)
            if prefix != node:
                before[column] = chain[column, depth]
    nodes, measures = (np.array([pair[part] for pair in number], np.int64) for part in (0, 1))
    loading = np.array(loaded_at, np.int64)[measures]
    loads = np.argsort(loading, kind="stable")
    first_load = np.searchsorted(loading[loads], np.arange(path.shape[0] + 1))
    return Columns(np.array(first), measures, nodes, loading, first_load, loads, chain, before)


def _prefixes(path: Int64, node: int) -> Iterator[int]:
    """The prefixes of a prefix, from the empty one to itself."""
    for prefix in path[node]:
        yield int(prefix)
        if prefix == node:
            return


def totals_of(blocks: Blocks, node: int, integers: Int64, reals: Float64, least: Int64) -> Totals:
    """The records of a prefix as totals with a column for every measure: those that it does not have are empty."""

    def spread(columns: Columns, values: np.ndarray, empty: np.ndarray) -> np.ndarray:
        own = columns.measure[columns.first[node] : columns.first[node + 1]]
        empty[:, own] = values[:, : own.size]
        return empty

    # By columns, and zeros: those without a measure take no memory until they are touched.
    rows = len(integers)
    return Totals(
        spread(blocks.integers, integers, np.zeros((rows, len(blocks.integer_loads)), np.int64, order="F")),
        spread(blocks.reals, reals, np.zeros((rows, len(blocks.real_loads)), np.float64, order="F")),
        spread(blocks.least, least, np.full((rows, len(blocks.least_loads)), NOTHING, order="F")),
    )
