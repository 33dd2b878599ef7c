"""A stratified graph and the roots of a window in, its best paths one after the other out: lazily, and to be resumed.

After the first, a path costs O(L log n): it is taken out of the set that it was the best of, and the sets that are left
wait in a heap ("SRM" of the CPR thesis, section 3.1: sorted access on demand).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Bool, Float64, Int32, Int64
from streamsift.runtime.arrays.growing import grown, longer
from streamsift.runtime.paths.graph import Graph
from streamsift.runtime.paths.heap import Heap, heap_pop
from streamsift.runtime.paths.sets import Roots, Rule, broken_at, choices, is_behind, is_below, open_root, push, step_of

USED, SIZE, LOOKED, FIRST, COUNTS = range(5)  # of Search.counts


class Search(NamedTuple):
    """Where an enumeration stands."""

    heap: Heap
    opened: Int64  # [roots, 2 L + 5]
    counts: Int64  # [COUNTS] nodes made, nodes waiting, paths looked at, the number of the first root
    path: Int32  # [L] room to work in
    child: Int32  # [3] room to work in


@njit(cache=True, nogil=True)
def new_search(steps: int) -> Search:
    """Room for an enumeration."""
    heap = Heap(np.empty((256, steps), np.int32), np.empty(256), np.empty((256, 5), np.int32), np.empty(256, np.int32))
    opened = np.empty((1, 2 * steps + 5), np.int64)
    return Search(heap, opened, np.zeros(COUNTS, np.int64), np.zeros(steps, np.int32), np.empty(3, np.int32))


@njit(cache=True, nogil=True)
def read_paths(
    graph: Graph, roots: Roots, buckets: Int64, rule: Rule, search: Search
) -> tuple[Search, Int32, Float64, Int64, Bool]:
    """The next paths of the roots buckets[i]:buckets[i + 1], for each i: paths [m, L], sums, counts [i], given up [i].

    Without buckets, those that follow where `search` was left. Without slack (rule.slack < 0) exactly rule.limit of
    them; else those that may tie with the last of them as well. None below the floor. Given up: more than rule.most
    paths were looked at, most of which broke a comparison or might tie. One long function: the heap is too many arrays
    to pass around, and for the same reason what it calls for every path is inlined.
    """
    steps, resumes = search.path.size, buckets.size == 0
    heap, opened, path, child = search.heap, search.opened, search.path, search.child
    used, size, looked, first = search.counts[USED], search.counts[SIZE], search.counts[LOOKED], search.counts[FIRST]
    out, sums, written = np.empty((1024, steps), np.int32), np.empty(1024), 0
    counts, gave_up = np.zeros(max(1, buckets.size - 1), np.int64), np.zeros(max(1, buckets.size - 1), np.bool_)
    for bucket in range(counts.size):
        begin, last = written, -1
        if not resumes:
            first, used, size, looked = buckets[bucket], 0, 0, 0
            while opened.shape[0] < buckets[bucket + 1] - first:
                opened = grown(opened)
            for root in range(first, buckets[bucket + 1]):
                limits = opened[root - first]
                open_root(graph, roots, root, limits)
                while used + steps + 1 > heap.paths.shape[0]:
                    heap = Heap(grown(heap.paths), longer(heap.sums), grown(heap.nodes), longer(heap.order))
                # Paths that lie in front of the cut as a whole end before it.
                for split in range(1 if roots.first[root] >= 0 else 0, steps if roots.since[root] >= 0 else steps + 1):
                    child[0], child[1], child[2] = root, split, 0
                    start, stop = choices(graph, limits, split, 0, path)
                    if push(graph, limits, child, path, start, stop, rule.floor, heap, used, size):
                        used, size = used + 1, size + 1
        while size > 0 and not (rule.slack < 0 and written - begin == rule.limit):
            node = heap_pop(graph.ties, heap.sums, heap.paths, heap.order, size)
            size -= 1
            for step in range(steps):
                path[step] = heap.paths[node, step]
            root, split, decision = heap.nodes[node, 0], heap.nodes[node, 1], heap.nodes[node, 2]
            total = heap.sums[node]
            if last >= 0 and is_behind(rule, heap.sums[last], total):
                break
            if rule.floor > -np.inf and is_below(graph, rule, total, path):
                break
            looked += 1
            if looked > rule.most:
                gave_up[bucket] = True
                break
            broken = broken_at(graph, roots, split, path)
            if broken == steps:
                if written == out.shape[0]:
                    out, sums = grown(out), longer(sums)
                out[written] = path
                sums[written] = total
                written += 1
                if written - begin == rule.limit:
                    last = node
                    if rule.is_final and rule.slack < 0:
                        break
            while used + 2 * steps > heap.paths.shape[0]:
                heap = Heap(grown(heap.paths), longer(heap.sums), grown(heap.nodes), longer(heap.order))
            limits = opened[root - first]
            for later in range(decision, min(broken, steps - 1) + 1):
                child[0], child[1], child[2] = root, split, later
                if later == decision:
                    start, stop = int(heap.nodes[node, 3]), int(heap.nodes[node, 4])
                else:
                    start, stop = choices(graph, limits, split, later, path)
                chosen = path[step_of(split, steps, later)]
                for side in range(2):
                    begins, ends = (start, int(chosen)) if side == 0 else (int(chosen) + 1, stop)
                    if push(graph, limits, child, path, begins, ends, rule.floor, heap, used, size):
                        used, size = used + 1, size + 1
        counts[bucket] = written - begin
    search.counts[USED], search.counts[SIZE], search.counts[LOOKED], search.counts[FIRST] = used, size, looked, first
    return Search(heap, opened, search.counts, path, child), out[:written], sums[:written], counts, gave_up


@njit(cache=True, nogil=True)
def best_paths(graph: Graph, roots: Roots, buckets: Int64, rule: Rule) -> tuple[Int32, Int64, Bool]:
    """The best paths of the roots buckets[i]:buckets[i + 1], for each i: (paths [m, L], counts [i], given up [i])."""
    steps = graph.offsets.shape[0]
    if buckets.size < 2:
        return np.empty((0, steps), np.int32), np.zeros(0, np.int64), np.zeros(0, np.bool_)
    _, out, _, counts, gave_up = read_paths(graph, roots, buckets, rule, new_search(steps))
    return out, counts, gave_up
