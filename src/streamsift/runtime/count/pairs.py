"""A branch with predicates between neighbours in, its matches' measures painted on a canvas out: no match is built.

Dynamic programming over pairs of events: the paths that end with an event are those that end with an earlier event of
the step before which the predicates accept, led on. The earlier events of a step lie in an order in which the accepted
ones are a range (for `!=` two): grouped by what must be equal, then by what is compared. A segment tree over that order
adds up a range in O(log n), whatever the measures. In a window, each start has its own paths, which leave with it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numba import njit

from streamsift.physical.count import adjacent_pairs
from streamsift.physical.plan import Branch, Pair
from streamsift.runtime.arrays.dtypes import UNKNOWN, Bool, Int32, Int64
from streamsift.runtime.arrays.grouping import distinct
from streamsift.runtime.count.measures import NOTHING, Totals
from streamsift.runtime.count.operations import Layout, Operations
from streamsift.runtime.count.prefix_measures import BEFORE, Loads
from streamsift.runtime.count.range_totals import Canvas, add_to
from streamsift.runtime.events.candidates import step_rows
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.stamps import NEVER
from streamsift.runtime.expressions.codes import codes, group_codes
from streamsift.runtime.expressions.evaluate import evaluate


class Index(NamedTuple):
    """For each operation where its event lies in its step's order, and which ranges of the step before it accepts."""

    base: Int64  # [levels + 1] where the leaves of each level's tree begin; their number is the difference to the next
    at: Int64  # [operations] -1: no later event accepts it
    low: Int64  # [operations, 2]
    high: Int64  # [operations, 2]


def index_of(branch: Branch, layout: Layout, events: Events) -> Index:
    operations, levels = layout.operations, layout.levels
    count = operations.level.size
    at = np.zeros(count, np.int64)
    low, high = np.zeros((count, 2), np.int64), np.zeros((count, 2), np.int64)
    high[:, 0] = 1  # without predicates a tree has one leaf, and everything accepts it
    sizes = np.ones(levels + 1, np.int64)
    pairs: dict[int, list[Pair]] = {}
    for number, pair in adjacent_pairs(branch.alternative, branch.keys):
        pairs.setdefault(number + 1, []).append(pair)
    for level, compared in pairs.items():
        earlier = np.flatnonzero(operations.level == level - 1)
        this = np.flatnonzero(operations.level == level)
        found = _ranges(branch, events, compared, operations.place[earlier], operations.place[this])
        at[earlier], low[this], high[this], sizes[level - 1] = found
    return Index(np.append(0, np.cumsum(sizes)), at, low, high)


def _ranges(
    branch: Branch, events: Events, pairs: list[Pair], earlier: Int32, this: Int32
) -> tuple[Int64, Int64, Int64, int]:
    """(Place of each earlier event in the order, low [.., 2], high [.., 2] of each later one, length of the order)."""
    sides = [events.rows_at(earlier), events.rows_at(this)]

    def evaluated(pair: Pair) -> list[pa.Array]:
        both = zip((pair.earlier_side, pair.this_side), sides, strict=True)
        return [evaluate(side, step_rows(branch.alternative, events, rows)) for side, rows in both]

    equal = [evaluated(pair) for pair in pairs if pair.op == "="]
    unequal = [pair for pair in pairs if pair.op != "="]
    groups = [np.zeros(side.size, np.int64) for side in sides]
    if equal:
        groups = [part.astype(np.int64) for part in group_codes(equal)[0]]
    values = [np.zeros(side.size, np.int64) for side in sides]
    width = 1
    if unequal:
        both = codes(evaluated(unequal[0]), ordered=True)
        every, ranks = np.unique(np.concatenate(both), return_inverse=True)
        known = np.concatenate(both) != UNKNOWN
        values = np.split(np.where(known, ranks, -1), [earlier.size])
        width = every.size + 1
    known = [(group >= 0) & (value >= 0) for group, value in zip(groups, values, strict=True)]
    order = distinct((groups[0] * width + values[0])[known[0]])
    at = np.where(known[0], np.searchsorted(order, groups[0] * width + values[0]), -1)
    begin, value, end = groups[1] * width, groups[1] * width + values[1], (groups[1] + 1) * width
    bounds = {
        None: [(begin, end)],
        "<": [(begin, value)],
        "<=": [(begin, value + 1)],
        ">": [(value + 1, end)],
        ">=": [(value, end)],
        "!=": [(begin, value), (value + 1, end)],
    }[unequal[0].op if unequal else None]
    low, high = np.zeros((this.size, 2), np.int64), np.zeros((this.size, 2), np.int64)
    for number, (least, most) in enumerate(bounds):
        low[:, number] = np.where(known[1], np.searchsorted(order, least), 0)
        high[:, number] = np.where(known[1], np.searchsorted(order, most), 0)
    return at, low, high, max(1, order.size)


Tree = Totals  # the trees of all levels side by side: that of a level with n leaves has rows [2 base, 2 base + 2 n)


def paint_pairs(
    canvas: Canvas, layout: Layout, index: Index, loads: Loads, has_window: bool, enter: Int64, leave: Int64
) -> None:
    """`enter` [places] and `leave` [places] are the leaves of the canvas where a match that ends or begins there is
    first and no longer counted."""
    nodes = 2 * int(index.base[-1])
    tree = Tree(
        np.zeros((nodes, loads.integer_levels.size), np.int64),
        np.zeros((nodes, loads.real_levels.size), np.float64),
        np.full((nodes, loads.least_levels.size), NOTHING, np.int64),
    )
    operations = layout.operations
    run_keys(operations, layout.levels, index, loads, has_window, tree, enter, leave, canvas.nodes, canvas.ends)


@njit(cache=True, nogil=True)
def run_keys(
    operations: Operations,
    levels: int,
    index: Index,
    loads: Loads,
    has_window: bool,
    tree: Tree,
    enter: Int64,
    leave: Int64,
    nodes: Tree,
    ends: Bool,
) -> None:
    """In a window the paths of each start are followed apart, for they leave apart; else all of a key together."""
    for key in range(operations.offsets.size - 1):
        begin, end = operations.offsets[key], operations.offsets[key + 1]
        start = operations.first_start[key]
        if not has_window:
            leaf = leave[operations.place[begin]]
            follow(operations, levels, index, loads, begin, end, -1, start, tree, enter, leaf, nodes, ends)
            continue
        for i in range(begin, end):
            if operations.level[i] == 1:
                leaf = leave[operations.place[i]]
                follow(operations, levels, index, loads, i, end, i, start, tree, enter, leaf, nodes, ends)
                start += 1


@njit(cache=True, nogil=True)
def follow(
    operations: Operations,
    levels: int,
    index: Index,
    loads: Loads,
    begin: int,
    end: int,
    only: int,
    start: int,
    tree: Tree,
    enter: Int64,
    leaf: int,
    nodes: Tree,
    ends: Bool,
) -> None:
    """The paths through operations [begin, end) from the one start `only`, or for -1 from all; painted up to `leaf`."""
    forgotten = np.full(levels + 1, begin, np.int64)
    # Row 0: the paths that end with the event at hand; row 1: the matches that end at one time.
    sums = Tree(
        np.zeros((2, loads.integer_levels.size), np.int64),
        np.zeros((2, loads.real_levels.size), np.float64),
        np.full((2, loads.least_levels.size), NOTHING, np.int64),
    )
    pending = -1
    first_start, since = start, operations.since[start] if only >= 0 else 0
    stop = end
    for i in range(begin, end):
        level, place = operations.level[i], operations.place[i]
        if only >= 0 and i > only and operations.stamp[i] >= operations.leaving[first_start]:
            stop = i
            break
        if level < 0:
            forget(tree, index, operations, forgotten[-level], i, -level)
            forgotten[-level] = i
            continue
        empty(sums, 0)
        if level == 1:
            if only >= 0 and i != only:
                continue
            is_open = operations.since[start] != NEVER
            start += 1
            if not is_open:
                continue
            sums.integers[0, 0], sums.reals[0, 0] = 1, 1.0
            sums.least[0] = np.where(loads.least_levels > 0, BEFORE, NOTHING)
        elif level == levels and since > place:
            continue
        else:
            for part in range(2):
                add_range(tree, index, level - 1, index.low[i, part], index.high[i, part], sums)
            if sums.reals[0, 0] == 0:
                continue
        lead_on(sums, level, place, loads)
        if level < levels:
            insert(tree, index, level, index.at[i], sums)
            continue
        if enter[place] != pending:
            paint(nodes, ends, pending, leaf, sums)
            pending = enter[place]
        add_to(sums.integers, sums.reals, sums.least, 1, sums, 0)
    paint(nodes, ends, pending, leaf, sums)
    for level in range(1, levels):
        forget(tree, index, operations, forgotten[level], stop, level)


@njit(cache=True, nogil=True)
def empty(sums: Tree, row: int) -> None:
    sums.integers[row] = 0
    sums.reals[row] = 0.0
    sums.least[row] = NOTHING


@njit(cache=True, nogil=True)
def lead_on(sums: Tree, level: int, place: int, loads: Loads) -> None:
    """The event at `place` becomes the level of every path in row 0."""
    for c in range(1, loads.integer_levels.size):
        if loads.integer_levels[c] == level:
            sums.integers[0, c] += loads.integers[c, place] * sums.integers[0, 0]
    for c in range(1, loads.real_levels.size):
        if loads.real_levels[c] == level:
            sums.reals[0, c] += loads.reals[c, place] * sums.reals[0, 0]
    for c in range(loads.least_levels.size):
        if loads.least_levels[c] == level:
            sums.least[0, c] = max(sums.least[0, c], loads.least[c, place])


@njit(cache=True, nogil=True)
def insert(tree: Tree, index: Index, level: int, at: int, sums: Tree) -> None:
    """Adds row 0 to the leaf and all nodes above it."""
    if at < 0:
        return
    base = 2 * index.base[level]
    node = at + index.base[level + 1] - index.base[level]
    while node >= 1:
        add_to(tree.integers, tree.reals, tree.least, base + node, sums, 0)
        node >>= 1


@njit(cache=True, nogil=True)
def add_range(tree: Tree, index: Index, level: int, low: int, high: int, sums: Tree) -> None:
    """Adds the leaves [low, high) of a level's tree to row 0."""
    base, size = 2 * index.base[level], index.base[level + 1] - index.base[level]
    low += size
    high += size
    while low < high:
        if low & 1:
            add_to(sums.integers, sums.reals, sums.least, 0, tree, base + low)
            low += 1
        if high & 1:
            high -= 1
            add_to(sums.integers, sums.reals, sums.least, 0, tree, base + high)
        low >>= 1
        high >>= 1


@njit(cache=True, nogil=True)
def forget(tree: Tree, index: Index, operations: Operations, begin: int, end: int, level: int) -> None:
    """Empties the tree of a level, into which operations [begin, end) were inserted."""
    base, size = 2 * index.base[level], index.base[level + 1] - index.base[level]
    for i in range(begin, end):
        if operations.level[i] == level and index.at[i] >= 0:
            node = index.at[i] + size
            # Above an empty node all are empty already.
            while node >= 1 and tree.reals[base + node, 0] != 0:
                empty(tree, base + node)
                node >>= 1


@njit(cache=True, nogil=True)
def paint(nodes: Tree, ends: Bool, leaf: int, after: int, sums: Tree) -> None:
    """Adds row 1 to the canvas at leaves [leaf, after), and empties it; leaf -1 is nowhere."""
    if leaf < 0:
        return
    ends[leaf] = True
    size = nodes.integers.shape[0] // 2
    low, high = leaf + size, after + size
    while low < high:
        if low & 1:
            add_to(nodes.integers, nodes.reals, nodes.least, low, sums, 1)
            low += 1
        if high & 1:
            high -= 1
            add_to(nodes.integers, nodes.reals, nodes.least, high, sums, 1)
        low >>= 1
        high >>= 1
    empty(sums, 1)
