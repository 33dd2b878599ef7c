"""Windows over the strata of a sequence in, the k best paths of each out: the algorithms of the CPR thesis.

SSP, NSSP, k-SSP and k-DSSP of "CPR: Complex Pattern Ranking for Evaluating Top-k Pattern Queries over Event Streams",
sections 3.2 and 3.4, with greatest sums in place of least weights. The engine ranks by `path_queue`, which keeps what
these work out again for every path; they can be asked for, and are what it is measured against. With `plain` so is
Yen's algorithm on the same graph, which knows nothing of strata.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Bool, Float64, Int32, Int64


@njit(cache=True, nogil=True)
def shortest(
    bounds: Int64, rank: Int32, weight: Float64, banned: Bool, step: int, source: int, plain: bool, path: Int32
) -> float:
    """SSP: the best way on from entry `source` of step - 1 (-1: from the start) through the steps from `step` on.

    bounds [L, 2] are the entries of each step in the window. Fills path[step:] and returns the sum, -inf for none.
    """
    steps = bounds.shape[0]
    least, most = bounds[:, 0].min(), bounds[:, 1].max()
    best = np.full(most - least, -np.inf)  # minWeight of the thesis: up to this entry of its step
    pointer = np.full(most - least, -1, np.int64)  # vPtr: the entry it is of
    before = np.full(most - least, -1, np.int64)  # where hPtr and its vPtr lead
    for level in range(step, steps):
        reach = (
            bounds[level - 1, 0] - 1 if level > step else 0
        )  # hPtr: the last entry of the step before that is earlier
        for entry in range(bounds[level, 0], bounds[level, 1]):
            own, own_before = -np.inf, -1
            if level == step:
                if not banned[entry] and (source < 0 or rank[entry] > rank[source]):
                    own = weight[entry]
            elif plain:
                for other in range(bounds[level - 1, 0], bounds[level - 1, 1]):
                    if rank[other] < rank[entry] and best[other - least] + weight[entry] > own:
                        own, own_before = best[other - least] + weight[entry], other
            else:
                while reach + 1 < bounds[level - 1, 1] and rank[reach + 1] < rank[entry]:
                    reach += 1
                if reach >= bounds[level - 1, 0] and best[reach - least] > -np.inf:
                    own_before = pointer[reach - least]
                    own = weight[entry] + best[reach - least]
            before[entry - least] = own_before
            if plain or entry == bounds[level, 0] or own >= best[entry - 1 - least]:
                best[entry - least], pointer[entry - least] = own, entry
            else:
                best[entry - least], pointer[entry - least] = best[entry - 1 - least], pointer[entry - 1 - least]
    first, last = bounds[steps - 1, 0], bounds[steps - 1, 1] - 1
    if last < first:
        return -np.inf
    end = last
    if plain:
        for entry in range(first, last):
            if best[entry - least] > best[end - least]:
                end = entry
    total = best[end - least]
    if total == -np.inf:
        return total
    entry = pointer[end - least]
    for level in range(steps - 1, step - 1, -1):
        path[level] = entry
        entry = before[entry - least]
    return total


@njit(cache=True, nogil=True)
def deviations(
    bounds: Int64,
    rank: Int32,
    weight: Float64,
    banned: Bool,
    found: Int32,
    count: int,
    last: int,
    plain: bool,
    waiting: Int32,
    sums: Float64,
    size: int,
) -> int:
    """One round of NSSP: the best path that leaves path `last` at each of its steps joins the waiting ones."""
    steps = bounds.shape[0]
    path = np.empty(steps, np.int32)
    for step in range(steps):
        for other in range(count):
            shares = True
            for level in range(step):
                shares = shares and found[other, level] == found[last, level]
            if shares:
                banned[found[other, step]] = True
        total = 0.0
        for level in range(step):
            path[level] = found[last, level]
            total += weight[path[level]]
        more = shortest(bounds, rank, weight, banned, step, path[step - 1] if step else -1, plain, path)
        for other in range(count):
            banned[found[other, step]] = False
        if more == -np.inf:
            continue
        known = False
        for other in range(size):
            known = known or (waiting[other] == path).all()
        if not known and size < sums.size:
            waiting[size], sums[size] = path, total + more
            size += 1
    return size


@njit(cache=True, nogil=True)
def next_shortest(
    bounds: Int64,
    rank: Int32,
    weight: Float64,
    banned: Bool,
    found: Int32,
    count: int,
    fresh: int,
    plain: bool,
    waiting: Int32,
    sums: Float64,
    size: int,
) -> tuple[int, int]:
    """NSSP: the next best path after found[:count]; (its place among the waiting ones or -1, how many wait).

    Deviations of found[fresh:count] have not been looked for yet.
    """
    if count == 0 and size == 0:
        total = shortest(bounds, rank, weight, banned, 0, -1, plain, waiting[0])
        if total == -np.inf:
            return -1, 0
        sums[0] = total
        return 0, 1
    for last in range(fresh, count):
        size = deviations(bounds, rank, weight, banned, found, count, last, plain, waiting, sums, size)
    return (int(np.argmax(sums[:size])), size) if size else (-1, 0)


@njit(cache=True, nogil=True)
def path_total(weight: Float64, path: Int32) -> float:
    total = 0.0
    for step in range(path.size):
        total += weight[path[step]]
    return total


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
    """The sums [windows, limit] of the best paths of each window, -inf where there are fewer, and the paths.

    The entries of step i are offsets[i, 0]:offsets[i, 1], by place; paths are [windows, limit, L] entries.

    k-SSP starts every window anew. k-DSSP (`dynamic`) keeps the paths that stay inside, and looks for those that end
    with a new event apart. With `plain` they are Yen's algorithm and D-Yen.
    One function, as a call retains and releases every array that it takes.
    """
    steps, windows = offsets.shape[0], low.size
    result, paths = np.full((windows, limit), -np.inf), np.full((windows, limit, steps), -1, np.int32)
    banned = np.zeros(place.size, np.bool_)
    kept, kept_count = np.empty((limit, steps), np.int32), 0
    capacity = 2 * steps * (limit + 1) + limit
    found = np.empty((2, limit + 1, steps), np.int32)
    waiting, sums = np.empty((2, capacity, steps), np.int32), np.empty((2, capacity))
    bounds = np.empty((2, steps, 2), np.int64)
    new_from = 0
    for window in range(windows):
        for step in range(steps):
            first = offsets[step, 0]
            part = place[first : offsets[step, 1]]
            start = first + np.searchsorted(part, low[window])
            stop = first + np.searchsorted(part, high[window])
            middle = first + np.searchsorted(part, max(low[window], new_from)) if dynamic else start
            # Graph 0: events that were there before. Graph 1: paths whose last event is new.
            bounds[0, step, 0], bounds[0, step, 1] = start, middle
            bounds[1, step, 0], bounds[1, step, 1] = middle if step == steps - 1 else start, stop
        staying = 0
        for number in range(kept_count):
            if place[kept[number, 0]] >= low[window]:
                found[0, staying] = kept[number]
                staying += 1
        counts, sizes, fresh, handed = np.array([staying, 0]), np.zeros(2, np.int64), np.zeros(2, np.int64), 0
        heads, totals = np.full(2, -1, np.int64), np.full(2, -np.inf)
        taken = 0
        while taken < limit:
            for graph in range(0 if dynamic else 1, 2):
                if totals[graph] > -np.inf:
                    continue
                if graph == 0 and handed < staying:
                    totals[0] = path_total(weight, found[0, handed])
                    continue
                heads[graph], sizes[graph] = next_shortest(
                    bounds[graph],
                    rank,
                    weight,
                    banned,
                    found[graph],
                    counts[graph],
                    fresh[graph],
                    plain,
                    waiting[graph],
                    sums[graph],
                    sizes[graph],
                )
                fresh[graph] = counts[graph]
                totals[graph] = sums[graph, heads[graph]] if heads[graph] >= 0 else -np.inf
            graph = 1 if totals[1] >= totals[0] else 0
            if totals[graph] == -np.inf:
                break
            result[window, taken] = totals[graph]
            if graph == 0 and handed < staying:
                kept[taken] = found[0, handed]
                handed += 1
            else:
                head = heads[graph]
                kept[taken] = waiting[graph, head]
                if counts[graph] < limit:
                    found[graph, counts[graph]] = waiting[graph, head]
                    counts[graph] += 1
                sizes[graph] -= 1
                waiting[graph, head], sums[graph, head] = waiting[graph, sizes[graph]], sums[graph, sizes[graph]]
            paths[window, taken] = kept[taken]
            totals[graph] = -np.inf
            taken += 1
        kept_count, new_from = taken, high[window]
    return result, paths
