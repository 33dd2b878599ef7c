"""Operations on prefix counters in, counts over time out: the kernels for COUNT alone.

Prefix counting, start event marking (SEM) and their lemmas are those of "Complex Event Analytics: Online Aggregation of
Stream Sequence Patterns", section 3. The two-stack queue is the one of "General Incremental Sliding-Window Aggregation"
(Tangwongsan, Hirzel, Schneider, Wu, 2015), here over products of linear maps: an operation is such a map on the vector
of prefix counts, so what a window does to it is their product.

Each kernel writes records (key, stamp, whether a match ends there, count) and returns how many. Its output arrays have
room for one record at every seal and, with `with_leaving`, one at every start that leaves.

Integers wrap, exactly, modulo 2^64; a double beside each tells whether it did, and whether there is any path at all.
Start event marking subtracts, which doubles cannot: it is for counts that 64 bits hold for certain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Bool, Float64, Int32, Int64
from streamsift.runtime.count.operations import NO_SEAL, Operations
from streamsift.runtime.events.stamps import NEVER


class Counts(NamedTuple):
    """Records of one count for each key, in the order of keys and stamps."""

    key: Int32
    stamp: Int64
    ends: Bool
    total: Int64
    size: Float64  # the same as a double: how often the integer has wrapped

    @staticmethod
    def room(records: int) -> Counts:
        return Counts(
            np.empty(records, np.int32),
            np.empty(records, np.int64),
            np.empty(records, np.bool_),
            np.empty(records, np.int64),
            np.empty(records, np.float64),
        )


@njit(cache=True, nogil=True, inline="always")
def record(out: Counts, at: int, key: int, stamp: int, ends: bool, total: int, size: float) -> int:
    out.key[at] = key
    out.stamp[at] = stamp
    out.ends[at] = ends
    out.total[at] = total
    out.size[at] = size
    return at + 1


@njit(cache=True, nogil=True)
def count_prefixes(operations: Operations, levels: int, out: Counts) -> int:
    """Dynamic prefix counting: count[p] += count[p - 1]. Nothing leaves; a start that begins no match is passed."""
    written = 0
    count, size = np.zeros(levels + 1, np.int64), np.zeros(levels + 1, np.float64)
    count[0] = 1
    size[0] = 1.0
    for key in range(operations.offsets.size - 1):
        count[1:] = 0
        size[1:] = 0.0
        ended = False
        start = operations.first_start[key]
        for i in range(operations.offsets[key], operations.offsets[key + 1]):
            level = operations.level[i]
            if level < 0:
                count[-level] = 0
                size[-level] = 0.0
            elif level > 1 or operations.since[start] != NEVER:
                count[level] += count[level - 1]
                size[level] += size[level - 1]
                ended |= level == levels and size[level - 1] > 0
            start += level == 1
            if operations.seal[i] != NO_SEAL and ended:
                written = record(out, written, key, operations.seal[i], True, count[levels], size[levels])
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
                        written = record(out, written, key, leaving[first - 1], False, total, float(total))
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
                written = record(out, written, key, operations.seal[i], True, total, float(total))
                ended = False
    return written


class Paths(NamedTuple):
    """Paths between levels, or from starts to levels: how many, and that as a double."""

    many: Int64  # [rows, levels + 1]
    size: Float64


@njit(cache=True, nogil=True, inline="always")
def stand_still(paths: Paths, rows: int) -> None:
    """From each level only the empty path, to itself."""
    for row in range(rows):
        for column in range(paths.many.shape[1]):
            paths.many[row, column] = row == column
            paths.size[row, column] = row == column


@njit(cache=True, nogil=True, inline="always")
def add_row(paths: Paths, row: int, more: int) -> None:
    """Row += row `more`. In two loops, each is a run of vector additions."""
    for p in range(paths.many.shape[1]):
        paths.many[row, p] += paths.many[more, p]
    for p in range(paths.many.shape[1]):
        paths.size[row, p] += paths.size[more, p]


@njit(cache=True, nogil=True, inline="always")
def through(front: Paths, row: int, back: Paths, level: int) -> int:
    """Paths to a level: those that the front's row brought to each level and the back led on; at level 0 they begin."""
    total = 0
    for p in range(level + 1):
        total += front.many[row, p] * back.many[level, p]
    return total


@njit(cache=True, nogil=True, inline="always")
def size_through(front: Paths, row: int, back: Paths, level: int) -> float:
    """The same as a double."""
    total = 0.0
    for p in range(level + 1):
        total += front.size[row, p] * back.size[level, p]
    if np.isnan(total):  # more than doubles know, times none
        total = 0.0
        for p in range(level + 1):
            if front.size[row, p] > 0 and back.size[level, p] > 0:
                total += front.size[row, p] * back.size[level, p]
    return total


@njit(cache=True, nogil=True)
def no_paths(rows: int, levels: int) -> Paths:
    return Paths(np.zeros((rows, levels + 1), np.int64), np.zeros((rows, levels + 1), np.float64))


@njit(cache=True, nogil=True)
def turn(operations: Operations, begin: int, end: int, starts: int, suffix: Paths, front: Paths) -> None:
    """Row s + 1 of the front for the `starts` starts of operations [begin, end): paths from start s or a later one.

    Backwards, row i of the suffix being the paths from level i through the operations so far: row p - 1 += row p. Whole
    rows are added, and the front's next row is written at every operation: branches on random levels would cost more.
    """
    width = suffix.many.shape[1]
    stand_still(suffix, width)
    for i in range(end - 1, begin - 1, -1):
        level = operations.level[i]
        if level < 0:
            suffix.many[-level, :] = 0
            suffix.size[-level, :] = 0.0
            continue
        add_row(suffix, level - 1, level)
        for p in range(width):
            front.many[starts, p] = suffix.many[0, p]
        for p in range(width):
            front.size[starts, p] = suffix.size[0, p]
        starts -= level == 1
    stand_still(front, 1)


@njit(cache=True, nogil=True)
def multiply_windows(operations: Operations, levels: int, with_leaving: bool, out: Counts) -> int:
    """Two stacks: `back` [to, from] is the product of the operations since the last turn, the front has for each start
    before that what it and later ones bring to each level. When the front runs out, the back is turned into it."""
    written = 0
    back, suffix = no_paths(levels + 1, levels), no_paths(levels + 1, levels)
    front = no_paths(1024, levels)
    for key in range(operations.offsets.size - 1):
        # Starts [first, middle) are in front, the first of them in row `here`; [middle, after) in the back. In row 0 is
        # no start.
        first = operations.first_start[key]
        middle, after, origin, here = first, first, first, 0
        end, turned = operations.offsets[key + 1], operations.offsets[key]
        stand_still(front, 1)
        stand_still(back, levels + 1)
        ended, positive = False, False
        i = turned
        while i < end + with_leaving:
            # Before an operation, then before its seal, and once more at the end: what leaves by then.
            sealing = False
            stamp = operations.stamp[i] if i < end else NEVER - 1
            while True:
                while first < after and operations.leaving[first] <= stamp:
                    if first == middle:
                        if after - first >= front.many.shape[0]:
                            front = no_paths(2 * (after - first), levels)
                        done = min(i + sealing, end)
                        turn(operations, turned, done, after - first, suffix, front)
                        origin, middle, turned = first, after, done
                        stand_still(back, levels + 1)
                    first += 1
                    here = first - origin + 1 if first < middle else 0
                    gone = operations.leaving[first - 1]
                    if with_leaving and positive and (first == after or operations.leaving[first] != gone):
                        size = size_through(front, here, back, levels)
                        positive = size > 0
                        written = record(out, written, key, gone, False, through(front, here, back, levels), size)
                if sealing or i == end:
                    break
                level = operations.level[i]
                if level < 0:
                    back.many[-level, :] = 0
                    back.size[-level, :] = 0.0
                else:
                    if level == levels and not ended:
                        ended = size_through(front, here, back, levels - 1) > 0
                    add_row(back, level, level - 1)
                    after += level == 1
                if operations.seal[i] == NO_SEAL:
                    break
                sealing, stamp = True, operations.seal[i]
            if sealing and ended:
                size = size_through(front, here, back, levels)
                written = record(out, written, key, stamp, True, through(front, here, back, levels), size)
                ended, positive = False, True
            i += 1
    return written
