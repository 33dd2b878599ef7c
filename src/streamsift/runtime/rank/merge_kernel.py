"""Merge queues of paths: find the best combinations of paths that fit together.

TA and NRA of the CPR thesis, section 3.3 ("TMM"), for paths that may be in many matches: a path that is read is joined
with what is known of the other queues. It stops for more paths of a queue, and goes on when they are there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.arrays.comparing import holds
from streamsift.runtime.arrays.dtypes import Bool, Float64, Int32, Int64
from streamsift.runtime.rank.merge_queues import MergeMatches, MergeQueues, add_match, is_exhausted, link
from streamsift.runtime.rank.merge_schedules import LAST, MergeRules, Steering, bound_at, merged, next_queue

DONE, GAVE_UP = -1, -2  # what `merge` returns instead of the queue that it needs more of


class Room(NamedTuple):
    """Where partial matches of m components are put together."""

    value: Float64  # [m] the scores of the components, for those not chosen yet the best
    partial: Int32  # [m + 1, steps]
    cursor: Int64  # [m + 1]
    all_known: Bool  # [m + 1]


@njit(cache=True, nogil=True)
def fits(rules: MergeRules, partial: Int32, row: Int32) -> bool:
    """Return True if a path goes with the events of the chosen paths; both [steps], -1 where there is no event."""
    for step in range(row.size):
        if row[step] >= 0 and partial[step] >= 0 and row[step] != partial[step]:
            return False
    for pair in range(rules.pairs.shape[0]):
        one, two, operator = rules.pairs[pair, 0], rules.pairs[pair, 1], rules.pairs[pair, 2]
        if row[one] >= 0 and partial[one] < 0 and partial[two] >= 0:
            left, right = row[one], partial[two]
        elif row[two] >= 0 and partial[two] < 0 and partial[one] >= 0:
            left, right = partial[one], row[two]
        else:
            continue
        if not holds(operator, rules.codes[2 * pair, left], rules.codes[2 * pair + 1, right]):
            return False
    return True


@njit(cache=True, nogil=True)
def threshold_of(rules: MergeRules, matches: MergeMatches) -> float:
    """Return the score below which matches need not be kept."""
    full = matches.counts[1] == matches.best.size
    return matches.best[matches.best.size - 1] - rules.slack if full else -np.inf


@njit(cache=True, nogil=True)
def first_partner(queues: MergeQueues, rules: MergeRules, queue: int, row: int, key: int) -> int:
    """Return the best path of a queue with the key, -1 for none. A lookup that fails costs as much as one path."""
    first = int(queues.head[queue, row, key])
    if rules.looks_up and first < 0 and queues.tail[queue, row, key] < 0 and queues.fetched[queue, key] < 0:
        queues.fetched[queue, key] = 0
        queues.fetches[queue] += 1
    return first


@njit(cache=True, nogil=True)
def join(
    queues: MergeQueues, rules: MergeRules, queue: int, path: int, room: Room, matches: MergeMatches
) -> MergeMatches:
    """Add the matches of a path with what is known of the other queues, depth first, best partners first."""
    components, steps, key = queues.read.size, queues.rows.shape[2], queues.key[queue, path]
    if components == 2 and queues.known[queue, path] and queues.head[1 - queue, 1, key] < 0:
        return matches
    value, partial, cursor, all_known = room.value, room.partial, room.cursor, room.all_known
    for other in range(components):
        value[other] = queues.score[other, 0]
    value[queue] = queues.score[queue, path]
    partial[1], all_known[1] = queues.rows[queue, path], queues.known[queue, path]
    level = 1
    # Known paths were joined with each other: where all the others are known, the last one must not be.
    row = 1 if components == 2 and all_known[1] else 0
    cursor[1] = first_partner(queues, rules, 0 if queue > 0 else 1, row, key)
    while level >= 1:
        if level == components:
            matches = add_match(matches, partial[level], merged(rules, value))
            level -= 1
            continue
        other = level - 1 if level - 1 < queue else level
        candidate = cursor[level]
        if candidate < 0:
            value[other] = queues.score[other, 0]
            level -= 1
            continue
        if rules.looks_up and candidate > queues.fetched[other, key]:
            queues.fetched[other, key] = candidate
            queues.fetches[other] += 1
        value[other] = queues.score[other, candidate]
        if merged(rules, value) < threshold_of(rules, matches):
            cursor[level] = -1  # those that follow are no better
            continue
        cursor[level] = queues.following[other, candidate, 1 if level == components - 1 and all_known[level] else 0]
        if not fits(rules, partial[level], queues.rows[other, candidate]):
            continue
        level += 1
        for step in range(steps):
            partial[level, step] = max(partial[level - 1, step], queues.rows[other, candidate, step])
        all_known[level] = all_known[level - 1] and queues.known[other, candidate]
        if level < components:
            row = 1 if level == components - 1 and all_known[level] else 0
            cursor[level] = first_partner(queues, rules, level - 1 if level - 1 < queue else level, row, key)
    return matches


@njit(cache=True, nogil=True)
def take(queues: MergeQueues, rules: MergeRules, queue: int) -> int:
    """Sorted access: take the next path of a queue."""
    path = queues.read[queue]
    queues.read[queue] += 1
    if rules.looks_up:  # it is the first of those with its key that were not read
        queues.head[queue, 0, queues.key[queue, path]] = queues.following[queue, path, 0]
    else:
        link(queues, queue, path, path + 1)
    return int(path)


@njit(cache=True, nogil=True)
def merge(
    queues: MergeQueues, rules: MergeRules, steering: Steering, max_read: int, matches: MergeMatches
) -> tuple[MergeMatches, int]:
    """Read until no match that is not found can be among the best; DONE, GAVE_UP, or the queue to load more of."""
    components, steps = queues.read.size, queues.rows.shape[2]
    room = Room(
        value=np.empty(components),
        partial=np.empty((components + 1, steps), np.int32),
        cursor=np.empty(components + 1, np.int64),
        all_known=np.empty(components + 1, np.bool_),
    )
    value = np.empty(components)
    for queue in range(components):
        if queues.loaded[queue] == 0:
            return matches, DONE if queues.complete[queue] else queue
    while True:
        bound = bound_at(queues, rules, queues.read, value)
        has_all = matches.counts[1] >= rules.limit and matches.best[rules.limit - 1] - rules.slack > bound
        if bound == -np.inf or has_all:
            return matches, DONE
        if queues.read.sum() > max_read or matches.counts[0] > max_read:
            return matches, GAVE_UP
        queue = next_queue(queues, rules, steering, bound, value)
        if queues.read[queue] == queues.loaded[queue] and not is_exhausted(queues, queue):
            return matches, queue
        steering.memory[LAST] = queue
        matches = join(queues, rules, queue, take(queues, rules, queue), room, matches)
