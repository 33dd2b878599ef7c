"""A stratified graph and windows in, its best paths one after the other out: lazily, each O(L log n) after the first.

A set of paths is described by a prefix of fixed choices and a range for the next one; its best path is the best entry
of the range and what follows from it. Taking that path out of the set leaves disjoint sets of the same kind, two for
each choice ("A procedure for computing the k best solutions to discrete optimization problems", Lawler, 1972).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.kernels import Bool, Float64, Int32, Int64
from streamsift.runtime.path_graph import Graph, best_in
from streamsift.runtime.ranges import first_from
from streamsift.runtime.search import holds

EARLIER, THIS, OPERATOR, PAIR_FIELDS = range(4)  # columns of Roots.pairs


class Roots(NamedTuple):
    """Where paths are looked for: a group inside a window, and the first entry if that is given."""

    group: Int32
    low: Int32
    cut: Int32
    high: Int32
    first: Int32  # entry, -1 for any
    pairs: Int64  # [pairs, PAIR_FIELDS] comparisons between steps
    codes: Int64  # [2 * pairs, n] the two sides of each, by entry


class Rule(NamedTuple):
    """When to stop: after `limit` paths, and all that might tie with the last of them."""

    limit: int
    slack: float  # sums that differ by less may be scores in another order
    by_sum_only: bool  # whether equal sums are ties, whatever the times
    most: int  # paths looked at, for one bucket


@njit(cache=True, nogil=True)
def step_of(split: int, steps: int, decision: int) -> int:
    """The step that is chosen by a decision: those before the cut forwards, then those behind it backwards."""
    return decision if decision < split else steps - 1 - (decision - split)


@njit(cache=True, nogil=True)
def choices(graph: Graph, roots: Roots, root: int, split: int, decision: int, path: Int32) -> tuple[int, int]:
    """The entries [start, stop) that a decision may choose from, given those before it."""
    step = step_of(split, graph.offsets.shape[0], decision)
    group = roots.group[root]
    start, stop = graph.offsets[step, group], graph.offsets[step, group + 1]
    if decision < split:
        if decision == 0 and roots.first[root] >= 0:
            return roots.first[root], roots.first[root] + 1
        until = first_from(graph.place, start, stop, roots.cut[root])
        if decision == 0:
            return first_from(graph.place, start, until, roots.low[root]), until
        return first_from(graph.rank, start, until, graph.rank[path[step - 1]] + 1), until
    since = first_from(graph.place, start, stop, roots.cut[root])
    if decision == split:
        return since, first_from(graph.place, since, stop, roots.high[root])
    return since, first_from(graph.rank, since, stop, graph.rank[path[step + 1]])


@njit(cache=True, nogil=True)
def choose(graph: Graph, split: int, decision: int, start: int, stop: int) -> int:
    """The best of the entries [start, stop), or -1."""
    if decision < split:
        row = split - 1
        return best_in(graph.front[row], graph.front_lex[0], graph.front_tree[row], start, stop)
    return best_in(graph.back[split], graph.back_lex[split], graph.back_tree[split], start, stop)


@njit(cache=True, nogil=True)
def complete(graph: Graph, roots: Roots, root: int, split: int, decision: int, path: Int32) -> bool:
    """Fills in the best choices after a decision; whether there are any."""
    steps = graph.offsets.shape[0]
    for step in range(decision + 1, split):
        path[step] = graph.front_next[split - 1, path[step - 1]]
    if decision < split and split < steps:
        start, stop = choices(graph, roots, root, split, split, path)
        path[steps - 1] = choose(graph, split, split, start, stop)
        if path[steps - 1] < 0:
            return False
        decision = split
    if decision >= split:
        for step in range(step_of(split, steps, decision) - 1, split - 1, -1):
            path[step] = graph.back_next[split, path[step + 1]]
    return True


@njit(cache=True, nogil=True)
def path_sum(graph: Graph, path: Int32) -> float:
    total = graph.weight[path[0]]
    for step in range(1, path.size):
        total += graph.weight[path[step]]
    return total


@njit(cache=True, nogil=True)
def root_sums(graph: Graph, roots: Roots) -> Float64:
    """The best sum of each root's paths; -inf if it has none."""
    steps = graph.offsets.shape[0]
    found = np.full(roots.group.size, -np.inf)
    path = np.empty(steps, np.int32)
    for root in range(found.size):
        for split in range(steps + 1):
            if split == 0 and roots.first[root] >= 0:
                continue
            start, stop = choices(graph, roots, root, split, 0, path)
            entry = choose(graph, split, 0, start, stop)
            if entry >= 0:
                path[step_of(split, steps, 0)] = entry
                if complete(graph, roots, root, split, 0, path):
                    found[root] = max(found[root], path_sum(graph, path))
    return found


@njit(cache=True, nogil=True)
def precedes(graph: Graph, sums: Float64, paths: Int32, one: int, two: int) -> bool:
    """Whether node `one` comes out before `two`: greater sum, then earlier events, step by step."""
    if sums[one] != sums[two]:
        return sums[one] > sums[two]
    for step in range(paths.shape[1]):
        left, right = graph.rank[paths[one, step]], graph.rank[paths[two, step]]
        if left != right:
            return left < right
    return one < two


@njit(cache=True, nogil=True)
def heap_push(graph: Graph, sums: Float64, paths: Int32, heap: Int32, size: int, node: int) -> None:
    place = size
    while place > 0:
        parent = (place - 1) >> 1
        if not precedes(graph, sums, paths, node, heap[parent]):
            break
        heap[place] = heap[parent]
        place = parent
    heap[place] = node


@njit(cache=True, nogil=True)
def heap_pop(graph: Graph, sums: Float64, paths: Int32, heap: Int32, size: int) -> int:
    """Removes and returns the first of `size` nodes."""
    top, moved, place = heap[0], heap[size - 1], 0
    size -= 1
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and precedes(graph, sums, paths, heap[child + 1], heap[child]):
            child += 1
        if not precedes(graph, sums, paths, heap[child], moved):
            break
        heap[place] = heap[child]
        place = child
    heap[place] = moved
    return top


@njit(cache=True, nogil=True)
def broken_at(graph: Graph, roots: Roots, split: int, path: Int32) -> int:
    """The earliest decision that no later one can mend; the number of steps if the path is a match."""
    steps = path.size
    found = steps
    for number in range(roots.pairs.shape[0]):
        earlier, this = roots.pairs[number, EARLIER], roots.pairs[number, THIS]
        left, right = roots.codes[2 * number, path[earlier]], roots.codes[2 * number + 1, path[this]]
        if not holds(roots.pairs[number, OPERATOR], left, right):
            one = earlier if earlier < split else split + steps - 1 - earlier
            two = this if this < split else split + steps - 1 - this
            found = min(found, max(one, two))
    # A cut may lie between rows of equal time.
    if 0 < split < steps and graph.rank[path[split - 1]] >= graph.rank[path[split]]:
        found = min(found, steps - 1)
    return found


@njit(cache=True, nogil=True)
def same_times(graph: Graph, one: Int32, two: Int32) -> bool:
    return bool((graph.rank[one] == graph.rank[two]).all())


@njit(cache=True, nogil=True)
def set_node(node: Int32, root: int, split: int, decision: int, start: int, stop: int) -> None:
    """node [5]: the paths of a root with this split that choose from [start, stop) at this decision."""
    node[0] = root
    node[1] = split
    node[2] = decision
    node[3] = start
    node[4] = stop


@njit(cache=True, nogil=True)
def is_behind(graph: Graph, rule: Rule, worst: float, worst_path: Int32, total: float, path: Int32) -> bool:
    """Whether a path comes after the last of the k best for certain: it is worse, and no tie."""
    if rule.slack > 0 or worst != total:
        return worst - total > rule.slack
    return not rule.by_sum_only and not same_times(graph, worst_path, path)


@njit(cache=True, nogil=True)
def grown(array: np.ndarray) -> np.ndarray:
    larger = np.empty((2 * array.shape[0], array.shape[1]), array.dtype)
    larger[: array.shape[0]] = array
    return larger


@njit(cache=True, nogil=True)
def best_paths(graph: Graph, roots: Roots, buckets: Int64, rule: Rule) -> tuple[Int32, Int64, Bool]:
    """The best paths of the roots buckets[i]:buckets[i + 1], for each i: (paths [m, L], counts [i], given up [i]).

    Given up: more than rule.most paths were looked at, most of which broke a comparison or might tie.
    """
    steps = graph.offsets.shape[0]
    out, written = np.empty((1024, steps), np.int32), 0
    counts = np.zeros(buckets.size - 1, np.int64)
    gave_up = np.zeros(buckets.size - 1, np.bool_)
    paths, sums = np.empty((256, steps), np.int32), np.empty((256, 1), np.float64)
    nodes, heap = np.empty((256, 5), np.int32), np.empty((256, 1), np.int32)  # root, split, decision, start, stop
    scratch = np.empty(steps, np.int32)
    for bucket in range(counts.size):
        used, size, looked, last = 0, 0, 0, -1
        for root in range(buckets[bucket], buckets[bucket + 1]):
            for split in range(1 if roots.first[root] >= 0 else 0, steps + 1):
                start, stop = choices(graph, roots, root, split, 0, scratch)
                entry = choose(graph, split, 0, start, stop)
                if entry < 0:
                    continue
                scratch[step_of(split, steps, 0)] = entry
                if not complete(graph, roots, root, split, 0, scratch):
                    continue
                if used == paths.shape[0]:
                    paths, sums, nodes, heap = grown(paths), grown(sums), grown(nodes), grown(heap)
                paths[used] = scratch
                sums[used, 0] = path_sum(graph, scratch)
                set_node(nodes[used], root, split, 0, start, stop)
                heap_push(graph, sums[:, 0], paths, heap[:, 0], size, used)
                used, size = used + 1, size + 1
        while size > 0:
            node = heap_pop(graph, sums[:, 0], paths, heap[:, 0], size)
            size -= 1
            path = paths[node].copy()
            root, split, decision = nodes[node, 0], nodes[node, 1], nodes[node, 2]
            if last >= 0 and is_behind(graph, rule, sums[last, 0], paths[last], sums[node, 0], path):
                break
            looked += 1
            if looked > rule.most:
                gave_up[bucket] = True
                break
            broken = broken_at(graph, roots, split, path)
            if broken == steps:
                if written == out.shape[0]:
                    out = grown(out)
                out[written] = path
                written += 1
                counts[bucket] += 1
                if counts[bucket] == rule.limit:
                    last = node
            scratch[:] = path
            for later in range(decision, min(broken, steps - 1) + 1):
                step = step_of(split, steps, later)
                if later == decision:
                    start, stop = nodes[node, 3], nodes[node, 4]
                else:
                    start, stop = choices(graph, roots, root, split, later, path)
                for side in range(2):
                    low, high = (start, path[step]) if side == 0 else (path[step] + 1, stop)
                    entry = choose(graph, split, later, low, high) if low < high else -1
                    if entry < 0:
                        continue
                    scratch[:] = path
                    scratch[step] = entry
                    if not complete(graph, roots, root, split, later, scratch):
                        continue
                    if used == paths.shape[0]:
                        paths, sums, nodes, heap = grown(paths), grown(sums), grown(nodes), grown(heap)
                    paths[used] = scratch
                    sums[used, 0] = path_sum(graph, scratch)
                    set_node(nodes[used], root, split, later, low, high)
                    heap_push(graph, sums[:, 0], paths, heap[:, 0], size, used)
                    used, size = used + 1, size + 1
    return out[:written], counts, gave_up
