"""Choose the queue that a merge reads next, and bound the score of unread matches.

The thresholds and schedules are those of the CPR thesis, section 3.3. With lookups (TA), every match of a path is
joined when the path is read, so all paths of a new match come after the last read path of their queue. Without lookups
(NRA), all but one of its paths may be the best of their queues.

The schedules are round robin, gradient, statistics and waste-avoiding boundary selection (WABS). WABS computes the
cheapest way in which a past bound could have been reached, and continues to read in those proportions. The thesis does
this between two results, for the boundary of the last but one. Here it is done while reading, for the bound that was
reached with about half of the paths read so far, so that reading is guided even before the first result.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.physical.plan import Schedule
from streamsift.runtime.arrays.dtypes import Bool, Float64, Int32, Int64
from streamsift.runtime.rank.merge_queues import MergeQueues, is_exhausted

SCHEDULES = (Schedule.ROUND_ROBIN, Schedule.GRADIENT, Schedule.STATISTICS, Schedule.WABS)  # in the order of kernels
ROUND_ROBIN, GRADIENT, STATISTICS, WABS = range(4)
LOOK_BACK = 8  # paths over which a gradient is computed
SAMPLE = 64  # paths to read before statistics are recomputed
FIRST_REVISION, GROWTH = 8, 1.25  # WABS first revises its boundary after 8 paths per queue, then after 25 % more paths
MAX_BOUNDARIES = 64  # that WABS compares at a time
LAST, REVISED, CHOSEN, MEMORY = range(4)  # of MergeState.memory
PASSED = 3  # revisions to look back, during which about half of the paths were read


class MergeRules(NamedTuple):
    """How paths form a match and its score: components are summed, sums merged by MIN or MAX, and the least counts."""

    sum_of: Int64  # [m] the sum that a component belongs to
    constant: Float64  # [sums]
    group_of: Int64  # [sums]
    takes_most: Bool  # [groups] True for MAX, False for MIN
    pairs: Int64  # [pairs, 3] comparisons between the events of two steps: (one, two, operator)
    codes: Int64  # [2 * pairs, places] the two sides, by place
    costs: Float64  # [m] of reading one path, without lookups of its partners
    limit: int  # k
    slack: float  # scores that differ by less may be in a different order
    looks_up: bool  # True for TA, False for NRA
    schedule: int


class MergeState(NamedTuple):
    """The state of the schedule of a merge of m components, and scratch space for partial matches."""

    memory: Int64  # [MEMORY] the last queue read, the paths read at the last revision, the chosen queue
    ratio: Float64  # [m] the boundary that WABS reads toward
    passed: Float64  # [PASSED] the bounds at the last revisions
    value: Float64  # [m] the scores of the components; the best score for those not chosen yet
    partial: Int32  # [m + 1, steps]
    cursor: Int64  # [m + 1]
    all_carried: Bool  # [m + 1]


def new_state(components: int, steps: int) -> MergeState:
    return MergeState(
        memory=np.full(MEMORY, -1, np.int64),
        ratio=np.zeros(components),
        passed=np.full(PASSED, np.inf),
        value=np.empty(components),
        partial=np.empty((components + 1, steps), np.int32),
        cursor=np.empty(components + 1, np.int64),
        all_carried=np.empty(components + 1, np.bool_),
    )


# --- bounds


@njit(cache=True, nogil=True)
def merged(rules: MergeRules, value: Float64) -> float:
    """Merge the scores of the components [m]."""
    least = np.inf
    for group in range(rules.takes_most.size):
        score = -np.inf if rules.takes_most[group] else np.inf
        for which in range(rules.constant.size):
            if rules.group_of[which] != group:
                continue
            total = rules.constant[which]
            for queue in range(value.size):
                if rules.sum_of[queue] == which:
                    total += value[queue]
            score = max(score, total) if rules.takes_most[group] else min(score, total)
        least = min(least, score)
    return least


@njit(cache=True, nogil=True)
def score_at(queues: MergeQueues, queue: int, read: int) -> float:
    """Return the score of the last of `read` paths; of the first path if none was read."""
    return float(queues.score[queue, max(read - 1, 0)])


@njit(cache=True, nogil=True)
def set_values(queues: MergeQueues, rules: MergeRules, read: Int64, value: Float64) -> None:
    """Fill value [m] with the best score of a new match's path in each queue; without lookups, that of any path."""
    for queue in range(read.size):
        value[queue] = score_at(queues, queue, read[queue] if rules.looks_up else 0)


@njit(cache=True, nogil=True)
def bound_at(queues: MergeQueues, rules: MergeRules, read: Int64, value: Float64) -> float:
    """Return an upper bound for matches not found by reading this far [m]; value [m] is scratch space."""
    best = -np.inf
    set_values(queues, rules, read, value)
    for queue in range(read.size):
        if queues.complete[queue] and read[queue] == queues.loaded[queue]:
            if rules.looks_up:
                return -np.inf
        elif not rules.looks_up:
            value[queue] = score_at(queues, queue, read[queue])
            best = max(best, merged(rules, value))
            value[queue] = queues.score[queue, 0]
    return merged(rules, value) if rules.looks_up else best


# --- schedules


@njit(cache=True, nogil=True)
def next_in_turn(queues: MergeQueues, last: int) -> int:
    """Return the next queue after `last` that has paths left."""
    components = queues.read.size
    for turn in range(1, components + 1):
        queue = (last + turn) % components
        if not is_exhausted(queues, queue):
            return queue
    return -1


@njit(cache=True, nogil=True)
def steepest(queues: MergeQueues, last: int) -> int:
    """Return the queue whose scores decreased most over the last paths."""
    best, steep = -np.inf, -1
    for queue in range(queues.read.size):
        if is_exhausted(queues, queue):
            continue
        read = queues.read[queue]
        if read <= LOOK_BACK:
            return next_in_turn(queues, last)
        fall = score_at(queues, queue, read - LOOK_BACK) - score_at(queues, queue, read)
        if fall > best:
            best, steep = fall, queue
    return steep


@njit(cache=True, nogil=True)
def by_statistics(queues: MergeQueues, rules: MergeRules, value: Float64) -> int:
    """Return the queue expected to lower the bound most per cost in the next sample, if its scores keep their slope."""
    components = queues.read.size
    here = bound_at(queues, rules, queues.read, value)
    best, chosen, farthest, least = 0.0, -1, -1, np.inf
    for queue in range(components):
        if is_exhausted(queues, queue):
            continue
        read = max(queues.read[queue], 1)
        slope = (queues.score[queue, 0] - score_at(queues, queue, read)) / read
        kept = queues.score[queue, read - 1]
        queues.score[queue, read - 1] = kept - slope * SAMPLE
        gain = (here - bound_at(queues, rules, queues.read, value)) / rules.costs[queue]
        queues.score[queue, read - 1] = kept
        if gain > best:
            best, chosen = gain, queue
        if read * rules.costs[queue] < least:  # used if no single queue lowers the bound
            least, farthest = read * rules.costs[queue], queue
    return chosen if chosen >= 0 else farthest


@njit(cache=True, nogil=True)
def depth_for(queues: MergeQueues, rules: MergeRules, queue: int, read: Int64, target: float, value: Float64) -> int:
    """Return how far one queue had to be read to reach the bound `target`, given how far the others were read.

    Return one more than was read if that is not enough. With lookups, no queue is exhausted.
    """
    low, high = 0, queues.read[queue] + 1
    set_values(queues, rules, read, value)
    while low < high:
        middle = (low + high) >> 1
        value[queue] = score_at(queues, queue, middle)
        if middle <= queues.read[queue] and merged(rules, value) > target:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def cheapest_boundary(queues: MergeQueues, rules: MergeRules, target: float, value: Float64, ratio: Float64) -> None:
    """Fill ratio [m] with how far each queue had to be read to reach the bound `target` at the lowest cost.

    Without lookups, the depth of one queue does not depend on the others. With lookups, a few depths of all queues but
    the last are tried.
    """
    components, read = queues.read.size, queues.read.copy()
    if not rules.looks_up:
        for queue in range(components):
            ratio[queue] = depth_for(queues, rules, queue, read, target, value)
        return
    last, least = components - 1, np.inf
    each = max(2, int(MAX_BOUNDARIES ** (1 / (components - 1))))
    for combination in range(each ** (components - 1)):
        rest, cost = combination, 0.0
        for queue in range(last):
            # Try more depths near the top, where scores decrease fast.
            share = (rest % each) / (each - 1)
            read[queue] = int(queues.read[queue] * share * share)
            rest //= each
            cost += read[queue] * rules.costs[queue]
        if cost >= least:
            continue
        depth = depth_for(queues, rules, last, read, target, value)
        cost += depth * rules.costs[last]
        if depth <= queues.read[last] and cost < least:
            least, read[last] = cost, depth
            for queue in range(components):
                ratio[queue] = read[queue]


@njit(cache=True, nogil=True)
def holds_bound(queues: MergeQueues, rules: MergeRules, queue: int, bound: float, value: Float64) -> bool:
    """Return True if this queue determines the bound, so that reading it can lower the bound."""
    set_values(queues, rules, queues.read, value)
    if rules.looks_up:
        value[queue] = -np.inf
        return merged(rules, value) < bound
    value[queue] = score_at(queues, queue, queues.read[queue])
    return merged(rules, value) >= bound


@njit(cache=True, nogil=True)
def in_proportion(queues: MergeQueues, rules: MergeRules, state: MergeState, bound: float) -> int:
    """WABS: of the queues that determine the bound, return the one read least far toward the cheapest boundary."""
    memory, ratio, passed, value = state.memory, state.ratio, state.passed, state.value
    total = queues.read.sum()
    if total < FIRST_REVISION * queues.read.size:
        return next_in_turn(queues, memory[LAST])
    if total >= GROWTH * memory[REVISED]:
        memory[REVISED] = total
        target = passed[0]
        passed[:-1] = passed[1:]
        passed[passed.size - 1] = bound
        cheapest_boundary(queues, rules, max(target, bound), value, ratio)
    chosen, least = -1, np.inf
    for queue in range(ratio.size):
        if is_exhausted(queues, queue) or not holds_bound(queues, rules, queue, bound, value):
            continue
        way = queues.read[queue] / max(ratio[queue], 1e-9)
        if way < least:
            least, chosen = way, queue
    return chosen if chosen >= 0 else next_in_turn(queues, memory[LAST])


@njit(cache=True, nogil=True)
def next_queue(queues: MergeQueues, rules: MergeRules, state: MergeState, bound: float) -> int:
    """Return the queue to read, given the bound on unread scores; at least one queue has paths left."""
    memory, total = state.memory, queues.read.sum()
    if rules.schedule == WABS:
        return in_proportion(queues, rules, state, bound)
    if rules.schedule == GRADIENT:
        return steepest(queues, memory[LAST])
    if rules.schedule == ROUND_ROBIN or total < LOOK_BACK * queues.read.size:
        return next_in_turn(queues, memory[LAST])
    if memory[CHOSEN] < 0 or total >= memory[REVISED] + SAMPLE or is_exhausted(queues, memory[CHOSEN]):
        memory[REVISED], memory[CHOSEN] = total, by_statistics(queues, rules, state.value)
    return int(memory[CHOSEN])
