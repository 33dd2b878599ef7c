"""A tree of prefixes, its columns and events in, the totals of every query over time out: the kernels for all measures.

They do for a tree what `accumulators` does for one pattern, and for all measures what `prefix_tree` does for counts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Float64, Int32, Int64
from streamsift.runtime.count import BEFORE, NOTHING
from streamsift.runtime.share.alphabet import Steps, end_of_time, entries_of, most_entries
from streamsift.runtime.share.tree_columns import Blocks, Columns
from streamsift.runtime.share.tree_shape import Shape


class Records(NamedTuple):
    """Those of each prefix at which a query ends lie side by side; its own columns come first."""

    group: Int32
    stamp: Int64
    integers: Int64  # [records, most columns of a prefix]
    reals: Float64
    least: Int64


Sums = Int64 | Float64


class Numbers(NamedTuple):
    """A number for each row and column of each block."""

    integers: Int64
    reals: Float64
    least: Int64


@njit(cache=True, nogil=True)
def no_numbers(rows: int, blocks: Blocks) -> Numbers:
    return Numbers(
        np.zeros((rows, blocks.integers.node.size), np.int64),
        np.zeros((rows, blocks.reals.node.size), np.float64),
        np.full((rows, blocks.least.node.size), NOTHING, np.int64),
    )


@njit(cache=True, nogil=True)
def stand_still(shape: Shape, blocks: Blocks, numbers: Numbers) -> None:
    """From each prefix only the empty path. Row d has the paths from the prefixes of length d."""
    numbers.integers[:] = 0
    numbers.reals[:] = 0.0
    numbers.least[:] = NOTHING
    for node in range(shape.parent.size):
        depth = shape.depth[node]
        if depth < numbers.integers.shape[0]:
            numbers.integers[depth, blocks.integers.first[node]] = 1
            numbers.reals[depth, blocks.reals.first[node]] = 1.0
            for column in range(blocks.least.first[node], blocks.least.first[node + 1]):
                numbers.least[depth, column] = BEFORE


@njit(cache=True, nogil=True, inline="always")
def clear(blocks: Blocks, numbers: Numbers, row: int, node: int, after: int) -> None:
    """No path of a row to the prefixes [node, after)."""
    numbers.integers[row, blocks.integers.first[node] : blocks.integers.first[after]] = 0
    numbers.reals[row, blocks.reals.first[node] : blocks.reals.first[after]] = 0.0
    numbers.least[row, blocks.least.first[node] : blocks.least.first[after]] = NOTHING


@njit(cache=True, nogil=True, inline="always")
def extend_sums(columns: Columns, loads: Sums, back: Sums, row: int, node: int, parent: int, place: int) -> None:
    """Every path to the parent also goes on to the node by the event at `place`."""
    many = back[row, columns.first[parent]]
    for column in range(columns.first[node], columns.first[node + 1]):
        before = columns.before[column]
        if before >= 0:
            back[row, column] += back[row, before]
        else:
            back[row, column] += loads[columns.measure[column], place] * many


@njit(cache=True, nogil=True)
def extend(shape: Shape, blocks: Blocks, back: Numbers, node: int, place: int) -> None:
    parent = shape.parent[node]
    for row in range(min(shape.depth[node], back.integers.shape[0])):
        extend_sums(blocks.integers, blocks.integer_loads, back.integers, row, node, parent, place)
        any_path = back.reals[row, blocks.reals.first[parent]] > 0
        extend_sums(blocks.reals, blocks.real_loads, back.reals, row, node, parent, place)
        for column in range(blocks.least.first[node], blocks.least.first[node + 1]):
            before = blocks.least.before[column]
            code = NOTHING
            if before >= 0:
                code = back.least[row, before]
            elif any_path:
                code = blocks.least_loads[blocks.least.measure[column], place]
            back.least[row, column] = min(back.least[row, column], code)


@njit(cache=True, nogil=True, inline="always")
def precede_sums(columns: Columns, loads: Sums, suffix: Sums, depth: int, node: int, after: int, place: int) -> None:
    """Paths to the prefixes [node, after) from one step earlier, which first take the event at `place`."""
    for column in range(columns.first[node], columns.first[after]):
        suffix[depth - 1, column] += suffix[depth, column]
    for k in range(columns.first_load[node], columns.first_load[node + 1]):
        column = columns.loads[k]
        many = suffix[depth, columns.first[columns.node[column]]]
        suffix[depth - 1, column] += loads[columns.measure[column], place] * many


@njit(cache=True, nogil=True)
def precede(shape: Shape, blocks: Blocks, suffix: Numbers, node: int, place: int) -> None:
    depth, after = shape.depth[node], node + shape.size[node]
    precede_sums(blocks.integers, blocks.integer_loads, suffix.integers, depth, node, after, place)
    precede_sums(blocks.reals, blocks.real_loads, suffix.reals, depth, node, after, place)
    for column in range(blocks.least.first[node], blocks.least.first[after]):
        code = suffix.least[depth, column]
        if blocks.least.loaded_at[column] == node:
            code = max(code, blocks.least_loads[blocks.least.measure[column], place])
        suffix.least[depth - 1, column] = min(suffix.least[depth - 1, column], code)


@njit(cache=True, nogil=True)
def reaches(shape: Shape, columns: Columns, front: Float64, row: int, back: Float64, node: int) -> bool:
    """Whether any path in the window leads to the prefix; `row` 0 of the front is no start."""
    column = columns.first[node]
    if back[0, column] > 0:
        return True
    if row > 0:
        for depth in range(1, shape.depth[node] + 1):
            if front[row, columns.chain[column, depth]] > 0 and back[depth, column] > 0:
                return True
    return False


@njit(cache=True, nogil=True, inline="always")
def sums_through(
    shape: Shape, columns: Columns, front: Sums, row: int, back: Sums, node: int, out: Sums, at: int
) -> None:
    """The sums over the paths that the back began, and those that the front brought to a shorter prefix."""
    first = columns.first[node]
    for column in range(first, columns.first[node + 1]):
        total = back[0, column]
        if row > 0:
            for depth in range(1, shape.depth[node] + 1):
                earlier = columns.chain[column, depth]
                if earlier >= 0:
                    total += front[row, earlier] * back[depth, first]
                if column > first:
                    total += front[row, columns.chain[first, depth]] * back[depth, column]
        out[at, column - first] = total


@njit(cache=True, nogil=True)
def write(
    shape: Shape,
    blocks: Blocks,
    front: Numbers,
    row: int,
    back: Numbers,
    node: int,
    group: int,
    stamp: int,
    out: Records,
    filled: Int64,
) -> None:
    """Writes totals, over those of the same time if there are any: the later ones have counted more events."""
    at = filled[node]
    if at > shape.room[node] and out.stamp[at - 1] == stamp and out.group[at - 1] == group:
        at -= 1
    out.group[at] = group
    out.stamp[at] = stamp
    sums_through(shape, blocks.integers, front.integers, row, back.integers, node, out.integers, at)
    sums_through(shape, blocks.reals, front.reals, row, back.reals, node, out.reals, at)
    first = blocks.least.first[node]
    paths = blocks.reals.first[node]
    for column in range(first, blocks.least.first[node + 1]):
        least = back.least[0, column]
        if row > 0:
            for depth in range(1, shape.depth[node] + 1):
                earlier = blocks.least.chain[column, depth]
                code = NOTHING
                if earlier >= 0:
                    code = front.least[row, earlier]
                elif front.reals[row, blocks.reals.chain[paths, depth]] > 0:
                    code = BEFORE
                least = min(least, max(code, back.least[depth, column]))
        out.least[at, column - first] = least
    filled[node] = at + 1


@njit(cache=True, nogil=True)
def turn(
    shape: Shape,
    blocks: Blocks,
    steps: Steps,
    begin: int,
    end: int,
    rows: int,
    suffix: Numbers,
    front: Numbers,
    entries: Int64,
) -> None:
    """Row s of the front: the paths to each prefix from the s-th time with starts in [begin, end) or a later one."""
    stand_still(shape, blocks, suffix)
    while end > begin:
        first = end - 1
        starts = steps.leaving[first] >= 0
        while first > begin and not steps.last[first - 1]:
            first -= 1
            starts |= steps.leaving[first] >= 0
        for k in range(entries_of(shape.letters, steps, first, end, entries) - 1, -1, -1):
            node = entries[k, 0]
            if node < 0:
                clear(blocks, suffix, shape.depth[-node], -node, -node + shape.size[-node])
            else:
                precede(shape, blocks, suffix, node, steps.place[entries[k, 1]])
        if starts:
            front.integers[rows] = suffix.integers[0]
            front.reals[rows] = suffix.reals[0]
            front.least[rows] = suffix.least[0]
            rows -= 1
        end = first


@njit(cache=True, nogil=True)
def accumulate_tree(shape: Shape, blocks: Blocks, steps: Steps, has_window: bool, out: Records, filled: Int64) -> None:
    """The two-stack product on a tree; see `prefix_tree.multiply_windows`. Without a window nothing leaves, so only the
    paths from the beginning are kept."""
    depths = shape.path.shape[1]
    back, suffix = no_numbers(depths if has_window else 1, blocks), no_numbers(depths, blocks)
    front = no_numbers(256 if has_window else 1, blocks)
    entries = np.empty((most_entries(shape.letters, steps), 2), np.int64)
    for group in range(steps.offsets.size - 1):
        begin = steps.offsets[group]
        # Of the `active` times with starts in the window the earliest `left` are in front; the next one is at `oldest`.
        oldest, turned, left, rows, active = begin, begin, 0, 0, 0
        stand_still(shape, blocks, back)
        while begin < steps.offsets[group + 1]:
            end = end_of_time(steps, begin)
            stamp = steps.stamp[begin]
            while has_window and active > 0:
                while steps.leaving[oldest] < 0:
                    oldest += 1
                if steps.leaving[oldest] > stamp:
                    break
                if left == 0:
                    if active >= front.integers.shape[0]:
                        front = no_numbers(2 * active, blocks)
                    turn(shape, blocks, steps, turned, begin, active, suffix, front, entries)
                    turned, left, rows = begin, active, active
                    stand_still(shape, blocks, back)
                left -= 1
                active -= 1
                oldest = end_of_time(steps, oldest)
            row = rows - left + 1 if left > 0 else 0
            for k in range(entries_of(shape.letters, steps, begin, end, entries)):
                node = entries[k, 0]
                if node < 0:
                    for depth in range(back.integers.shape[0]):
                        clear(blocks, back, depth, -node, -node + 1)
                    continue
                reached = shape.ends[node] and reaches(
                    shape, blocks.reals, front.reals, row, back.reals, shape.parent[node]
                )
                extend(shape, blocks, back, node, steps.place[entries[k, 1]])
                if reached:
                    write(shape, blocks, front, row, back, node, group, stamp, out, filled)
            for i in range(begin, end):
                if steps.leaving[i] >= 0:
                    active += 1
                    break
            begin = end
