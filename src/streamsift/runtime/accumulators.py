"""Operations on prefixes in, totals of all measures over time out: the kernels for sums, extremes and large counts.

They do for the blocks of measures what `counters` does for one count. Integers and reals follow the same rule, wrapping
and rounding: extending a path by an event adds, to each sum, the event's value once for each path. For extremes, a path
holds the code of its event, or the least number before it has one; a longer path the greater of both; of several paths
the least counts. Like (+, *) that is a semiring, so windows are products here too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.clock import NEVER
from streamsift.runtime.kernels import Bool, Float64, Int32, Int64
from streamsift.runtime.measures import NOTHING
from streamsift.runtime.operations import NO_SEAL, Operations

BEFORE = np.iinfo(np.int64).min  # the code of a path that has not reached the event whose code counts


class Loads(NamedTuple):
    """What an event adds when it becomes the given level of a path. Number 0 of integers and reals counts paths."""

    integer_levels: Int64  # [integers]
    integers: Int64  # [integers, places]
    real_levels: Int64  # [reals]
    reals: Float64  # [reals, places]
    least_levels: Int64  # [extremes]
    least: Int64  # [extremes, places]


class Paths(NamedTuple):
    """The measures of paths from one row's beginning to each level."""

    integers: Int64  # [rows, integers, levels + 1]
    reals: Float64  # [rows, reals, levels + 1]
    least: Int64  # [rows, extremes, levels + 1]


class Records(NamedTuple):
    key: Int32
    stamp: Int64
    ends: Bool
    integers: Int64  # [records, integers]
    reals: Float64
    least: Int64


@njit(cache=True, nogil=True)
def no_paths(rows: int, loads: Loads, levels: int) -> Paths:
    return Paths(
        np.zeros((rows, loads.integer_levels.size, levels + 1), np.int64),
        np.zeros((rows, loads.real_levels.size, levels + 1), np.float64),
        np.full((rows, loads.least_levels.size, levels + 1), NOTHING, np.int64),
    )


@njit(cache=True, nogil=True)
def clear(paths: Paths, row: int, level: int) -> None:
    paths.integers[row, :, level] = 0
    paths.reals[row, :, level] = 0.0
    paths.least[row, :, level] = NOTHING


@njit(cache=True, nogil=True)
def begin(paths: Paths, row: int, level: int) -> None:
    """The row has the empty path, which ends at `level`, and no other."""
    paths.integers[row] = 0
    paths.reals[row] = 0.0
    paths.least[row] = NOTHING
    paths.integers[row, 0, level] = 1
    paths.reals[row, 0, level] = 1.0
    paths.least[row, :, level] = BEFORE


@njit(cache=True, nogil=True)
def extend(paths: Paths, row: int, level: int, place: int, loads: Loads) -> None:
    """Every path to level - 1 also goes on to `level` by the event at `place`."""
    integers, reals, least = paths.integers[row], paths.reals[row], paths.least[row]
    many = integers[0, level - 1]
    for c in range(loads.integer_levels.size):
        integers[c, level] += integers[c, level - 1]
        if loads.integer_levels[c] == level:
            integers[c, level] += loads.integers[c, place] * many
    size = reals[0, level - 1]
    for c in range(loads.real_levels.size):
        reals[c, level] += reals[c, level - 1]
        if loads.real_levels[c] == level:
            reals[c, level] += loads.reals[c, place] * size
    for c in range(loads.least_levels.size):
        code = least[c, level - 1]
        if loads.least_levels[c] == level:
            code = max(code, loads.least[c, place])
        least[c, level] = min(least[c, level], code)


@njit(cache=True, nogil=True)
def precede(paths: Paths, level: int, place: int, loads: Loads, levels: int) -> None:
    """Row p being the paths from level p on: those from level - 1 may now first go to `level` by the event at `place`."""
    for p in range(level, levels + 1):
        many = paths.integers[level, 0, p]
        for c in range(loads.integer_levels.size):
            paths.integers[level - 1, c, p] += paths.integers[level, c, p]
            if loads.integer_levels[c] == level:
                paths.integers[level - 1, c, p] += loads.integers[c, place] * many
        size = paths.reals[level, 0, p]
        for c in range(loads.real_levels.size):
            paths.reals[level - 1, c, p] += paths.reals[level, c, p]
            if loads.real_levels[c] == level:
                paths.reals[level - 1, c, p] += loads.reals[c, place] * size
        for c in range(loads.least_levels.size):
            code = paths.least[level, c, p]
            if loads.least_levels[c] == level:
                code = max(code, loads.least[c, place])
            paths.least[level - 1, c, p] = min(paths.least[level - 1, c, p], code)


@njit(cache=True, nogil=True)
def add_row(paths: Paths, row: int, level: int, out: Records, at: int) -> None:
    """Adds the paths of a row to a level to a record."""
    for c in range(out.integers.shape[1]):
        out.integers[at, c] += paths.integers[row, c, level]
    for c in range(out.reals.shape[1]):
        out.reals[at, c] += paths.reals[row, c, level]
    for c in range(out.least.shape[1]):
        out.least[at, c] = min(out.least[at, c], paths.least[row, c, level])


@njit(cache=True, nogil=True)
def add_product(front: Paths, row: int, back: Paths, levels: int, out: Records, at: int) -> None:
    """Adds the paths that the front's row brought to some level and the back led on to the last."""
    for p in range(1, levels + 1):
        many, on = front.integers[row, 0, p], back.integers[p, 0, levels]
        for c in range(out.integers.shape[1]):
            out.integers[at, c] += front.integers[row, c, p] * on
            if c > 0:
                out.integers[at, c] += many * back.integers[p, c, levels]
        size, further = front.reals[row, 0, p], back.reals[p, 0, levels]
        for c in range(out.reals.shape[1]):
            out.reals[at, c] += front.reals[row, c, p] * further
            if c > 0:
                out.reals[at, c] += size * back.reals[p, c, levels]
        for c in range(out.least.shape[1]):
            code = max(front.least[row, c, p], back.least[p, c, levels])
            out.least[at, c] = min(out.least[at, c], code)


@njit(cache=True, nogil=True)
def open_record(out: Records, at: int, key: int, stamp: int, ends: bool) -> None:
    out.key[at] = key
    out.stamp[at] = stamp
    out.ends[at] = ends
    out.integers[at] = 0
    out.reals[at] = 0.0
    out.least[at] = NOTHING


@njit(cache=True, nogil=True)
def accumulate_prefixes(operations: Operations, levels: int, loads: Loads, out: Records) -> int:
    """Dynamic prefix counting of all measures."""
    written = 0
    paths = no_paths(1, loads, levels)
    for key in range(operations.offsets.size - 1):
        begin(paths, 0, 0)
        ended = False
        start = operations.first_start[key]
        for i in range(operations.offsets[key], operations.offsets[key + 1]):
            level = operations.level[i]
            if level < 0:
                clear(paths, 0, -level)
            elif level > 1 or operations.since[start] != NEVER:
                ended |= level == levels and paths.reals[0, 0, level - 1] > 0
                extend(paths, 0, level, operations.place[i], loads)
            start += level == 1
            if ended and operations.seal[i] != NO_SEAL:
                open_record(out, written, key, operations.seal[i], True)
                add_row(paths, 0, levels, out, written)
                written += 1
                ended = False
    return written


@njit(cache=True, nogil=True)
def accumulate_starts(operations: Operations, levels: int, with_leaving: bool, loads: Loads, out: Records) -> int:
    """Start event marking of all measures: a row of paths for each start in the window."""
    written = 0
    most = 0
    for key in range(operations.offsets.size - 1):
        most = max(most, operations.first_start[key + 1] - operations.first_start[key])
    paths = no_paths(most, loads, levels)
    for key in range(operations.offsets.size - 1):
        base = operations.first_start[key]
        first, after, ended = base, base, False
        end = operations.offsets[key + 1]
        for i in range(operations.offsets[key], end + with_leaving):
            for sealing in range(2):
                stamp = NEVER - 1
                if i < end:
                    stamp = operations.stamp[i] if sealing == 0 else operations.seal[i]
                while first < after and operations.leaving[first] <= stamp:
                    first += 1
                    gone = operations.leaving[first - 1]
                    if with_leaving and (first == after or operations.leaving[first] != gone):
                        open_record(out, written, key, gone, False)
                        for start in range(first, after):
                            add_row(paths, start - base, levels, out, written)
                        written += 1
                if sealing == 1 or i == end:
                    break
                level, place = operations.level[i], operations.place[i]
                if level == 1:
                    begin(paths, after - base, 0)
                    after += 1
                for start in range(first if level != 1 else after - 1, after):
                    if level < 0:
                        clear(paths, start - base, -level)
                    elif level < levels or operations.since[start] <= place:
                        ended |= level == levels and paths.reals[start - base, 0, level - 1] > 0
                        extend(paths, start - base, level, place, loads)
                if level == 1:
                    # A row has one start.
                    clear(paths, after - 1 - base, 0)
            if i < end and ended and operations.seal[i] != NO_SEAL:
                open_record(out, written, key, operations.seal[i], True)
                for start in range(first, after):
                    add_row(paths, start - base, levels, out, written)
                written += 1
                ended = False
    return written


@njit(cache=True, nogil=True)
def accumulate_windows(operations: Operations, levels: int, with_leaving: bool, loads: Loads, out: Records) -> int:
    """The two-stack product of all measures; see `counters.multiply_windows`."""
    written = 0
    back = no_paths(levels + 1, loads, levels)  # row p: the paths from level p on, through the operations since the turn
    suffix = no_paths(levels + 1, loads, levels)
    front = no_paths(1024, loads, levels)
    for key in range(operations.offsets.size - 1):
        base = operations.first_start[key]
        first, middle, after, origin = base, base, base, base
        turned, end = operations.offsets[key], operations.offsets[key + 1]
        ended = False
        for p in range(levels + 1):
            begin(back, p, p)
        for i in range(turned, end + with_leaving):
            stamp = operations.stamp[i] if i < end else NEVER - 1
            for sealing in range(2):
                while first < after and operations.leaving[first] <= stamp:
                    if first == middle:
                        if after - first > front.integers.shape[0]:
                            front = no_paths(2 * (after - first), loads, levels)
                        done = min(i + sealing, end)
                        turn(operations, turned, done, after - first, levels, loads, suffix, front)
                        origin, middle, turned = first, after, done
                        for p in range(levels + 1):
                            begin(back, p, p)
                    first += 1
                    gone = operations.leaving[first - 1]
                    if with_leaving and (first == after or operations.leaving[first] != gone):
                        open_record(out, written, key, gone, False)
                        add_row(back, 0, levels, out, written)
                        if first < middle:
                            add_product(front, first - origin, back, levels, out, written)
                        written += 1
                if sealing == 1 or i == end:
                    break
                level = operations.level[i]
                if level < 0:
                    for p in range(-level + 1):
                        clear(back, p, -level)
                else:
                    ended |= level == levels and reaches(front, first - origin, first < middle, back, levels - 1)
                    for p in range(level):
                        extend(back, p, level, operations.place[i], loads)
                    after += level == 1
                stamp = operations.seal[i]
                if stamp == NO_SEAL:
                    break
            if i < end and ended and operations.seal[i] != NO_SEAL:
                open_record(out, written, key, operations.seal[i], True)
                add_row(back, 0, levels, out, written)
                if first < middle:
                    add_product(front, first - origin, back, levels, out, written)
                written += 1
                ended = False
    return written


@njit(cache=True, nogil=True)
def reaches(front: Paths, row: int, has_front: bool, back: Paths, level: int) -> bool:
    """Whether any path reaches the level."""
    if back.reals[0, 0, level] > 0:
        return True
    if has_front:
        for p in range(1, level + 1):
            if front.reals[row, 0, p] > 0 and back.reals[p, 0, level] > 0:
                return True
    return False


@njit(cache=True, nogil=True)
def turn(
    operations: Operations, first: int, end: int, starts: int, levels: int, loads: Loads, suffix: Paths, front: Paths
) -> None:
    """Row s of the front: what start s and later ones among operations [first, end) bring to each level."""
    for p in range(levels + 1):
        begin(suffix, p, p)
    for i in range(end - 1, first - 1, -1):
        level = operations.level[i]
        if level < 0:
            for p in range(-level, levels + 1):
                clear(suffix, -level, p)
        else:
            precede(suffix, level, operations.place[i], loads, levels)
            if level == 1:
                starts -= 1
                front.integers[starts] = suffix.integers[0]
                front.reals[starts] = suffix.reals[0]
                front.least[starts] = suffix.least[0]
