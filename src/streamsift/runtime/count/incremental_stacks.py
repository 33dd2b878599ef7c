"""New operations of a branch in, the totals of its keys over time out; the two stacks of each key stay in memory.

Operations are appended to a log and given up a batch at a time, when the last of a batch has left every window to come.
Contract: records are those that `counting.count_branch` has for all operations at once, from the first that is asked
for on (tests/runtime/stream/test_window_totals.py).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamsift.runtime.arrays.dtypes import Float64, Int64
from streamsift.runtime.count.incremental_kernels import Batch, Now, continue_windows, live_keys, no_stacks, release
from streamsift.runtime.count.measure_kernels import Records
from streamsift.runtime.count.measures import NOTHING
from streamsift.runtime.count.operations import NO_SEAL, Operations
from streamsift.runtime.count.prefix_measures import BEFORE, Loads, Paths


@dataclass(frozen=True, slots=True)
class Asked:
    """The stamps whose records are asked for, and of which keys."""

    begin: int
    end: int
    visited: Int64
    with_leaving: bool  # also where totals fall, and what they were at the beginning


class WindowStacks:
    """The keys of one branch, which have numbers from 0 on."""

    def __init__(self, levels: int, shape: tuple[int, int, int]) -> None:
        self.levels, self.keys = levels, 0
        self._stacks = no_stacks(levels, shape)
        self._loads = [np.zeros((count, 64), kind) for count, kind in zip(shape, _KINDS, strict=True)]
        self._operations, self._starts, self._released = 0, 0, 0  # numbers: of the next ones, of the first still needed
        self._batches: deque[tuple[int, int, int, float]] = deque()  # both at its end, its last `until` and time

    def count(
        self, operations: Operations, numbers: Int64, loads: Loads, until: Int64, times: Float64, now: Now, asked: Asked
    ) -> Records:
        """`numbers` are those of the operations' keys, new ones behind all others; `until` and `times` are [m]."""
        first, keys = self._operations, int(numbers.max(initial=-1)) + 1
        self._add_keys(keys)
        self._append(operations, numbers, loads, until, times)
        part = np.full(self.keys, -1, np.int64)
        part[numbers] = np.arange(numbers.size)
        batch = Batch(
            first,
            operations.offsets,
            operations.stamp,
            operations.seal,
            asked.visited,
            part[asked.visited],
            asked.begin,
            asked.end,
        )
        room = int((operations.seal != NO_SEAL).sum()) + 1
        if asked.with_leaving:
            room += self._starts - self._stacks.first_start + 2 * asked.visited.size
        held = loads._replace(integers=self._loads[0], reals=self._loads[1], least=self._loads[2])
        out = Records.room(room, loads)
        written = continue_windows(self._stacks, batch, now, self.levels, held, asked.with_leaving, out)
        return out.written(written, loads)

    def forget(self, now: Now, stamp: int) -> None:
        """Gives up the batches whose last operation is gone at a stamp, and so at all later ones."""
        operation, start = self._stacks.first_operation, self._stacks.first_start
        while self._batches and _is_past(self._batches[0], now, stamp):
            operation, start, _, _ = self._batches.popleft()
        if operation > self._stacks.first_operation:
            release(self._stacks, self._released, start)
            self._released = start
            self._move(operation, start)

    def live(self) -> int:
        """How many keys have something in the window, or had at their last operation."""
        return int(live_keys(self._stacks, self.keys))

    @property
    def nbytes(self) -> int:
        blocks = [block for block in self._stacks if isinstance(block, np.ndarray)]
        return sum(block.nbytes for block in [*blocks, *self._stacks.front, *self._stacks.back, *self._loads])

    # --- room ---
    def _append(self, operations: Operations, numbers: Int64, loads: Loads, until: Int64, times: Float64) -> None:
        count = operations.level.size
        if not count:
            return
        is_start = operations.level == 1
        starts = np.flatnonzero(is_start)
        self._make_room(count, starts.size)
        stacks = self._stacks
        begin, end = self._operations - stacks.first_operation, self._operations + count - stacks.first_operation
        stacks.level[begin:end] = operations.level
        stacks.until[begin:end], stacks.time[begin:end] = until, times
        stacks.start[begin:end] = np.where(is_start, self._starts + np.cumsum(is_start) - 1, -1)
        low, high = self._starts - stacks.first_start, self._starts + starts.size - stacks.first_start
        stacks.owner[low:high] = np.repeat(numbers, np.diff(operations.offsets))[starts]
        stacks.origin[low:high] = self._operations + starts
        for held, new in zip(self._loads, (loads.integers, loads.reals, loads.least), strict=True):
            held[:, begin:end] = new[:, operations.place]
        self._operations += count
        self._starts += starts.size
        self._batches.append((self._operations, self._starts, int(until.max()), float(times.max())))

    def _make_room(self, operations: int, starts: int) -> None:
        stacks = self._stacks
        held = self._operations - stacks.first_operation, self._starts - stacks.first_start
        if held[0] + operations > stacks.level.size:
            room = roomy(held[0] + operations)
            self._resize(("level", "before", "start", "until", "time"), 0, held[0], room)
            self._loads = [_resized(block, 0, held[0], room, axis=1) for block in self._loads]
        if held[1] + starts > stacks.following.size:
            self._resize(("following", "owner", "origin", "front"), 0, held[1], roomy(held[1] + starts))

    def _move(self, operation: int, start: int) -> None:
        """Lets the arrays begin with these numbers."""
        stacks = self._stacks
        gone, left = operation - stacks.first_operation, self._operations - operation
        if left > gone:
            return  # the released part of the log is small: moving the rest would cost more than it saves
        self._resize(("level", "before", "start", "until", "time"), gone, left, roomy(left))
        self._loads = [_resized(block, gone, left, roomy(left), axis=1) for block in self._loads]
        left = self._starts - start
        self._resize(("following", "owner", "origin", "front"), start - stacks.first_start, left, roomy(left))
        self._stacks = self._stacks._replace(first_operation=operation, first_start=start)

    def _add_keys(self, count: int) -> None:
        if count <= self.keys:
            return
        levels = self.levels + 1
        if count > self._stacks.last.size:
            self._resize(("last", "head", "oldest"), 0, self.keys, 2 * count)
            self._resize(("back",), 0, self.keys * levels, 2 * count * levels)
        stacks, back = self._stacks, self._stacks.back
        for column in (stacks.last, stacks.head, stacks.oldest):
            column[self.keys : count] = -1
        rows = slice(self.keys * levels, count * levels)
        back.integers[rows], back.reals[rows], back.least[rows] = 0, 0.0, NOTHING
        for level in range(levels):  # from each level the empty path, to itself
            own = slice(self.keys * levels + level, count * levels, levels)
            back.integers[own, 0, level], back.reals[own, 0, level], back.least[own, :, level] = 1, 1.0, BEFORE
        self.keys = count

    def _resize(self, names: tuple[str, ...], begin: int, count: int, room: int) -> None:
        changed: dict[str, Any] = {}
        for name in names:
            held = getattr(self._stacks, name)
            if isinstance(held, tuple):
                changed[name] = Paths(*(_resized(block, begin, count, room) for block in held))
            else:
                changed[name] = _resized(held, begin, count, room)
        self._stacks = self._stacks._replace(**changed)


_KINDS = (np.int64, np.float64, np.int64)  # of integers, reals and codes of extremes


def roomy(count: int) -> int:
    """Half as much again: what is held is copied a constant number of times."""
    return max(64, count + count // 2)


def _resized(block: np.ndarray, begin: int, count: int, room: int, axis: int = 0) -> np.ndarray:
    """An array of that room along an axis, with `count` entries of the block from `begin` on."""
    shape = list(block.shape)
    shape[axis] = room
    found = np.empty(shape, block.dtype)
    if axis:
        found[:, :count] = block[:, begin : begin + count]
    else:
        found[:count] = block[begin : begin + count]
    return found


def _is_past(batch: tuple[int, int, int, float], now: Now, stamp: int) -> bool:
    _, _, until, time = batch
    if now.is_ticking:
        return stamp > until
    return bool(now.real[stamp] - time > now.width) if now.is_real else bool(now.whole[stamp] > until)
