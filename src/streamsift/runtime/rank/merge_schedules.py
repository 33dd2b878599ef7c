"""Queues that were read to some place in, the queue to read next out: round robin, gradient, statistics, WABS.

The schedules of the CPR thesis, section 3.3. Waste-avoiding boundary selection (WABS) asks how a bound that was
passed could have been reached at the least cost, knowing what was read since, and reads on in those proportions. The
thesis asks so between two results, of the boundary of the last but one. Here it is asked as reading goes on, of the
bound that was passed with about half of what was read: no result need be found before reading is steered.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Float64, Int64
from streamsift.runtime.rank.merge_bounds import Queues, Rules, bound_at, is_exhausted, merged, score_at

ROUND_ROBIN, GRADIENT, STATISTICS, WABS = range(4)
LOOK_BACK = 8  # paths over which a gradient is taken
SAMPLE = 64  # paths that are read before statistics are taken anew
FIRST_REVISION, GROWTH = 8, 1.25  # WABS looks at its boundary again when so much more was read
MOST_BOUNDARIES = 64  # that WABS compares at a time
LAST, REVISED, CHOSEN, MEMORY = range(4)  # of Steering.memory
PASSED = 3  # revisions: together they are about half of what was read


class Steering(NamedTuple):
    """What a schedule remembers; `new_steering` begins with nothing."""

    memory: Int64  # [MEMORY] the last queue read, the paths read at the last revision, the queue that was chosen
    ratio: Float64  # [m] the boundary that WABS reads towards
    passed: Float64  # [PASSED] the bounds at the last revisions


@njit(cache=True, nogil=True)
def new_steering(parts: int) -> Steering:
    return Steering(np.full(MEMORY, -1, np.int64), np.zeros(parts), np.full(PASSED, np.inf))


@njit(cache=True, nogil=True)
def next_in_turn(queues: Queues, last: int) -> int:
    """The next queue after `last` that has paths left."""
    parts = queues.read.size
    for turn in range(1, parts + 1):
        part = (last + turn) % parts
        if not is_exhausted(queues, part):
            return part
    return -1


@njit(cache=True, nogil=True)
def steepest(queues: Queues, last: int) -> int:
    """The queue whose scores fell most over the last paths."""
    best, found = -np.inf, -1
    for part in range(queues.read.size):
        if is_exhausted(queues, part):
            continue
        read = queues.read[part]
        if read <= LOOK_BACK:
            return next_in_turn(queues, last)
        fall = score_at(queues, part, read - LOOK_BACK) - score_at(queues, part, read)
        if fall > best:
            best, found = fall, part
    return found


@njit(cache=True, nogil=True)
def by_statistics(queues: Queues, rules: Rules, value: Float64) -> int:
    """The queue that, as its scores fell so far, lowers the bound most for its cost by the next sample."""
    parts = queues.read.size
    here = bound_at(queues, rules, queues.read, value)
    best, found, farthest, least = 0.0, -1, -1, np.inf
    for part in range(parts):
        if is_exhausted(queues, part):
            continue
        read = max(queues.read[part], 1)
        slope = (queues.score[part, 0] - score_at(queues, part, read)) / read
        kept = queues.score[part, read - 1]
        queues.score[part, read - 1] = kept - slope * SAMPLE
        gain = (here - bound_at(queues, rules, queues.read, value)) / rules.costs[part]
        queues.score[part, read - 1] = kept
        if gain > best:
            best, found = gain, part
        if read * rules.costs[part] < least:  # no queue lowers it alone
            least, farthest = read * rules.costs[part], part
    return found if found >= 0 else farthest


@njit(cache=True, nogil=True)
def depth_for(queues: Queues, rules: Rules, part: int, read: Int64, target: float, value: Float64) -> int:
    """How far one queue had to be read for the bound to be `target`, if the others were read so far.

    Without lookups the bound of one queue does not depend on how far the others are read. One more than was read if
    that is not enough.
    """
    low, high = 0, queues.read[part] + 1
    if not rules.looks_up:
        for other in range(read.size):
            value[other] = queues.score[other, 0]
    while low < high:
        middle = (low + high) >> 1
        read[part] = middle
        if rules.looks_up:
            bound = bound_at(queues, rules, read, value)
        else:
            value[part] = score_at(queues, part, middle)
            bound = merged(rules, value)
        if middle <= queues.read[part] and bound > target:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def cheapest_boundary(queues: Queues, rules: Rules, target: float, value: Float64, ratio: Float64) -> None:
    """Fills ratio [m] with how far each queue had to be read for the bound to be `target`, at the least cost.

    Without lookups each queue has its own answer. With them a few depths of all queues but the last are tried, and
    what they ask of the last.
    """
    parts, read = queues.read.size, queues.read.copy()
    if not rules.looks_up:
        for part in range(parts):
            ratio[part] = depth_for(queues, rules, part, read, target, value)
        return
    last, least = parts - 1, np.inf
    each = max(2, int(MOST_BOUNDARIES ** (1 / (parts - 1))))
    for number in range(each ** (parts - 1)):
        rest, cost = number, 0.0
        for part in range(last):
            # Denser near the top, where scores fall fast.
            share = (rest % each) / (each - 1)
            read[part] = int(queues.read[part] * share * share)
            rest //= each
            cost += read[part] * rules.costs[part]
        if cost >= least:
            continue
        depth = depth_for(queues, rules, last, read, target, value)
        cost += depth * rules.costs[last]
        if depth <= queues.read[last] and cost < least:
            least, read[last] = cost, depth
            for part in range(parts):
                ratio[part] = read[part]


@njit(cache=True, nogil=True)
def holds_bound(queues: Queues, rules: Rules, part: int, bound: float, value: Float64) -> bool:
    """Whether the bound can fall only if this queue is read, or would fall if it were."""
    for other in range(value.size):
        value[other] = score_at(queues, other, queues.read[other]) if rules.looks_up else queues.score[other, 0]
    if rules.looks_up:
        value[part] = -np.inf
        return merged(rules, value) < bound
    value[part] = score_at(queues, part, queues.read[part])
    return merged(rules, value) >= bound


@njit(cache=True, nogil=True)
def in_proportion(queues: Queues, rules: Rules, steering: Steering, bound: float, value: Float64) -> int:
    """WABS: of the queues that hold the bound up, the one that is least far on its way to the cheapest boundary."""
    memory, ratio, passed = steering.memory, steering.ratio, steering.passed
    total = queues.read.sum()
    if total < FIRST_REVISION * queues.read.size:
        return next_in_turn(queues, memory[LAST])
    if total >= GROWTH * memory[REVISED]:
        memory[REVISED] = total
        target = passed[0]
        passed[:-1] = passed[1:]
        passed[passed.size - 1] = bound
        cheapest_boundary(queues, rules, max(target, bound), value, ratio)
    found, least = -1, np.inf
    for part in range(ratio.size):
        if is_exhausted(queues, part) or not holds_bound(queues, rules, part, bound, value):
            continue
        way = queues.read[part] / max(ratio[part], 1e-9)
        if way < least:
            least, found = way, part
    return found if found >= 0 else next_in_turn(queues, memory[LAST])


@njit(cache=True, nogil=True)
def next_queue(queues: Queues, rules: Rules, steering: Steering, bound: float, value: Float64) -> int:
    """The queue to read, given the bound on what is not read; one has paths left."""
    memory, total = steering.memory, queues.read.sum()
    if rules.schedule == WABS:
        return in_proportion(queues, rules, steering, bound, value)
    if rules.schedule == GRADIENT:
        return steepest(queues, memory[LAST])
    if rules.schedule == ROUND_ROBIN or total < LOOK_BACK * queues.read.size:
        return next_in_turn(queues, memory[LAST])
    if memory[CHOSEN] < 0 or total >= memory[REVISED] + SAMPLE or is_exhausted(queues, memory[CHOSEN]):
        memory[REVISED], memory[CHOSEN] = total, by_statistics(queues, rules, value)
    return int(memory[CHOSEN])
