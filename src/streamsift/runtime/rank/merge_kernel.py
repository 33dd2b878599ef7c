"""Merge queues of paths: find the best combinations of compatible paths.

These are TA and NRA of the CPR thesis, section 3.3 ("TMM"), for paths that can be in many matches: a path is joined
with the paths of the other queues that were read or can be looked up. The merge returns when a queue needs more paths,
and resumes when they are loaded.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from streamsift.runtime.arrays.comparing import holds
from streamsift.runtime.arrays.dtypes import Int32
from streamsift.runtime.rank.merge_queues import MergeMatches, MergeQueues, add_match, is_exhausted, link
from streamsift.runtime.rank.merge_schedules import LAST, MergeRules, MergeState, bound_at, merged, next_queue

DONE, GAVE_UP = -1, -2  # returned by `merge` instead of a queue that needs more paths
UNOPENED = -2  # cursor of a queue before the first partner was searched for; -1: there are no more partners


@njit(cache=True, nogil=True)
def fits(rules: MergeRules, partial: Int32, row: Int32) -> bool:
    """Return True if a path is compatible with the events of the chosen paths; both [steps], -1 for no event."""
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
    """Return the best path of a queue with the key, -1 for none. A failed lookup counts as one access."""
    first = int(queues.head[queue, row, key])
    if rules.looks_up and first < 0 and queues.tail[queue, row, key] < 0 and queues.fetched[queue, key] < 0:
        queues.fetched[queue, key] = 0
        queues.fetches[queue] += 1
    return first


@njit(cache=True, nogil=True)
def join(
    queues: MergeQueues, rules: MergeRules, queue: int, path: int, state: MergeState, matches: MergeMatches
) -> MergeMatches:
    """Join a path with the paths of the other queues, depth first, best partners first, and add the matches."""
    components, steps, key = queues.read.size, queues.rows.shape[2], queues.key[queue, path]
    if components == 2 and queues.carried[queue, path] and queues.head[1 - queue, 1, key] < 0:
        return matches
    value, partial, cursor, all_carried = state.value, state.partial, state.cursor, state.all_carried
    for other in range(components):
        value[other] = queues.score[other, 0]
    value[queue] = queues.score[queue, path]
    partial[1], all_carried[1] = queues.rows[queue, path], queues.carried[queue, path]
    level, cursor[1] = 1, UNOPENED
    while level >= 1:
        if level == components:
            matches = add_match(matches, partial[level], merged(rules, value))
            level -= 1
            continue
        other = level - 1 if level - 1 < queue else level
        # Carried paths were joined with each other before: if all others are carried, the last one must not be.
        row = 1 if level == components - 1 and all_carried[level] else 0
        if cursor[level] == UNOPENED:
            cursor[level] = first_partner(queues, rules, other, row, key)
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
            cursor[level] = -1  # later partners are not better
            continue
        cursor[level] = queues.following[other, candidate, row]
        if not fits(rules, partial[level], queues.rows[other, candidate]):
            continue
        level += 1
        for step in range(steps):
            partial[level, step] = max(partial[level - 1, step], queues.rows[other, candidate, step])
        all_carried[level] = all_carried[level - 1] and queues.carried[other, candidate]
        cursor[level] = UNOPENED
    return matches


@njit(cache=True, nogil=True)
def merge(
    queues: MergeQueues, rules: MergeRules, state: MergeState, max_read: int, matches: MergeMatches
) -> tuple[MergeMatches, int]:
    """Read until no other match can be among the best; return DONE, GAVE_UP, or the queue that needs more paths."""
    for queue in range(queues.read.size):
        if queues.loaded[queue] == 0:
            return matches, DONE if queues.complete[queue] else queue
    while True:
        bound = bound_at(queues, rules, queues.read, state.value)
        has_all = matches.counts[1] >= rules.limit and matches.best[rules.limit - 1] - rules.slack > bound
        if bound == -np.inf or has_all:
            return matches, DONE
        if queues.read.sum() > max_read or matches.counts[0] > max_read:
            return matches, GAVE_UP
        queue = next_queue(queues, rules, state, bound)
        if queues.read[queue] == queues.loaded[queue] and not is_exhausted(queues, queue):
            return matches, queue
        state.memory[LAST], path = queue, int(queues.read[queue])
        queues.read[queue] += 1  # sorted access
        if rules.looks_up:  # the path is the first unread one with its key
            queues.head[queue, 0, queues.key[queue, path]] = queues.following[queue, path, 0]
        else:
            link(queues, queue, path, path + 1)
        matches = join(queues, rules, queue, path, state, matches)
