"""Find the k best paths of each window with the algorithms of the CPR thesis.

SSP, NSSP, k-SSP and k-DSSP of "CPR: Complex Pattern Ranking for Evaluating Top-k Pattern Queries over Event Streams",
sections 3.2 and 3.4, with greatest sums instead of least weights. By default, the engine uses `enumerate`, which keeps
what these algorithms recompute for every path. Users can request them, and benchmarks compare with them. With `plain`,
they become Yen's algorithm on the same graph, which does not use strata.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.arrays.comparing import first_from
from streamsift.runtime.arrays.dtypes import Bool, Float64, Int32, Int64

TAKEN, SPREAD, WAITING, COUNTS = range(4)  # of Deviations.counts


class Deviations(NamedTuple):
    """The best paths of one graph so far, and candidates for the next best, which deviate from them (NSSP)."""

    bounds: Int64  # [L, 2] the entries of each step in the window
    rank: Int32
    weight: Float64
    banned: Bool  # [n] scratch space to mark entries
    plain: bool
    paths: Int32  # [limit + 1, L] the best paths
    waiting: Int32  # [room, L] the candidates
    sums: Float64  # [room] of the candidates
    counts: Int64  # [COUNTS] best paths, best paths whose deviations were searched for, candidates


@njit(cache=True, nogil=True)
def shortest(graph: Deviations, step: int, source: int, path: Int32) -> float:
    """SSP: find the best path from entry `source` of step - 1 (-1: from the start) through the steps from `step` on.

    Fill path[step:] and return its sum, or -inf if there is none.
    """
    bounds, rank, weight, plain = graph.bounds, graph.rank, graph.weight, graph.plain
    steps = bounds.shape[0]
    least, most = bounds[:, 0].min(), bounds[:, 1].max()
    best = np.full(most - least, -np.inf)  # minWeight of the thesis: the best sum up to this entry of its step
    pointer = np.full(most - least, -1, np.int64)  # vPtr: the entry with that sum
    before = np.full(most - least, -1, np.int64)  # the previous entry: hPtr, then its vPtr
    for level in range(step, steps):
        # hPtr: the last earlier entry of the previous step
        reach = bounds[level - 1, 0] - 1 if level > step else 0
        for entry in range(bounds[level, 0], bounds[level, 1]):
            total, total_before = -np.inf, -1
            if level == step:
                if not graph.banned[entry] and (source < 0 or rank[entry] > rank[source]):
                    total = weight[entry]
            elif plain:
                for other in range(bounds[level - 1, 0], bounds[level - 1, 1]):
                    if rank[other] < rank[entry] and best[other - least] + weight[entry] > total:
                        total, total_before = best[other - least] + weight[entry], other
            else:
                while reach + 1 < bounds[level - 1, 1] and rank[reach + 1] < rank[entry]:
                    reach += 1
                if reach >= bounds[level - 1, 0] and best[reach - least] > -np.inf:
                    total_before = pointer[reach - least]
                    total = weight[entry] + best[reach - least]
            before[entry - least] = total_before
            best[entry - least], pointer[entry - least] = total, entry
            if not plain and entry > bounds[level, 0] and total < best[entry - 1 - least]:
                best[entry - least], pointer[entry - least] = best[entry - 1 - least], pointer[entry - 1 - least]
    first, last = bounds[steps - 1, 0], bounds[steps - 1, 1] - 1
    if last < first:
        return -np.inf
    end = first + np.argmax(best[first - least : last + 1 - least]) if plain else last
    if best[end - least] > -np.inf:
        entry = pointer[end - least]
        for level in range(steps - 1, step - 1, -1):
            path[level] = entry
            entry = before[entry - least]
    return best[end - least]


@njit(cache=True, nogil=True)
def deviate(graph: Deviations, last: int) -> None:
    """Do one round of NSSP: add the best paths that deviate from path `last` at each of its steps to the candidates."""
    steps, paths, banned, weight = graph.bounds.shape[0], graph.paths, graph.banned, graph.weight
    waiting, taken, path = graph.waiting, graph.counts[TAKEN], np.empty(steps, np.int32)
    for step in range(steps):
        for other in range(taken):
            shared = 0
            while shared < step and paths[other, shared] == paths[last, shared]:
                shared += 1
            if shared == step:
                banned[paths[other, step]] = True
        path[:step] = paths[last, :step]
        total = weight[path[:step]].sum() + shortest(graph, step, path[step - 1] if step else -1, path)
        for other in range(taken):
            banned[paths[other, step]] = False
        size = graph.counts[WAITING]
        is_new = total > -np.inf and size < graph.sums.size
        for other in range(size):
            is_new = is_new and not (waiting[other] == path).all()
        if is_new:
            waiting[size], graph.sums[size] = path, total
            graph.counts[WAITING] += 1


@njit(cache=True, nogil=True)
def next_shortest(graph: Deviations) -> tuple[int, float]:
    """NSSP: return the number and the sum of the next best path among the candidates; -inf if there is none."""
    counts = graph.counts
    if counts[TAKEN] == 0 and counts[WAITING] == 0:
        graph.sums[0] = shortest(graph, 0, -1, graph.waiting[0])
        counts[WAITING] = 1 if graph.sums[0] > -np.inf else 0
    for last in range(counts[SPREAD], counts[TAKEN]):
        deviate(graph, last)
    counts[SPREAD] = counts[TAKEN]
    if counts[WAITING] == 0:
        return -1, -np.inf
    head = int(np.argmax(graph.sums[: counts[WAITING]]))
    return head, graph.sums[head]


@njit(cache=True, nogil=True)
def take(graph: Deviations, head: int, path: Int32) -> None:
    """Move a candidate to the best paths, while there is room, and copy it to `path`."""
    counts, waiting = graph.counts, graph.waiting
    path[:] = waiting[head]
    if counts[TAKEN] < graph.paths.shape[0] - 1:
        graph.paths[counts[TAKEN]] = path
        counts[TAKEN] += 1
    counts[WAITING] -= 1
    waiting[head], graph.sums[head] = waiting[counts[WAITING]], graph.sums[counts[WAITING]]


@njit(cache=True, nogil=True)
def new_deviations(rank: Int32, weight: Float64, steps: int, limit: int, plain: bool) -> Deviations:
    room = 2 * steps * (limit + 1) + limit
    return Deviations(
        bounds=np.empty((steps, 2), np.int64),
        rank=rank,
        weight=weight,
        banned=np.zeros(weight.size, np.bool_),
        plain=plain,
        paths=np.empty((limit + 1, steps), np.int32),
        waiting=np.empty((room, steps), np.int32),
        sums=np.empty(room),
        counts=np.zeros(COUNTS, np.int64),
    )


@njit(cache=True, nogil=True)
def k_best_by_window(
    place: Int32,
    rank: Int32,
    weight: Float64,
    offsets: Int64,
    low: Int32,
    high: Int32,
    limit: int,
    dynamic: bool,
    plain: bool,
) -> tuple[Float64, Int32]:
    """Return the best sums of each window [windows, limit], -inf if there are fewer, and paths [windows, limit, L].

    The entries of step i are offsets[i, 0]:offsets[i, 1], sorted by place.

    k-SSP starts every window from scratch. k-DSSP (`dynamic`) keeps the paths that stay in the window, and searches
    separately for those that end with a new event. With `plain`, they are Yen's algorithm and D-Yen. The parameters are
    those of the published problem. This is one function because a call retains and releases every array that it takes.
    """
    steps, windows = offsets.shape[0], low.size
    result, paths = np.full((windows, limit), -np.inf), np.full((windows, limit, steps), -1, np.int32)
    # staying: paths of events that were in the last window; fresh: paths whose last event is new.
    staying = new_deviations(rank, weight, steps, limit, plain)
    fresh = new_deviations(rank, weight, steps, limit, plain)
    taken, new_from = 0, 0
    for window in range(windows):
        for step in range(steps):
            first, last = offsets[step, 0], offsets[step, 1]
            start, end = first_from(place, first, last, low[window]), first_from(place, first, last, high[window])
            middle = first_from(place, start, end, new_from) if dynamic else start
            staying.bounds[step, 0], staying.bounds[step, 1] = start, middle
            fresh.bounds[step, 0], fresh.bounds[step, 1] = middle if step == steps - 1 else start, end
        staying.counts[:], fresh.counts[:] = 0, 0
        for number in range(taken):
            if place[paths[window - 1, number, 0]] >= low[window]:
                staying.paths[staying.counts[TAKEN]] = paths[window - 1, number]
                staying.counts[TAKEN] += 1
        kept, handed, taken = staying.counts[TAKEN], 0, 0
        old_head, old_total, new_head, new_total = -1, -np.inf, -1, -np.inf
        while taken < limit:
            if dynamic and old_total == -np.inf:
                if handed < kept:
                    old_total = weight[staying.paths[handed]].sum()
                else:
                    old_head, old_total = next_shortest(staying)
            if new_total == -np.inf:
                new_head, new_total = next_shortest(fresh)
            result[window, taken] = max(old_total, new_total)
            if result[window, taken] == -np.inf:
                break
            if new_total >= old_total:
                take(fresh, new_head, paths[window, taken])
                new_total = -np.inf
            else:
                if handed < kept:
                    paths[window, taken] = staying.paths[handed]
                    handed += 1
                else:
                    take(staying, old_head, paths[window, taken])
                old_total = -np.inf
            taken += 1
        new_from = high[window]
    return result, paths
