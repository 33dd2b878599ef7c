"""Keep the best paths of a window in a top-k buffer, and move it to the next window.

k-DSSP of the CPR thesis (section 3.2) keeps the paths that stay inside, and searches separately for those that end with
a new event. So does a buffer, on the graph that all windows share: it holds every path of the window down to a
threshold score. A move drops those that begin too early and adds those that end with a new event and reach the
threshold, which are few where the step is small. Only when too few are left is the window read as a whole, and where a
new cut begins: then nothing behind the cut is known.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Float64, Int32, Int64
from streamsift.runtime.arrays.growing import grown, longer
from streamsift.runtime.paths.enumerate import PathSearch, Roots, Rule, is_behind, is_below, new_search, read_paths
from streamsift.runtime.paths.equivalence import first_of_classes
from streamsift.runtime.paths.equivalent_matches import member_above
from streamsift.runtime.paths.graph import Graph, Windows
from streamsift.runtime.paths.heap import in_order, tie_order


class Reserve(NamedTuple):
    """How many results a top-k buffer holds for the windows to come.

    A buffer holds all results down to a threshold score. It is filled with a multiple of what is asked for, so that
    moves of the window leave enough. New results add to it until it holds `max_filled` times as many: then the worst
    are dropped and the threshold rises.
    """

    filled: int  # times what is asked for
    max_filled: int = 4  # times that


RESERVE = Reserve(2)
FEW_MOVES = 4  # windows that share a cut: below, each is read as a whole
MARGIN = 5 / 6  # of the slack: so much below the last one read, paths are all there, whatever the order of rounded sums


class Owners(NamedTuple):
    """The entries of the first and the last step by owner and place. An owner has best paths of its own."""

    first_starts: Int64  # [owners + 1]
    firsts: Int32
    last_starts: Int64  # [owners + 1]
    lasts: Int32


class WindowedGraph(NamedTuple):
    """A graph and the windows that a buffer moves over."""

    graph: Graph
    windows: Windows
    group_of: Int32  # [n] the group of each entry
    stamps: Int64  # [groups + 1] room to mark groups in


class TopKBuffer(NamedTuple):
    """The paths of a window down to a threshold, best first."""

    paths: Int32  # [count, L]
    sums: Float64  # [count]
    threshold: float
    threshold_path: Int32  # [1, L]
    is_complete: bool  # True if there are no others


@njit(cache=True, nogil=True)
def new_buffer(steps: int) -> TopKBuffer:
    return TopKBuffer(np.empty((0, steps), np.int32), np.empty(0), -np.inf, np.zeros((1, steps), np.int32), False)


@njit(cache=True, nogil=True)
def groups_inside(space: WindowedGraph, entries: Int32, low: int, high: int) -> Int32:
    """Return the groups of those of the entries, ascending, that lie in [low, high)."""
    place, stamps = space.graph.place, space.stamps
    groups, count = np.empty(16, np.int32), 0
    stamps[-1] += 1
    for at in range(member_above(place, entries, 0, entries.size, low - 1), entries.size):
        group = space.group_of[entries[at]]
        if place[entries[at]] >= high or count == stamps.size - 1:
            break
        if stamps[group] != stamps[-1]:
            stamps[group] = stamps[-1]
            if count == groups.size:
                groups = longer(groups)
            groups[count] = group
            count += 1
    return groups[:count]


@njit(cache=True, nogil=True)
def read_window(
    space: WindowedGraph, window: int, groups: Int32, since: int, rule: Rule, search: PathSearch
) -> tuple[PathSearch, Int32, Float64, bool]:
    """Read the best paths of a window, in order; those that end at `since` or behind it, unless that is -1."""
    count, windows = groups.size, space.windows
    roots = Roots(
        group=groups,
        low=np.full(count, windows.low[window], np.int32),
        cut=np.full(count, windows.cut[window], np.int32),
        high=np.full(count, windows.high[window], np.int32),
        first=np.full(count, -1, np.int32),
        since=np.full(count, since, np.int32),
    )
    search, paths, sums, _, gave_up = read_paths(space.graph, roots, np.array([0, count]), rule, search)
    paths, sums = in_order(space.graph.ties, paths, sums)
    return search, paths, sums, bool(gave_up[0])


@njit(cache=True, nogil=True)
def opened_buffer(
    space: WindowedGraph, window: int, firsts: Int32, wanted: int, rule: Rule, search: PathSearch
) -> tuple[PathSearch, TopKBuffer, bool]:
    """Return the buffer of a window that is read as a whole, and whether it was given up."""
    groups = groups_inside(space, firsts, space.windows.low[window], space.windows.high[window])
    threshold_path = np.zeros((1, search.path.size), np.int32)
    rule = Rule(wanted, rule.slack, rule.max_read, -np.inf, threshold_path, False)
    search, paths, sums, gave_up = read_window(space, window, groups, -1, rule, search)
    threshold, count = -np.inf, sums.size
    if count >= wanted:
        threshold = sums[wanted - 1] - MARGIN * rule.slack
        threshold_path[0] = paths[wanted - 1]
        while sums[count - 1] < threshold:
            count -= 1
    return search, TopKBuffer(paths[:count], sums[:count], threshold, threshold_path, sums.size < wanted), gave_up


@njit(cache=True, nogil=True)
def moved_buffer(
    space: WindowedGraph, window: int, lasts: Int32, since: int, rule: Rule, search: PathSearch, buffer: TopKBuffer
) -> tuple[PathSearch, TopKBuffer, bool]:
    """Return the buffer of the window after one that ended at `since`, and whether it was given up."""
    graph, low, old, threshold = space.graph, space.windows.low[window], 0, buffer.threshold
    groups = groups_inside(space, lasts, since, space.windows.high[window])
    # Sums that round come out in another order than that of the paths: read a little below the threshold.
    wider = Rule(1 << 60, rule.slack, rule.max_read, threshold - rule.slack, buffer.threshold_path, False)
    search, new_paths, new_sums, gave_up = read_window(space, window, groups, since, wider, search)
    rule = Rule(rule.limit, rule.slack, rule.max_read, threshold, buffer.threshold_path, False)
    room = buffer.sums.size + new_sums.size
    paths, sums, count, new = np.empty((room, search.path.size), np.int32), np.empty(room), 0, 0
    while True:
        while old < buffer.sums.size and graph.place[buffer.paths[old, 0]] < low:
            old += 1
        while new < new_sums.size and is_below(graph, rule, new_sums, new_paths, new):
            new += 1
        if old == buffer.sums.size and new == new_sums.size:
            break
        is_old = new == new_sums.size
        if not is_old and old < buffer.sums.size:
            is_old = buffer.sums[old] > new_sums[new]
            if buffer.sums[old] == new_sums[new]:
                is_old = tie_order(graph.ties, buffer.paths, old, new_paths, new) <= 0
        if is_old:
            paths[count], sums[count] = buffer.paths[old], buffer.sums[old]
            old += 1
        else:
            paths[count], sums[count] = new_paths[new], new_sums[new]
            new += 1
        count += 1
    moved = TopKBuffer(paths[:count], sums[:count], threshold, buffer.threshold_path, buffer.is_complete)
    return search, moved, gave_up


@njit(cache=True, nogil=True)
def trimmed(graph: Graph, rule: Rule, buffer: TopKBuffer, wanted: int) -> TopKBuffer:
    """Drop the paths that come after the wanted ones; the last of these is the threshold."""
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
    """Return how many paths of a buffer may be among the rule's best; -1 if some of those may be missing."""
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
    space: WindowedGraph, owners: Owners, starts: Int64, visits: Int64, rule: Rule, entry_class: Int32
) -> tuple[Int32, Int64, bool]:
    """Read the best paths of the owners i in their windows visits[starts[i]:starts[i + 1]]: (paths, counts, given up).

    They are those of `read_paths`, with all that may be as good as the last; of each equivalence class only the first,
    if the classes of entries are given.
    """
    graph, windows, steps = space.graph, space.windows, space.graph.offsets.shape[0]
    out, written, counts = np.empty((1024, steps), np.int32), 0, np.zeros(visits.size, np.int64)
    search, buffer = new_search(steps), new_buffer(steps)
    for owner in range(starts.size - 1):
        firsts = owners.firsts[owners.first_starts[owner] : owners.first_starts[owner + 1]]
        lasts = owners.lasts[owners.last_starts[owner] : owners.last_starts[owner + 1]]
        cut, since, wanted, is_few = -1, -1, rule.limit, True
        for visit in range(starts[owner], starts[owner + 1]):
            window, best, gave_up = visits[visit], -1, False
            if windows.cut[window] != cut:
                cut, ahead = int(windows.cut[window]), min(visit + FEW_MOVES - 1, starts[owner + 1] - 1)
                is_few = ahead < visit + FEW_MOVES - 1 or windows.cut[visits[ahead]] != cut
                wanted = rule.limit if is_few else RESERVE.filled * rule.limit
            elif not is_few:
                search, buffer, gave_up = moved_buffer(space, window, lasts, since, rule, search, buffer)
                best = -1 if gave_up else best_in_buffer(rule, buffer)
                if best < 0:
                    wanted *= 2
                elif buffer.sums.size > RESERVE.max_filled * wanted:
                    buffer = trimmed(graph, rule, buffer, max(wanted, best))
            while best < 0:
                search, buffer, gave_up = opened_buffer(space, window, firsts, wanted, rule, search)
                if gave_up and is_few:
                    return out[:0], counts, True
                if gave_up:  # a reserve is too much to ask
                    is_few, wanted = True, rule.limit
                    continue
                best = best_in_buffer(rule, buffer)
                wanted = wanted if best >= 0 else 2 * wanted
            some = first_of_classes(entry_class, buffer.paths[:best], rule.limit)
            while written + some.shape[0] > out.shape[0]:
                out = grown(out)
            out[written : written + some.shape[0]] = some
            written, since = written + some.shape[0], int(windows.high[window])
            counts[visit] = some.shape[0]
    return out[:written], counts, False
