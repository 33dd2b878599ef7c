"""Compute counts over time from operations on prefix counters: the kernels for COUNT alone.

Prefix counting, start event marking (SEM) and their lemmas are from "Complex Event Analytics: Online Aggregation of
Stream Sequence Patterns", section 3. The two-stack queue is from "General Incremental Sliding-Window Aggregation"
(Tangwongsan, Hirzel, Schneider, Wu, 2015). Its elements are linear maps: an operation maps the vector of prefix counts,
and a window is the product of its operations. On a tree, a prefix that several queries share is updated once.

Each kernel writes records for every prefix at which a query ends. `filled` [nodes] is the next free record of each
prefix; the kernel advances it. The kernels require counts that fit in 64 bits (`largest_in_window`); `measure_kernels`
computes larger ones at several times the cost.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Int64
from streamsift.runtime.count.operations import NO_SEAL, Operations
from streamsift.runtime.count.prefix_tree import PrefixTree, TotalRecords
from streamsift.runtime.events.stamps import NEVER


@njit(cache=True, nogil=True)
def largest_in_window(tree: PrefixTree, operations: Operations) -> tuple[float, int]:
    """Return an upper bound of all counts, and the maximum number of starts in one window.

    The bound is the product, along a path, of the maximum number of events of each step in one window.
    """
    level, symbol, stamp, until = operations.level, operations.symbol, operations.stamp, operations.until
    first_node, nodes = operations.first_node, operations.nodes
    present, most = np.zeros(first_node.size - 1, np.int64), np.zeros(first_node.size - 1, np.int64)
    product = np.ones(tree.parent.size, np.float64)
    bound, most_starts = 0.0, 0
    for key in range(operations.offsets.size - 1):
        first = after = operations.first_start[key]
        tail = operations.offsets[key]
        present[:] = 0
        most[:] = 0
        for i in range(operations.offsets[key], operations.offsets[key + 1]):
            while first < after and until[first] < stamp[i]:
                first += 1
                # Operations before the first start in the window are in no match of the window.
                while tail < i and level[tail] != 1:
                    present[symbol[tail]] -= 1
                    tail += 1
                if tail < i:
                    present[symbol[tail]] -= 1
                    tail += 1
            present[symbol[i]] += 1
            most[symbol[i]] = max(most[symbol[i]], present[symbol[i]])
            after += level[i] == 1
            most_starts = max(most_starts, after - first)
        for s in range(most.size):
            for k in range(first_node[s], first_node[s + 1]):
                if nodes[k] > 0:
                    product[nodes[k]] = most[s]
        for node in range(1, product.size):
            product[node] *= product[tree.parent[node]]
            bound = max(bound, product[node])
    return bound, most_starts


@njit(cache=True, nogil=True, inline="always")
def record_count(out: TotalRecords, filled: Int64, node: int, key: int, stamp: int, ends: bool, total: int) -> None:
    at = filled[node]
    out.key[at] = key
    out.stamp[at] = stamp
    out.ends[at] = ends
    out.integers[at, 0] = total
    out.reals[at, 0] = total
    filled[node] = at + 1


@njit(cache=True, nogil=True)
def count_prefixes(tree: PrefixTree, operations: Operations, out: TotalRecords, filled: Int64) -> None:
    """Count prefixes without a window by dynamic programming: count[prefix] += count[parent]."""
    parent, ends, offsets, seal = tree.parent, tree.ends, operations.offsets, operations.seal
    symbol, first_node, nodes = operations.symbol, operations.first_node, operations.nodes
    count = np.zeros(parent.size, np.int64)
    ended, is_noted, pending = np.zeros(parent.size, np.int64), np.zeros(parent.size, np.bool_), 0
    for key in range(offsets.size - 1):
        count[1:] = 0
        count[0] = 1
        for i in range(offsets[key], offsets[key + 1]):
            for k in range(first_node[symbol[i]], first_node[symbol[i] + 1]):
                node = nodes[k]
                if node < 0:
                    count[-node] = 0
                    continue
                more = count[parent[node]]
                count[node] += more
                if ends[node] and more > 0 and not is_noted[node]:
                    is_noted[node] = True
                    ended[pending] = node
                    pending += 1
            if seal[i] != NO_SEAL:
                for n in range(pending):
                    record_count(out, filled, ended[n], key, seal[i], True, count[ended[n]])
                    is_noted[ended[n]] = False
                pending = 0


@njit(cache=True, nogil=True)
def mark_starts(operations: Operations, levels: int, with_leaving: bool, out: TotalRecords, filled: Int64) -> None:
    """Count the prefixes of each start in the window separately: counts [levels, starts]."""
    level, place, stamps, seal = operations.level, operations.place, operations.stamp, operations.seal
    most = 0
    for key in range(operations.offsets.size - 1):
        most = max(most, operations.first_start[key + 1] - operations.first_start[key])
    counts = np.zeros((levels + 1, most), np.int64)
    for key in range(operations.offsets.size - 1):
        base = operations.first_start[key]
        until = operations.until[base : operations.first_start[key + 1]]
        since = operations.since[base : operations.first_start[key + 1]]
        first, after, total, ended = 0, 0, 0, False
        begin, end = operations.offsets[key], operations.offsets[key + 1]
        # One extra round for starts that leave after the last operation.
        for i in range(begin, end + with_leaving):
            for sealing in range(2):
                stamp = NEVER - 1
                if i < end:
                    stamp = stamps[i] if sealing == 0 else seal[i]
                while first < after and until[first] < stamp:
                    total -= counts[levels, first]
                    first += 1
                    if with_leaving and (first == after or until[first] != until[first - 1]):
                        record_count(out, filled, levels, key, until[first - 1] + 1, False, total)
                if sealing == 0 and i < end:
                    p = level[i]
                    if p < 0:
                        for start in range(first, after):
                            counts[-p, start] = 0
                    elif p == 1:
                        counts[:, after] = 0
                        counts[1, after] = levels > 1 or since[after] <= place[i]
                        if levels == 1:
                            total += counts[1, after]
                            ended |= counts[1, after] > 0
                        after += 1
                    elif p < levels:
                        for start in range(first, after):
                            counts[p, start] += counts[p - 1, start]
                    else:
                        added = 0
                        for start in range(first, after):
                            if since[start] > place[i]:
                                break
                            counts[p, start] += counts[p - 1, start]
                            added += counts[p - 1, start]
                        total += added
                        ended |= added > 0
            if i < end and seal[i] != NO_SEAL and ended:
                record_count(out, filled, levels, key, seal[i], True, total)
                ended = False


# --- two stacks ------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, inline="always")
def stand_still(depth: Int64, back: Int64) -> None:
    """Set the back to the identity: the only path from a prefix is the empty path to itself."""
    for node in range(back.shape[0]):
        for d in range(back.shape[1]):
            back[node, d] = d == depth[node]


@njit(cache=True, nogil=True, inline="always")
def through(depth: Int64, path: Int64, front: Int64, row: int, back: Int64, node: int) -> int:
    """Return the number of paths to a prefix: the product of the front's row and the back.

    The empty prefix stands for paths that begin in the back.
    """
    total = 0
    for d in range(depth[node] + 1):
        total += front[row, path[node, d]] * back[node, d]
    return total


@njit(cache=True, nogil=True)
def turn(
    tree: PrefixTree, operations: Operations, begin: int, end: int, starts: int, suffix: Int64, front: Int64
) -> None:
    """Build the front from operations [begin, end): row s + 1 has the paths from start s or a later one.

    The operations are read backwards. Row d of `suffix` has the paths from prefixes of length d through the operations
    read so far. An operation adds row d to row d - 1, for the prefixes that extend its own; these are contiguous. For
    one pattern, whole rows are added and the front's next row is written at every operation, because branches on
    unpredictable levels would cost more.
    """
    depths, nodes = suffix.shape
    level, symbol, size = operations.level, operations.symbol, tree.size
    first_node, symbol_nodes = operations.first_node, operations.nodes
    is_one_pattern = depths == nodes
    for node in range(nodes):
        for depth in range(depths):
            suffix[depth, node] = depth == tree.depth[node]
    for i in range(end - 1, begin - 1, -1):
        for k in range(first_node[symbol[i]], first_node[symbol[i] + 1]):
            node = abs(symbol_nodes[k])
            low, high = (0, nodes) if is_one_pattern else (node, node + size[node])
            if level[i] < 0:
                suffix[-level[i], low:high] = 0
            else:
                for other in range(low, high):
                    suffix[level[i] - 1, other] += suffix[level[i], other]
        if is_one_pattern or level[i] == 1:
            for node in range(nodes):
                front[starts, node] = suffix[0, node]
            starts -= level[i] == 1
    front[0, 1:] = 0
    front[0, 0] = 1


@njit(cache=True, nogil=True)
def multiply_windows(
    tree: PrefixTree, operations: Operations, with_leaving: bool, out: TotalRecords, filled: Int64
) -> None:
    """Count the matches in each window with two stacks.

    `back` [target prefix, length of the source prefix] is the product of the operations since the last turn. The front
    has a row for each start before that turn: the paths to each prefix from this start or a later one. When the front
    is empty, the back is turned into a new front.

    One function, because each call would retain and release every array argument.
    """
    nodes, depths = tree.path.shape
    parent, depth, path, ends = tree.parent, tree.depth, tree.path, tree.ends
    level, symbol, stamps, seal = operations.level, operations.symbol, operations.stamp, operations.seal
    first_node, symbol_nodes, until = operations.first_node, operations.nodes, operations.until
    back, suffix = np.zeros((nodes, depths), np.int64), np.zeros((depths, nodes), np.int64)
    front = np.zeros((256, nodes), np.int64)
    terminals: Int64 = np.flatnonzero(ends)
    ended, is_noted, pending = np.zeros(nodes, np.int64), np.zeros(nodes, np.bool_), 0
    positive = np.zeros(nodes, np.bool_)
    for key in range(operations.offsets.size - 1):
        # Starts [first, middle) are in the front, start `first` in row `here`; starts [middle, after) are in the back.
        # Row 0 has no start.
        first = operations.first_start[key]
        middle, after, origin, here = first, first, first, 0
        turned, end = operations.offsets[key], operations.offsets[key + 1]
        front[0, 1:] = 0
        front[0, 0] = 1
        stand_still(depth, back)
        positive[:] = False
        # Remove starts that have left before each operation, before its seal, and once more at the end.
        for i in range(turned, end + with_leaving):
            stamp = stamps[i] if i < end else NEVER - 1
            for sealing in range(2):
                while first < after and until[first] < stamp:
                    if first == middle:
                        if after - first >= front.shape[0]:
                            front = np.zeros((2 * (after - first), nodes), np.int64)
                        done = min(i + sealing, end)
                        turn(tree, operations, turned, done, after - first, suffix, front)
                        origin, middle, turned = first, after, done
                        stand_still(depth, back)
                    first += 1
                    here = first - origin + 1 if first < middle else 0
                    if with_leaving and (first == after or until[first] != until[first - 1]):
                        for node in terminals:
                            if positive[node]:
                                total = through(depth, path, front, here, back, node)
                                record_count(out, filled, node, key, until[first - 1] + 1, False, total)
                                positive[node] = total > 0
                if sealing == 1 or i == end:
                    break
                for k in range(first_node[symbol[i]], first_node[symbol[i] + 1]):
                    node = symbol_nodes[k]
                    if node < 0:
                        back[-node, :] = 0
                        continue
                    above = parent[node]
                    if ends[node] and not is_noted[node] and through(depth, path, front, here, back, above) > 0:
                        is_noted[node] = True
                        ended[pending] = node
                        pending += 1
                    # Add whole rows, which compiles to vector additions.
                    for d in range(depths):
                        back[node, d] += back[above, d]
                after += level[i] == 1
                stamp = seal[i]
                if stamp == NO_SEAL:
                    break
            if i < end and seal[i] != NO_SEAL:
                for n in range(pending):
                    total = through(depth, path, front, here, back, ended[n])
                    record_count(out, filled, ended[n], key, seal[i], True, total)
                    positive[ended[n]] = True
                    is_noted[ended[n]] = False
                pending = 0
