"""Keep the best paths of a window in a top-k buffer, and move it to the next window.

Like k-DSSP of the CPR thesis (section 3.2), a move keeps the paths that stay in the window and searches separately for
paths that end with a new event, here on the graph that all windows share. A buffer holds every path of the window down
to a threshold score. A move drops paths that begin too early and adds paths that end with a new event and reach the
threshold. The whole window is read again only if too few paths are left, or if it has a new cut.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Float64, Int32, Int64
from streamsift.runtime.arrays.growing import grown
from streamsift.runtime.paths.enumerate import PathSearch, Roots, Rule, is_behind, is_below, new_search, read_paths
from streamsift.runtime.paths.equivalence import first_of_classes, member_above
from streamsift.runtime.paths.graph import Graph
from streamsift.runtime.paths.heap import in_order, precedes


class Reserve(NamedTuple):
    """How many results a top-k buffer holds for future windows.

    A buffer holds all results down to a threshold score. It starts with `filled` times k results, so that enough remain
    after window moves. When new results make it `max_filled` times as large, the worst are dropped and the threshold
    rises.
    """

    filled: int
    max_filled: int = 4


RESERVE = Reserve(2)
FEW_MOVES = 4  # if fewer windows share a cut, each is read as a whole
MARGIN = 5 / 6  # of the slack: down to this far below the last path read, no path is missing despite rounding


class Owners(NamedTuple):
    """The entries of the first and the last step, sorted by owner and place. Each owner has its own best paths."""

    first_starts: Int64  # [owners + 1]
    firsts: Int32
    last_starts: Int64  # [owners + 1]
    lasts: Int32


class TopKBuffer(NamedTuple):
    """The paths of a window down to a threshold, best first."""

    paths: Int32  # [count, L]
    sums: Float64  # [count]
    threshold: float
    threshold_path: Int32  # [1, L]
    is_complete: bool  # True if the window has no other paths


@njit(cache=True, nogil=True)
def new_buffer(steps: int) -> TopKBuffer:
    return TopKBuffer(np.empty((0, steps), np.int32), np.empty(0), -np.inf, np.zeros((1, steps), np.int32), False)


@njit(cache=True, nogil=True)
def groups_inside(graph: Graph, stamps: Int64, entries: Int32, low: int, high: int) -> Int32:
    """Return the groups of the entries in [low, high); entries ascend by place."""
    groups, count = np.empty(16, np.int32), 0
    stamps[-1] += 1
    for at in range(member_above(graph.place, entries, 0, entries.size, low - 1), entries.size):
        group = graph.group[entries[at]]
        if graph.place[entries[at]] >= high or count == stamps.size - 1:
            break
        if stamps[group] != stamps[-1]:
            stamps[group] = stamps[-1]
            if count == groups.size:
                groups = grown(groups)
            groups[count] = group
            count += 1
    return groups[:count]


@njit(cache=True, nogil=True)
def read_window(
    graph: Graph, window: int, groups: Int32, since: int, rule: Rule, search: PathSearch
) -> tuple[PathSearch, Int32, Float64, bool]:
    """Read the best paths of a window, in order; unless `since` is -1, only those that end there or later."""
    size = groups.size
    roots = Roots(groups, np.full(size, window), np.full(size, -1, np.int32), np.full(size, since, np.int32))
    search, paths, sums, _, gave_up = read_paths(graph, roots, np.array([0, size]), rule, search)
    paths, sums = in_order(graph.ties, paths, sums)
    return search, paths, sums, bool(gave_up[0])


@njit(cache=True, nogil=True)
def opened_buffer(
    graph: Graph, window: int, firsts: Int32, wanted: int, rule: Rule, search: PathSearch
) -> tuple[PathSearch, TopKBuffer, bool]:
    """Read a whole window; return its buffer, and True if the search gave up."""
    windows, threshold_path = graph.windows, np.zeros((1, search.path.size), np.int32)
    groups = groups_inside(graph, search.stamps, firsts, windows.low[window], windows.high[window])
    rule = Rule(wanted, rule.slack, rule.max_read, -np.inf, threshold_path, False)
    search, paths, sums, gave_up = read_window(graph, window, groups, -1, rule, search)
    threshold, count = -np.inf, sums.size
    if count >= wanted:
        threshold = sums[wanted - 1] - MARGIN * rule.slack
        threshold_path[0] = paths[wanted - 1]
        while sums[count - 1] < threshold:
            count -= 1
    return search, TopKBuffer(paths[:count], sums[:count], threshold, threshold_path, sums.size < wanted), gave_up


@njit(cache=True, nogil=True)
def moved_buffer(
    graph: Graph, window: int, lasts: Int32, since: int, rule: Rule, search: PathSearch, buffer: TopKBuffer
) -> tuple[PathSearch, TopKBuffer, bool]:
    """Move the buffer from the window that ended at `since`; return the new one, and True if the search gave up."""
    windows, threshold, threshold_path = graph.windows, buffer.threshold, buffer.threshold_path
    groups = groups_inside(graph, search.stamps, lasts, since, windows.high[window])
    # Rounded sums are not read exactly in the order of the paths: read a little below the threshold.
    lower = Rule(1 << 60, rule.slack, rule.max_read, threshold - rule.slack, threshold_path, False)
    search, new_paths, new_sums, gave_up = read_window(graph, window, groups, since, lower, search)
    rule = Rule(rule.limit, rule.slack, rule.max_read, threshold, threshold_path, False)
    paths, sums = np.concatenate((buffer.paths, new_paths)), np.concatenate((buffer.sums, new_sums))
    old, end, new, kept, count = 0, buffer.sums.size, buffer.sums.size, np.empty(sums.size, np.int64), 0
    while True:
        while old < end and graph.place[paths[old, 0]] < windows.low[window]:
            old += 1
        while new < sums.size and is_below(graph, rule, sums, paths, new):
            new += 1
        if old == end and new == sums.size:
            break
        is_old = new == sums.size or (old < end and precedes(graph.ties, sums, paths, old, new))
        kept[count] = old if is_old else new
        old, new, count = (old + 1, new, count + 1) if is_old else (old, new + 1, count + 1)
    moved = TopKBuffer(paths[kept[:count]], sums[kept[:count]], threshold, threshold_path, buffer.is_complete)
    return search, moved, gave_up


@njit(cache=True, nogil=True)
def trimmed(graph: Graph, rule: Rule, buffer: TopKBuffer, wanted: int) -> TopKBuffer:
    """Keep the `wanted` best paths and their ties; the last wanted path becomes the threshold."""
    count = wanted
    if wanted >= buffer.sums.size:
        return buffer
    threshold, threshold_path = buffer.sums[wanted - 1], buffer.paths[wanted - 1 : wanted].copy()
    rule = Rule(rule.limit, rule.slack, rule.max_read, threshold, threshold_path, False)
    while count < buffer.sums.size and not is_below(graph, rule, buffer.sums, buffer.paths, count):
        count += 1
    return TopKBuffer(buffer.paths[:count], buffer.sums[:count], threshold, threshold_path, False)


@njit(cache=True, nogil=True)
def best_in_buffer(rule: Rule, buffer: TopKBuffer) -> int:
    """Return how many paths of a buffer can be among the k best; -1 if some of these may be missing."""
    count, sums = rule.limit, buffer.sums
    if sums.size < count:
        return sums.size if buffer.is_complete else -1
    worst = sums[count - 1]
    if not buffer.is_complete and worst - MARGIN * rule.slack < buffer.threshold:
        return -1
    while count < sums.size and not is_behind(rule, worst, sums[count]):
        count += 1
    return count


@njit(cache=True, nogil=True)
def buffered_paths(
    graph: Graph, owners: Owners, starts: Int64, visits: Int64, rule: Rule, entry_class: Int32
) -> tuple[Int32, Int64, bool]:
    """Read the best paths of each owner i in its windows visits[starts[i]:starts[i + 1]]: (paths, counts, gave_up).

    The paths are those of `read_paths`, with all that may tie with the last. If the classes of entries are given, only
    the first paths of each equivalence class are returned.
    """
    cuts, steps = graph.windows.cut, graph.offsets.shape[0]
    out, written, counts = np.empty((1024, steps), np.int32), 0, np.zeros(visits.size, np.int64)
    search, buffer = new_search(graph), new_buffer(steps)
    for owner in range(starts.size - 1):
        firsts = owners.firsts[owners.first_starts[owner] : owners.first_starts[owner + 1]]
        lasts = owners.lasts[owners.last_starts[owner] : owners.last_starts[owner + 1]]
        cut, since, wanted, is_few = -1, -1, rule.limit, True
        for visit in range(starts[owner], starts[owner + 1]):
            window, best, gave_up = visits[visit], -1, False
            if cuts[window] != cut:
                cut, ahead = int(cuts[window]), min(visit + FEW_MOVES - 1, starts[owner + 1] - 1)
                is_few = ahead < visit + FEW_MOVES - 1 or cuts[visits[ahead]] != cut
                wanted = rule.limit if is_few else RESERVE.filled * rule.limit
            elif not is_few:
                search, buffer, gave_up = moved_buffer(graph, window, lasts, since, rule, search, buffer)
                best = -1 if gave_up else best_in_buffer(rule, buffer)
                if best < 0:
                    wanted *= 2
                elif buffer.sums.size > RESERVE.max_filled * wanted:
                    buffer = trimmed(graph, rule, buffer, max(wanted, best))
            while best < 0:
                search, buffer, gave_up = opened_buffer(graph, window, firsts, wanted, rule, search)
                if gave_up and is_few:
                    return out[:0], counts, True
                if gave_up:  # try again without a reserve
                    is_few, wanted = True, rule.limit
                    continue
                best = best_in_buffer(rule, buffer)
                wanted = wanted if best >= 0 else 2 * wanted
            some = first_of_classes(entry_class, buffer.paths[:best], rule.limit)
            while written + some.shape[0] > out.shape[0]:
                out = grown(out)
            out[written : written + some.shape[0]] = some
            written, since = written + some.shape[0], int(graph.windows.high[window])
            counts[visit] = some.shape[0]
    return out[:written], counts, False
