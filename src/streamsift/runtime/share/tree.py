"""A tree of prefixes and its events in, the totals of every query over time out: one pass for all of them.

The two-stack product over a tree: `back` has for each prefix the paths to it from each of its own prefixes, by their
lengths; a prefix that queries share is updated once. Turning the back into the front goes from the ends to the starts,
where the prefixes that go on from a step are numbered side by side: one run of additions serves all queries.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from streamsift.physical.plan import Alternative, Strategy
from streamsift.physical.share import SharedTree
from streamsift.runtime.arrays.dtypes import Int32, Int64
from streamsift.runtime.count import Groups, Measures, Timeline
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.stamps import Clock
from streamsift.runtime.share.alphabet import Found, Steps, end_of_time, entries_of, letters_of, most_entries, steps_of
from streamsift.runtime.share.tree_columns import blocks_of, totals_of
from streamsift.runtime.share.tree_measure_kernels import Records, accumulate_tree
from streamsift.runtime.share.tree_shape import Shape, most_in_window, shape_of

LARGEST_COUNT = 2.0**62
MOST_NUMBERS = 1 << 26  # in front, 512 MB


def count_tree(
    tree: SharedTree, events: Events, clock: Clock, groups: Groups, measures: Measures
) -> dict[int, Timeline] | None:
    """The totals of every prefix at which a query ends; None if they would take too much memory together."""
    steps_of_letters, lists = letters_of(tree.query, tree.nodes)
    found = candidates(Alternative(tree.query, steps_of_letters, ()), events)
    shape = shape_of(tree, lists, [part.size for part in found])
    # Node 1 is a first step, and every other of depth 1 accepts the same events.
    steps, used = steps_of(found, [1 in entries for entries in lists], events, clock, groups)
    largest, starts = most_in_window(shape, steps)
    has_window = tree.strategy is not Strategy.PREFIX
    filled = shape.room[:-1].copy()
    if measures.is_count_alone and largest < LARGEST_COUNT:
        if has_window and starts * shape.parent.size > MOST_NUMBERS:
            return None
        return _counted(shape, steps, used, has_window, filled)
    return _accumulated(tree, shape, steps, used, measures, starts if has_window else 0, filled)


def _counted(shape: Shape, steps: Steps, used: Int32, has_window: bool, filled: Int64) -> dict[int, Timeline]:
    room = int(shape.room[-1])
    out = Found(np.empty(room, np.int32), np.empty(room, np.int64), np.empty(room, np.int64))
    (multiply_windows if has_window else count_prefixes)(shape, steps, out, filled)
    parts = {}
    for node in np.flatnonzero(shape.ends):
        own = slice(shape.room[node], filled[node])
        parts[int(node)] = Found(used[out.group[own]], out.stamp[own], out.total[own]).timeline()
    return parts


def _accumulated(
    tree: SharedTree, shape: Shape, steps: Steps, used: Int32, measures: Measures, starts: int, filled: Int64
) -> dict[int, Timeline] | None:
    blocks = blocks_of(tree, measures, shape.path, _asked(tree, shape))
    columns = (blocks.integers, blocks.reals, blocks.least)
    room, widths = int(shape.room[-1]), [int(np.diff(block.first).max()) for block in columns]
    if starts * sum(block.node.size for block in columns) + room * sum(widths) > MOST_NUMBERS:
        return None
    out = Records(
        np.empty(room, np.int32),
        np.empty(room, np.int64),
        np.empty((room, widths[0]), np.int64),
        np.empty((room, widths[1]), np.float64),
        np.empty((room, widths[2]), np.int64),
    )
    accumulate_tree(shape, blocks, steps, tree.strategy is not Strategy.PREFIX, out, filled)
    parts = {}
    for node in np.flatnonzero(shape.ends):
        own = slice(shape.room[node], filled[node])
        totals = totals_of(blocks, int(node), out.integers[own], out.reals[own], out.least[own])
        group = used[out.group[own]]
        parts[int(node)] = Timeline(group, out.stamp[own], np.ones(group.size, np.bool_), totals)
    return parts


def _asked(tree: SharedTree, shape: Shape) -> list[set[int]]:
    """For each prefix the variables whose attributes are asked for by queries that go on from it."""
    asked: list[set[int]] = [set() for _ in shape.parent]
    for name, terminal in tree.terminals.items():
        wanted = {tree.query.aggregates[number].variable for number in tree.aggregates[name]}
        for node in shape.path[terminal]:
            asked[node] |= {variable for variable in wanted if variable is not None}
    return asked


@njit(cache=True, nogil=True)
def count_prefixes(shape: Shape, steps: Steps, out: Found, filled: Int64) -> None:
    """Dynamic prefix counting on a tree, without a window."""
    count = np.zeros(shape.parent.size, np.int64)
    entries = np.empty((most_entries(shape.letters, steps), 2), np.int64)
    for group in range(steps.offsets.size - 1):
        count[:] = 0
        count[0] = 1
        begin = steps.offsets[group]
        while begin < steps.offsets[group + 1]:
            end = end_of_time(steps, begin)
            for k in range(entries_of(shape.letters, steps, begin, end, entries)):
                node = entries[k, 0]
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
            node = entries[k, 0]
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
    entries = np.empty((most_entries(shape.letters, steps), 2), np.int64)
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
                node = entries[k, 0]
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
