"""Run operations on the measures of paths and write totals over time: the kernels for sums, extremes and large counts.

They do for all measures what `count_kernels` does for one count; see there for the papers. A path is a part of a match.
Integers and reals follow the same rule, wrapping and rounding: extending a path by an event adds, to each sum, the
event's value once for each path. For extremes, a path holds the code of its event, or the least number before it has
one; a longer path the greater of both; of several paths the least counts. Like (+, *) that is a semiring, so windows
are products here too. Integers wrap, exactly, modulo 2^64; the double beside each shows whether one did, and whether
there is any path at all.

The two stacks of each key are state: a run resumes where the one before it stopped, and one over all events is a run
that starts empty. Without a window nothing leaves, and the back has only the paths from the beginning.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Bool, Float64, Int8, Int32, Int64
from streamsift.runtime.count.extremes import NOTHING
from streamsift.runtime.count.operations import NO_SEAL, Operations
from streamsift.runtime.count.prefix_tree import Blocks, PrefixColumns, PrefixTree
from streamsift.runtime.events.stamps import NEVER

BEFORE = np.iinfo(np.int64).min  # the code of a path that has not reached the event whose code counts
Sums = Int64 | Float64


class Numbers(NamedTuple):
    """The measures of paths from one row's beginning to each prefix: a number for each column of each block."""

    integers: Int64  # [rows, columns]
    reals: Float64
    least: Int64


class MeasureRecords(NamedTuple):
    """Those of each prefix at which a query ends lie side by side; its own columns come first."""

    key: Int32
    stamp: Int64
    ends: Bool
    integers: Int64  # [records, most columns of a prefix]
    reals: Float64
    least: Int64

    @staticmethod
    def room(records: int, blocks: Blocks) -> MeasureRecords:
        integers, reals, least = (
            int(np.diff(block.first).max()) for block in (blocks.integers, blocks.reals, blocks.least)
        )
        return MeasureRecords(
            np.empty(records, np.int32),
            np.empty(records, np.int64),
            np.empty(records, np.bool_),
            np.empty((records, integers), np.int64),
            np.empty((records, reals), np.float64),
            np.empty((records, least), np.int64),
        )


# --- paths -----------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def no_numbers(rows: int, blocks: Blocks) -> Numbers:
    return Numbers(
        np.zeros((rows, blocks.integers.node.size), np.int64),
        np.zeros((rows, blocks.reals.node.size), np.float64),
        np.full((rows, blocks.least.node.size), NOTHING, np.int64),
    )


@njit(cache=True, nogil=True)
def stand_still(tree: PrefixTree, blocks: Blocks, numbers: Numbers, base: int, rows: int) -> None:
    """From each prefix only the empty path. Row base + d has the paths from the prefixes of length d < `rows`."""
    numbers.integers[base : base + rows] = 0
    numbers.reals[base : base + rows] = 0.0
    numbers.least[base : base + rows] = NOTHING
    for node in range(tree.parent.size):
        depth = tree.depth[node]
        if depth < rows:
            numbers.integers[base + depth, blocks.integers.first[node]] = 1
            numbers.reals[base + depth, blocks.reals.first[node]] = 1.0
            for column in range(blocks.least.first[node], blocks.least.first[node + 1]):
                numbers.least[base + depth, column] = BEFORE


@njit(cache=True, nogil=True, inline="always")
def clear(blocks: Blocks, numbers: Numbers, row: int, node: int, after: int) -> None:
    """Drop all paths of a row to the prefixes [node, after)."""
    numbers.integers[row, blocks.integers.first[node] : blocks.integers.first[after]] = 0
    numbers.reals[row, blocks.reals.first[node] : blocks.reals.first[after]] = 0.0
    numbers.least[row, blocks.least.first[node] : blocks.least.first[after]] = NOTHING


@njit(cache=True, nogil=True, inline="always")
def extend_sums(columns: PrefixColumns, loads: Sums, back: Sums, row: int, node: int, parent: int, place: int) -> None:
    many = back[row, columns.first[parent]]
    for column in range(columns.first[node], columns.first[node + 1]):
        before = columns.before[column]
        if before >= 0:
            back[row, column] += back[row, before]
        else:
            back[row, column] += loads[columns.measure[column], place] * many


@njit(cache=True, nogil=True)
def extend(tree: PrefixTree, blocks: Blocks, back: Numbers, base: int, rows: int, node: int, place: int) -> None:
    """Extend every path to the node's parent, in the rows from `base` on, to the node by the event at `place`."""
    parent = tree.parent[node]
    for row in range(base, base + min(tree.depth[node], rows)):
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
def precede_sums(
    columns: PrefixColumns, loads: Sums, suffix: Sums, depth: int, node: int, after: int, place: int
) -> None:
    for column in range(columns.first[node], columns.first[after]):
        suffix[depth - 1, column] += suffix[depth, column]
    for k in range(columns.first_load[node], columns.first_load[node + 1]):
        column = columns.loads[k]
        many = suffix[depth, columns.first[columns.node[column]]]
        suffix[depth - 1, column] += loads[columns.measure[column], place] * many


@njit(cache=True, nogil=True)
def precede(tree: PrefixTree, blocks: Blocks, suffix: Numbers, node: int, place: int) -> None:
    """Row d being the paths from prefixes of length d: those from the parent may first take the event at `place`."""
    depth, after = tree.depth[node], node + tree.size[node]
    precede_sums(blocks.integers, blocks.integer_loads, suffix.integers, depth, node, after, place)
    precede_sums(blocks.reals, blocks.real_loads, suffix.reals, depth, node, after, place)
    for column in range(blocks.least.first[node], blocks.least.first[after]):
        code = suffix.least[depth, column]
        if blocks.least.loaded_at[column] == node:
            code = max(code, blocks.least_loads[blocks.least.measure[column], place])
        suffix.least[depth - 1, column] = min(suffix.least[depth - 1, column], code)


# --- start event marking ---------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def record_starts(
    blocks: Blocks, paths: Numbers, begin: int, end: int, node: int, out: MeasureRecords, filled: Int64
) -> int:
    """Open a record with the sum over the rows [begin, end); return its number."""
    at = filled[node]
    filled[node] = at + 1
    out.integers[at] = 0
    out.reals[at] = 0.0
    out.least[at] = NOTHING
    for row in range(begin, end):
        for c in range(blocks.integers.first[node + 1] - blocks.integers.first[node]):
            out.integers[at, c] += paths.integers[row, blocks.integers.first[node] + c]
        for c in range(blocks.reals.first[node + 1] - blocks.reals.first[node]):
            out.reals[at, c] += paths.reals[row, blocks.reals.first[node] + c]
        for c in range(blocks.least.first[node + 1] - blocks.least.first[node]):
            out.least[at, c] = min(out.least[at, c], paths.least[row, blocks.least.first[node] + c])
    return at


@njit(cache=True, nogil=True)
def mark_starts(
    tree: PrefixTree, blocks: Blocks, operations: Operations, with_leaving: bool, out: MeasureRecords, filled: Int64
) -> None:
    """Start event marking of all measures of one pattern: a row of paths for each start in the window."""
    levels, most = tree.parent.size - 1, 0
    for key in range(operations.offsets.size - 1):
        most = max(most, operations.first_start[key + 1] - operations.first_start[key])
    paths = no_numbers(most, blocks)
    for key in range(operations.offsets.size - 1):
        base = operations.first_start[key]
        first, after, ended = base, base, False
        end = operations.offsets[key + 1]
        for i in range(operations.offsets[key], end + with_leaving):
            for sealing in range(2):
                stamp = NEVER - 1
                if i < end:
                    stamp = operations.stamp[i] if sealing == 0 else operations.seal[i]
                while first < after and operations.until[first] < stamp:
                    first += 1
                    gone = operations.until[first - 1]
                    if with_leaving and (first == after or operations.until[first] != gone):
                        at = record_starts(blocks, paths, first - base, after - base, levels, out, filled)
                        out.key[at], out.stamp[at], out.ends[at] = key, gone + 1, False
                if sealing == 1 or i == end:
                    break
                level, place = operations.level[i], operations.place[i]
                if level == 1:
                    stand_still(tree, blocks, paths, after - base, 1)
                    after += 1
                for start in range(first if level != 1 else after - 1, after):
                    row = start - base
                    if level < 0:
                        clear(blocks, paths, row, -level, -level + 1)
                    elif level < levels or operations.since[start] <= place:
                        ended |= level == levels and paths.reals[row, blocks.reals.first[level - 1]] > 0
                        extend(tree, blocks, paths, row, 1, level, place)
                if level == 1:
                    # A row has one start.
                    clear(blocks, paths, after - 1 - base, 0, 1)
            if i < end and ended and operations.seal[i] != NO_SEAL:
                at = record_starts(blocks, paths, first - base, after - base, levels, out, filled)
                out.key[at], out.stamp[at], out.ends[at] = key, operations.seal[i], True
                ended = False


# --- two stacks ------------------------------------------------------------------------------------------------------


class Log(NamedTuple):
    """Operations and starts by number: number n is entry n & mask. Over all events at once every number has its entry:
    the masks are -1. Numbers below the first ones are evicted: they are in no window to come."""

    first_operation: int
    mask: int
    level: Int8  # [operations] as in Operations, and so are symbol, place, stamp and seal
    symbol: Int32
    place: Int32
    stamp: Int64
    seal: Int64
    before: Int64  # [operations] the operation of the same key before; below zero: none
    start: Int64  # [operations] its number among the starts, if it is one
    first_start: int
    start_mask: int
    until: Int64  # [starts]
    first_node: Int64  # [symbols + 1] as in Operations, and so are nodes
    nodes: Int64

    @staticmethod
    def of(operations: Operations) -> Log:
        """Return all operations at once."""
        return Log(
            first_operation=0,
            mask=-1,
            level=operations.level,
            symbol=operations.symbol,
            place=operations.place,
            stamp=operations.stamp,
            seal=operations.seal,
            before=np.arange(-1, operations.level.size - 1),
            start=np.cumsum(operations.level == 1) - 1,
            first_start=0,
            start_mask=-1,
            until=operations.until,
            first_node=operations.first_node,
            nodes=operations.nodes,
        )


class Stacks(NamedTuple):
    """The two stacks of each slot: of a key, or of one key after the other. Numbers below zero are none."""

    head: Int64  # [slots] the first start of the front
    oldest: Int64  # [slots] the first start of the back
    turned: Int64  # [slots] the operation with which the back begins
    back: Numbers  # [slots * rows] the product of the operations since the last turn
    rows: int  # of the back: one for each length of a prefix; 1 without a window
    following: Int64  # [starts, by a mask of their own] in a front: the next start of the key
    front: Numbers  # [the same] what it and later ones of the front bring to each prefix


class Visits(NamedTuple):
    """The keys whose totals are written, and the stamps from the first to the last."""

    key: Int64
    slot: Int64
    begin: Int64  # the new operations of each
    end: Int64
    last: Int64  # the operation before them
    is_fresh: bool  # nothing was counted before
    first_stamp: int
    last_stamp: int


@njit(cache=True, nogil=True)
def turn(tree: PrefixTree, blocks: Blocks, log: Log, stacks: Stacks, slot: int, last: int, suffix: Numbers) -> None:
    """Make the operations of the back, of which `last` is the last, the front; no front was left."""
    stand_still(tree, blocks, suffix, 0, suffix.integers.shape[0])
    following, operation = -1, last
    front, mask = stacks.front, stacks.following.size - 1
    first = max(stacks.turned[slot], log.first_operation)
    while operation >= first:
        at = operation & log.mask
        level, symbol = log.level[at], log.symbol[at]
        for k in range(log.first_node[symbol], log.first_node[symbol + 1]):
            node = log.nodes[k]
            if node < 0:
                clear(blocks, suffix, -level, -node, -node + tree.size[-node])
            else:
                precede(tree, blocks, suffix, node, log.place[at])
        if level == 1:
            row = log.start[at] & mask
            front.integers[row] = suffix.integers[0]
            front.reals[row] = suffix.reals[0]
            front.least[row] = suffix.least[0]
            stacks.following[row] = following
            following = log.start[at]
        operation = log.before[at]
    stacks.head[slot] = following
    stacks.oldest[slot] = -1
    stacks.turned[slot] = last + 1
    stand_still(tree, blocks, stacks.back, slot * stacks.rows, stacks.rows)


@njit(cache=True, nogil=True, inline="always")
def is_gone(log: Log, start: int, now: int) -> bool:
    return start < log.first_start or log.until[start & log.start_mask] < now


@njit(cache=True, nogil=True)
def drop_gone(log: Log, stacks: Stacks, slot: int, now: int) -> None:
    """Take the starts that are gone off the front."""
    while stacks.head[slot] >= 0 and is_gone(log, stacks.head[slot], now):
        stacks.head[slot] = stacks.following[stacks.head[slot] & (stacks.following.size - 1)]


@njit(cache=True, nogil=True)
def reaches(tree: PrefixTree, columns: PrefixColumns, stacks: Stacks, slot: int, node: int) -> bool:
    """Return True if any path in the window leads to the prefix."""
    front, back, base, head = stacks.front.reals, stacks.back.reals, slot * stacks.rows, stacks.head[slot]
    column = columns.first[node]
    if back[base, column] > 0:
        return True
    if head >= 0:
        row = head & (stacks.following.size - 1)
        for depth in range(1, tree.depth[node] + 1):
            if front[row, columns.chain[column, depth]] > 0 and back[base + depth, column] > 0:
                return True
    return False


@njit(cache=True, nogil=True, inline="always")
def sums_through(
    columns: PrefixColumns, front: Sums, row: int, depths: int, back: Sums, base: int, node: int, out: Sums, at: int
) -> None:
    """Add up the paths that the back began, and those that the front's row brought to a prefix of less than `depths`
    steps; the row is below zero if there is none."""
    first = columns.first[node]
    for column in range(first, columns.first[node + 1]):
        total = back[base, column]
        if row >= 0:
            for depth in range(1, depths):
                earlier = columns.chain[column, depth]
                if earlier >= 0:
                    total += front[row, earlier] * back[base + depth, first]
                if column > first:
                    total += front[row, columns.chain[first, depth]] * back[base + depth, column]
        out[at, column - first] = total


@njit(cache=True, nogil=True)
def record(
    tree: PrefixTree,
    blocks: Blocks,
    stacks: Stacks,
    slot: int,
    node: int,
    key: int,
    stamp: int,
    ends: bool,
    out: MeasureRecords,
    filled: Int64,
) -> None:
    """Write the totals of a prefix."""
    at, base, depths = filled[node], slot * stacks.rows, tree.depth[node] + 1
    front, back = stacks.front, stacks.back
    row = stacks.head[slot] & (stacks.following.size - 1) if stacks.head[slot] >= 0 else -1
    out.key[at] = key
    out.stamp[at] = stamp
    out.ends[at] = ends
    sums_through(blocks.integers, front.integers, row, depths, back.integers, base, node, out.integers, at)
    sums_through(blocks.reals, front.reals, row, depths, back.reals, base, node, out.reals, at)
    first, paths = blocks.least.first[node], blocks.reals.first[node]
    for column in range(first, blocks.least.first[node + 1]):
        least = back.least[base, column]
        if row >= 0:
            for depth in range(1, depths):
                earlier = blocks.least.chain[column, depth]
                code = NOTHING
                if earlier >= 0:
                    code = front.least[row, earlier]
                elif front.reals[row, blocks.reals.chain[paths, depth]] > 0:
                    code = BEFORE
                least = min(least, max(code, back.least[base + depth, column]))
        out.least[at, column - first] = least
    filled[node] = at + 1


@njit(cache=True, nogil=True)
def multiply_windows(
    tree: PrefixTree,
    blocks: Blocks,
    log: Log,
    stacks: Stacks,
    visits: Visits,
    times: Int64,
    with_leaving: bool,
    out: MeasureRecords,
    filled: Int64,
) -> None:
    """Resume the two-stack product of each visited key; see `count_kernels.multiply_windows`.

    `times` [stamps]: what `until` is compared with; empty: the stamps themselves. `with_leaving`: also write what there
    was at the first stamp, and where totals fall up to the last. One function, as a call retains and releases every
    array that it takes.
    """
    suffix = no_numbers(stacks.rows, blocks)
    terminals: Int64 = np.flatnonzero(tree.ends)
    ended, is_noted, pending = np.zeros(tree.parent.size, np.int64), np.zeros(tree.parent.size, np.bool_), 0
    for visit in range(visits.key.size):
        key, slot, last = visits.key[visit], visits.slot[visit], visits.last[visit]
        begin, end, base = visits.begin[visit], visits.end[visit], slot * stacks.rows
        if visits.is_fresh:
            stacks.head[slot], stacks.oldest[slot], stacks.turned[slot] = -1, -1, begin
            stand_still(tree, blocks, stacks.back, base, stacks.rows)
        elif begin == end:
            any_match = False
            for node in terminals:
                any_match |= reaches(tree, blocks.reals, stacks, slot, node)
            if not any_match:
                continue  # no match before, none now
        # Before an operation, then before its seal, and once more at the end: what leaves by then.
        for i in range(begin - (not visits.is_fresh), end + with_leaving):
            is_operation = begin <= i < end
            at = i & log.mask
            if is_operation:
                stamp = log.stamp[at]
            else:
                stamp = visits.first_stamp if i < begin else visits.last_stamp
            now = stamp
            for sealing in range(2):
                now = times[stamp] if times.size else stamp
                while True:
                    start = stacks.head[slot] if stacks.head[slot] >= 0 else stacks.oldest[slot]
                    if start < 0 or not is_gone(log, start, now):
                        break
                    # Starts that go together are taken out together.
                    gone, writes = now, with_leaving and i >= begin
                    if writes:
                        gone = log.until[start & log.start_mask] + 1
                    drop_gone(log, stacks, slot, gone)
                    if stacks.head[slot] < 0 and stacks.oldest[slot] >= 0 and is_gone(log, stacks.oldest[slot], gone):
                        turn(tree, blocks, log, stacks, slot, last, suffix)
                        drop_gone(log, stacks, slot, gone)
                    if writes:
                        for node in terminals:
                            record(tree, blocks, stacks, slot, node, key, gone, False, out, filled)
                if sealing == 1 or not is_operation:
                    break
                level, symbol = log.level[at], log.symbol[at]
                for k in range(log.first_node[symbol], log.first_node[symbol + 1]):
                    node = log.nodes[k]
                    if node < 0:
                        for row in range(base, base + stacks.rows):
                            clear(blocks, stacks.back, row, -node, -node + 1)
                        continue
                    if (
                        tree.ends[node]
                        and not is_noted[node]
                        and reaches(tree, blocks.reals, stacks, slot, tree.parent[node])
                    ):
                        is_noted[node] = True
                        ended[pending] = node
                        pending += 1
                    extend(tree, blocks, stacks.back, base, stacks.rows, node, log.place[at])
                if level == 1 and stacks.oldest[slot] < 0:
                    stacks.oldest[slot] = log.start[at]
                last = i
                stamp = log.seal[at]
                if stamp == NO_SEAL:
                    break
            if is_operation and log.seal[at] != NO_SEAL:
                for n in range(pending):
                    record(tree, blocks, stacks, slot, ended[n], key, log.seal[at], True, out, filled)
                    is_noted[ended[n]] = False
                pending = 0
            elif i < begin and with_leaving:
                for node in terminals:
                    if reaches(tree, blocks.reals, stacks, slot, node):
                        record(tree, blocks, stacks, slot, node, key, now, False, out, filled)


@njit(cache=True, nogil=True)
def release(log: Log, stacks: Stacks, owner: Int64, first: int, end: int) -> None:
    """Take the starts [first, end), which are in no window to come, off the fronts of their owners."""
    for start in range(first, end):
        slot = owner[start & log.start_mask]
        while 0 <= stacks.head[slot] < end:
            stacks.head[slot] = stacks.following[stacks.head[slot] & (stacks.following.size - 1)]
