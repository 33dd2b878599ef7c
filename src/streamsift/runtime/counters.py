"""Operations on prefix counters in, counts over time out: the kernels for COUNT alone, where 64 bits are enough.

Prefix counting, start event marking (SEM) and their lemmas are those of "Complex Event Analytics: Online Aggregation of
Stream Sequence Patterns", section 3. The two-stack queue is the one of "General Incremental Sliding-Window Aggregation"
(Tangwongsan, Hirzel, Schneider, Wu, 2015), here over products of linear maps: an operation is such a map on the vector
of prefix counts, so what a window does to it is their product.

Each kernel writes records (key, stamp, whether a match ends there, count) and returns how many. Its output arrays have
room for one record at every seal and, with `with_leaving`, one at every start that leaves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.clock import NEVER
from streamsift.runtime.kernels import Bool, Int32, Int64
from streamsift.runtime.operations import NO_SEAL, Operations


class Counts(NamedTuple):
    """Records of one count for each key, in the order of keys and stamps."""

    key: Int32
    stamp: Int64
    ends: Bool
    total: Int64


@njit(cache=True, nogil=True, inline="always")
def record(out: Counts, at: int, key: int, stamp: int, ends: bool, total: int) -> int:
    out.key[at] = key
    out.stamp[at] = stamp
    out.ends[at] = ends
    out.total[at] = total
    return at + 1


@njit(cache=True, nogil=True)
def count_prefixes(operations: Operations, levels: int, out: Counts) -> int:
    """Dynamic prefix counting: count[p] += count[p - 1]. Nothing leaves; a start that begins no match is passed."""
    written = 0
    count = np.zeros(levels + 1, np.int64)
    count[0] = 1
    for key in range(operations.offsets.size - 1):
        count[1:] = 0
        ended = False
        start = operations.first_start[key]
        for i in range(operations.offsets[key], operations.offsets[key + 1]):
            level = operations.level[i]
            if level < 0:
                count[-level] = 0
            elif level == 1:
                if operations.since[start] != NEVER:
                    count[1] += 1
                    ended |= levels == 1
                start += 1
            else:
                count[level] += count[level - 1]
                ended |= level == levels and count[level - 1] > 0
            if operations.seal[i] != NO_SEAL and ended:
                written = record(out, written, key, operations.seal[i], True, count[levels])
                ended = False
    return written


@njit(cache=True, nogil=True)
def mark_starts(operations: Operations, levels: int, with_leaving: bool, out: Counts) -> int:
    """Start event marking: counts [levels, starts] of the prefixes that begin with each start in the window."""
    written = 0
    most = 0
    for key in range(operations.offsets.size - 1):
        most = max(most, operations.first_start[key + 1] - operations.first_start[key])
    counts = np.zeros((levels + 1, most), np.int64)
    for key in range(operations.offsets.size - 1):
        base = operations.first_start[key]
        leaving = operations.leaving[base : operations.first_start[key + 1]]
        since = operations.since[base : operations.first_start[key + 1]]
        first, after, total, ended = 0, 0, 0, False
        begin, end = operations.offsets[key], operations.offsets[key + 1]
        # One round more than there are operations, for what leaves after the last.
        for i in range(begin, end + with_leaving):
            for sealing in range(2):
                if i == end:
                    stamp = NEVER - 1
                elif sealing == 0:
                    stamp = operations.stamp[i]
                else:
                    stamp = operations.seal[i]
                while first < after and leaving[first] <= stamp:
                    total -= counts[levels, first]
                    first += 1
                    if with_leaving and (first == after or leaving[first] != leaving[first - 1]):
                        written = record(out, written, key, leaving[first - 1], False, total)
                if sealing == 0 and i < end:
                    level = operations.level[i]
                    if level < 0:
                        for start in range(first, after):
                            counts[-level, start] = 0
                    elif level == 1:
                        for p in range(1, levels + 1):
                            counts[p, after] = 0
                        counts[1, after] = 1
                        if levels == 1:
                            if since[after] <= operations.place[i]:
                                ended = True
                                total += 1
                            else:
                                counts[1, after] = 0
                        after += 1
                    elif level < levels:
                        for start in range(first, after):
                            counts[level, start] += counts[level - 1, start]
                    else:
                        added = 0
                        for start in range(first, after):
                            if since[start] > operations.place[i]:
                                break
                            counts[level, start] += counts[level - 1, start]
                            added += counts[level - 1, start]
                        total += added
                        ended |= added > 0
            if i < end and operations.seal[i] != NO_SEAL and ended:
                written = record(out, written, key, operations.seal[i], True, total)
                ended = False
    return written


@njit(cache=True, nogil=True, inline="always")
def through(here: Int64, back: Int64, level: int) -> int:
    """Paths to a level: those that the front brought to each level and the back led on; at level 0 they begin."""
    total = 0
    for p in range(here.size):
        total += here[p] * back[level, p]
    return total


@njit(cache=True, nogil=True, inline="always")
def reset(matrix: Int64) -> None:
    for row in range(matrix.shape[0]):
        for column in range(matrix.shape[1]):
            matrix[row, column] = row == column


@njit(cache=True, nogil=True)
def turn(operations: Operations, begin: int, end: int, starts: int, suffix: Int64, front: Int64) -> None:
    """front[s + 1, p] for the `starts` starts of operations [begin, end): paths to level p from start s or a later one.

    Backwards, suffix[i, p] being the paths from level i to p through the operations so far: row p - 1 += row p. Whole
    rows are added, and the front's next row is written at every operation: branches on random levels would cost more.
    """
    reset(suffix)
    width = suffix.shape[1]
    for i in range(end - 1, begin - 1, -1):
        level = operations.level[i]
        if level < 0:
            suffix[-level, :] = 0
            continue
        for p in range(width):
            suffix[level - 1, p] += suffix[level, p]
        for p in range(width):
            front[starts, p] = suffix[0, p]
        starts -= level == 1


@njit(cache=True, nogil=True)
def multiply_windows(operations: Operations, levels: int, with_leaving: bool, out: Counts) -> int:
    """Two stacks: `back` [to, from] is the product of the operations since the last turn, the front has for each start
    before that what it and later ones bring to each level. When the front runs out, the back is turned into it."""
    written = 0
    back, suffix = np.zeros((levels + 1, levels + 1), np.int64), np.zeros((levels + 1, levels + 1), np.int64)
    front = np.zeros((1024, levels + 1), np.int64)
    here = np.zeros(levels + 1, np.int64)  # the front's row of the first start in the window, and 1 for level 0
    here[0] = 1
    for key in range(operations.offsets.size - 1):
        # Starts [first, middle) are in front, the first of them in row first - origin + 1; [middle, after) in the back.
        first = operations.first_start[key]
        middle, after, origin = first, first, first
        end, turned = operations.offsets[key + 1], operations.offsets[key]
        here[1:] = 0
        reset(back)
        ended, positive = False, False
        i = turned
        while i < end + with_leaving:
            # Before an operation, then before its seal, and once more at the end: what leaves by then.
            sealing = False
            stamp = operations.stamp[i] if i < end else NEVER - 1
            while True:
                while first < after and operations.leaving[first] <= stamp:
                    if first == middle:
                        if after - first >= front.shape[0]:
                            front = np.zeros((2 * (after - first), levels + 1), np.int64)
                        done = min(i + sealing, end)
                        turn(operations, turned, done, after - first, suffix, front)
                        origin, middle, turned = first, after, done
                        reset(back)
                    first += 1
                    for p in range(1, levels + 1):
                        here[p] = front[first - origin + 1, p] if first < middle else 0
                    gone = operations.leaving[first - 1]
                    if with_leaving and positive and (first == after or operations.leaving[first] != gone):
                        total = through(here, back, levels)
                        positive = total > 0
                        written = record(out, written, key, gone, False, total)
                if sealing or i == end:
                    break
                level = operations.level[i]
                if level < 0:
                    back[-level, :] = 0
                else:
                    if level == levels:
                        ended |= through(here, back, levels - 1) > 0
                    for p in range(levels + 1):
                        back[level, p] += back[level - 1, p]
                    after += level == 1
                if operations.seal[i] == NO_SEAL:
                    break
                sealing, stamp = True, operations.seal[i]
            if sealing and ended:
                written = record(out, written, key, stamp, True, through(here, back, levels))
                ended, positive = False, True
            i += 1
    return written
