"""Enumerate the best paths of a stratified graph one by one, lazily and resumably.

A set of paths is described by a prefix of fixed choices and a range for the next one; its best path takes the best
entry of the range and the best completion. Removing that path leaves disjoint sets of the same form, two for each
choice ("A procedure for computing the k best solutions to discrete optimization problems", Lawler, 1972). These sets
are kept in a heap, so each path after the first costs O(L log n) ("SRM" of the CPR thesis, section 3.1: sorted access
on demand).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.arrays.comparing import first_from, holds
from streamsift.runtime.arrays.dtypes import Bool, Float64, Int32, Int64
from streamsift.runtime.arrays.growing import grown
from streamsift.runtime.paths.graph import EARLIER, OPERATOR, THIS, Graph, best_in
from streamsift.runtime.paths.heap import SIZE, USED, Heap, heap_of, heap_pop, heap_push, larger, tie_order

# Fields of an opened root [2 L + 5]: entries [FIRST, FIRST_END) with which paths can begin before the cut; entries
# [LAST, LAST_END) with which they can end after it; per step the entry at the cut; per split the best last entry or -1.
FIRST, FIRST_END, LAST, LAST_END, AT_CUT = range(5)


class Roots(NamedTuple):
    """Where to search for paths: a group in a window."""

    group: Int32
    window: Int64
    first: Int32  # the first entry of the paths, -1 for any
    since: Int32  # lower bound for the place of the last event, which must lie after the cut; -1 for none

    def at(self, which: Int64) -> Roots:
        return Roots(self.group[which], self.window[which], self.first[which], self.since[which])


class Rule(NamedTuple):
    """When to stop: after `limit` paths, and all that may tie with the last of them."""

    limit: int
    slack: float  # sums that differ by less may be scores in a different order; negative: read exactly `limit` paths
    max_read: int  # paths to read per bucket before giving up
    threshold: float  # paths with a smaller sum are skipped; -inf for none
    threshold_path: Int32  # [1, L] the last path in tie-break order with just this sum that is not skipped
    is_final: bool  # True if no more paths will be read later


class PathSearch(NamedTuple):
    """The state of an enumeration."""

    heap: Heap
    opened: Int64  # [roots, 2 L + 5]
    n_read: Int64  # [1] paths read
    path: Int32  # [L] scratch space
    stamps: Int64  # [groups + 1] scratch space to mark groups


# --- sets of paths


@njit(cache=True, nogil=True, inline="always")
def step_of(split: int, steps: int, decision: int) -> int:
    """Return the step of a decision: forward from the first step to the cut, then backward from the last step to it."""
    return decision if decision < split else steps - 1 - (decision - split)


@njit(cache=True, nogil=True)
def open_root(graph: Graph, roots: Roots, root: int, opened: Int64) -> None:
    """Write to opened [2 L + 5] where a root's window lies among the entries."""
    steps, group, windows, window = graph.offsets.shape[0], roots.group[root], graph.windows, roots.window[root]
    for step in range(steps):
        start, end = graph.offsets[step, group], graph.offsets[step, group + 1]
        opened[AT_CUT + step] = first_from(graph.place, start, end, windows.cut[window])
    opened[FIRST_END], behind = opened[AT_CUT], opened[AT_CUT + steps - 1]
    opened[FIRST] = first_from(graph.place, graph.offsets[0, group], opened[FIRST_END], windows.low[window])
    if roots.first[root] >= 0:
        opened[FIRST], opened[FIRST_END] = roots.first[root], roots.first[root] + 1
    opened[LAST] = first_from(graph.place, behind, end, roots.since[root])
    opened[LAST_END] = first_from(graph.place, behind, end, windows.high[window])
    for split in range(steps):
        opened[AT_CUT + steps + split] = choose(graph, split, split, opened[LAST], opened[LAST_END])
    opened[AT_CUT + 2 * steps] = -1


@njit(cache=True, nogil=True, inline="always")
def choices(graph: Graph, opened: Int64, split: int, decision: int, path: Int32) -> tuple[int, int]:
    """Return the entries [start, end) that a decision can choose from, given the previous decisions."""
    step = step_of(split, graph.offsets.shape[0], decision)
    if decision == split:
        return int(opened[LAST]), int(opened[LAST_END])
    if decision > split:
        return int(opened[AT_CUT + step]), int(graph.until[path[step + 1]])
    if decision > 0:
        return int(graph.after[path[step - 1]]), int(opened[AT_CUT + step])
    return int(opened[FIRST]), int(opened[FIRST_END])


@njit(cache=True, nogil=True, inline="always")
def choose(graph: Graph, split: int, decision: int, start: int, end: int) -> int:
    """Return the best of the entries [start, end) for a decision, or -1."""
    if decision < split:
        return best_in(graph.front, split - 1, start, end)
    return best_in(graph.back, split, start, end)


@njit(cache=True, nogil=True, inline="always")
def complete(graph: Graph, opened: Int64, split: int, decision: int, path: Int32) -> None:
    """Complete a path with the best choices after a decision."""
    steps = graph.offsets.shape[0]
    for step in range(decision + 1, split):
        path[step] = graph.front.follow[split - 1, path[step - 1]]
    if decision < split and split < steps:
        path[steps - 1] = opened[AT_CUT + steps + split]
        decision = split
    if decision >= split:
        for step in range(step_of(split, steps, decision) - 1, split - 1, -1):
            path[step] = graph.back.follow[split, path[step + 1]]


@njit(cache=True, nogil=True)
def root_sums(graph: Graph, roots: Roots) -> Float64:
    """Return the best sum of each root's paths; -inf if it has none."""
    steps = graph.offsets.shape[0]
    sums, opened = np.full(roots.group.size, -np.inf), np.empty(2 * steps + 5, np.int64)
    for root in range(sums.size):
        open_root(graph, roots, root, opened)
        for split in range(1 if roots.first[root] >= 0 else 0, steps + 1):
            total, back = 0.0, opened[AT_CUT + steps + split]
            if split < steps:
                total += graph.back.sum[split, back] if back >= 0 else -np.inf
            if split > 0:
                front = best_in(graph.front, split - 1, opened[FIRST], opened[FIRST_END])
                total += graph.front.sum[split - 1, front] if front >= 0 else -np.inf
            sums[root] = max(sums[root], total)
    return sums


@njit(cache=True, nogil=True)
def best_below(graph: Graph, is_front: bool, row: int, limit: int, node: int, best: int) -> int:
    """Return the best of `best` and the entries under a node with `repeats` below the limit; depth first, no stack."""
    chains, side = (graph.front, 0) if is_front else (graph.back, 1)
    root, n = node, chains.sum.shape[1]
    while True:
        entry, is_done = chains.tree[row, node], True
        if entry >= 0 and (best < 0 or chains.sum[row, entry] > chains.sum[row, best]):
            if graph.repeats[side, entry] < limit:
                best = entry
            else:
                is_done = node >= n or graph.repeats_tree[side, node] >= limit
        if not is_done:
            node *= 2
            continue
        while node != root and node & 1:
            node >>= 1
        if node == root:
            return best
        node += 1


@njit(cache=True, nogil=True)
def best_new_in(graph: Graph, split: int, decision: int, start: int, end: int, low: int, high: int) -> int:
    """Return the best entry of [start, end) that is first of its class from `low` on (in back: last before `high`)."""
    is_front, n = decision < split, graph.place.size
    row, limit = (split - 1, low) if is_front else (split, 1 - high)
    best, left, right = -1, start + n, end + n
    while left < right:
        if left & 1:
            best = best_below(graph, is_front, row, limit, left, best)
            left += 1
        if right & 1:
            right -= 1
            best = best_below(graph, is_front, row, limit, right, best)
        left >>= 1
        right >>= 1
    return best


@njit(cache=True, nogil=True)
def complete_by_class(
    graph: Graph, opened: Int64, split: int, decision: int, start: int, end: int, path: Int32
) -> bool:
    """Complete a path from a decision among [start, end) on, with one entry per class; return False if impossible."""
    steps = graph.offsets.shape[0]
    for later in range(decision, steps):
        low, high = choices(graph, opened, split, later, path)
        if later > decision:
            start, end = low, high
        entry = best_new_in(graph, split, later, start, end, low, high)
        if entry < 0:
            return False
        path[step_of(split, steps, later)] = entry
    return True


@njit(cache=True, nogil=True, inline="always")
def push(graph: Graph, heap: Heap, opened: Int64, base: Int32, threshold: float, node: tuple[int, ...]) -> None:
    """Add the set of a root's paths that agree with `base` before a decision and choose from [start, end) at it.

    Add nothing if the set is empty, or if its best path is below the threshold.
    """
    root, split, decision, start, end = node
    used, steps = heap.counts[USED], base.size
    if start >= end or (decision < split < steps and opened[AT_CUT + steps + split] < 0):
        return
    path, total = heap.paths[used], 0.0
    for step in range(steps):
        path[step] = base[step]
    if graph.repeats.shape[1] > 0:
        if not complete_by_class(graph, opened, split, decision, start, end, path):
            return
    else:
        entry = choose(graph, split, decision, start, end)
        if entry < 0:
            return
        path[step_of(split, steps, decision)] = entry
        complete(graph, opened, split, decision, path)
    for step in range(steps):
        total += graph.weight[path[step]]
    if total < threshold:
        return
    fields, heap.sums[used] = heap.nodes[used], total
    fields[0], fields[1], fields[2], fields[3], fields[4] = root, split, decision, start, end
    heap.counts[USED] += 1
    heap_push(graph.ties, heap, used)


# --- enumeration


@njit(cache=True, nogil=True)
def broken_at(graph: Graph, split: int, path: Int32) -> int:
    """Return the first decision after which the path can no longer become a match; the number of steps if it is one."""
    steps = path.size
    broken, pairs, codes = steps, graph.pairs, graph.codes
    for pair in range(pairs.shape[0]):
        earlier, this = pairs[pair, EARLIER], pairs[pair, THIS]
        if not holds(pairs[pair, OPERATOR], codes[2 * pair, path[earlier]], codes[2 * pair + 1, path[this]]):
            one = earlier if earlier < split else split + steps - 1 - earlier
            two = this if this < split else split + steps - 1 - this
            broken = min(broken, max(one, two))
    # A cut can lie between rows of equal time.
    if 0 < split < steps and graph.rank[path[split - 1]] >= graph.rank[path[split]]:
        broken = min(broken, steps - 1)
    return broken


@njit(cache=True, nogil=True)
def is_behind(rule: Rule, worst: float, total: float) -> bool:
    """Return True if a path read after the k-th best cannot tie with it: its sum differs by more than the slack."""
    return rule.slack <= 0 or worst - total > rule.slack


@njit(cache=True, nogil=True)
def is_below(graph: Graph, rule: Rule, sums: Float64, paths: Int32, path: int) -> bool:
    """Return True if a path is below the threshold, by its sum, or by its events if the sum is equal and exact."""
    if sums[path] != rule.threshold or rule.slack > 0:
        return sums[path] < rule.threshold
    return tie_order(graph.ties, paths, path, rule.threshold_path, 0) > 0


@njit(cache=True, nogil=True)
def new_search(graph: Graph) -> PathSearch:
    """Allocate the state of an enumeration."""
    steps = graph.offsets.shape[0]
    return PathSearch(
        heap=heap_of(np.empty((256, steps), np.int32), np.empty(256)),
        opened=np.empty((1, 2 * steps + 5), np.int64),
        n_read=np.zeros(1, np.int64),
        path=np.zeros(steps, np.int32),
        stamps=np.zeros(graph.offsets.shape[1], np.int64),
    )


@njit(cache=True, nogil=True)
def read_paths(
    graph: Graph, roots: Roots, buckets: Int64, rule: Rule, search: PathSearch
) -> tuple[PathSearch, Int32, Float64, Int64, Bool]:
    """Read the best paths of the roots buckets[i]:buckets[i + 1] for each i: (search, paths, sums, counts, gave_up).

    Without buckets, resume the enumeration of `search`. Read rule.limit paths, and unless rule.slack < 0 also those
    that may tie with the last of them; none below the threshold. gave_up [i] is True if more than rule.max_read paths
    were read, most of which failed a comparison or may tie.
    This is one long function with inlined callees, because a call per path would count the references of all arrays of
    the heap.
    """
    steps, resumes, threshold = search.path.size, buckets.size == 0, rule.threshold
    heap, opened, path = search.heap, search.opened, search.path
    n_read = search.n_read[0]
    out, sums, written = np.empty((1024, steps), np.int32), np.empty(1024), 0
    n_buckets = 1 if resumes else buckets.size - 1
    counts, gave_up = np.zeros(n_buckets, np.int64), np.zeros(n_buckets, np.bool_)
    for bucket in range(n_buckets):
        begin, last = written, -1
        if not resumes:
            first, n_read = buckets[bucket], 0
            heap.counts[:] = 0
            while opened.shape[0] < buckets[bucket + 1] - first:
                opened = grown(opened)
            for root in range(first, buckets[bucket + 1]):
                of_root = opened[root - first]
                open_root(graph, roots, root, of_root)
                while heap.counts[USED] + steps + 1 > heap.paths.shape[0]:
                    heap = larger(heap)
                # A path that lies entirely before the cut has its last event there, so `since` excludes it.
                for split in range(1 if roots.first[root] >= 0 else 0, steps if roots.since[root] >= 0 else steps + 1):
                    start, end = choices(graph, of_root, split, 0, path)
                    push(graph, heap, of_root, path, threshold, (root - first, split, 0, start, end))
        while heap.counts[SIZE] > 0 and not (rule.slack < 0 and written - begin == rule.limit):
            node = heap_pop(graph.ties, heap)
            for step in range(steps):
                path[step] = heap.paths[node, step]
            root, split, decision = heap.nodes[node, 0], heap.nodes[node, 1], heap.nodes[node, 2]
            if last >= 0 and is_behind(rule, heap.sums[last], heap.sums[node]):
                break
            if threshold > -np.inf and is_below(graph, rule, heap.sums, heap.paths, node):
                break
            n_read += 1
            if n_read > rule.max_read:
                gave_up[bucket] = True
                break
            broken = broken_at(graph, split, path)
            if broken == steps:
                if written == out.shape[0]:
                    out, sums = grown(out), grown(sums)
                out[written], sums[written] = path, heap.sums[node]
                written += 1
                if written - begin == rule.limit:
                    last = node
                    if rule.is_final and rule.slack < 0:
                        break
            while heap.counts[USED] + 2 * steps > heap.paths.shape[0]:
                heap = larger(heap)
            of_root, start, end = opened[root], int(heap.nodes[node, 3]), int(heap.nodes[node, 4])
            for later in range(decision, min(broken, steps - 1) + 1):
                if later > decision:
                    start, end = choices(graph, of_root, split, later, path)
                chosen = int(path[step_of(split, steps, later)])
                for side in range(2):
                    begins, ends = (start, chosen) if side == 0 else (chosen + 1, end)
                    push(graph, heap, of_root, path, threshold, (root, split, later, begins, ends))
        counts[bucket] = written - begin
    search.n_read[0] = n_read
    return PathSearch(heap, opened, search.n_read, path, search.stamps), out[:written], sums[:written], counts, gave_up


@njit(cache=True, nogil=True)
def best_paths(graph: Graph, roots: Roots, buckets: Int64, rule: Rule) -> tuple[Int32, Int64, Bool]:
    """Read the best paths of the roots buckets[i]:buckets[i + 1]: (paths [m, L], counts [i], gave_up [i])."""
    _, paths, _, counts, gave_up = read_paths(graph, roots, buckets, rule, new_search(graph))
    return paths, counts, gave_up
