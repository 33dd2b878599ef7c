"""New operations and the two stacks of each key in, totals over time out: products of windows that go on.

As `counters.multiply_windows` and `accumulators.accumulate_windows`, but what they hold in local variables is state
here. A key's operations are a chain through the log, from the last to the first: the direction in which a back is
turned. Its front is a chain of starts. Nothing is moved when operations leave: their place in the log is given up.

Operations, starts and keys have numbers since the beginning; the arrays begin with numbers `first_operation` and
`first_start`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Float64, Int8, Int64
from streamsift.runtime.count.measure_kernels import Records, add_product, add_row, open_record, reaches
from streamsift.runtime.count.operations import NO_SEAL
from streamsift.runtime.count.prefix_measures import Loads, Paths, begin, clear, extend, no_paths, precede


class Stacks(NamedTuple):
    """The state of all keys of a branch. A number below zero is none."""

    first_operation: int
    first_start: int
    level: Int8  # [operations] as in Operations
    before: Int64  # [operations] the operation of the same key before
    start: Int64  # [operations] its number among the starts
    until: Int64  # [operations] the last stamp, or time, that has it in its window
    time: Float64  # [operations] the same for real times: its own time
    following: Int64  # [starts] in a front: the next start of the key
    owner: Int64  # [starts] the key
    origin: Int64  # [starts] the number of its operation
    front: Paths  # [starts] what it and later ones of the front bring to each level
    last: Int64  # [keys] the last operation
    head: Int64  # [keys] the first start of the front
    oldest: Int64  # [keys] the first start of the back
    back: Paths  # [keys * (levels + 1)] the product of the operations since the last turn


class Now(NamedTuple):
    """What stamps mean. With UPDATE they are numbers of ticks; else places of the new events, at these times."""

    is_ticking: bool
    is_real: bool
    width: float  # of the window, for real times
    whole: Int64  # [places]
    real: Float64  # [places]


class Batch(NamedTuple):
    """The new operations, those of a key side by side; the log has them from number `first` on."""

    first: int
    offsets: Int64
    stamp: Int64
    seal: Int64
    visited: Int64  # the keys whose totals are asked for
    part: Int64  # for each of them which part of the new operations is its own; -1: it has none
    begin: int  # the first stamp and the last that are asked for
    end: int


@njit(cache=True, nogil=True)
def is_gone(stacks: Stacks, operation: int, stamp: int, now: Now) -> bool:
    """Whether an operation is out of the window at a stamp."""
    at = operation - stacks.first_operation
    if at < 0:
        return True
    if now.is_ticking:
        return stamp > stacks.until[at]
    if now.is_real:
        return now.real[stamp] - stacks.time[at] > now.width
    return now.whole[stamp] > stacks.until[at]


@njit(cache=True, nogil=True)
def leaving_stamp(stacks: Stacks, operation: int, now: Now) -> int:
    """The first stamp at which it is gone; it is gone at some."""
    if now.is_ticking:
        return stacks.until[operation - stacks.first_operation] + 1
    low, high = 0, now.whole.size
    while low < high:
        middle = (low + high) // 2
        if is_gone(stacks, operation, middle, now):
            high = middle
        else:
            low = middle + 1
    return low


@njit(cache=True, nogil=True)
def is_start_gone(stacks: Stacks, start: int, stamp: int, now: Now) -> bool:
    if start < stacks.first_start:
        return True
    return is_gone(stacks, stacks.origin[start - stacks.first_start], stamp, now)


@njit(cache=True, nogil=True)
def turn(stacks: Stacks, key: int, stamp: int, now: Now, levels: int, loads: Loads, suffix: Paths) -> None:
    """The operations of the back that are in the window at a stamp become the front; no front was left."""
    for p in range(levels + 1):
        begin(suffix, p, p)
    following = -1
    operation = stacks.last[key]
    while operation >= 0 and not is_gone(stacks, operation, stamp, now):
        at = operation - stacks.first_operation
        level = stacks.level[at]
        if level < 0:
            for p in range(-level, levels + 1):
                clear(suffix, -level, p)
        else:
            precede(suffix, level, at, loads, levels)
            if level == 1:
                start = stacks.start[at]
                row = start - stacks.first_start
                stacks.front.integers[row] = suffix.integers[0]
                stacks.front.reals[row] = suffix.reals[0]
                stacks.front.least[row] = suffix.least[0]
                stacks.following[row] = following
                following = start
        operation = stacks.before[at]
    stacks.head[key] = following
    stacks.oldest[key] = -1
    for p in range(levels + 1):
        begin(stacks.back, key * (levels + 1) + p, p)


@njit(cache=True, nogil=True)
def write_totals(stacks: Stacks, key: int, stamp: int, ends: bool, levels: int, out: Records, at: int) -> None:
    base, head = key * (levels + 1), stacks.head[key]
    open_record(out, at, key, stamp, ends)
    add_row(stacks.back, base, levels, out, at)
    if head >= 0:
        add_product(stacks.front, head - stacks.first_start, stacks.back, base, levels, out, at)


@njit(cache=True, nogil=True)
def leave(
    stacks: Stacks,
    key: int,
    stamp: int,
    now: Now,
    levels: int,
    loads: Loads,
    suffix: Paths,
    with_leaving: bool,
    out: Records,
    written: int,
) -> int:
    """Takes the starts out that are gone at a stamp; `with_leaving`: a record at each stamp at which some went."""
    while True:
        start = stacks.head[key] if stacks.head[key] >= 0 else stacks.oldest[key]
        if start < 0 or not is_start_gone(stacks, start, stamp, now):
            return written
        at = stamp
        if with_leaving:
            at = leaving_stamp(stacks, stacks.origin[start - stacks.first_start], now)
        while stacks.head[key] >= 0 and is_start_gone(stacks, stacks.head[key], at, now):
            stacks.head[key] = stacks.following[stacks.head[key] - stacks.first_start]
        if stacks.head[key] < 0 and stacks.oldest[key] >= 0 and is_start_gone(stacks, stacks.oldest[key], at, now):
            turn(stacks, key, at, now, levels, loads, suffix)
        if with_leaving:
            write_totals(stacks, key, at, False, levels, out, written)
            written += 1


@njit(cache=True, nogil=True)
def continue_windows(
    stacks: Stacks, batch: Batch, now: Now, levels: int, loads: Loads, with_leaving: bool, out: Records
) -> int:
    """Records of the visited keys, each in the order of stamps; returns how many.

    `with_leaving`: also what there was at the beginning, where totals fall, and, of ticks, one behind the end.
    """
    written = 0
    suffix = no_paths(levels + 1, loads, levels)
    for visit in range(batch.visited.size):
        key, part, own = batch.visited[visit], batch.part[visit], written
        base, ended, head = key * (levels + 1), False, stacks.head[key]
        if part < 0 and not reaches(stacks.front, head - stacks.first_start, head >= 0, stacks.back, base, levels):
            continue  # no match before, none now
        leave(stacks, key, batch.begin, now, levels, loads, suffix, False, out, written)
        if with_leaving:
            write_totals(stacks, key, batch.begin, False, levels, out, written)
            written += out.reals[written, 0] > 0
        for i in range(batch.offsets[part] if part >= 0 else 0, batch.offsets[part + 1] if part >= 0 else 0):
            written = leave(stacks, key, batch.stamp[i], now, levels, loads, suffix, with_leaving, out, written)
            operation = batch.first + i
            at = operation - stacks.first_operation
            level = stacks.level[at]
            if level < 0:
                for p in range(-level + 1):
                    clear(stacks.back, base + p, -level)
            else:
                head = stacks.head[key]
                ended |= level == levels and reaches(
                    stacks.front, head - stacks.first_start, head >= 0, stacks.back, base, levels - 1
                )
                for p in range(level):
                    extend(stacks.back, base + p, level, at, loads)
                if level == 1 and stacks.oldest[key] < 0:
                    stacks.oldest[key] = stacks.start[at]
            stacks.before[at] = stacks.last[key]
            stacks.last[key] = operation
            if ended and batch.seal[i] != NO_SEAL:
                write_totals(stacks, key, batch.seal[i], True, levels, out, written)
                written += 1
                ended = False
        if with_leaving:
            written = leave(stacks, key, batch.end, now, levels, loads, suffix, True, out, written)
            if now.is_ticking and written > own:
                write_totals(stacks, key, batch.end + 1, False, levels, out, written)
                written += 1
    return written


@njit(cache=True, nogil=True)
def release(stacks: Stacks, first: int, start: int) -> None:
    """Takes the starts from `first` to before `start`, which are out of every window to come, off the fronts."""
    for row in range(first - stacks.first_start, start - stacks.first_start):
        key = stacks.owner[row]
        while 0 <= stacks.head[key] < start:
            stacks.head[key] = stacks.following[stacks.head[key] - stacks.first_start]


@njit(cache=True, nogil=True)
def live_keys(stacks: Stacks, keys: int) -> int:
    """How many keys have a start in their stacks."""
    found = 0
    for key in range(keys):
        found += stacks.head[key] >= 0 or stacks.oldest[key] >= stacks.first_start
    return found


def no_stacks(levels: int, shape: tuple[int, int, int]) -> Stacks:
    """Room for a few of each."""
    operations, starts, keys = 64, 64, 64

    def numbers(count: int) -> Int64:
        return np.full(count, -1, np.int64)

    def paths(rows: int) -> Paths:
        whole, real, least = ((rows, count, levels + 1) for count in shape)
        return Paths(np.zeros(whole, np.int64), np.zeros(real, np.float64), np.zeros(least, np.int64))

    return Stacks(
        first_operation=0,
        first_start=0,
        level=np.zeros(operations, np.int8),
        before=numbers(operations),
        start=numbers(operations),
        until=numbers(operations),
        time=np.zeros(operations),
        following=numbers(starts),
        owner=numbers(starts),
        origin=numbers(starts),
        front=paths(starts),
        last=numbers(keys),
        head=numbers(keys),
        oldest=numbers(keys),
        back=paths(keys * (levels + 1)),
    )
