"""Update the totals of a query batch by batch, at the cost of the new events.

Without a window the state is, for each key of a branch, the measures of its prefixes, and for each group its totals so
far; nothing is kept of an event. In a window it is the two stacks of each key, in memory alone.
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
from streamsift.runtime.count.groups import AggregateInput, KeyTotals, Timeline, groups_of
from streamsift.runtime.count.incremental_keys import PrefixKeys, Requested, WindowKeys, key_rows
from streamsift.runtime.count.measures import Totals, measures_of
from streamsift.runtime.count.output import aggregate_schema, as_batch, result_rows
from streamsift.runtime.count.range_totals import Leaves, RangeTotals
from streamsift.runtime.count.run import relevant_stamps, timeline_of
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.prepare import prepare
from streamsift.runtime.events.stamps import clock_of
from streamsift.runtime.events.times import saturating_sum
from streamsift.runtime.expressions.real_kernels import float_codes
from streamsift.runtime.state import KeyedVectors

EARLIEST = -(2**62)  # before every tick
SPARE_KEYS = 4096  # that may be in no window any more, beside as many as are in one


class IncrementalTotals:
    """The totals of one plan. Values that cannot be added up without their events raise NotIncremental."""

    def __init__(self, plan: AggregatePlan) -> None:
        self.plan, self.schema = plan, aggregate_schema(plan.query)
        self._has_window = plan.query.window is not None
        only = plan.branches[0]
        self._is_direct = len(plan.branches) == 1 and set(only.keys) == set(plan.query.group_by)
        events = prepare(plan.query, plan.query.schema.empty_table())
        self._measures, self._decoders = measures_of(plan.query, plan.alternatives, events, by_schema=True)
        self.reset()

    def reset(self) -> None:
        """Drop all that was counted."""
        query, branches, (integers, reals, least) = self.plan.query, self.plan.branches, self._measures.shape
        fields = pa.schema([query.schema.field(name) for name in query.group_by])
        self._prefixes, self._windows = list[PrefixKeys](), list[WindowKeys]()
        if self._has_window:
            self._groups = KeyedVectors(fields, 0, 0)
            self._windows = [WindowKeys(branch, self._measures) for branch in branches]
        else:
            self._groups = KeyedVectors(fields, integers + least, reals)
            self._prefixes = [PrefixKeys(branch, self._measures) for branch in branches]
        self._max_keys = SPARE_KEYS

    def state(self) -> dict[str, KeyedVectors]:
        """Return what must be written: without a window, all."""
        if self._has_window:
            return {}
        return {"groups": self._groups, **{f"branch {i}": keys.vectors for i, keys in enumerate(self._prefixes)}}

    @property
    def nbytes(self) -> int:
        """Return how much memory is used beside what `state` returns."""
        return sum(keys.nbytes for keys in self._windows)

    def add(
        self, table: pa.Table, first_tick: int | None = None, last_tick: int | None = None, *, shows: bool = True
    ) -> pa.RecordBatch | None:
        """Count events, which come after all others; return the result rows if it `shows` them.

        With UPDATE these are the rows of the ticks from the first to the last; None: from the first new one on.
        """
        query = self.plan.query
        events = prepare(query, table)
        clock = clock_of(query, events)
        if events.width < 0 or not (table.num_rows or clock.is_ticking):
            return None
        measures, _ = measures_of(query, self.plan.alternatives, events, by_schema=True)
        given = AggregateInput(events, clock, groups_of(query, events, clock), measures)
        with np.errstate(over="ignore", invalid="ignore"):  # integers may wrap: the doubles beside them show it
            if self._has_window:
                timeline = self._in_window(given, first_tick, last_tick, shows=shows)
            else:
                timeline = self._added_up(given, timeline_of(self.plan, given, self._count_prefixes))
        if not shows:
            return None
        rows = result_rows(query, clock, timeline, self._decoders, lambda: relevant_stamps(self.plan, events, clock))
        if not rows.stamp.size:
            return None
        keys = self._groups.at(rows.group.astype(np.int64)) if query.group_by else None
        columns = [] if keys is None else [keys.column(name).combine_chunks() for name in query.group_by]
        return as_batch(self.schema, clock, columns, rows, self._decoders)

    def _numbers(self, given: AggregateInput, groups: Int32) -> Int64:
        """Return the numbers, since the beginning, of (distinct) groups of the events."""
        rows = key_rows(given.events, given.groups.first_place[groups], self.plan.query.group_by)
        return self._groups.numbers(rows)

    # --- without a window ---
    def _count_prefixes(self, branch: Branch, given: AggregateInput, _: bool) -> KeyTotals:
        return self._prefixes[self.plan.branches.index(branch)].count(given)

    def _added_up(self, given: AggregateInput, found: Timeline) -> Timeline:
        """Return what came, on top of what there was; the last of each group is what there is from now on."""
        if not found.group.size:
            return found
        groups, which = np.unique(found.group, return_inverse=True)
        numbers = self._numbers(given, groups)
        integers, whole = self._measures.shape[0], self._groups.whole[numbers]
        totals = Totals(
            found.totals.integers + whole[which, :integers],
            found.totals.reals + self._groups.real[numbers][which],
            np.minimum(found.totals.least, whole[which, integers:] ^ NOTHING),
        )
        last = np.append(np.flatnonzero(np.diff(found.group)), found.group.size - 1)
        now = np.hstack([totals.integers[last], totals.least[last] ^ NOTHING])
        self._groups.set(numbers, now, totals.reals[last])
        return replace(found, group=numbers[which].astype(np.int32), totals=totals)

    # --- in a window ---
    def _in_window(
        self, given: AggregateInput, first_tick: int | None, last_tick: int | None, *, shows: bool
    ) -> Timeline:
        if not np.isfinite(given.events.ticks).all():
            raise NotIncremental("an infinite time never leaves a window")
        numbers = np.full(given.groups.first_place.size, -1, np.int64)
        present = distinct(given.groups.of_place[given.groups.of_place >= 0])
        numbers[present] = self._numbers(given, present)
        is_ticking = given.clock.is_ticking
        first, last, times = first_tick, last_tick, np.zeros(0, np.int64)
        if not is_ticking:
            times, until = _time_codes(given.events)
            first, last = 0, times.size - 1
            # The largest time wraps here, and back where 1 is taken off again.
            given = replace(given, clock=replace(given.clock, leaves=lambda places: until[places] + 1))
        with_leaving = shows and (is_ticking or not self._is_direct)
        requested = Requested(
            EARLIEST if first is None else first, EARLIEST if last is None else last, times, with_leaving
        )
        found = [keys.count(given, numbers, requested) for keys in self._windows]
        if self._is_direct:
            return found[0].by_group().at(np.argsort(found[0].group, kind="stable"))
        shown = [slice(None) if is_ticking else keys.ends for keys in found]
        groups, stamps = (
            np.concatenate([getattr(keys, name)[which] for keys, which in zip(found, shown, strict=True)])
            for name in ("group", "stamp")
        )
        totals = RangeTotals(Leaves.of(groups, stamps), self._measures.shape)
        if totals.leaves.group.size:
            for keys in found:
                totals.add_keys(keys)
        return totals.timeline()

    def evict_keys(self) -> bool:
        """Numbers of keys are never reused: if most keys are in no window any more, reset and return True."""
        keys = max(branch.keys.count for branch in self._windows)
        if keys <= self._max_keys:
            return False
        self._max_keys = 2 * max(branch.live() for branch in self._windows) + SPARE_KEYS
        if keys > self._max_keys:
            self.reset()
            return True
        return False


def _time_codes(events: Events) -> tuple[Int64, Int64]:
    """Return times as integers in their order, and the last such integer in the window of each."""
    if events.ticks.dtype == np.float64:
        times = events.ticks.view(np.float64)
        until = last_within(times, float(events.width))
        return float_codes(times, times.view(np.int64)), float_codes(until, until.view(np.int64))
    ticks = np.ascontiguousarray(events.ticks.view(np.int64))
    return ticks, saturating_sum(ticks, int(events.width))
