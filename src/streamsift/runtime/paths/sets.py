"""A stratified graph and windows in, sets of paths with the best path of each out: what lazy enumeration is made of.

A set of paths is described by a prefix of fixed choices and a range for the next one; its best path is the best entry
of the range and what follows from it. Taking that path out of the set leaves disjoint sets of the same kind, two for
each choice ("A procedure for computing the k best solutions to discrete optimization problems", Lawler, 1972).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.arrays.comparing import holds
from streamsift.runtime.arrays.dtypes import Float64, Int32, Int64
from streamsift.runtime.arrays.searching import first_from
from streamsift.runtime.paths.graph import Graph, best_in
from streamsift.runtime.paths.heap import Heap, heap_push
from streamsift.runtime.paths.kinds import best_new_in

EARLIER, THIS, OPERATOR, PAIR_FIELDS = range(4)  # columns of Roots.pairs


class Roots(NamedTuple):
    """Where paths are looked for: a group inside a window, and the first entry if that is given."""

    group: Int32
    low: Int32
    cut: Int32
    high: Int32
    first: Int32  # entry, -1 for any
    since: Int32  # the last event is at this place or behind it, and behind the cut; -1 for anywhere
    pairs: Int64  # [pairs, PAIR_FIELDS] comparisons between steps
    codes: Int64  # [2 * pairs, n] the two sides of each, by entry


def roots_at(roots: Roots, which: Int64) -> Roots:
    group, low, cut, high, first, since = (column[which] for column in roots[:6])
    return Roots(group, low, cut, high, first, since, roots.pairs, roots.codes)


class Rule(NamedTuple):
    """When to stop: after `limit` paths, and all that might tie with the last of them."""

    limit: int
    slack: float  # sums that differ by less may be scores in another order
    most: int  # paths looked at, for one bucket
    floor: float  # paths with less are not asked for; -inf for all
    floor_path: Int32  # [L] of those with just as much, the last that is
    is_final: bool  # whether no others will be asked for later


@njit(cache=True, nogil=True, inline="always")
def step_of(split: int, steps: int, decision: int) -> int:
    """The step that is chosen by a decision: those before the cut forwards, then those behind it backwards."""
    return decision if decision < split else steps - 1 - (decision - split)


@njit(cache=True, nogil=True)
def open_root(graph: Graph, roots: Roots, root: int, opened: Int64) -> None:
    """Where a root's window lies among the entries: opened [2 L + 5].

    The first L are the entries at the cut, for each step; then the first one inside and the end, of the first and the
    last step; then for each split the best entry that its back part can end with, -1 for none; then the first of those;
    then the end of the entries that paths can begin with in front.
    """
    steps, group = graph.offsets.shape[0], roots.group[root]
    for step in range(steps):
        start, stop = graph.offsets[step, group], graph.offsets[step, group + 1]
        opened[step] = first_from(graph.place, start, stop, roots.cut[root])
        if step == 0:
            opened[steps] = first_from(graph.place, start, stop, roots.low[root])
            opened[2 * steps + 4] = opened[0]
            if roots.first[root] >= 0:
                opened[steps], opened[2 * steps + 4] = roots.first[root], roots.first[root] + 1
        if step == steps - 1:
            opened[steps + 1] = first_from(graph.place, start, stop, roots.high[root])
            opened[2 * steps + 3] = opened[step]
            if roots.since[root] >= 0:
                opened[2 * steps + 3] = first_from(graph.place, opened[step], stop, roots.since[root])
    for split in range(steps + 1):
        opened[steps + 2 + split] = -1
        if split < steps:
            opened[steps + 2 + split] = choose(graph, split, split, opened[2 * steps + 3], opened[steps + 1])


@njit(cache=True, nogil=True, inline="always")
def choices(graph: Graph, opened: Int64, split: int, decision: int, path: Int32) -> tuple[int, int]:
    """The entries [start, stop) that a decision may choose from, given those before it."""
    steps = graph.offsets.shape[0]
    step = step_of(split, steps, decision)
    if decision == split:
        return int(opened[2 * steps + 3]), int(opened[steps + 1])
    if decision > split:
        return int(opened[step]), int(graph.until[path[step + 1]])
    if decision > 0:
        return int(graph.after[path[step - 1]]), int(opened[step])
    return int(opened[steps]), int(opened[2 * steps + 4])


@njit(cache=True, nogil=True, inline="always")
def choose(graph: Graph, split: int, decision: int, start: int, stop: int) -> int:
    """The best of the entries [start, stop), or -1."""
    if decision < split:
        lex_row = min(split, graph.front_lex.shape[0]) - 1
        return best_in(graph.front, graph.front_lex, graph.front_tree, split - 1, lex_row, start, stop)
    return best_in(graph.back, graph.back_lex, graph.back_tree, split, split, start, stop)


@njit(cache=True, nogil=True, inline="always")
def complete(graph: Graph, opened: Int64, split: int, decision: int, path: Int32) -> None:
    """Fills in the best choices after a decision."""
    steps = graph.offsets.shape[0]
    for step in range(decision + 1, split):
        path[step] = graph.front_next[split - 1, path[step - 1]]
    if decision < split and split < steps:
        path[steps - 1] = opened[steps + 2 + split]
        decision = split
    if decision >= split:
        for step in range(step_of(split, steps, decision) - 1, split - 1, -1):
            path[step] = graph.back_next[split, path[step + 1]]


@njit(cache=True, nogil=True)
def root_sums(graph: Graph, roots: Roots) -> Float64:
    """The best sum of each root's paths; -inf if it has none."""
    steps = graph.offsets.shape[0]
    found = np.full(roots.group.size, -np.inf)
    opened, none = np.empty(2 * steps + 5, np.int64), np.empty(0, np.int32)
    for root in range(found.size):
        open_root(graph, roots, root, opened)
        for split in range(1 if roots.first[root] >= 0 else 0, steps + 1):
            total, back = 0.0, opened[steps + 2 + split]
            if split < steps:
                total += graph.back[split, back] if back >= 0 else -np.inf
            if split > 0:
                start, stop = choices(graph, opened, split, 0, none)
                entry = choose(graph, split, 0, start, stop)
                total += graph.front[split - 1, entry] if entry >= 0 else -np.inf
            found[root] = max(found[root], total)
    return found


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
def is_behind(rule: Rule, worst: float, total: float) -> bool:
    """Whether a path that comes after the last of the k best stays behind it: sums that do not round say so."""
    return rule.slack <= 0 or worst - total > rule.slack


@njit(cache=True, nogil=True)
def is_later(ties: Int32, one: Int32, two: Int32) -> bool:
    """Whether a path comes after another one of the same sum."""
    for level in range(ties.shape[0]):
        for step in range(one.size):
            left, right = ties[level, one[step]], ties[level, two[step]]
            if left != right:
                return bool(left > right)
    return False


@njit(cache=True, nogil=True)
def is_below(graph: Graph, rule: Rule, total: float, path: Int32) -> bool:
    """Whether a path is not asked for: its sum is below the floor, or as much and its events are later."""
    if total != rule.floor or rule.slack > 0:
        return total < rule.floor
    return is_later(graph.ties, path, rule.floor_path)


@njit(cache=True, nogil=True)
def complete_by_kinds(
    graph: Graph, opened: Int64, split: int, decision: int, start: int, stop: int, path: Int32
) -> bool:
    """Fills in the best choices from a decision among [start, stop) on, each of a kind not split off; False if none."""
    steps = graph.offsets.shape[0]
    low, high = choices(graph, opened, split, decision, path)
    for later in range(decision, steps):
        if later > decision:
            low, high = choices(graph, opened, split, later, path)
            start, stop = low, high
        entry = best_new_in(graph, split, later, start, stop, low, high)
        if entry < 0:
            return False
        path[step_of(split, steps, later)] = entry
    return True


@njit(cache=True, nogil=True, inline="always")
def push(
    graph: Graph,
    opened: Int64,
    node: Int32,
    base: Int32,
    start: int,
    stop: int,
    floor: float,
    heap: Heap,
    used: int,
    size: int,
) -> bool:
    """Adds the set of paths that agree with `base` before a decision and choose from [start, stop) at it, if any.

    If its best is below the floor, it is not wanted. node is (root, split, decision); the new node's number is `used`,
    and `size` are in the heap.
    """
    split, decision = node[1], node[2]
    if start >= stop or (decision < split < base.size and opened[base.size + 2 + split] < 0):
        return False
    path, total = heap.paths[used], 0.0
    for step in range(base.size):
        path[step] = base[step]
    if graph.repeats.shape[1] > 0:
        if not complete_by_kinds(graph, opened, split, decision, start, stop, path):
            return False
    else:
        entry = choose(graph, split, decision, start, stop)
        if entry < 0:
            return False
        path[step_of(split, base.size, decision)] = entry
        complete(graph, opened, split, decision, path)
    for step in range(base.size):
        total += graph.weight[path[step]]
    if total < floor:
        return False
    heap.sums[used] = total
    for field in range(3):
        heap.nodes[used, field] = node[field]
    heap.nodes[used, 3], heap.nodes[used, 4] = start, stop
    heap_push(graph.ties, heap.sums, heap.paths, heap.order, size, used)
    return True
