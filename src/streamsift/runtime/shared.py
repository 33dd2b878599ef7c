"""A tree of prefixes and its events in, the counts of every query over time out: one pass for all of them.

The two-stack product over a tree: `back` has for each prefix the paths to it from each of its own prefixes, by their
lengths; a prefix that queries share is updated once. Turning the back into the front goes from the ends to the starts,
where the prefixes that go on from a step are numbered side by side: one run of additions serves all queries.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.physical.plan import Alternative, Strategy
from streamsift.physical.sharing import SharedTree
from streamsift.runtime.aggregate_output import Groups
from streamsift.runtime.candidates import candidates
from streamsift.runtime.clock import NEVER, Clock
from streamsift.runtime.events import Events
from streamsift.runtime.kernels import Bool, Int32, Int64, group_entries

LARGEST_COUNT = 2.0**62


class Shape(NamedTuple):
    """The tree; number 0 is the empty prefix."""

    parent: Int64  # [nodes]
    depth: Int64
    size: Int64
    ends: Bool  # a query's pattern ends there
    path: Int64  # [nodes, depths] the prefix of each length


class Steps(NamedTuple):
    """What events do, in order; those of a group side by side."""

    offsets: Int64  # [groups + 1]
    node: Int32  # the prefix that an event adds to; negative: the one that it empties
    stamp: Int64
    seal: Bool  # the last of its time, at which matches may end
    leaving: Int64  # where an event is a start: the stamp at which it leaves


class Found(NamedTuple):
    node: Int32
    group: Int32
    stamp: Int64
    total: Int64


def count_tree(tree: SharedTree, events: Events, clock: Clock, groups: Groups) -> dict[int, Found] | None:
    """The counts of every prefix at which a query ends; None if 64 bits may not hold one of them."""
    shape = _shape(tree)
    steps, group_codes = _steps(tree, shape, events, clock, groups)
    if most_in_window(shape, steps) >= LARGEST_COUNT:
        return None
    room = int(shape.ends[np.maximum(steps.node, 0)].sum())
    out = Found(np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int64), np.empty(room, np.int64))
    if tree.strategy is Strategy.PREFIX:
        written = count_prefixes(shape, steps, out)
    else:
        written = multiply_windows(shape, steps, out)
    node = out.node[:written]
    offsets, order = group_entries(node, shape.parent.size)
    found = {}
    for number in np.flatnonzero(shape.ends):
        own = order[offsets[number] : offsets[number + 1]]
        found[int(number)] = Found(node[own], group_codes[out.group[own]], out.stamp[own], out.total[own])
    return found


def _shape(tree: SharedTree) -> Shape:
    nodes = tree.nodes
    depths = max(node.depth for node in nodes) + 1
    path = np.zeros((len(nodes) + 1, depths), np.int64)
    for number, node in enumerate(nodes, start=1):
        path[number] = path[node.parent]
        path[number, node.depth :] = number
    ends = np.zeros(len(nodes) + 1, np.bool_)
    ends[list(tree.terminals.values())] = True
    return Shape(
        np.array([0, *(node.parent for node in nodes)]),
        np.array([0, *(node.depth for node in nodes)]),
        np.array([len(nodes) + 1, *(node.size for node in nodes)]),
        ends,
        path,
    )


def _steps(tree: SharedTree, shape: Shape, events: Events, clock: Clock, groups: Groups) -> tuple[Steps, Int32]:
    positive = tuple(node.step for node in tree.nodes)
    negated = [(number, step) for number, node in enumerate(tree.nodes, start=1) for step in node.negated]
    found = candidates(Alternative(tree.query, (*positive, *(step for _, step in negated)), ()), events)
    numbers = [*range(1, len(positive) + 1), *(-number for number, _ in negated)]
    places = np.concatenate(found)
    node = np.concatenate([np.full(part.size, n, np.int32) for part, n in zip(found, numbers, strict=True)])
    group = groups.of_place[places]
    deepest = int(shape.depth.max())
    within = 2 * (deepest - shape.depth[np.abs(node)]) + (node > 0)
    order = np.argsort(events.rank[places] * np.int64(2 * deepest + 2) + within, kind="stable")
    starts, by_group = group_entries(group[order], groups.first_place.size)
    order = order[by_group]
    places, node, group = places[order], node[order], group[order]
    last = np.ones(places.size, np.bool_)
    last[:-1] = (np.diff(events.rank[places]) != 0) | (np.diff(group) != 0)
    first = np.unique(np.concatenate([part for part, n in zip(found, tree.nodes, strict=False) if n.depth == 1]))
    leaving = np.full(events.rank.size, NEVER)
    leaving[first] = clock.leaves(first)
    used = np.flatnonzero(np.diff(starts) > 0)
    offsets = np.append(starts[used], places.size)
    return Steps(offsets, node, clock.shown[places], last, leaving[places]), used.astype(np.int32)


@njit(cache=True, nogil=True)
def most_in_window(shape: Shape, steps: Steps) -> float:
    """A bound for every count: the product, along a path, of the most events of each prefix in one window."""
    held, most = np.zeros(shape.parent.size, np.int64), np.zeros(shape.parent.size, np.int64)
    product = np.ones(shape.parent.size, np.float64)
    bound = 0.0
    for group in range(steps.offsets.size - 1):
        held[:] = 0
        most[:] = 0
        begin = steps.offsets[group]
        tail, ahead = begin, begin
        for i in range(begin, steps.offsets[group + 1]):
            # What lies before the first start in the window is in no match of it.
            while ahead < i and (
                steps.node[ahead] < 0 or shape.depth[steps.node[ahead]] != 1 or steps.leaving[ahead] <= steps.stamp[i]
            ):
                ahead += 1
            while tail < ahead:
                held[max(steps.node[tail], 0)] -= 1
                tail += 1
            node = max(steps.node[i], 0)
            held[node] += 1
            most[node] = max(most[node], held[node])
        for node in range(1, most.size):
            product[node] = product[shape.parent[node]] * most[node]
            bound = max(bound, product[node])
    return bound


@njit(cache=True, nogil=True)
def count_prefixes(shape: Shape, steps: Steps, out: Found) -> int:
    """Dynamic prefix counting on a tree, without a window."""
    written = 0
    count = np.zeros(shape.parent.size, np.int64)
    touched = np.zeros(shape.parent.size, np.bool_)
    pending = np.empty(shape.parent.size, np.int64)
    for group in range(steps.offsets.size - 1):
        count[:] = 0
        count[0] = 1
        waiting = 0
        for i in range(steps.offsets[group], steps.offsets[group + 1]):
            node = steps.node[i]
            if node < 0:
                count[-node] = 0
            else:
                more = count[shape.parent[node]]
                count[node] += more
                if more > 0 and shape.ends[node] and not touched[node]:
                    touched[node] = True
                    pending[waiting] = node
                    waiting += 1
            if steps.seal[i]:
                for k in range(waiting):
                    node = pending[k]
                    touched[node] = False
                    out.node[written] = node
                    out.group[written] = group
                    out.stamp[written] = steps.stamp[i]
                    out.total[written] = count[node]
                    written += 1
                waiting = 0
    return written


@njit(cache=True, nogil=True)
def through(shape: Shape, front: Int64, row: int, back: Int64, node: int) -> int:
    """Paths to a node: those that the back began, and those that the front's row brought to a prefix of it."""
    total = back[node, 0]
    if row > 0:
        for depth in range(1, shape.depth[node] + 1):
            total += front[row, shape.path[node, depth]] * back[node, depth]
    return total


@njit(cache=True, nogil=True)
def reset(shape: Shape, matrix: Int64) -> None:
    matrix[:] = 0
    for node in range(shape.parent.size):
        matrix[node, shape.depth[node]] = 1


@njit(cache=True, nogil=True)
def turn(shape: Shape, steps: Steps, begin: int, end: int, starts: int, suffix: Int64, front: Int64) -> None:
    """Row s + 1 of the front: the paths to each node that begin with start s of steps [begin, end) or a later one."""
    suffix[:] = 0
    for node in range(shape.parent.size):
        suffix[shape.depth[node], node] = 1
    for i in range(end - 1, begin - 1, -1):
        node = steps.node[i]
        if node < 0:
            depth = shape.depth[-node]
            suffix[depth, -node : -node + shape.size[-node]] = 0
            continue
        depth = shape.depth[node]
        for k in range(node, node + shape.size[node]):
            suffix[depth - 1, k] += suffix[depth, k]
        if depth == 1:
            front[starts] = suffix[0]
            starts -= 1


@njit(cache=True, nogil=True)
def multiply_windows(shape: Shape, steps: Steps, out: Found) -> int:
    """The two-stack product on a tree; see `counters.multiply_windows`. All queries begin with the same step."""
    written = 0
    nodes, depths = shape.path.shape
    back, suffix = np.zeros((nodes, depths), np.int64), np.zeros((depths, nodes), np.int64)
    front = np.zeros((256, nodes), np.int64)
    touched = np.zeros(nodes, np.bool_)
    pending = np.empty(nodes, np.int64)
    for group in range(steps.offsets.size - 1):
        begin, end = steps.offsets[group], steps.offsets[group + 1]
        # Starts are told by their steps: first is the step of the first start in the window, ahead of `turned` the
        # front's starts, of which `left` are in the window.
        first, turned, left, rows, active, waiting = begin, begin, 0, 0, 0, 0
        reset(shape, back)
        for i in range(begin, end):
            while active > 0:
                while steps.node[first] < 0 or shape.depth[steps.node[first]] != 1:
                    first += 1
                if steps.leaving[first] > steps.stamp[i]:
                    break
                if left == 0:
                    if active >= front.shape[0]:
                        front = np.zeros((2 * active, nodes), np.int64)
                    turn(shape, steps, turned, i, active, suffix, front)
                    turned, left, rows = i, active, active
                    reset(shape, back)
                left -= 1
                active -= 1
                first += 1
            row = rows - left + 1 if left > 0 else 0
            node = steps.node[i]
            if node < 0:
                back[-node] = 0
            else:
                parent, depth = shape.parent[node], shape.depth[node]
                if shape.ends[node] and not touched[node] and through(shape, front, row, back, parent) > 0:
                    touched[node] = True
                    pending[waiting] = node
                    waiting += 1
                for p in range(depth):
                    back[node, p] += back[parent, p]
                active += depth == 1
            if steps.seal[i]:
                for k in range(waiting):
                    node = pending[k]
                    touched[node] = False
                    out.node[written] = node
                    out.group[written] = group
                    out.stamp[written] = steps.stamp[i]
                    out.total[written] = through(shape, front, row, back, node)
                    written += 1
                waiting = 0
    return written
