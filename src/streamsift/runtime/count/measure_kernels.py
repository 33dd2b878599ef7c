"""Operations on prefixes in, totals of all measures over time out: the kernels for sums, extremes and large counts.

They do for the measures of paths what `counters` does for one count; see there for the papers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Bool, Float64, Int32, Int64
from streamsift.runtime.count.measures import NOTHING
from streamsift.runtime.count.operations import NO_SEAL, Operations
from streamsift.runtime.count.prefix_measures import Loads, Paths, begin, clear, extend, no_paths, precede
from streamsift.runtime.events.stamps import NEVER


class Records(NamedTuple):
    key: Int32
    stamp: Int64
    ends: Bool
    integers: Int64  # [records, integers]
    reals: Float64
    least: Int64

    @staticmethod
    def room(records: int, loads: Loads) -> Records:
        return Records(
            np.empty(records, np.int32),
            np.empty(records, np.int64),
            np.empty(records, np.bool_),
            np.empty((records, loads.integer_levels.size), np.int64),
            np.empty((records, loads.real_levels.size), np.float64),
            np.empty((records, loads.least_levels.size), np.int64),
        )

    def written(self, count: int, loads: Loads) -> Records:
        """The first so many."""
        key, stamp, ends = self.key[:count], self.stamp[:count], self.ends[:count]
        found = Records(key, stamp, ends, self.integers[:count], self.reals[:count], self.least[:count])
        # A variable of another branch of an OR has no value; paths that never reach it have no code.
        found.least[:, loads.least_levels == 0] = NOTHING
        return found


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
def add_product(front: Paths, row: int, back: Paths, base: int, levels: int, out: Records, at: int) -> None:
    """Adds the paths that the front's row brought to some level and the back, from row `base` on, led to the last."""
    for p in range(1, levels + 1):
        many, on = front.integers[row, 0, p], back.integers[base + p, 0, levels]
        for c in range(out.integers.shape[1]):
            out.integers[at, c] += front.integers[row, c, p] * on
            if c > 0:
                out.integers[at, c] += many * back.integers[base + p, c, levels]
        size, further = front.reals[row, 0, p], back.reals[base + p, 0, levels]
        for c in range(out.reals.shape[1]):
            out.reals[at, c] += front.reals[row, c, p] * further
            if c > 0:
                out.reals[at, c] += size * back.reals[base + p, c, levels]
        for c in range(out.least.shape[1]):
            code = max(front.least[row, c, p], back.least[base + p, c, levels])
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
    back = no_paths(
        levels + 1, loads, levels
    )  # row p: the paths from level p on, through the operations since the turn
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
                            add_product(front, first - origin, back, 0, levels, out, written)
                        written += 1
                if sealing == 1 or i == end:
                    break
                level = operations.level[i]
                if level < 0:
                    for p in range(-level + 1):
                        clear(back, p, -level)
                else:
                    ended |= level == levels and reaches(front, first - origin, first < middle, back, 0, levels - 1)
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
                    add_product(front, first - origin, back, 0, levels, out, written)
                written += 1
                ended = False
    return written


@njit(cache=True, nogil=True)
def reaches(front: Paths, row: int, has_front: bool, back: Paths, base: int, level: int) -> bool:
    """Whether any path reaches the level."""
    if back.reals[base, 0, level] > 0:
        return True
    if has_front:
        for p in range(1, level + 1):
            if front.reals[row, 0, p] > 0 and back.reals[base + p, 0, level] > 0:
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


@njit(cache=True, nogil=True)
def continue_prefixes(
    operations: Operations, levels: int, loads: Loads, is_closed: Bool, paths: Paths, out: Records
) -> int:
    """Dynamic prefix counting that goes on from the paths of each key, one row for each.

    `is_closed` [keys]: a negated event has come that forbids every later start.
    """
    written = 0
    for key in range(operations.offsets.size - 1):
        ended = False
        start = operations.first_start[key]
        for i in range(operations.offsets[key], operations.offsets[key + 1]):
            level = operations.level[i]
            if level < 0:
                clear(paths, key, -level)
            elif level > 1 or (operations.since[start] != NEVER and not is_closed[key]):
                ended |= level == levels and paths.reals[key, 0, level - 1] > 0
                extend(paths, key, level, operations.place[i], loads)
            start += level == 1
            if ended and operations.seal[i] != NO_SEAL:
                open_record(out, written, key, operations.seal[i], True)
                add_row(paths, key, levels, out, written)
                written += 1
                ended = False
    return written
