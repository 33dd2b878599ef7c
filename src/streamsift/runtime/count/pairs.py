"""Sum the matches of a branch with predicates between neighboring events, without building a match.

This is dynamic programming over pairs of events: the paths that end with an event extend the paths that end with an
accepted event of the previous step. The events of a step are sorted by the values that must be equal, then by the
compared value, so that the accepted events are one range (two for `!=`). A segment tree over this order sums a range in
O(log n), for any measure. In a window, the paths of each start are followed separately, because they leave with it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numba import njit

from streamsift.physical.plan import Branch, Pair
from streamsift.runtime.arrays.dtypes import UNKNOWN, Bool, Int32, Int64
from streamsift.runtime.arrays.grouping import distinct
from streamsift.runtime.count.extremes import NOTHING
from streamsift.runtime.count.groups import AggregateInput
from streamsift.runtime.count.measure_kernels import BEFORE
from streamsift.runtime.count.measures import Totals, no_totals
from streamsift.runtime.count.operations import Layout, Operations, keys_of_places, lay_out
from streamsift.runtime.count.prefix_tree import Loads, loads_of
from streamsift.runtime.count.range_totals import RangeTotals, add_range_to, add_to
from streamsift.runtime.events.candidates import step_rows
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.stamps import NEVER
from streamsift.runtime.expressions.codes import codes, group_codes
from streamsift.runtime.expressions.evaluate import evaluate


class Index(NamedTuple):
    """The position of each operation's event in the order of its step, and its accepted ranges of the previous step."""

    base: Int64  # [levels + 1] the offset of the leaves of each level's tree
    at: Int64  # [operations] the position; -1: no later event accepts it
    low: Int64  # [operations, 2] the accepted ranges [low, high)
    high: Int64  # [operations, 2]


def index_of(branch: Branch, layout: Layout, events: Events) -> Index:
    operations, levels = layout.operations, layout.tree.levels
    count = operations.level.size
    at = np.zeros(count, np.int64)
    low, high = np.zeros((count, 2), np.int64), np.zeros((count, 2), np.int64)
    high[:, 0] = 1  # without predicates, a tree has one leaf, which every event accepts
    sizes = np.ones(levels + 1, np.int64)
    pairs: dict[int, list[Pair]] = {}
    for number, pair in branch.alternative.pairs_beyond(branch.keys):
        pairs.setdefault(number + 1, []).append(pair)
    for level, compared in pairs.items():
        earlier, this = (np.flatnonzero(operations.level == each) for each in (level - 1, level))
        at[earlier], low[this], high[this], sizes[level - 1] = _ranges(
            branch, events, compared, operations.place[earlier], operations.place[this]
        )
    return Index(np.append(0, np.cumsum(sizes)), at, low, high)


def _ranges(
    branch: Branch, events: Events, pairs: list[Pair], earlier: Int32, this: Int32
) -> tuple[Int64, Int64, Int64, int]:
    """Return the position of each earlier event in the order, the ranges low [.., 2] and high [.., 2] that each later
    event accepts, and the length of the order."""
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
        both = np.concatenate(codes(evaluated(unequal[0]), ordered=True))
        every, ranks = np.unique(both, return_inverse=True)
        values = np.split(np.where(both != UNKNOWN, ranks, -1), [earlier.size])
        width = every.size + 1
    may_match = [(group >= 0) & (value >= 0) for group, value in zip(groups, values, strict=True)]
    order = distinct((groups[0] * width + values[0])[may_match[0]])
    at = np.where(may_match[0], np.searchsorted(order, groups[0] * width + values[0]), -1)
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
        low[:, number] = np.where(may_match[1], np.searchsorted(order, least), 0)
        high[:, number] = np.where(may_match[1], np.searchsorted(order, most), 0)
    return at, low, high, max(1, order.size)


Tree = Totals  # the trees of all levels: a level with n leaves has rows [2 base, 2 base + 2 n)


def count_pairs(totals: RangeTotals, branch: Branch, given: AggregateInput, enter: Int64, leave: Int64) -> None:
    """Add each match to the leaves from `enter` of its last place to before `leave` of its first place."""
    layout, shape = lay_out(branch, given, keys_of_places(branch, given)), given.measures.shape
    index = index_of(branch, layout, given.events)
    state = Following(
        levels=layout.tree.levels,
        ranges=index,
        loads=loads_of(given.measures, [step.variable for step in branch.alternative.steps]),
        tree=no_totals(2 * int(index.base[-1]), shape),
        sums=no_totals(2, shape),
        cleared=np.zeros(layout.tree.levels + 1, np.int64),
        enter=enter,
        nodes=totals.nodes,
        ends=totals.ends,
    )
    run_keys(layout.operations, state, leave, given.events.window is not None)


class Following(NamedTuple):
    """The state of following paths, and where their sums are added; one for all keys."""

    levels: int
    ranges: Index
    loads: Loads
    tree: Tree
    sums: Tree  # row 0: the paths that end with the current event; row 1: the matches that end at one time
    cleared: Int64  # [levels + 1] the operation at which the tree of the level was last cleared
    enter: Int64  # [places] the first leaf of a match that ends there
    nodes: Tree  # the nodes of the range totals
    ends: Bool


@njit(cache=True, nogil=True)
def run_keys(operations: Operations, state: Following, leave: Int64, has_window: bool) -> None:
    """Follow the paths of each start separately in a window, because they leave with it; else all of a key at once."""
    for key in range(operations.offsets.size - 1):
        begin, end = operations.offsets[key], operations.offsets[key + 1]
        start = operations.first_start[key]
        if not has_window:
            follow(operations, state, begin, end, -1, start, leave[operations.place[begin]])
            continue
        for i in range(begin, end):
            if operations.level[i] == 1:
                follow(operations, state, i, end, i, start, leave[operations.place[i]])
                start += 1


@njit(cache=True, nogil=True)
def follow(operations: Operations, state: Following, begin: int, end: int, only: int, start: int, leaf: int) -> None:
    """Follow the paths through operations [begin, end) from the start `only`, or from all starts if it is -1.

    The matches are added to leaves before `leaf`.
    """
    index, loads, tree, sums, levels = state.ranges, state.loads, state.tree, state.sums, state.levels
    state.cleared[:] = begin
    empty(sums, 1)
    pending = -1
    first_start, since = start, operations.since[start] if only >= 0 else 0
    after = end
    for i in range(begin, end):
        level, place = operations.level[i], operations.place[i]
        if only >= 0 and i > only and operations.stamp[i] > operations.until[first_start]:
            after = i
            break
        if level < 0:
            clear_level(tree, index, operations, state.cleared[-level], i, -level)
            state.cleared[-level] = i
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
            for c in range(loads.least_levels.size):
                sums.least[0, c] = BEFORE if loads.least_levels[c] > 0 else NOTHING
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
        if state.enter[place] != pending:
            add_to_leaves(state.nodes, state.ends, pending, leaf, sums)
            pending = state.enter[place]
        add_to(sums, 1, sums, 0)
    add_to_leaves(state.nodes, state.ends, pending, leaf, sums)
    for level in range(1, levels):
        clear_level(tree, index, operations, state.cleared[level], after, level)


@njit(cache=True, nogil=True)
def empty(sums: Tree, row: int) -> None:
    sums.integers[row] = 0
    sums.reals[row] = 0.0
    sums.least[row] = NOTHING


@njit(cache=True, nogil=True)
def lead_on(sums: Tree, level: int, place: int, loads: Loads) -> None:
    """Append the event at `place` to every path in row 0, as the step `level`."""
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
    """Add row 0 of `sums` to the leaf `at` and to its ancestors."""
    if at < 0:
        return
    base = 2 * index.base[level]
    node = at + index.base[level + 1] - index.base[level]
    while node >= 1:
        add_to(tree, base + node, sums, 0)
        node >>= 1


@njit(cache=True, nogil=True)
def add_range(tree: Tree, index: Index, level: int, low: int, high: int, sums: Tree) -> None:
    """Add the leaves [low, high) of a level's tree to row 0 of `sums`."""
    base, size = 2 * index.base[level], index.base[level + 1] - index.base[level]
    low += size
    high += size
    while low < high:
        if low & 1:
            add_to(sums, 0, tree, base + low)
            low += 1
        if high & 1:
            high -= 1
            add_to(sums, 0, tree, base + high)
        low >>= 1
        high >>= 1


@njit(cache=True, nogil=True)
def clear_level(tree: Tree, index: Index, operations: Operations, begin: int, end: int, level: int) -> None:
    """Clear the tree of a level; operations [begin, end) were inserted into it."""
    base, size = 2 * index.base[level], index.base[level + 1] - index.base[level]
    for i in range(begin, end):
        if operations.level[i] == level and index.at[i] >= 0:
            node = index.at[i] + size
            # The ancestors of an empty node are empty already.
            while node >= 1 and tree.reals[base + node, 0] != 0:
                empty(tree, base + node)
                node >>= 1


@njit(cache=True, nogil=True)
def add_to_leaves(nodes: Tree, ends: Bool, leaf: int, after: int, sums: Tree) -> None:
    """Add row 1 of `sums` to the leaves [leaf, after) of the range totals, and clear it; do nothing if `leaf` is -1."""
    if leaf < 0:
        return
    ends[leaf] = True
    add_range_to(nodes, leaf, after, sums, 1)
    empty(sums, 1)
