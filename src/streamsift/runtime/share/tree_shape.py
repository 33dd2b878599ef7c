"""A tree of prefixes in, its arrays out, and the bound for its counts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.physical.share import SharedTree
from streamsift.runtime.arrays.dtypes import Bool, Int64
from streamsift.runtime.share.alphabet import Letters, Steps, packed


class Shape(NamedTuple):
    """The tree; number 0 is the empty prefix."""

    parent: Int64  # [nodes]
    depth: Int64
    size: Int64
    ends: Bool  # a query's pattern ends there
    path: Int64  # [nodes, depths] the prefix of each length
    letters: Letters
    room: Int64  # [nodes + 1] where the counts of each prefix at which a query ends are written


def shape_of(tree: SharedTree, lists: list[list[int]], candidates: list[int]) -> Shape:
    nodes = tree.nodes
    path = np.zeros((len(nodes) + 1, max(node.depth for node in nodes) + 1), np.int64)
    for number, node in enumerate(nodes, start=1):
        path[number] = path[node.parent]
        path[number, node.depth :] = number
    ends = np.zeros(len(nodes) + 1, np.bool_)
    ends[list(tree.terminals.values())] = True
    most = np.zeros(len(nodes) + 1, np.int64)
    for entries, count in zip(lists, candidates, strict=True):
        most[[entry for entry in entries if entry > 0]] = count
    return Shape(
        np.array([0, *(node.parent for node in nodes)]),
        np.array([0, *(node.depth for node in nodes)]),
        np.array([len(nodes) + 1, *(node.size for node in nodes)]),
        ends,
        path,
        packed(lists, nodes),
        np.append(0, np.cumsum(np.where(ends, most, 0))),
    )


@njit(cache=True, nogil=True)
def most_in_window(shape: Shape, steps: Steps) -> tuple[float, int]:
    """A bound for every count: the product, along a path, of the most events of each prefix in one window; and the most
    starts in one window."""
    letters = shape.letters.first.size - 1
    held, most = np.zeros(letters, np.int64), np.zeros(letters, np.int64)
    product = np.ones(shape.parent.size, np.float64)
    bound, most_starts = 0.0, 0
    for group in range(steps.offsets.size - 1):
        held[:] = 0
        most[:] = 0
        tail, ahead = steps.offsets[group], steps.offsets[group]
        starts = 0
        for i in range(steps.offsets[group], steps.offsets[group + 1]):
            # What lies before the first start in the window is in no match of it.
            while ahead < i and steps.leaving[ahead] <= steps.stamp[i]:
                ahead += 1
            while tail < ahead:
                held[steps.letter[tail]] -= 1
                starts -= steps.leaving[tail] >= 0
                tail += 1
            starts += steps.leaving[i] >= 0
            most_starts = max(most_starts, starts)
            letter = steps.letter[i]
            held[letter] += 1
            most[letter] = max(most[letter], held[letter])
        for letter in range(letters):
            for k in range(shape.letters.first[letter], shape.letters.first[letter + 1]):
                if shape.letters.adds[k] > 0:
                    product[shape.letters.adds[k]] = most[letter]
        for node in range(1, product.size):
            product[node] *= product[shape.parent[node]]
            bound = max(bound, product[node])
    return bound, most_starts
