"""The entries of a stratified graph in, their kinds out: a path of kinds stands for all that only times tell apart.

Two entries of a step are of one kind if they share the key, every value that the score reads and both sides of every
comparison. Paths of the same kinds have the same score, to the last bit, and the same comparisons hold. So where very
many sums are too close to be told apart, it is enough to look at one path of each kind: in front of a cut the one whose
entries are the first of their kinds to follow each other, for they leave most to follow; behind it, where paths are
chosen backwards, the one whose entries are the last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.physical.plan import PathPlan
from streamsift.runtime.candidates import step_rows
from streamsift.runtime.codes import codes
from streamsift.runtime.evaluate import evaluate
from streamsift.runtime.events import Events
from streamsift.runtime.kernels import Float64, Int32, Int64
from streamsift.runtime.path_graph import Graph


class Kinds(NamedTuple):
    """Kinds of different steps or groups are different."""

    kind: Int32  # [n]
    starts: Int64  # [kinds + 1] where the members of each begin
    members: Int32  # [n] entries, kind by kind, each in order


def kinds_of(plan: PathPlan, events: Events, graph: Graph, pairs: Int64, coded: Int64) -> Kinds:
    """`pairs` and `coded` as those of Roots."""
    steps = graph.offsets.shape[0]
    values = [np.zeros(graph.place.size, np.int64) for _ in range(len(plan.score.terms) + coded.shape[0])]
    step_of = {step.variable: number for number, step in enumerate(plan.alternative.steps)}
    for value, term in zip(values, plan.score.terms, strict=False):
        step = step_of[term.column.variable]
        own = slice(graph.offsets[step, 0], graph.offsets[step, -1])
        rows = step_rows(plan.alternative, events, events.rows_at(graph.place[own]))
        value[own] = codes([evaluate(term.column, rows)], ordered=False)[0]
    for number, (earlier, this) in enumerate(pairs[:, :2]):
        for side, step in enumerate((earlier, this)):
            own = slice(graph.offsets[step, 0], graph.offsets[step, -1])
            values[len(plan.score.terms) + 2 * number + side][own] = coded[2 * number + side, own]
    groups = graph.offsets.shape[1] - 1
    group_of = np.concatenate([np.repeat(np.arange(groups), np.diff(graph.offsets[step])) for step in range(steps)])
    apart = [*values, group_of, np.repeat(np.arange(steps), graph.offsets[:, -1] - graph.offsets[:, 0])]
    members = np.lexsort(apart)
    is_new = np.zeros(members.size, np.bool_)
    for column in apart:
        is_new |= np.diff(column[members], prepend=-1) != 0
    is_new[:1] = True
    kind = np.empty(members.size, np.int32)
    kind[members] = np.cumsum(is_new) - 1
    return Kinds(kind, np.append(np.flatnonzero(is_new), members.size), members.astype(np.int32))


def told_by_kinds(graph: Graph, kinds: Kinds) -> Graph:
    """The graph with repeats: the last entry of the same kind before each, and the next one behind it, negated."""
    n, members = graph.place.size, kinds.members
    repeats = np.empty((2, n), np.int32)
    is_repeat = kinds.kind[members[1:]] == kinds.kind[members[:-1]]
    repeats[0, members] = np.append(-1, np.where(is_repeat, members[:-1], -1))
    repeats[1, members] = -np.append(np.where(is_repeat, members[1:], n), n)
    tree = np.empty((2, 2 * n), np.int32)
    least_over_ranges(repeats, tree)
    return graph._replace(repeats=repeats, repeats_tree=tree)


@njit(cache=True, nogil=True)
def least_over_ranges(values: Int32, tree: Int32) -> None:
    n = values.shape[1]
    for side in range(values.shape[0]):
        for entry in range(n):
            tree[side, n + entry] = values[side, entry]
        for node in range(n - 1, 0, -1):
            tree[side, node] = min(tree[side, 2 * node], tree[side, 2 * node + 1])


@njit(cache=True, nogil=True)
def best_below(
    graph: Graph, value: Float64, tree: Int32, row: int, side: int, limit: int, node: int, found: int
) -> int:
    """The best of `found` and the entries under a node with repeats below the limit: depth first, without a stack."""
    root, n = node, value.shape[1]
    while True:
        entry, is_done = tree[row, node], True
        if entry >= 0 and (found < 0 or value[row, entry] > value[row, found]):
            if graph.repeats[side, entry] < limit:
                found = entry
            else:
                is_done = node >= n or graph.repeats_tree[side, node] >= limit
        if not is_done:
            node *= 2
            continue
        while node != root and node & 1:
            node >>= 1
        if node == root:
            return found
        node += 1


@njit(cache=True, nogil=True)
def best_new_in(graph: Graph, split: int, decision: int, start: int, stop: int, low: int, high: int) -> int:
    """The best of the entries [start, stop) that is the first of its kind from `low` on, or the last before `high`."""
    is_front = decision < split
    value, tree = (graph.front, graph.front_tree) if is_front else (graph.back, graph.back_tree)
    row, side, limit = (split - 1, 0, low) if is_front else (split, 1, 1 - high)
    found, left, right = -1, start + value.shape[1], stop + value.shape[1]
    while left < right:
        if left & 1:
            found = best_below(graph, value, tree, row, side, limit, left, found)
            left += 1
        if right & 1:
            right -= 1
            found = best_below(graph, value, tree, row, side, limit, right, found)
        left >>= 1
        right >>= 1
    return found
