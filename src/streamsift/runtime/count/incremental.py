"""Update the totals of a query batch by batch, at a cost proportional to the new events.

Without a window, the state is the measures of the prefixes of each key and the totals of each group; no event is kept.
In a window, the state is the two stacks of each key; it is kept in memory only.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from streamsift.physical.plan import AggregatePlan, Branch
from streamsift.runtime.arrays.doubles import last_within
from streamsift.runtime.arrays.dtypes import Int32, Int64
from streamsift.runtime.arrays.grouping import distinct
from streamsift.runtime.count.extremes import NOTHING, NotIncremental
from streamsift.runtime.count.group_trees import GroupTrees
from streamsift.runtime.count.groups import AggregateInput, KeyTotals, Timeline, is_last
from streamsift.runtime.count.incremental_keys import Counted, PrefixKeys, Visit, WindowKeys, closed, key_rows
from streamsift.runtime.count.measure_kernels import NO_TIMES
from streamsift.runtime.count.measures import Totals
from streamsift.runtime.count.output import aggregate_schema, result_batch
from streamsift.runtime.count.run import timeline_of
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.prepare import prepare
from streamsift.runtime.events.times import saturating_sum
from streamsift.runtime.expressions.codes import float_codes
from streamsift.runtime.state import KeyedVectors

EARLIEST = -(2**62)  # earlier than every tick
SPARE_KEYS = 4096  # expired keys to tolerate, in addition to the number of live keys


class IncrementalTotals:
    """The totals of one plan. Raises NotIncremental for values that cannot be aggregated without their events."""

    def __init__(self, plan: AggregatePlan) -> None:
        self.plan, self.schema = plan, aggregate_schema(plan.query)
        self._has_window = plan.query.window is not None
        only = plan.branches[0]
        self._is_direct = len(plan.branches) == 1 and set(only.keys) == set(plan.query.group_by)
        events = prepare(plan.query, plan.query.schema.empty_table())
        self._no_events = AggregateInput.of(plan.query, plan.alternatives, events, by_schema=True)
        self._shape = self._no_events.measures.shape
        self.reset()

    def reset(self) -> None:
        """Drop all state."""
        query, branches, (integers, reals, least) = self.plan.query, self.plan.branches, self._shape
        fields = pa.schema([query.schema.field(name) for name in query.group_by])
        self._prefixes, self._windows = list[PrefixKeys](), list[WindowKeys]()
        if self._has_window:
            self._groups = KeyedVectors(fields, 0, 0)
            self._windows = [WindowKeys(Counted.of_branch(branch), self._no_events) for branch in branches]
            self._trees, self._is_stale = GroupTrees(self._shape, len(branches)), False
        else:
            self._groups = KeyedVectors(fields, integers + least, reals)
            self._prefixes = [PrefixKeys(branch, self._no_events) for branch in branches]
        self._max_keys = SPARE_KEYS

    def state(self) -> dict[str, KeyedVectors]:
        """Return the state to persist: all of it without a window, else nothing."""
        if self._has_window:
            return {}
        return {"groups": self._groups, **{f"branch {i}": keys.vectors for i, keys in enumerate(self._prefixes)}}

    @property
    def nbytes(self) -> int:
        """Return the memory in bytes of the state that `state` does not return."""
        return sum(keys.nbytes for keys in self._windows) + (self._trees.nbytes if self._has_window else 0)

    def add(
        self, table: pa.Table, first_tick: int | None = None, last_tick: int | None = None, *, shows: bool = True
    ) -> pa.RecordBatch | None:
        """Add events that are later than all earlier ones; return the new result rows, or None if not `shows`.

        With UPDATE, return the rows of the ticks from `first_tick` (default: the first new tick) to `last_tick`.
        """
        query = self.plan.query
        events = prepare(query, table)
        if events.width < 0 or not (table.num_rows or query.update):
            return None
        given = AggregateInput.of(query, self.plan.alternatives, events, by_schema=True)
        with np.errstate(over="ignore", invalid="ignore"):  # integers may wrap; the doubles detect it
            if self._has_window:
                timeline = self._in_window(given, first_tick, last_tick, shows=shows)
            else:
                timeline = self._added_up(given, timeline_of(self.plan, given, self._count_prefixes))
        return result_batch(self.plan, given, timeline, keys_of=self._keys) if shows else None

    def _keys(self, groups: Int32) -> list[pa.Array]:
        """Return the GROUP BY columns of groups; the groups are given by their numbers in the state."""
        keys = self._groups.at(groups.astype(np.int64))
        return [keys.column(name).combine_chunks() for name in self.plan.query.group_by]

    def _numbers(self, given: AggregateInput, groups: Int32) -> Int64:
        """Return the numbers in the state of distinct groups of the events."""
        rows = key_rows(given.events, given.first_of_group[groups], self.plan.query.group_by)
        return self._groups.numbers(rows)

    # --- without a window ---
    def _count_prefixes(self, branch: Branch, given: AggregateInput, _: bool) -> KeyTotals:
        return self._prefixes[self.plan.branches.index(branch)].count(given)

    def _added_up(self, given: AggregateInput, added: Timeline) -> Timeline:
        """Add the new totals to the stored totals of each group; store the last of each group."""
        if not added.group.size:
            return added
        groups, which = np.unique(added.group, return_inverse=True)
        numbers = self._numbers(given, groups)
        integers, whole = self._shape[0], self._groups.whole[numbers]
        totals = Totals(
            added.totals.integers + whole[which, :integers],
            added.totals.reals + self._groups.real[numbers][which],
            np.minimum(added.totals.least, whole[which, integers:] ^ NOTHING),
        )
        last = is_last(added.group)
        now = np.hstack([totals.integers[last], totals.least[last] ^ NOTHING])
        self._groups.set(numbers, now, totals.reals[last])
        return replace(added, group=numbers[which].astype(np.int32), totals=totals)

    # --- in a window ---
    def _in_window(
        self, given: AggregateInput, first_tick: int | None, last_tick: int | None, *, shows: bool
    ) -> Timeline:
        check_finite(given.events)
        numbers = np.full(given.first_of_group.size, -1, np.int64)
        present = distinct(given.group_of[given.group_of >= 0])
        numbers[present] = self._numbers(given, present)
        is_ticking = given.clock.is_ticking
        first = EARLIEST if first_tick is None else first_tick
        last = EARLIEST if last_tick is None else last_tick
        times = NO_TIMES
        if not is_ticking:
            given, times = in_times(given)
            first, last = 0, times.size - 1
        if self._is_direct:
            visit = Visit.ALL if shows and is_ticking else Visit.NEW
            (counted,) = (keys.count(given, numbers, (first, last), times, visit) for keys in self._windows)
            counted = closed(counted, last + 1) if visit is Visit.ALL else counted
            return counted.at(np.argsort(counted.group, kind="stable"))
        visit = Visit.NEW if not shows else Visit.ALL if self._is_stale else Visit.CHANGED
        of_branches = [keys.count(given, numbers, (first, last), times, visit) for keys in self._windows]
        if visit is Visit.NEW:
            self._is_stale = True
            return of_branches[0]
        if visit is Visit.ALL:
            self._trees.clear()
            self._is_stale = False
        for number, keys in enumerate(self._windows):
            self._trees.add_keys(number, keys.groups)
        return self._trees.at_ticks(of_branches, first, last) if is_ticking else self._trees.at_ends(of_branches)

    def evict_keys(self) -> bool:
        """If most keys have expired, reset and return True: key numbers are not reused, so only a reset frees them."""
        keys = max(branch.keys.count for branch in self._windows)
        if keys > self._max_keys:
            self._max_keys = 2 * max(branch.live() for branch in self._windows) + SPARE_KEYS
        if must_reset := keys > self._max_keys:
            self.reset()
        return must_reset


def check_finite(events: Events) -> None:
    if not np.isfinite(events.ticks).all():
        raise NotIncremental("an infinite time never leaves a window")


def in_times(given: AggregateInput) -> tuple[AggregateInput, Int64]:
    """Let events leave at times, which mean the same in every batch, not at places; return the time of each place."""
    times, until = _time_codes(given.events)
    # Adding 1 to the largest time wraps; subtracting 1 later undoes it.
    return replace(given, clock=replace(given.clock, leaves=lambda places: until[places] + 1)), times


def _time_codes(events: Events) -> tuple[Int64, Int64]:
    """Return times as integers in the same order, and for each the last such integer in its window."""
    if events.ticks.dtype == np.float64:
        times = events.ticks.view(np.float64)
        until = last_within(times, float(events.width))
        return float_codes(times, times.view(np.int64)), float_codes(until, until.view(np.int64))
    ticks = np.ascontiguousarray(events.ticks.view(np.int64))
    return ticks, saturating_sum(ticks, int(events.width))
