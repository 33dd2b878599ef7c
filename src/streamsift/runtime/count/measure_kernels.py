"""Compute totals over time from operations on the measures of paths: the kernels for sums, MIN, MAX and large counts.

These kernels do for all measures what `count_kernels` does for one count, and implement the same papers. A path is a
part of a match:

- Sums: extending paths by an event adds the event's value once for each path.
- MIN and MAX: a path has the code of its event, or BEFORE if it has not reached that event. Concatenating paths takes
  the maximum of their codes, and a set of paths has the minimum. (min, max) is a semiring like (+, *), so windows are
  products here too.
- Overflow: integers wrap modulo 2^64. The double of each integer detects that, and shows whether any path exists.

The two stacks of each key are state, so a run can resume where the previous one stopped; a run over all events starts
with empty stacks. Without a window, nothing leaves, and the back has only the paths from the empty prefix.

Hot functions take arrays as single arguments, and kernels unpack their tuples before the loop. Numba updates a
reference count at each access to an array in a tuple, which costs several times as much as the additions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Float64, Int8, Int32, Int64
from streamsift.runtime.count.extremes import NOTHING
from streamsift.runtime.count.operations import NO_SEAL, Operations
from streamsift.runtime.count.prefix_tree import INTEGERS, LEAST, REALS, PrefixColumns, PrefixTree, TotalRecords
from streamsift.runtime.events.stamps import NEVER

BEFORE = np.iinfo(np.int64).min  # the code of a path that has not reached the event of the attribute
NO_TIMES: Int64 = np.zeros(0, np.int64)
Sums = Int64 | Float64


class Numbers(NamedTuple):
    """The measures of paths to each prefix, one number per column; the paths of a row have the same origin."""

    integers: Int64  # [rows, columns]
    reals: Float64
    least: Int64


# --- paths -----------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def no_numbers(rows: int, columns: PrefixColumns) -> Numbers:
    return Numbers(
        np.zeros((rows, columns.first[INTEGERS, -1]), np.int64),
        np.zeros((rows, columns.first[REALS, -1]), np.float64),
        np.full((rows, columns.first[LEAST, -1]), NOTHING, np.int64),
    )


@njit(cache=True, nogil=True)
def stand_still(tree: PrefixTree, columns: PrefixColumns, numbers: Numbers, base: int, rows: int) -> None:
    """Set rows to the identity: only empty paths. Row base + d has the paths from prefixes of length d < `rows`."""
    numbers.integers[base : base + rows] = 0
    numbers.reals[base : base + rows] = 0.0
    numbers.least[base : base + rows] = NOTHING
    for node in range(tree.parent.size):
        row = base + tree.depth[node]
        if tree.depth[node] < rows:
            numbers.integers[row, columns.first[INTEGERS, node]] = 1
            numbers.reals[row, columns.first[REALS, node]] = 1.0
            numbers.least[row, columns.first[LEAST, node] : columns.first[LEAST, node + 1]] = BEFORE


@njit(cache=True, nogil=True)
def clear(columns: PrefixColumns, numbers: Numbers, begin: int, end: int, node: int, after: int) -> None:
    """Remove all paths of rows [begin, end) to prefixes [node, after)."""
    first = columns.first
    numbers.integers[begin:end, first[INTEGERS, node] : first[INTEGERS, after]] = 0
    numbers.reals[begin:end, first[REALS, node] : first[REALS, after]] = 0.0
    numbers.least[begin:end, first[LEAST, node] : first[LEAST, after]] = NOTHING


@njit(cache=True, nogil=True, inline="always")
def extend_sums(
    block: int,
    first: Int64,
    before: Int64,
    measure: Int64,
    loads: Sums,
    paths: Sums,
    row: int,
    parent: int,
    node: int,
    place: int,
) -> None:
    """Extend every path of a row from the node's parent to the node with the event at `place`."""
    many = paths[row, first[block, parent]]
    for column in range(first[block, node], first[block, node + 1]):
        if before[block, column] >= 0:
            paths[row, column] += paths[row, before[block, column]]
        else:
            paths[row, column] += loads[measure[block, column], place] * many


@njit(cache=True, nogil=True, inline="always")
def extend_least(
    first: Int64,
    before: Int64,
    measure: Int64,
    loads: Int64,
    paths: Int64,
    row: int,
    any_path: bool,
    node: int,
    place: int,
) -> None:
    """Extend MIN and MAX codes like `extend_sums`; `any_path` is True if a path leads to the node's parent."""
    for column in range(first[LEAST, node], first[LEAST, node + 1]):
        code = NOTHING
        if before[LEAST, column] >= 0:
            code = paths[row, before[LEAST, column]]
        elif any_path:
            code = loads[measure[LEAST, column], place]
        paths[row, column] = min(paths[row, column], code)


# --- start event marking ---------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def record_starts(
    columns: PrefixColumns, paths: Numbers, begin: int, end: int, node: int, out: TotalRecords, filled: Int64
) -> int:
    """Append a record with the totals of rows [begin, end); return its number."""
    at = filled[node]
    filled[node] = at + 1
    first, after = columns.first[:, node], columns.first[:, node + 1]
    integers, reals, least = out.integers[at], out.reals[at], out.least[at]
    integers[:] = 0
    reals[:] = 0.0
    least[:] = NOTHING
    of_integers, of_reals, of_least = paths.integers, paths.reals, paths.least
    for row in range(begin, end):
        for c in range(after[INTEGERS] - first[INTEGERS]):
            integers[c] += of_integers[row, first[INTEGERS] + c]
        for c in range(after[REALS] - first[REALS]):
            reals[c] += of_reals[row, first[REALS] + c]
        for c in range(after[LEAST] - first[LEAST]):
            least[c] = min(least[c], of_least[row, first[LEAST] + c])
    return at


@njit(cache=True, nogil=True)
def mark_starts(
    tree: PrefixTree,
    columns: PrefixColumns,
    operations: Operations,
    with_leaving: bool,
    out: TotalRecords,
    filled: Int64,
) -> None:
    """Compute the measures of one pattern for each start in the window separately, with one row of paths per start."""
    levels, most = tree.parent.size - 1, 0
    for key in range(operations.offsets.size - 1):
        most = max(most, operations.first_start[key + 1] - operations.first_start[key])
    paths = no_numbers(most, columns)
    integers, reals, least = paths.integers, paths.reals, paths.least
    first_of, before, measure = columns.first, columns.before, columns.measure
    integer_loads, real_loads, least_loads = columns.integer_loads, columns.real_loads, columns.least_loads
    since, until = operations.since, operations.until
    for key in range(operations.offsets.size - 1):
        base = operations.first_start[key]
        first, after, ended = base, base, False
        end = operations.offsets[key + 1]
        for i in range(operations.offsets[key], end + with_leaving):
            for sealing in range(2):
                stamp = NEVER - 1
                if i < end:
                    stamp = operations.stamp[i] if sealing == 0 else operations.seal[i]
                while first < after and until[first] < stamp:
                    first += 1
                    gone = until[first - 1]
                    if with_leaving and (first == after or until[first] != gone):
                        at = record_starts(columns, paths, first - base, after - base, levels, out, filled)
                        out.key[at], out.stamp[at], out.ends[at] = key, gone + 1, False
                if sealing == 1 or i == end:
                    break
                level, place = operations.level[i], operations.place[i]
                begin = first
                if level < 0:
                    clear(columns, paths, first - base, after - base, -level, -level + 1)
                    begin = after
                elif level == 1:
                    stand_still(tree, columns, paths, after - base, 1)
                    begin = after
                    after += 1
                parent = level - 1
                for start in range(begin, after):
                    if level == levels and since[start] > place:
                        continue
                    row = start - base
                    any_path = reals[row, first_of[REALS, parent]] > 0
                    ended |= level == levels and any_path
                    extend_sums(INTEGERS, first_of, before, measure, integer_loads, integers, row, parent, level, place)
                    extend_sums(REALS, first_of, before, measure, real_loads, reals, row, parent, level, place)
                    extend_least(first_of, before, measure, least_loads, least, row, any_path, level, place)
                if level == 1:
                    # A row has the paths of one start only: remove the empty path.
                    clear(columns, paths, after - 1 - base, after - base, 0, 1)
            if i < end and ended and operations.seal[i] != NO_SEAL:
                at = record_starts(columns, paths, first - base, after - base, levels, out, filled)
                out.key[at], out.stamp[at], out.ends[at] = key, operations.seal[i], True
                ended = False


# --- two stacks ------------------------------------------------------------------------------------------------------


class Log(NamedTuple):
    """Operations and starts in ring buffers: number n is entry n & mask; a mask of -1 means that there is no ring.

    Operations below `first_operation` and starts below `first_start` are evicted: they are in no future window.
    """

    level: Int8  # [operations] the fields up to `nodes` are those of Operations
    symbol: Int32
    place: Int32
    stamp: Int64
    seal: Int64
    until: Int64  # [starts]
    first_node: Int64  # [symbols + 1]
    nodes: Int64
    before: Int64  # [operations] the previous operation of the same key; negative for none
    start: Int64  # [operations] the number of the start, if the operation is one
    first_operation: int = 0
    mask: int = -1
    first_start: int = 0
    start_mask: int = -1

    @staticmethod
    def of(operations: Operations) -> Log:
        """Return a log of all operations."""
        same: dict[str, Any] = {name: getattr(operations, name) for name in Log._fields[:8]}
        is_start = operations.level == 1
        return Log(**same, before=np.arange(-1, is_start.size - 1), start=np.cumsum(is_start) - 1)


class Stacks(NamedTuple):
    """The two stacks of each slot. A slot serves one key, or all keys in turn. Negative numbers mean none."""

    head: Int64  # [slots] the first start of the front
    oldest: Int64  # [slots] the first start of the back
    turned: Int64  # [slots] the first operation of the back
    back: Numbers  # [slots * rows] the product of the operations since the last turn
    rows: int  # rows of a back: one per prefix length; 1 without a window
    following: Int64  # [starts, a ring] the next start in the front of the same key
    front: Numbers  # [starts, a ring] the paths to each prefix from this and later starts of the front

    @staticmethod
    def room(slots: int, rows: int, starts: int, columns: PrefixColumns) -> Stacks:
        """Allocate empty stacks; `rows` is the number of rows of a back, `starts` the capacity of the fronts."""
        none, entries = np.full(slots, -1, np.int64), 1 << max(starts - 1, 0).bit_length()
        back, front = no_numbers(slots * rows, columns), no_numbers(entries, columns)
        return Stacks(none, none.copy(), none.copy(), back, rows, np.full(entries, -1, np.int64), front)


class Visits(NamedTuple):
    """The keys whose totals are written, and the range of stamps."""

    key: Int64
    slot: Int64
    begin: Int64  # the new operations [begin, end) of each key
    end: Int64
    last: Int64  # the operation before `begin`
    is_fresh: bool = False  # True if the keys have no state yet
    first_stamp: int = 0
    last_stamp: int = NEVER - 1

    @staticmethod
    def of_all(operations: Operations, is_fresh: bool = True) -> Visits:
        """Return visits of all keys: in turn in one slot if fresh, else each in its own slot."""
        begin, end = operations.offsets[:-1], operations.offsets[1:]
        keys = np.arange(begin.size)
        return Visits(keys, np.zeros_like(keys) if is_fresh else keys, begin, end, begin - 1, is_fresh)


@njit(cache=True, nogil=True, inline="always")
def precede_sums(
    block: int,
    first: Int64,
    first_load: Int64,
    loading: Int64,
    measure: Int64,
    of_node: Int64,
    loads: Sums,
    suffix: Sums,
    depth: int,
    node: int,
    after: int,
    place: int,
) -> None:
    """Prepend the event at `place` to paths from the node; add them to the parent's. Row d: prefixes of length d."""
    for column in range(first[block, node], first[block, after]):
        suffix[depth - 1, column] += suffix[depth, column]
    for k in range(first_load[block, node], first_load[block, node + 1]):
        column = loading[block, k]
        many = suffix[depth, first[block, of_node[block, column]]]
        suffix[depth - 1, column] += loads[measure[block, column], place] * many


@njit(cache=True, nogil=True)
def turn(
    tree: PrefixTree, columns: PrefixColumns, log: Log, stacks: Stacks, slot: int, last: int, suffix: Numbers
) -> None:
    """Build the front from the operations of the back, up to `last`, and reset the back; the front must be empty."""
    stand_still(tree, columns, suffix, 0, suffix.integers.shape[0])
    size, first, measure, of_node = tree.size, columns.first, columns.measure, columns.node
    first_load, loading, loaded_at = columns.first_load, columns.loads, columns.loaded_at
    integer_loads, real_loads, least_loads = columns.integer_loads, columns.real_loads, columns.least_loads
    integers, reals, least = suffix.integers, suffix.reals, suffix.least
    front, rows = stacks.front, stacks.following
    front_integers, front_reals, front_least = front.integers, front.reals, front.least
    following, operation = -1, last
    oldest = max(stacks.turned[slot], log.first_operation)
    levels, symbols, places, before, starts = log.level, log.symbol, log.place, log.before, log.start
    first_node, nodes = log.first_node, log.nodes
    while operation >= oldest:
        at = operation & log.mask
        level, place = levels[at], places[at]
        for k in range(first_node[symbols[at]], first_node[symbols[at] + 1]):
            node = nodes[k]
            if node < 0:
                clear(columns, suffix, -level, -level + 1, -node, -node + size[-node])
                continue
            end = node + size[node]
            precede_sums(
                INTEGERS, first, first_load, loading, measure, of_node, integer_loads, integers, level, node, end, place
            )
            precede_sums(
                REALS, first, first_load, loading, measure, of_node, real_loads, reals, level, node, end, place
            )
            for column in range(first[LEAST, node], first[LEAST, end]):
                code = least[level, column]
                if loaded_at[LEAST, column] == node:
                    code = max(code, least_loads[measure[LEAST, column], place])
                least[level - 1, column] = min(least[level - 1, column], code)
        if level == 1:
            row = starts[at] & (rows.size - 1)
            for column in range(integers.shape[1]):
                front_integers[row, column] = integers[0, column]
            for column in range(reals.shape[1]):
                front_reals[row, column] = reals[0, column]
            for column in range(least.shape[1]):
                front_least[row, column] = least[0, column]
            rows[row] = following
            following = starts[at]
        operation = before[at]
    stacks.head[slot] = following
    stacks.oldest[slot] = -1
    stacks.turned[slot] = last + 1
    stand_still(tree, columns, stacks.back, slot * stacks.rows, stacks.rows)


@njit(cache=True, nogil=True, inline="always")
def is_gone(first_start: int, start_mask: int, until: Int64, start: int, now: int) -> bool:
    return start < first_start or until[start & start_mask] < now


@njit(cache=True, nogil=True)
def leave(
    tree: PrefixTree, columns: PrefixColumns, log: Log, stacks: Stacks, slot: int, last: int, now: int, suffix: Numbers
) -> None:
    """Remove the starts that have left the window at `now`; turn the stacks if the front becomes empty."""
    first, mask, until, following = log.first_start, log.start_mask, log.until, stacks.following
    for _ in range(2):
        head = stacks.head[slot]
        while head >= 0 and is_gone(first, mask, until, head, now):
            head = following[head & (following.size - 1)]
        stacks.head[slot] = head
        if head >= 0 or stacks.oldest[slot] < 0 or not is_gone(first, mask, until, stacks.oldest[slot], now):
            return
        turn(tree, columns, log, stacks, slot, last, suffix)


@njit(cache=True, nogil=True, inline="always")
def reaches(
    depth: Int64, first: Int64, chain: Int64, front: Float64, row: int, back: Float64, base: int, node: int
) -> bool:
    """Return True if any path in the window leads to the prefix; `row` is negative if the front is empty."""
    column = first[REALS, node]
    any_path = back[base, column] > 0
    if row >= 0 and not any_path:
        for d in range(1, depth[node] + 1):
            any_path |= front[row, chain[REALS, column, d]] > 0 and back[base + d, column] > 0
    return any_path


@njit(cache=True, nogil=True, inline="always")
def sums_through(
    block: int,
    first: Int64,
    chain: Int64,
    front: Sums,
    row: int,
    depths: int,
    back: Sums,
    base: int,
    node: int,
    out: Sums,
    at: int,
) -> None:
    """Write the sums over all paths to the node: those that begin in the back, and those of the front's row that the
    back extends from a prefix of fewer than `depths` steps."""
    paths = first[block, node]
    for column in range(paths, first[block, node + 1]):
        total = back[base, column]
        if row >= 0:
            for depth in range(1, depths):
                earlier = chain[block, column, depth]
                if earlier >= 0:
                    total += front[row, earlier] * back[base + depth, paths]
                if column > paths:
                    total += front[row, chain[block, paths, depth]] * back[base + depth, column]
        out[at, column - paths] = total


@njit(cache=True, nogil=True, inline="always")
def least_through(
    first: Int64,
    chain: Int64,
    front: Int64,
    front_reals: Float64,
    row: int,
    depths: int,
    back: Int64,
    base: int,
    node: int,
    out: Int64,
    at: int,
) -> None:
    """Write the minimum of the codes of the same paths."""
    for column in range(first[LEAST, node], first[LEAST, node + 1]):
        least = back[base, column]
        if row >= 0:
            for depth in range(1, depths):
                earlier = chain[LEAST, column, depth]
                code = NOTHING
                if earlier >= 0:
                    code = front[row, earlier]
                elif front_reals[row, chain[REALS, first[REALS, node], depth]] > 0:
                    code = BEFORE
                least = min(least, max(code, back[base + depth, column]))
        out[at, column - first[LEAST, node]] = least


@njit(cache=True, nogil=True)
def record_all(
    tree: PrefixTree,
    columns: PrefixColumns,
    stacks: Stacks,
    slot: int,
    key: int,
    stamp: int,
    out: TotalRecords,
    filled: Int64,
) -> None:
    """Write the totals of every prefix at which a query ends, at a stamp at which no match ends."""
    base, head = slot * stacks.rows, stacks.head[slot]
    row = head & (stacks.following.size - 1) if head >= 0 else -1
    first, chain, front, back = columns.first, columns.chain, stacks.front, stacks.back
    for node in range(tree.parent.size):
        if tree.ends[node]:
            at, depths = filled[node], tree.depth[node] + 1
            filled[node] = at + 1
            out.key[at], out.stamp[at], out.ends[at] = key, stamp, False
            sums_through(
                INTEGERS, first, chain, front.integers, row, depths, back.integers, base, node, out.integers, at
            )
            sums_through(REALS, first, chain, front.reals, row, depths, back.reals, base, node, out.reals, at)
            least_through(first, chain, front.least, front.reals, row, depths, back.least, base, node, out.least, at)


@njit(cache=True, nogil=True)
def any_match(tree: PrefixTree, columns: PrefixColumns, stacks: Stacks, slot: int) -> bool:
    """Return True if the window contains a match."""
    head, is_match = stacks.head[slot], False
    row = head & (stacks.following.size - 1) if head >= 0 else -1
    first, chain, front, back = columns.first, columns.chain, stacks.front.reals, stacks.back.reals
    for node in range(tree.parent.size):
        if tree.ends[node] and not is_match:
            is_match = reaches(tree.depth, first, chain, front, row, back, slot * stacks.rows, node)
    return is_match


@njit(cache=True, nogil=True)
def multiply_windows(
    tree: PrefixTree,
    columns: PrefixColumns,
    log: Log,
    stacks: Stacks,
    visits: Visits,
    times: Int64,
    with_leaving: bool,
    out: TotalRecords,
    filled: Int64,
) -> None:
    """Resume the two-stack product of each visited key; see `count_kernels.multiply_windows`.

    `until` is compared with `times` [stamps], or with the stamps themselves if `times` is empty. With `with_leaving`,
    also write the totals at the first stamp, and where totals fall up to the last. One function, because calls would
    update the reference counts of all arrays.
    """
    rows, ring = stacks.rows, stacks.following.size - 1
    parent, depth, ends = tree.parent, tree.depth, tree.ends
    first, before, measure, chain = columns.first, columns.before, columns.measure, columns.chain
    integer_loads, real_loads, least_loads = columns.integer_loads, columns.real_loads, columns.least_loads
    head, oldest, until = stacks.head, stacks.oldest, log.until
    integers, reals, least = stacks.back.integers, stacks.back.reals, stacks.back.least
    front_integers, front_reals, front_least = stacks.front.integers, stacks.front.reals, stacks.front.least
    levels, symbols, places, stamps, seals, starts = log.level, log.symbol, log.place, log.stamp, log.seal, log.start
    first_node, nodes = log.first_node, log.nodes
    out_key, out_stamp, out_ends = out.key, out.stamp, out.ends
    out_integers, out_reals, out_least = out.integers, out.reals, out.least
    suffix = no_numbers(rows, columns)
    ended, is_noted, pending = np.zeros(parent.size, np.int64), np.zeros(parent.size, np.bool_), 0
    for visit in range(visits.key.size):
        key, slot, last = visits.key[visit], visits.slot[visit], visits.last[visit]
        begin, end, base = visits.begin[visit], visits.end[visit], slot * rows
        if visits.is_fresh:
            head[slot], oldest[slot], stacks.turned[slot] = -1, -1, begin
            stand_still(tree, columns, stacks.back, base, rows)
            had_match = False
        else:
            had_match = with_leaving and any_match(tree, columns, stacks, slot)
            if begin == end and not had_match:
                continue  # no match before and no new event
        # Remove starts that have left before each operation, before its seal, and once more at the end.
        for i in range(begin - (not visits.is_fresh), end + with_leaving):
            is_operation, at = begin <= i < end, i & log.mask
            stamp = stamps[at] if is_operation else (visits.first_stamp if i < begin else visits.last_stamp)
            now = stamp
            for sealing in range(2):
                now = times[stamp] if times.size else stamp
                while True:
                    start = head[slot] if head[slot] >= 0 else oldest[slot]
                    if start < 0 or not is_gone(log.first_start, log.start_mask, until, start, now):
                        break
                    if with_leaving and i >= begin:
                        # Starts that leave at the same time are removed together.
                        gone = until[start & log.start_mask] + 1
                        leave(tree, columns, log, stacks, slot, last, gone, suffix)
                        record_all(tree, columns, stacks, slot, key, gone, out, filled)
                    else:
                        leave(tree, columns, log, stacks, slot, last, now, suffix)
                if sealing == 1 or not is_operation:
                    break
                row = head[slot] & ring if head[slot] >= 0 else -1
                level, place = levels[at], places[at]
                for k in range(first_node[symbols[at]], first_node[symbols[at] + 1]):
                    node = nodes[k]
                    if node < 0:
                        clear(columns, stacks.back, base, base + rows, -node, -node + 1)
                        continue
                    above = parent[node]
                    if (
                        ends[node]
                        and not is_noted[node]
                        and reaches(depth, first, chain, front_reals, row, reals, base, above)
                    ):
                        is_noted[node] = True
                        ended[pending] = node
                        pending += 1
                    for r in range(base, base + min(depth[node], rows)):
                        any_path = reals[r, first[REALS, above]] > 0
                        extend_sums(INTEGERS, first, before, measure, integer_loads, integers, r, above, node, place)
                        extend_sums(REALS, first, before, measure, real_loads, reals, r, above, node, place)
                        extend_least(first, before, measure, least_loads, least, r, any_path, node, place)
                if level == 1 and oldest[slot] < 0:
                    oldest[slot] = starts[at]
                last = i
                stamp = seals[at]
                if stamp == NO_SEAL:
                    break
            if is_operation and seals[at] != NO_SEAL:
                row = head[slot] & ring if head[slot] >= 0 else -1
                for n in range(pending):
                    node = ended[n]
                    to, depths = filled[node], depth[node] + 1
                    filled[node] = to + 1
                    is_noted[node] = False
                    out_key[to], out_stamp[to], out_ends[to] = key, seals[at], True
                    sums_through(
                        INTEGERS, first, chain, front_integers, row, depths, integers, base, node, out_integers, to
                    )
                    sums_through(REALS, first, chain, front_reals, row, depths, reals, base, node, out_reals, to)
                    least_through(first, chain, front_least, front_reals, row, depths, least, base, node, out_least, to)
                pending = 0
            elif i < begin and had_match:
                record_all(tree, columns, stacks, slot, key, now, out, filled)


@njit(cache=True, nogil=True)
def first_staying(order: Int64, until: Int64, mask: int, begin: int, end: int, now: int) -> int:
    """Return the first of the starts `order` [begin, end), both rings, that has not left the window at `now`."""
    while begin < end and until[order[begin & mask] & mask] < now:
        begin += 1
    return begin


@njit(cache=True, nogil=True)
def release(log: Log, stacks: Stacks, owner: Int64, first: int, end: int) -> None:
    """Remove the starts [first, end) from the fronts of their owners; these starts are in no future window."""
    for start in range(first, end):
        slot = owner[start & log.start_mask]
        while 0 <= stacks.head[slot] < end:
            stacks.head[slot] = stacks.following[stacks.head[slot] & (stacks.following.size - 1)]
