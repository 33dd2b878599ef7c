"""A stratified graph and the roots of a window in, its best paths one after the other out: lazily, and to be resumed.

After the first, a path costs O(L log n): it is taken out of the set that it was the best of, and the sets that are left
wait in a heap ("SRM" of the CPR thesis, section 3.1: sorted access on demand).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.kernels import Bool, Float64, Int32, Int64
from streamsift.runtime.path_graph import Graph
from streamsift.runtime.path_heap import Heap, grown, heap_pop, longer
from streamsift.runtime.path_search import Roots, Rule, broken_at, choices, is_behind, open_root, push, step_of

USED, SIZE, LOOKED, FIRST, COUNTS = range(5)  # of Search.counts


class Search(NamedTuple):
    """Where an enumeration stands."""

    heap: Heap
    opened: Int64  # [roots, 2 L + 3]
    counts: Int64  # [COUNTS] nodes made, nodes waiting, paths looked at, the number of the first root
    path: Int32  # [L] room to work in
    child: Int32  # [3] room to work in


@njit(cache=True, nogil=True)
def new_search(steps: int) -> Search:
    """Room for an enumeration; `open_search` begins one."""
    heap = Heap(np.empty((256, steps), np.int32), np.empty(256), np.empty((256, 5), np.int32), np.empty(256, np.int32))
    opened = np.empty((1, 2 * steps + 3), np.int64)
    return Search(heap, opened, np.zeros(COUNTS, np.int64), np.zeros(steps, np.int32), np.empty(3, np.int32))


@njit(cache=True, nogil=True)
def with_room(search: Search, nodes: int) -> Search:
    """The same with room for so many more nodes."""
    heap = search.heap
    while search.counts[USED] + nodes > heap.paths.shape[0]:
        heap = Heap(grown(heap.paths), longer(heap.sums), grown(heap.nodes), longer(heap.order))
    return Search(heap, search.opened, search.counts, search.path, search.child)


@njit(cache=True, nogil=True)
def open_search(graph: Graph, roots: Roots, first: int, stop: int, search: Search) -> Search:
    """Begins with the paths of the roots [first, stop), whatever was enumerated before."""
    steps, opened = graph.offsets.shape[0], search.opened
    while opened.shape[0] < stop - first:
        opened = grown(opened)
    search.counts[:] = 0
    search.counts[FIRST] = first
    search = Search(search.heap, opened, search.counts, search.path, search.child)
    child, counts = search.child, search.counts
    for root in range(first, stop):
        limits, only_first = opened[root - first], roots.first[root] >= 0
        open_root(graph, roots, root, limits)
        if counts[USED] + steps + 1 > search.heap.paths.shape[0]:
            search = with_room(search, steps + 1)
        for split in range(1 if only_first else 0, steps + 1):
            child[0], child[1], child[2] = root, split, 0
            start, end = choices(graph, limits, only_first, split, 0, search.path)
            if push(graph, limits, child, search.path, start, end, search.heap, counts[USED], counts[SIZE]):
                counts[USED] += 1
                counts[SIZE] += 1
    return search


@njit(cache=True, nogil=True)
def read_on(
    graph: Graph, roots: Roots, search: Search, rule: Rule, out: Int32, sums: Float64, written: int
) -> tuple[Search, Int32, Float64, int, bool]:
    """The next paths, as entries, from out[written] on, with their sums; and whether too many were looked at.

    Without slack (rule.slack < 0) exactly rule.limit of them, to be resumed; else those that may tie with the last of
    them as well. One long function on purpose: the heap is too many arrays to pass for each path.
    """
    heap, opened, path, child = search.heap, search.opened, search.path, search.child
    used, size, looked, first = search.counts[USED], search.counts[SIZE], search.counts[LOOKED], search.counts[FIRST]
    steps, begin, last, gave_up = path.size, written, -1, False
    while size > 0 and not (rule.slack < 0 and written - begin == rule.limit):
        node = heap_pop(graph.rank, heap.sums, heap.paths, heap.order, size)
        size -= 1
        for step in range(steps):
            path[step] = heap.paths[node, step]
        root, split, decision = heap.nodes[node, 0], heap.nodes[node, 1], heap.nodes[node, 2]
        total = heap.sums[node]
        if last >= 0 and is_behind(graph, rule, heap.sums[last], heap.paths[last], total, path):
            break
        looked += 1
        if looked > rule.most:
            gave_up = True
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
        while used + 2 * steps > heap.paths.shape[0]:
            heap = Heap(grown(heap.paths), longer(heap.sums), grown(heap.nodes), longer(heap.order))
        limits = opened[root - first]
        for later in range(decision, min(broken, steps - 1) + 1):
            child[0], child[1], child[2] = root, split, later
            if later == decision:
                start, stop = int(heap.nodes[node, 3]), int(heap.nodes[node, 4])
            else:
                start, stop = choices(graph, limits, roots.first[root] >= 0, split, later, path)
            chosen = path[step_of(split, steps, later)]
            if push(graph, limits, child, path, start, chosen, heap, used, size):
                used, size = used + 1, size + 1
            if push(graph, limits, child, path, chosen + 1, stop, heap, used, size):
                used, size = used + 1, size + 1
    search.counts[USED], search.counts[SIZE], search.counts[LOOKED] = used, size, looked
    return Search(heap, opened, search.counts, path, child), out, sums, written, gave_up


@njit(cache=True, nogil=True)
def best_paths(graph: Graph, roots: Roots, buckets: Int64, rule: Rule) -> tuple[Int32, Int64, Bool]:
    """The best paths of the roots buckets[i]:buckets[i + 1], for each i: (paths [m, L], counts [i], given up [i]).

    Given up: more than rule.most paths were looked at, most of which broke a comparison or might tie.
    """
    steps = graph.offsets.shape[0]
    out, sums, written = np.empty((1024, steps), np.int32), np.empty(1024), 0
    counts = np.zeros(buckets.size - 1, np.int64)
    gave_up = np.zeros(buckets.size - 1, np.bool_)
    search = new_search(steps)
    for bucket in range(counts.size):
        search = open_search(graph, roots, buckets[bucket], buckets[bucket + 1], search)
        before = written
        search, out, sums, written, gave_up[bucket] = read_on(graph, roots, search, rule, out, sums, written)
        counts[bucket] = written - before
    return out[:written], counts, gave_up
