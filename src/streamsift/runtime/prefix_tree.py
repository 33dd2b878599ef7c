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
from streamsift.physical.prefix_trees import SharedTree
from streamsift.runtime.aggregate_output import Groups
from streamsift.runtime.candidates import candidates
from streamsift.runtime.clock import Clock
from streamsift.runtime.events import Events
from streamsift.runtime.kernels import Bool, Int64
from streamsift.runtime.letters import (
    Found,
    Letters,
    Steps,
    end_of_time,
    entries_of,
    letters_of,
    most_entries,
    packed,
    steps_of,
)

LARGEST_COUNT = 2.0**62


class Shape(NamedTuple):
    """The tree; number 0 is the empty prefix."""

    parent: Int64  # [nodes]
    depth: Int64
    size: Int64
    ends: Bool  # a query's pattern ends there
    path: Int64  # [nodes, depths] the prefix of each length
    letters: Letters
    room: Int64  # [nodes + 1] where the counts of each prefix at which a query ends are written


def count_tree(tree: SharedTree, events: Events, clock: Clock, groups: Groups) -> dict[int, Found] | None:
    """The counts of every prefix at which a query ends; None if 64 bits may not hold one of them."""
    steps_of_letters, lists = letters_of(tree.query, tree.nodes)
    found = candidates(Alternative(tree.query, steps_of_letters, ()), events)
    shape = _shape(tree, lists, [part.size for part in found])
    # Node 1 is a first step, and every other of depth 1 accepts the same events.
    steps, used = steps_of(found, [1 in entries for entries in lists], events, clock, groups)
    if most_in_window(shape, steps) >= LARGEST_COUNT:
        return None
    room = int(shape.room[-1])
    out = Found(np.empty(room, np.int32), np.empty(room, np.int64), np.empty(room, np.int64))
    filled = shape.room[:-1].copy()
    (count_prefixes if tree.strategy is Strategy.PREFIX else multiply_windows)(shape, steps, out, filled)
    parts = {}
    for node in np.flatnonzero(shape.ends):
        own = slice(shape.room[node], filled[node])
        parts[int(node)] = Found(used[out.group[own]], out.stamp[own], out.total[own])
    return parts


def _shape(tree: SharedTree, lists: list[list[int]], candidates: list[int]) -> Shape:
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
def most_in_window(shape: Shape, steps: Steps) -> float:
    """A bound for every count: the product, along a path, of the most events of each prefix in one window."""
    letters = shape.letters.first.size - 1
    held, most = np.zeros(letters, np.int64), np.zeros(letters, np.int64)
    product = np.ones(shape.parent.size, np.float64)
    bound = 0.0
    for group in range(steps.offsets.size - 1):
        held[:] = 0
        most[:] = 0
        tail, ahead = steps.offsets[group], steps.offsets[group]
        for i in range(steps.offsets[group], steps.offsets[group + 1]):
            # What lies before the first start in the window is in no match of it.
            while ahead < i and steps.leaving[ahead] <= steps.stamp[i]:
                ahead += 1
            while tail < ahead:
                held[steps.letter[tail]] -= 1
                tail += 1
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
    return bound


@njit(cache=True, nogil=True)
def count_prefixes(shape: Shape, steps: Steps, out: Found, filled: Int64) -> None:
    """Dynamic prefix counting on a tree, without a window."""
    count = np.zeros(shape.parent.size, np.int64)
    entries = np.empty(most_entries(shape.letters, steps), np.int64)
    for group in range(steps.offsets.size - 1):
        count[:] = 0
        count[0] = 1
        begin = steps.offsets[group]
        while begin < steps.offsets[group + 1]:
            end = end_of_time(steps, begin)
            for k in range(entries_of(shape.letters, steps, begin, end, entries)):
                node = entries[k]
                if node < 0:
                    count[-node] = 0
                    continue
                more = count[shape.parent[node]]
                count[node] += more
                if more > 0 and shape.ends[node]:
                    write(out, filled, shape, node, group, steps.stamp[begin], count[node])
            begin = end


@njit(cache=True, nogil=True, inline="always")
def write(out: Found, filled: Int64, shape: Shape, node: int, group: int, stamp: int, total: int) -> None:
    """Writes a count, over the one of the same time if there is one: the later has counted more events."""
    at = filled[node]
    if at > shape.room[node] and out.stamp[at - 1] == stamp and out.group[at - 1] == group:
        at -= 1
    out.group[at] = group
    out.stamp[at] = stamp
    out.total[at] = total
    filled[node] = at + 1


@njit(cache=True, nogil=True, inline="always")
def through(shape: Shape, front: Int64, row: int, back: Int64, node: int) -> int:
    """Paths to a node: those that the back began, and those that the front's row brought to a prefix of it."""
    total = back[node, 0]
    if row > 0:
        for depth in range(1, shape.depth[node] + 1):
            total += front[row, shape.path[node, depth]] * back[node, depth]
    return total


@njit(cache=True, nogil=True, inline="always")
def reset(shape: Shape, back: Int64) -> None:
    for node in range(shape.parent.size):
        for depth in range(back.shape[1]):
            back[node, depth] = depth == shape.depth[node]


@njit(cache=True, nogil=True)
def turn(
    shape: Shape, steps: Steps, begin: int, end: int, rows: int, suffix: Int64, front: Int64, entries: Int64
) -> None:
    """Row s of the front: the paths to each node from the s-th time with starts in [begin, end) or a later one."""
    for node in range(shape.parent.size):
        for depth in range(suffix.shape[0]):
            suffix[depth, node] = depth == shape.depth[node]
    while end > begin:
        first = end - 1
        starts = steps.leaving[first] >= 0
        while first > begin and not steps.last[first - 1]:
            first -= 1
            starts |= steps.leaving[first] >= 0
        for k in range(entries_of(shape.letters, steps, first, end, entries) - 1, -1, -1):
            node = entries[k]
            if node < 0:
                suffix[shape.depth[-node], -node : -node + shape.size[-node]] = 0
            else:
                depth = shape.depth[node]
                for other in range(node, node + shape.size[node]):
                    suffix[depth - 1, other] += suffix[depth, other]
        if starts:
            for node in range(shape.parent.size):
                front[rows, node] = suffix[0, node]
            rows -= 1
        end = first


@njit(cache=True, nogil=True)
def multiply_windows(shape: Shape, steps: Steps, out: Found, filled: Int64) -> None:
    """The two-stack product on a tree; see `counters.multiply_windows`. All queries begin with the same step, and the
    starts of one time leave together."""
    nodes, depths = shape.path.shape
    back, suffix = np.zeros((nodes, depths), np.int64), np.zeros((depths, nodes), np.int64)
    front = np.zeros((256, nodes), np.int64)
    entries = np.empty(most_entries(shape.letters, steps), np.int64)
    for group in range(steps.offsets.size - 1):
        begin = steps.offsets[group]
        # Of the `active` times with starts in the window the earliest `left` are in front; the next one is at `oldest`.
        oldest, turned, left, rows, active = begin, begin, 0, 0, 0
        reset(shape, back)
        while begin < steps.offsets[group + 1]:
            end = end_of_time(steps, begin)
            stamp = steps.stamp[begin]
            while active > 0:
                while steps.leaving[oldest] < 0:
                    oldest += 1
                if steps.leaving[oldest] > stamp:
                    break
                if left == 0:
                    if active >= front.shape[0]:
                        front = np.zeros((2 * active, nodes), np.int64)
                    turn(shape, steps, turned, begin, active, suffix, front, entries)
                    turned, left, rows = begin, active, active
                    reset(shape, back)
                left -= 1
                active -= 1
                oldest = end_of_time(steps, oldest)
            row = rows - left + 1 if left > 0 else 0
            for k in range(entries_of(shape.letters, steps, begin, end, entries)):
                node = entries[k]
                if node < 0:
                    back[-node] = 0
                    continue
                parent = shape.parent[node]
                reached = shape.ends[node] and through(shape, front, row, back, parent) > 0
                for depth in range(shape.depth[node]):
                    back[node, depth] += back[parent, depth]
                if reached:
                    write(out, filled, shape, node, group, stamp, through(shape, front, row, back, node))
            for i in range(begin, end):
                if steps.leaving[i] >= 0:
                    active += 1
                    break
            begin = end
