"""Queues of paths, each read to some place, in; the best score that what was not read could still reach out.

The thresholds of the CPR thesis, section 3.3. With lookups (TA) every match of a path that was read is known, so a new
one has paths below the last read in all queues. Without (NRA) its other paths may be the best of their queues.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Bool, Float64, Int32, Int64


class Queues(NamedTuple):
    """The paths of m parts of a pattern in one window, n of each at most, best first.

    Paths with the same key may fit together, others do not. `following` links those of a queue with the same key, in
    order: with lookups all that are loaded and not read yet, else those that were read. It does so twice: row 1 is of
    those that are not known.
    """

    score: Float64  # [m, n]
    rows: Int32  # [m, n, steps] the places of the events, -1 for the steps of other parts
    key: Int32  # [m, n]
    known: Bool  # [m, n] whether it was read in the window before: known paths were joined with each other there
    following: Int32  # [m, 2, n] -1 for none
    head: Int32  # [m, 2, keys] the first path with the key, -1 for none
    tail: Int32  # [m, 2, keys]
    fetched: Int32  # [m, keys] the last path with the key that was looked up, -1 for none
    loaded: Int64  # [m] how many are there
    read: Int64  # [m] how many were taken by sorted access
    fetches: Int64  # [m] how many by random access
    complete: Bool  # [m] whether there are no others


class Rules(NamedTuple):
    """How paths make a match and its score: sums of parts, each sum in a group of MIN or MAX, the least of all."""

    sum_of: Int64  # [m] the sum that a part's score goes into
    constant: Float64  # [sums]
    group_of: Int64  # [sums]
    takes_most: Bool  # [groups] MAX, not MIN
    pairs: Int64  # [pairs, 3] what must hold between the events of two steps: (one, two, operator)
    codes: Int64  # [2 * pairs, places] the two sides, by place
    rank: Int32  # [places]
    costs: Float64  # [m] of reading one path, beside looking its partners up
    limit: int  # matches that are asked for
    kept: int  # matches below the best that are kept for the next window, at least the limit
    slack: float  # scores that differ by less may be in another order
    looks_up: bool  # TA, not NRA
    schedule: int


@njit(cache=True, nogil=True)
def merged(rules: Rules, value: Float64) -> float:
    """The score of parts with these scores [m]."""
    least = np.inf
    for group in range(rules.takes_most.size):
        found = -np.inf if rules.takes_most[group] else np.inf
        for number in range(rules.constant.size):
            if rules.group_of[number] != group:
                continue
            total = rules.constant[number]
            for part in range(value.size):
                if rules.sum_of[part] == number:
                    total += value[part]
            found = max(found, total) if rules.takes_most[group] else min(found, total)
        least = min(least, found)
    return least


@njit(cache=True, nogil=True)
def is_exhausted(queues: Queues, part: int) -> bool:
    return bool(queues.complete[part] and queues.read[part] == queues.loaded[part])


@njit(cache=True, nogil=True)
def score_at(queues: Queues, part: int, read: int) -> float:
    """The score of the last of `read` paths; of the first if none was read."""
    return float(queues.score[part, max(read - 1, 0)])


@njit(cache=True, nogil=True)
def bound_at(queues: Queues, rules: Rules, read: Int64, value: Float64) -> float:
    """The best score of a match that reading so far [m] does not find; value [m] is room to work in."""
    parts = read.size
    if rules.looks_up:
        for part in range(parts):
            if queues.complete[part] and read[part] == queues.loaded[part]:
                return -np.inf
            value[part] = score_at(queues, part, read[part])
        return merged(rules, value)
    best = -np.inf
    for part in range(parts):
        value[part] = queues.score[part, 0]
    for part in range(parts):
        if not (queues.complete[part] and read[part] == queues.loaded[part]):
            value[part] = score_at(queues, part, read[part])
            best = max(best, merged(rules, value))
            value[part] = queues.score[part, 0]
    return best
