"""Keep the state of each key between batches of events: its prefixes, or its two stacks in a window.

Operations are appended to a log. A batch of operations is evicted when its last operation is in no future window. The
operations of a key are a linked list through the log, from last to first, the order in which `turn` reads the back. The
front of a key is a linked list of starts. The log and the fronts are ring buffers, so eviction moves no data.

Contract: the records equal those that `by_key.count_branch` returns for all operations at once, from the first
requested stamp on (tests/runtime/stream/test_window_totals.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import BoundQuery
from streamsift.physical.count import is_at_edge
from streamsift.physical.plan import Alternative, Branch
from streamsift.runtime.arrays.dtypes import Float64, Int32, Int64
from streamsift.runtime.arrays.grouping import distinct
from streamsift.runtime.arrays.growing import ring_with_room, with_room
from streamsift.runtime.count.extremes import NOTHING
from streamsift.runtime.count.groups import AggregateInput, KeyTotals, is_last
from streamsift.runtime.count.measure_kernels import (
    NO_TIMES,
    Log,
    Numbers,
    Stacks,
    Visits,
    first_staying,
    multiply_windows,
    no_numbers,
    release,
    stand_still,
)
from streamsift.runtime.count.operations import NO_SEAL, Layout, Operations, keys_of_places, lay_out
from streamsift.runtime.count.prefix_tree import (
    REALS,
    PrefixColumns,
    PrefixTree,
    TotalRecords,
    columns_of,
    loads_of,
    tree_of,
)
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.events import Events
from streamsift.runtime.state import KeyedVectors, the_only_key


def key_rows(events: Events, places: Int32, columns: tuple[str, ...]) -> pa.Table:
    """Return the key columns at these places."""
    if not columns:
        return the_only_key(places.size)
    rows = events.rows_at(places)
    return pa.table({name: events.columns.at(name, rows) for name in columns})


# --- without a window ------------------------------------------------------------------------------------------------


class PrefixKeys:
    """The measures of the proper prefixes of each key. For the whole pattern, only new matches are counted.

    The vectors of a key hold 1 if it is closed, then the value of each integer, extreme and real at each prefix.
    """

    def __init__(self, branch: Branch, no_events: AggregateInput) -> None:
        """`no_events` is the input for an empty table of the schema."""
        self.branch = branch
        self._variables = [step.variable for step in branch.alternative.steps]
        self._tree = tree_of(range(len(self._variables)), [len(self._variables)])
        self._columns = columns_of(self._tree, loads_of(no_events.measures, self._variables))
        schema = branch.alternative.query.schema
        fields = pa.schema([schema.field(name) for name in branch.keys])
        integers, reals, least = no_events.measures.shape
        inner = self._tree.levels - 1
        self.vectors = KeyedVectors(fields, 1 + (integers + least) * inner, reals * inner)
        self._least_from = 1 + integers * inner

    def count(self, given: AggregateInput) -> KeyTotals:
        """Return the totals of the matches that end with these events, and update the prefixes of each key."""
        keys = keys_of_places(self.branch, given)
        layout = lay_out(self.branch, given, keys)
        operations, levels = layout.operations, self._tree.levels
        first = operations.place[operations.offsets[:-1]]
        keyed = np.flatnonzero(keys[first] >= 0)  # a match of a single event may have no key
        numbers = self._numbers(self.vectors, given.events, first[keyed])
        columns = PrefixColumns(*self._columns[:-3], *loads_of(given.measures, self._variables)[3:])
        stacks = Stacks.room(first.size, 1, 0, columns)
        self._resume(stacks.back, keyed, numbers)
        out = TotalRecords.room(int((operations.seal != NO_SEAL).sum()), columns.widths)
        filled, log, visits = np.zeros(levels + 1, int), Log.of(operations), Visits.of_all(operations, is_fresh=False)
        multiply_windows(self._tree, columns, log, stacks, visits, NO_TIMES, False, out, filled)
        self._suspend(stacks.back, keyed, numbers)
        self._close(given.events, keys)
        return out.totals(slice(0, filled[levels]), layout.group, columns, levels)

    def _numbers(self, keys: KeyedVectors, events: Events, places: Int32) -> Int64:
        return keys.numbers(key_rows(events, places, self.branch.keys))

    def _blocks(self, back: Numbers, whole: Int64, real: Float64) -> Iterator[tuple[Any, Int64, Any, Int64]]:
        """Yield for each block its paths, the columns to keep, its vectors, and the vector position of each column."""
        columns, levels, begins = self._columns, self._tree.levels, (1, 0, self._least_from)
        for block, vectors in enumerate((whole, real, whole)):
            kept = np.arange(columns.first[block, 1], columns.first[block, levels])
            at = columns.measure[block, kept] * (levels - 1) + columns.node[block, kept] - 1
            yield back[block], kept, vectors, begins[block] + at

    def _resume(self, back: Numbers, keyed: Int64, numbers: Int64) -> None:
        """Load the paths of each key: the empty path, unless the key is closed, and the paths to its prefixes."""
        whole, real = self.vectors.whole[numbers], self.vectors.real[numbers]
        whole[:, self._least_from :] ^= NOTHING
        back.integers[:, 0], back.reals[:, 0] = 1, 1.0
        back.integers[keyed, 0] = back.reals[keyed, 0] = whole[:, 0] == 0
        for paths, columns, vectors, at in self._blocks(back, whole, real):
            paths[keyed[:, None], columns] = vectors[:, at]

    def _suspend(self, back: Numbers, keyed: Int64, numbers: Int64) -> None:
        whole, real = self.vectors.whole[numbers], self.vectors.real[numbers]
        # State format 1 stores every extreme at every prefix. Before its event, -1 means that a path exists.
        any_path = back.reals[keyed][:, self._columns.first[REALS, 1 : self._tree.levels]] > 0
        extremes = np.tile(np.where(any_path, -1, 0), (1, len(self._columns.least_loads)))
        whole[:, self._least_from :] = extremes ^ NOTHING
        for paths, columns, vectors, at in self._blocks(back, whole, real):
            vectors[:, at] = paths[keyed][:, columns]
        whole[:, self._least_from :] ^= NOTHING
        self.vectors.set(numbers, whole, real)

    def _close(self, events: Events, keys: Int32) -> None:
        """Close keys that received an event of a leading negation: no later match can begin there."""
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


class Visit(Enum):
    """The keys whose records `WindowKeys.count` returns."""

    NEW = auto()  # keys with new events, only where their matches end
    CHANGED = auto()  # keys with new events or leaving starts
    ALL = auto()


@dataclass(frozen=True, slots=True)
class Counted:
    """The prefixes that are counted per key: those of one pattern, or of several queries that share them."""

    query: BoundQuery
    keys: tuple[str, ...]
    variables: list[int]  # of prefixes 1, 2, ...
    tree: PrefixTree
    needed: list[set[int]] | None  # as in `columns_of`
    lay_out: Callable[[AggregateInput], Layout]

    @staticmethod
    def of_branch(branch: Branch) -> Counted:
        steps = branch.alternative.steps
        tree = tree_of(range(len(steps)), [len(steps)])
        variables = [step.variable for step in steps]
        return Counted(
            branch.alternative.query,
            branch.keys,
            variables,
            tree,
            None,
            lambda given: lay_out(branch, given, keys_of_places(branch, given)),
        )


class WindowKeys:
    """The two stacks of each key, kept in memory only."""

    def __init__(self, counted: Counted, no_events: AggregateInput) -> None:
        self._counted, self._tree = counted, counted.tree
        self._columns = columns_of(self._tree, loads_of(no_events.measures, counted.variables), counted.needed)
        self._terminals = np.flatnonzero(self._tree.ends)
        fields = pa.schema([counted.query.schema.field(name) for name in counted.keys])
        self.keys = KeyedVectors(fields, 0, 0)
        self._group, self._last, self._owner = np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(1, np.int64)
        self._rows, self._slots = self._tree.levels + 1, 0
        self._new_back = no_numbers(self._rows, self._columns)
        stand_still(self._tree, self._columns, self._new_back, 0, self._rows)
        self._stacks: Stacks = Stacks.room(0, self._rows, 1, self._columns)
        layout = counted.lay_out(no_events)
        self._log, self._next_operation, self._next_start = Log.of(layout.operations), 0, 0
        self._batches: deque[tuple[int, int, int]] = deque()  # per batch: end of operations, of starts, last `until`
        # Starts in the order in which they leave, a ring like the starts: number n of those is in the windows of a key.
        self._by_until, self._next_leaving = np.zeros(1, np.int64), 0

    @property
    def groups(self) -> Int32:
        """Return the group of each key."""
        return self._group[: self._slots]

    def count(
        self, given: AggregateInput, groups: Int64, stamps: tuple[int, int], times: Int64, visit: Visit
    ) -> KeyTotals:
        """Return the records of the only pattern: see `count_all`."""
        return self.count_all(given, groups, stamps, times, visit)[self._tree.levels]

    def count_all(
        self, given: AggregateInput, groups: Int64, stamps: tuple[int, int], times: Int64, visit: Visit
    ) -> dict[int, KeyTotals]:
        """Return the records of the visited keys for each prefix at which a query ends, within the given stamps.

        `groups` is the number of each group of the events; `times` as in `multiply_windows`. Except for `Visit.NEW`,
        include the totals at the first stamp and where totals fall.
        """
        layout, with_leaving = self._counted.lay_out(given), visit is not Visit.NEW
        operations = layout.operations
        firsts = operations.place[operations.offsets[:-1]]
        numbers = self.keys.numbers(key_rows(given.events, firsts, self._counted.keys))
        self._add_keys()
        self._group[numbers] = groups[layout.group]
        now = int(times[stamps[1]]) if times.size else stamps[1]
        begin, end = self._next_operation + operations.offsets[:-1], self._next_operation + operations.offsets[1:]
        visited = numbers
        if with_leaving:
            visited = np.arange(self._slots)
            if visit is Visit.CHANGED:
                visited = distinct(np.append(numbers, self._owners_leaving(now)))
            new = np.zeros((2, visited.size), np.int64)
            new[:, np.searchsorted(visited, numbers)] = begin, end
            begin, end = new
        visits = Visits(visited, visited, begin, end, self._last[visited], False, *stamps)
        self._append(operations, numbers, given)
        room, left = int((operations.seal != NO_SEAL).sum()) + visits.key.size, self._next_leaving
        self._next_leaving = self._leaving(now)
        if with_leaving:
            since = left if visit is Visit.CHANGED else self._log.first_start
            room += self._next_leaving - since
        out = TotalRecords.room(room * self._terminals.size, self._columns.widths)
        filled = np.zeros(self._tree.parent.size, np.int64)
        filled[self._terminals] = room * np.arange(self._terminals.size)
        begins = filled.copy()
        multiply_windows(self._tree, self._columns, self._log, self._stacks, visits, times, with_leaving, out, filled)
        self._evict(now)
        found = {}
        for node in self._terminals.tolist():
            totals = out.totals(slice(begins[node], filled[node]), self._group, self._columns, node)
            if times.size:
                # Records where totals fall have a time instead of a stamp.
                stamps_of = np.where(totals.ends, totals.stamp, np.searchsorted(times, totals.stamp))
                totals = replace(totals, stamp=stamps_of)
            found[node] = totals
        return found

    def _leaving(self, now: int) -> int:
        """Return how many starts have left the window at `now`, counted since the first."""
        log = self._log
        return first_staying(self._by_until, log.until, log.start_mask, self._next_leaving, self._next_start, now)

    def _owners_leaving(self, now: int) -> Int64:
        """Return the keys whose starts leave the window until `now`, of those that are in the log."""
        mask = self._log.start_mask
        return self._owner[self._by_until[np.arange(self._next_leaving, self._leaving(now)) & mask] & mask]

    def live(self) -> int:
        """Return the number of keys with a start in their stacks."""
        head, oldest = self._stacks.head[: self._slots], self._stacks.oldest[: self._slots]
        return int(((head >= 0) | (oldest >= self._log.first_start)).sum())

    @property
    def nbytes(self) -> int:
        parts: list[Any] = [
            self._by_until,
            *self._stacks,
            *self._stacks.back,
            *self._stacks.front,
            *self._log,
            *self._columns[-3:],
        ]
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
        self._by_until[starts] = self._next_start + np.argsort(operations.until, kind="stable")
        for kept, new in zip(self._columns[-3:], loads_of(given.measures, self._counted.variables)[3:], strict=True):
            kept[:, at] = new[:, operations.place]
        self._next_operation += count
        self._next_start += operations.until.size
        last = given.clock.leaves(operations.place.max(keepdims=True)) - 1
        self._batches.append((self._next_operation, self._next_start, int(last[0])))

    def _make_room(self, operations: int, starts: int) -> None:
        log, stacks = self._log, self._stacks
        kept = log.first_operation, self._next_operation, self._next_operation + operations - log.first_operation
        names = ("level", "symbol", "stamp", "seal", "before", "start")
        rings: dict[str, Any] = {name: ring_with_room(getattr(log, name), *kept) for name in names}
        loads = (ring_with_room(block, *kept, axis=1) for block in self._columns[-3:])
        self._columns = PrefixColumns(*self._columns[:-3], *loads)
        size = rings["level"].size
        place = log.place if log.place.size == size else np.arange(size, dtype=np.int32)  # the column of its loads
        kept = log.first_start, self._next_start, self._next_start + starts - log.first_start
        until, self._owner, following, self._by_until = (
            ring_with_room(ring, *kept) for ring in (log.until, self._owner, stacks.following, self._by_until)
        )
        front = Numbers(*(ring_with_room(block, *kept) for block in stacks.front))
        self._stacks = stacks._replace(following=following, front=front)
        self._log = log._replace(**rings, mask=size - 1, place=place, until=until, start_mask=until.size - 1)

    def _evict(self, now: int) -> None:
        """Evict the batches whose last operation has left the window at `now`."""
        log = self._log
        operation, start = log.first_operation, log.first_start
        while self._batches and self._batches[0][2] < now:
            operation, start, _ = self._batches.popleft()
        release(log, self._stacks, self._owner, log.first_start, start)
        self._log = log._replace(first_operation=operation, first_start=start)


def closed(keys: KeyTotals, stamp: int) -> KeyTotals:
    """Repeat the last record of each key at a stamp, so that its totals are valid until there."""
    order = np.repeat(np.arange(keys.key.size), 1 + is_last(keys.key))
    is_copy = np.diff(order, prepend=-1) == 0
    stamps, ends = np.where(is_copy, stamp, keys.stamp[order]), keys.ends[order] & ~is_copy
    return KeyTotals(keys.group[order], stamps, ends, keys.totals.at(order), keys.key[order])
