"""Queues of paths and rules in, the best combinations of paths that fit together out: the top-k merge.

TA and NRA of the CPR thesis, section 3.3 ("TMM"), for paths that may be in many matches: a path that is read is joined
with what is known of the other queues. It stops for more paths of a queue, and goes on when they are there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.arrays.comparing import holds
from streamsift.runtime.arrays.dtypes import Bool, Float64, Int32, Int64
from streamsift.runtime.arrays.growing import grown, longer
from streamsift.runtime.rank.merge_bounds import Queues, Rules, bound_at, is_exhausted, merged
from streamsift.runtime.rank.merge_schedules import LAST, Steering, next_queue

BEFORE, APART = 100, 101  # operators of Rules.pairs, beside comparisons: by rank, and no event twice
DONE, GAVE_UP = -1, -2  # what `merge` returns instead of the queue that it needs more of


class Found(NamedTuple):
    """Matches so far, and the greatest of their scores."""

    rows: Int32  # [matches, steps]
    score: Float64  # [matches]
    best: Float64  # [kept] descending
    counts: Int64  # [2] how many matches, how many of `best`


class Room(NamedTuple):
    """Where partial matches of m parts are put together."""

    value: Float64  # [m] the scores of the parts, for those not chosen yet the best
    partial: Int32  # [m + 1, steps]
    cursor: Int64  # [m + 1]
    all_known: Bool  # [m + 1]


@njit(cache=True, nogil=True)
def fits(rules: Rules, partial: Int32, row: Int32) -> bool:
    """Whether a path goes with the events of the paths that were chosen; both [steps], -1 where there is no event."""
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
        if operator == BEFORE:
            if rules.rank[left] >= rules.rank[right]:
                return False
        elif operator == APART:
            if left == right:
                return False
        elif not holds(operator, rules.codes[2 * pair, left], rules.codes[2 * pair + 1, right]):
            return False
    return True


@njit(cache=True, nogil=True)
def add_match(found: Found, row: Int32, score: float) -> Found:
    """Keeps a match, and its score among the best."""
    count = found.counts[0]
    if count == found.score.size:
        found = Found(grown(found.rows), longer(found.score), found.best, found.counts)
    found.rows[count] = row
    found.score[count] = score
    found.counts[0] += 1
    place, known = found.counts[1], found.counts[1]
    if known == found.best.size:
        if score <= found.best[known - 1]:
            return found
        place = known - 1
    else:
        found.counts[1] += 1
    while place > 0 and found.best[place - 1] < score:
        found.best[place] = found.best[place - 1]
        place -= 1
    found.best[place] = score
    return found


@njit(cache=True, nogil=True)
def floor_of(rules: Rules, found: Found) -> float:
    """Matches below it need not be kept."""
    full = found.counts[1] == found.best.size
    return found.best[found.best.size - 1] - rules.slack if full else -np.inf


@njit(cache=True, nogil=True)
def first_partner(queues: Queues, rules: Rules, part: int, row: int, key: int) -> int:
    """The best path of a queue with the key, -1 for none. A lookup that finds nothing costs as much as one path."""
    first = int(queues.head[part, row, key])
    if rules.looks_up and first < 0 and queues.tail[part, row, key] < 0 and queues.fetched[part, key] < 0:
        queues.fetched[part, key] = 0
        queues.fetches[part] += 1
    return first


@njit(cache=True, nogil=True)
def join(queues: Queues, rules: Rules, part: int, path: int, room: Room, found: Found) -> Found:
    """Adds the matches of a path with what is known of the other queues, depth first, best partners first."""
    parts, steps, key = queues.read.size, queues.rows.shape[2], queues.key[part, path]
    if parts == 2 and queues.known[part, path] and queues.head[1 - part, 1, key] < 0:
        return found
    value, partial, cursor, all_known = room.value, room.partial, room.cursor, room.all_known
    for other in range(parts):
        value[other] = queues.score[other, 0]
    value[part] = queues.score[part, path]
    partial[1], all_known[1] = queues.rows[part, path], queues.known[part, path]
    level = 1
    # Known paths were joined with each other: where all the others are known, the last one must not be.
    row = 1 if parts == 2 and all_known[1] else 0
    cursor[1] = first_partner(queues, rules, 0 if part > 0 else 1, row, key)
    while level >= 1:
        if level == parts:
            found = add_match(found, partial[level], merged(rules, value))
            level -= 1
            continue
        other = level - 1 if level - 1 < part else level
        candidate = cursor[level]
        if candidate < 0:
            value[other] = queues.score[other, 0]
            level -= 1
            continue
        if rules.looks_up and candidate > queues.fetched[other, key]:
            queues.fetched[other, key] = candidate
            queues.fetches[other] += 1
        value[other] = queues.score[other, candidate]
        if merged(rules, value) < floor_of(rules, found):
            cursor[level] = -1  # those that follow are no better
            continue
        cursor[level] = queues.following[other, 1 if level == parts - 1 and all_known[level] else 0, candidate]
        if not fits(rules, partial[level], queues.rows[other, candidate]):
            continue
        level += 1
        for step in range(steps):
            partial[level, step] = max(partial[level - 1, step], queues.rows[other, candidate, step])
        all_known[level] = all_known[level - 1] and queues.known[other, candidate]
        if level < parts:
            row = 1 if level == parts - 1 and all_known[level] else 0
            cursor[level] = first_partner(queues, rules, level - 1 if level - 1 < part else level, row, key)
    return found


@njit(cache=True, nogil=True)
def link(queues: Queues, part: int, path: int) -> None:
    """Adds a path to those of its queue with the same key."""
    key = queues.key[part, path]
    for row in range(1 if queues.known[part, path] else 2):
        last = queues.tail[part, row, key]
        queues.following[part, row, path] = -1
        if queues.head[part, row, key] < 0:
            queues.head[part, row, key] = path
        if last >= 0:
            queues.following[part, row, last] = path
        queues.tail[part, row, key] = path


@njit(cache=True, nogil=True)
def take(queues: Queues, rules: Rules, part: int) -> int:
    """Sorted access: the next path of a queue."""
    path = queues.read[part]
    queues.read[part] += 1
    if rules.looks_up:  # it is the first of those with its key that were not read
        queues.head[part, 0, queues.key[part, path]] = queues.following[part, 0, path]
    else:
        link(queues, part, path)
    return int(path)


@njit(cache=True, nogil=True)
def merge(queues: Queues, rules: Rules, steering: Steering, most: int, found: Found) -> tuple[Found, int]:
    """Reads until no match that is not found can be among the best; DONE, GAVE_UP, or the queue to load more of."""
    parts, steps = queues.read.size, queues.rows.shape[2]
    room = Room(
        np.empty(parts),
        np.empty((parts + 1, steps), np.int32),
        np.empty(parts + 1, np.int64),
        np.empty(parts + 1, np.bool_),
    )
    value = np.empty(parts)
    for part in range(parts):
        if queues.loaded[part] == 0:
            return found, DONE if queues.complete[part] else part
    while True:
        bound = bound_at(queues, rules, queues.read, value)
        has_all = found.counts[1] >= rules.limit and found.best[rules.limit - 1] - rules.slack > bound
        if bound == -np.inf or has_all:
            return found, DONE
        if queues.read.sum() > most or found.counts[0] > most:
            return found, GAVE_UP
        part = next_queue(queues, rules, steering, bound, value)
        if queues.read[part] == queues.loaded[part] and not is_exhausted(queues, part):
            return found, part
        steering.memory[LAST] = part
        found = join(queues, rules, part, take(queues, rules, part), room, found)
