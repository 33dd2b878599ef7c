"""New events of a branch in, the totals of its keys over the stamps that are asked for out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streamsift.physical.plan import Branch
from streamsift.runtime.arrays.dtypes import Float64, Int32, Int64
from streamsift.runtime.count.by_key import KeyTotals, loads_of
from streamsift.runtime.count.incremental_events import key_rows
from streamsift.runtime.count.incremental_kernels import Now
from streamsift.runtime.count.incremental_stacks import Asked, WindowStacks
from streamsift.runtime.count.measures import Measures, Totals
from streamsift.runtime.count.operations import Operations, lay_out
from streamsift.runtime.count.output import Groups
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.stamps import Clock
from streamsift.runtime.events.times import saturating_sum
from streamsift.runtime.state import KeyedVectors

EARLIEST = -(2**62)  # before every tick


@dataclass(frozen=True, slots=True)
class New:
    """Events behind examples, none of which is counted if no place has a group."""

    events: Events
    clock: Clock
    group_of_place: Int32
    groups: Int64  # the number of each group, since the beginning
    measures: Measures


@dataclass(frozen=True, slots=True)
class Stamps:
    """With UPDATE, the first tick and the last whose totals are asked for. None: the first new one; the last."""

    begin: int | None
    end: int | None
    is_asked: bool


@dataclass(frozen=True, slots=True)
class Moments:
    """What stamps mean to the kernel, and until when each place is in a window."""

    now: Now
    until: Int64
    times: Float64


def moments_of(new: New, *, is_ticking: bool) -> Moments:
    events = new.events
    places = np.arange(events.rank.size, dtype=np.int32)
    no_times = np.zeros(places.size)
    if is_ticking:
        now = Now(True, False, 0.0, np.zeros(0, np.int64), np.zeros(0))
        return Moments(now, new.clock.leaves(places) - 1, no_times)
    if events.ticks.dtype == np.float64:
        real, whole = events.ticks.view(np.float64), np.zeros(places.size, np.int64)
        return Moments(Now(False, True, float(events.width), whole, real), whole, real)
    ticks = np.ascontiguousarray(events.ticks.view(np.int64))
    return Moments(Now(False, False, 0.0, ticks, no_times), saturating_sum(ticks, int(events.width)), no_times)


class WindowKeys:
    """The keys of a branch by their columns, and the group of each."""

    def __init__(self, branch: Branch, shape: tuple[int, int, int]) -> None:
        self.branch = branch
        self.stacks = WindowStacks(len(branch.alternative.steps), shape)
        schema = branch.alternative.query.schema
        self.keys = KeyedVectors(pa.schema([schema.field(name) for name in branch.keys]), 0, 0)
        self._group: Int32 = np.zeros(64, np.int32)

    def count(self, new: New, moments: Moments, stamps: Stamps, with_leaving: bool) -> KeyTotals:
        """The records of keys in which something came; `with_leaving`: of all keys, also where their totals fall."""
        operations, numbers = _NO_OPERATIONS, np.zeros(0, np.int64)
        if new.groups.size:
            layout = lay_out(self.branch, new.events, new.clock, Groups(new.group_of_place, np.zeros(0, np.int32)))
            operations = layout.operations
            first = operations.place[operations.offsets[:-1]]
            numbers = self.keys.numbers(key_rows(new.events, first, self.branch.keys))
            self._set_groups(numbers, new.groups[layout.group])
        visited = np.arange(self.keys.count) if with_leaving else numbers
        begin, end = stamps.begin, stamps.end
        if not moments.now.is_ticking:
            begin, end = 0, moments.now.whole.size - 1
        asked = Asked(EARLIEST if begin is None else begin, EARLIEST if end is None else end, visited, with_leaving)
        loads = loads_of(self.branch, new.measures)
        until, times = moments.until[operations.place], moments.times[operations.place]
        found = self.stacks.count(operations, numbers, loads, until, times, moments.now, asked)
        self.stacks.forget(moments.now, asked.end)
        totals = Totals(found.integers, found.reals, found.least)
        return KeyTotals(found.key, self._group[found.key], found.stamp, found.ends, totals)

    def _set_groups(self, numbers: Int64, groups: Int64) -> None:
        if self.keys.count > self._group.size:
            grown = np.zeros(2 * self.keys.count, np.int32)
            grown[: self._group.size] = self._group
            self._group = grown
        self._group[numbers] = groups


_NO_NUMBERS: Int64 = np.zeros(0, np.int64)
_NO_OPERATIONS = Operations(
    offsets=np.zeros(1, np.int64),
    level=np.zeros(0, np.int8),
    place=np.zeros(0, np.int32),
    stamp=_NO_NUMBERS,
    seal=_NO_NUMBERS,
    first_start=np.zeros(1, np.int64),
    leaving=_NO_NUMBERS,
    since=_NO_NUMBERS,
)
