"""Keep what was counted of each key between batches of events: its prefixes, or in a window its two stacks.

Operations are appended to a log and evicted a batch at a time, once the last of a batch has left every window to come.
A key's operations are a chain through the log, from the last to the first: the direction in which a back is turned. Its
front is a chain of starts. Log and fronts are ring buffers, so nothing is moved.

Contract: records are those that `by_key.count_branch` has for all operations at once, from the first requested stamp on
(tests/runtime/stream/test_window_totals.py).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from streamsift.physical.count import is_at_edge
from streamsift.physical.plan import Alternative, Branch
from streamsift.runtime.arrays.dtypes import Int32, Int64
from streamsift.runtime.arrays.growing import ring_with_room, with_room
from streamsift.runtime.count.by_key import key_totals, stacks_of
from streamsift.runtime.count.extremes import NOTHING
from streamsift.runtime.count.groups import AggregateInput, KeyTotals
from streamsift.runtime.count.measure_kernels import (
    Log,
    MeasureRecords,
    Numbers,
    Stacks,
    Visits,
    multiply_windows,
    no_numbers,
    release,
    stand_still,
)
from streamsift.runtime.count.measures import Measures
from streamsift.runtime.count.operations import NO_SEAL, Operations, keys_of_places, lay_out
from streamsift.runtime.count.prefix_tree import INTEGERS, LEAST, REALS, columns_of, loads_of, tree_of_steps
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.events import Events
from streamsift.runtime.state import KeyedVectors, the_only_key


class BranchKeys:
    """The keys of a branch by their columns."""

    def __init__(self, branch: Branch, measures: Measures) -> None:
        """`measures` are those of any events of the schema."""
        self.branch = branch
        self._variables = [step.variable for step in branch.alternative.steps]
        self._tree = tree_of_steps(len(self._variables))
        self._columns = columns_of(self._tree, loads_of(measures, self._variables))
        schema = branch.alternative.query.schema
        self._fields = pa.schema([schema.field(name) for name in branch.keys])

    def _numbers(self, keys: KeyedVectors, events: Events, places: Int32) -> Int64:
        return keys.numbers(key_rows(events, places, self.branch.keys))


def key_rows(events: Events, places: Int32, columns: tuple[str, ...]) -> pa.Table:
    """Return the keys at these places."""
    if not columns:
        return the_only_key(places.size)
    rows = events.rows_at(places)
    return pa.table({name: events.columns.at(name, rows) for name in columns})


# --- without a window ------------------------------------------------------------------------------------------------


class PrefixKeys(BranchKeys):
    """The measures of the prefixes of each key, all but the whole pattern, of which only new matches are counted.

    A key's vectors have: whether it is closed; then for each integer, extreme and real its number at each prefix.
    """

    def __init__(self, branch: Branch, measures: Measures) -> None:
        super().__init__(branch, measures)
        integers, reals, least = measures.shape
        inner = self._tree.levels - 1
        self.vectors = KeyedVectors(self._fields, 1 + (integers + least) * inner, reals * inner)
        self._least_from = 1 + integers * inner

    def count(self, given: AggregateInput) -> KeyTotals:
        """Return the totals of the matches that end here, from the prefixes that each key has so far."""
        keys = keys_of_places(self.branch, given)
        layout = lay_out(self.branch, given, keys)
        operations, levels = layout.operations, self._tree.levels
        first = operations.place[operations.offsets[:-1]]
        keyed = np.flatnonzero(keys[first] >= 0)  # a single event may be a match without a key
        numbers = self._numbers(self.vectors, given.events, first[keyed])
        columns = self._columns.with_loads(loads_of(given.measures, self._variables))
        stacks = stacks_of(first.size, 1, 0, columns)
        self._resume(stacks.back, keyed, numbers)
        slots, begin = np.arange(first.size), operations.offsets[:-1]
        visits = Visits(slots, slots, begin, operations.offsets[1:], begin - 1, False, 0, 0)
        out, filled = MeasureRecords.room(int((operations.seal != NO_SEAL).sum()), columns), np.zeros(levels + 1, int)
        log = Log.of(operations)
        multiply_windows(self._tree, columns, log, stacks, visits, np.zeros(0, np.int64), False, out, filled)
        self._suspend(stacks.back, keyed, numbers)
        self._close(given.events, keys)
        return key_totals(out, slice(0, filled[levels]), levels, columns, layout.group)

    def _inner(self, block: int) -> tuple[Int64, Int64]:
        """Return the columns of prefixes that are kept, and where each lies among the numbers of its block."""
        columns, levels = self._columns, self._tree.levels
        kept = np.arange(columns.first[block, 1], columns.first[block, levels])
        return kept, columns.measure[block, kept] * (levels - 1) + columns.node[block, kept] - 1

    def _resume(self, back: Numbers, keyed: Int64, numbers: Int64) -> None:
        """Set the paths of each key: the empty one, unless the key is closed, and those to the prefixes."""
        whole, real = self.vectors.whole[numbers], self.vectors.real[numbers]
        back.integers[:, 0], back.reals[:, 0] = 1, 1.0
        is_open = whole[:, 0] == 0
        back.integers[keyed, 0], back.reals[keyed, 0] = is_open, is_open
        rows = keyed[:, None]
        columns, at = self._inner(INTEGERS)
        back.integers[rows, columns] = whole[:, 1 + at]
        columns, at = self._inner(REALS)
        back.reals[rows, columns] = real[:, at]
        columns, at = self._inner(LEAST)
        back.least[rows, columns] = whole[:, self._least_from + at] ^ NOTHING

    def _suspend(self, back: Numbers, keyed: Int64, numbers: Int64) -> None:
        whole, real = self.vectors.whole[numbers], self.vectors.real[numbers]
        columns, at = self._inner(INTEGERS)
        whole[:, 1 + at] = back.integers[keyed][:, columns]
        columns, at = self._inner(REALS)
        real[:, at] = back.reals[keyed][:, columns]
        # Format 1 has a number for every extreme at every prefix: before its event, -1 if there is any path.
        inner = slice(1, self._tree.levels)
        any_path = back.reals[keyed][:, self._columns.first[REALS, inner]] > 0
        extremes = len(self._columns.least_loads)
        whole[:, self._least_from :] = np.tile(np.where(any_path, -1, 0), (1, extremes))
        columns, at = self._inner(LEAST)
        whole[:, self._least_from + at] = back.least[keyed][:, columns] ^ NOTHING
        self.vectors.set(numbers, whole, real)

    def _close(self, events: Events, keys: Int32) -> None:
        """Close keys in which a negated event came that nothing may follow: no match begins there any more."""
        alternative = self.branch.alternative
        steps = tuple(n.steps[0] for n in alternative.negations if is_at_edge(n))
        if not steps:
            return
        places = np.concatenate(candidates(Alternative(alternative.query, steps, ()), events))
        places = places[keys[places] >= 0]
        _, first = np.unique(keys[places], return_index=True)
        numbers = self._numbers(self.vectors, events, places[first])
        whole = self.vectors.whole[numbers]
        whole[:, 0] = 1
        self.vectors.set(numbers, whole, self.vectors.real[numbers])


# --- in a window -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Requested:
    """The stamps whose records are returned."""

    first: int
    last: int
    times: Int64  # [stamps] what the end of a window is compared with; empty: the stamps themselves
    with_leaving: bool  # of all keys, also where totals fall and what they were at the first stamp


class WindowKeys(BranchKeys):
    """The two stacks of each key, in memory alone."""

    def __init__(self, branch: Branch, measures: Measures) -> None:
        super().__init__(branch, measures)
        self.keys = KeyedVectors(self._fields, 0, 0)
        self._group, self._last, self._owner = np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(1, np.int64)
        self._rows, self._slots = self._tree.levels + 1, 0
        self._new_back = no_numbers(self._rows, self._columns)
        stand_still(self._tree, self._columns, self._new_back, 0, self._rows)
        self._stacks: Stacks = stacks_of(0, self._rows, 1, self._columns)
        self._log, self._next_operation, self._next_start = empty_log(), 0, 0
        self._batches: deque[tuple[int, int, int]] = deque()  # the operation and start after it, its last `until`

    def count(self, given: AggregateInput, groups: Int64, requested: Requested) -> KeyTotals:
        """Return the records of keys with new events. `groups`: the number of each group of the events."""
        layout = lay_out(self.branch, given, keys_of_places(self.branch, given))
        operations, levels = layout.operations, self._tree.levels
        numbers = self._numbers(self.keys, given.events, operations.place[operations.offsets[:-1]])
        self._add_keys()
        self._group[numbers] = groups[layout.group]
        visits = self._visits(operations, numbers, requested)
        self._append(operations, numbers, given)
        room = int((operations.seal != NO_SEAL).sum()) + visits.key.size
        if requested.with_leaving:
            room += self._next_start - self._log.first_start
        out, filled = MeasureRecords.room(room, self._columns), np.zeros(self._rows, np.int64)
        times, with_leaving = requested.times, requested.with_leaving
        multiply_windows(self._tree, self._columns, self._log, self._stacks, visits, times, with_leaving, out, filled)
        self._evict(int(times[requested.last]) if times.size else requested.last)
        found = key_totals(out, slice(0, filled[levels]), levels, self._columns, self._group)
        if times.size:
            # Where totals fall, a record has a time.
            return replace(found, stamp=np.where(found.ends, found.stamp, np.searchsorted(times, found.stamp)))
        return _closed(found, requested.last + 1) if with_leaving else found

    def live(self) -> int:
        """Return how many keys have a start in their stacks."""
        head, oldest = self._stacks.head[: self._slots], self._stacks.oldest[: self._slots]
        return int(((head >= 0) | (oldest >= self._log.first_start)).sum())

    @property
    def nbytes(self) -> int:
        parts: list[Any] = [*self._stacks, *self._stacks.back, *self._stacks.front, *self._log, *self._columns[-3:]]
        return sum(part.nbytes for part in parts if isinstance(part, np.ndarray))

    def _add_keys(self) -> None:
        count, rows, stacks = self.keys.count, self._rows, self._stacks
        new = slice(self._slots * rows, count * rows)
        back = Numbers(*(with_room(block, count * rows) for block in stacks.back))
        for block, of_key in zip(back, self._new_back, strict=True):
            block[new] = np.tile(of_key, (count - self._slots, 1))
        head, oldest, turned = (with_room(a, count, fill=-1) for a in (stacks.head, stacks.oldest, stacks.turned))
        self._stacks = stacks._replace(head=head, oldest=oldest, turned=turned, back=back)
        self._group, self._last = with_room(self._group, count), with_room(self._last, count, fill=-1)
        self._slots = count

    def _visits(self, operations: Operations, numbers: Int64, requested: Requested) -> Visits:
        """Return where the operations of each key will lie in the log."""
        visited, new = numbers, self._next_operation + operations.offsets
        begin, end = new[:-1], new[1:]
        if requested.with_leaving:
            visited = np.arange(self._slots)
            begin, end = np.zeros(self._slots, np.int64), np.zeros(self._slots, np.int64)
            begin[numbers], end[numbers] = new[:-1], new[1:]
        return Visits(visited, visited, begin, end, self._last[visited], False, requested.first, requested.last)

    def _append(self, operations: Operations, numbers: Int64, given: AggregateInput) -> None:
        count, is_start = operations.level.size, operations.level == 1
        if not count:
            return
        self._make_room(count, operations.until.size)
        log, first, offsets = self._log, self._next_operation, operations.offsets
        at = np.arange(first, first + count) & log.mask
        before = np.arange(first - 1, first + count - 1)
        before[offsets[:-1]] = self._last[numbers]
        self._last[numbers] = first + offsets[1:] - 1
        log.level[at], log.symbol[at] = operations.level, operations.symbol
        log.stamp[at], log.seal[at] = operations.stamp, operations.seal
        log.before[at], log.start[at] = before, self._next_start + np.cumsum(is_start) - 1
        starts = np.arange(self._next_start, self._next_start + operations.until.size) & log.start_mask
        log.until[starts] = operations.until
        self._owner[starts] = np.repeat(numbers, np.diff(offsets))[is_start]
        loads = loads_of(given.measures, self._variables)
        columns, added = self._columns, (loads.integers, loads.reals, loads.least)
        for held, new in zip((columns.integer_loads, columns.real_loads, columns.least_loads), added, strict=True):
            held[:, at] = new[:, operations.place]
        self._next_operation += count
        self._next_start += operations.until.size
        last = given.clock.leaves(operations.place.max(keepdims=True)) - 1
        self._batches.append((self._next_operation, self._next_start, int(last[0])))
        self._log = log._replace(first_node=operations.first_node, nodes=operations.nodes)

    def _make_room(self, operations: int, starts: int) -> None:
        log, stacks = self._log, self._stacks
        held, needed = (log.first_operation, self._next_operation), self._next_operation + operations
        rings: dict[str, Any] = {
            name: ring_with_room(getattr(log, name), *held, needed - held[0])
            for name in ("level", "symbol", "stamp", "seal", "before", "start")
        }
        loads = {
            name: ring_with_room(getattr(self._columns, name), *held, needed - held[0], axis=1)
            for name in ("integer_loads", "real_loads", "least_loads")
        }
        self._columns = self._columns._replace(**loads)
        size = rings["level"].size
        place = log.place if log.place.size == size else np.arange(size, dtype=np.int32)
        held, needed = (log.first_start, self._next_start), self._next_start + starts - log.first_start
        until, self._owner, following = (
            ring_with_room(ring, *held, needed) for ring in (log.until, self._owner, stacks.following)
        )
        front = Numbers(*(ring_with_room(block, *held, needed) for block in stacks.front))
        self._stacks = stacks._replace(following=following, front=front)
        self._log = log._replace(**rings, mask=size - 1, place=place, until=until, start_mask=until.size - 1)

    def _evict(self, now: int) -> None:
        """Evict the batches whose last operation is gone now, and so at all later stamps."""
        log = self._log
        operation, start = log.first_operation, log.first_start
        while self._batches and self._batches[0][2] < now:
            operation, start, _ = self._batches.popleft()
        release(log, self._stacks, self._owner, log.first_start, start)
        self._log = log._replace(first_operation=operation, first_start=start)


def empty_log() -> Log:
    def numbers() -> Int64:
        return np.zeros(1, np.int64)

    return Log(
        first_operation=0,
        mask=0,
        level=np.zeros(1, np.int8),
        symbol=np.zeros(1, np.int32),
        place=np.zeros(1, np.int32),
        stamp=numbers(),
        seal=numbers(),
        before=numbers(),
        start=numbers(),
        first_start=0,
        start_mask=0,
        until=numbers(),
        first_node=numbers(),
        nodes=numbers(),
    )


def _closed(keys: KeyTotals, stamp: int) -> KeyTotals:
    """Repeat the last record of each key at a stamp: until there its totals count."""
    is_last = np.append(keys.key[1:] != keys.key[:-1], keys.key.size > 0)[: keys.key.size]
    order = np.repeat(np.arange(keys.key.size), 1 + is_last)
    is_copy = np.zeros(order.size, np.bool_)
    is_copy[1:] = order[1:] == order[:-1]
    stamps, ends = np.where(is_copy, stamp, keys.stamp[order]), keys.ends[order] & ~is_copy
    return KeyTotals(keys.key[order], keys.group[order], stamps, ends, keys.totals.at(order))
