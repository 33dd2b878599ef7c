"""Events that came and time that passes in, rows of totals over a window out: what is new is counted, not the window.

The events of the window are held, as for any query; beside them, in memory alone, the two stacks of each key
(`window_stacks.py`). Events that are held and not yet in the stacks are counted first: after a state was read that is
all of them, after another worker had the state those that came meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streamsift.physical.plan import AggregatePlan
from streamsift.physical.stream import StreamPlan
from streamsift.runtime.arrays.dtypes import Int64
from streamsift.runtime.arrays.grouping import distinct
from streamsift.runtime.count import (
    Canvas,
    KeyTotals,
    Leaves,
    New,
    Stamps,
    Timeline,
    Unsteady,
    WindowKeys,
    any_event,
    as_batch,
    check_shape,
    groups_of,
    key_rows,
    moments_of,
    of_events,
    paint_keys,
    prepared,
    result_rows,
    steady_measures,
)
from streamsift.runtime.events.stamps import Clock, clock_of
from streamsift.runtime.events.update_ticks import first_ticks
from streamsift.runtime.state import EventStore, KeyedVectors
from streamsift.runtime.stream.rows import Rows
from streamsift.runtime.stream.watermark import LAST_TICK, Passing, Tick

SPARE_KEYS = 4096  # that may be in no window any more, beside as many as are in one


@dataclass(frozen=True, slots=True)
class Span:
    """Rows of the store that are counted now, and the ticks whose results they decide."""

    first: int
    stop: int
    stamps: Stamps


class WindowTotals(Rows):
    """Decides the rows of one plan. Values that no stacks can hold are counted with the window, as Rows does."""

    def __init__(self, stream: StreamPlan) -> None:
        super().__init__(stream)
        plan = stream.plan
        assert isinstance(plan, AggregatePlan)
        self._of_events = of_events(plan)
        example = prepared(plan.query, any_event(plan.query))
        measures, self._decoders = steady_measures(self._of_events, example)
        # Where nothing came and time passes a tick, an example of an event tells how to count; it is not counted.
        self._example = New(
            example, clock_of(plan.query, example), np.zeros(0, np.int32), np.zeros(0, np.int64), measures
        )
        self._shape = measures.shape
        only = plan.branches[0]
        self._is_direct = len(plan.branches) == 1 and set(only.keys) == set(plan.query.group_by)
        self._recounts = False
        self._begin_anew()

    def _begin_anew(self) -> None:
        query = self.plan.query
        self._counted: Tick | None = None  # the time of the last event in the stacks
        self._groups = KeyedVectors(pa.schema([query.schema.field(name) for name in query.group_by]), 0, 0)
        self._branches = [WindowKeys(branch, self._shape) for branch in self._of_events.branches]
        self._most_keys = SPARE_KEYS

    @property
    def nbytes(self) -> int:
        return sum(branch.stacks.nbytes for branch in self._branches)

    def decided(self, store: EventStore, arrived: int, passing: Passing) -> pa.Table:
        """The rows that time decides by passing; rows from `arrived` on came in this stretch of it."""
        if not self._recounts and store.rows and not self._no_tick_passes(passing):
            try:
                return self._continued(store, passing)
            except Unsteady:
                self._recounts = True
                self._begin_anew()
        return super().decided(store, arrived, passing) if self._recounts else self.schema.empty_table()

    def _continued(self, store: EventStore, passing: Passing) -> pa.Table:
        before, now = self._spans(store, passing)
        if before.first < before.stop:
            self._count(store, before)
        found = self._count(store, now)
        if before.first < now.stop:
            self._counted = store.ticks[now.stop - 1].item()
        self._forget_keys()
        return pa.Table.from_batches([] if found is None else [found], self.schema)

    def _forget_keys(self) -> None:
        """Numbers are never given back: when most keys are in no window any more, all stacks are made anew."""
        keys = max(branch.keys.count for branch in self._branches)
        if keys > self._most_keys:
            self._most_keys = 2 * max(branch.stacks.live() for branch in self._branches) + SPARE_KEYS
            if keys > self._most_keys:
                self._begin_anew()

    def _spans(self, store: EventStore, passing: Passing) -> tuple[Span, Span]:
        """Rows that are not counted yet: those whose results were told before, those whose results come now."""
        first = 0 if self._counted is None else int(np.searchsorted(store.ticks, self._counted, side="right"))
        tail, low, high = store.ticks[first:], passing.passed, passing.now
        told, stamps = Stamps(None, None, is_asked=False), Stamps(None, None, is_asked=True)
        if self._ticks_by_time:
            low, high = self._numbers(passing)
            tail = first_ticks(self.plan.query, tail)
            stamps = Stamps(None if low is None else low + 1, LAST_TICK if high is None else high, is_asked=True)
        middle = first if low is None else first + int(np.searchsorted(tail, low, side="right"))
        stop = store.rows if high is None else first + int(np.searchsorted(tail, high, side="right"))
        return Span(first, middle, told), Span(middle, stop, stamps)

    def _count(self, store: EventStore, span: Span) -> pa.RecordBatch | None:
        """Counts rows; the result rows that are asked for."""
        if span.first == span.stop and not self._ticks_by_time:
            return None
        new = self._example
        if span.first < span.stop:
            new = self._new(store.events.take(np.arange(span.first, span.stop)))
        if new.events.width < 0:
            return None
        moments = moments_of(new, is_ticking=self._ticks_by_time)
        with_leaving = span.stamps.is_asked and (self._ticks_by_time or not self._is_direct)
        with np.errstate(over="ignore", invalid="ignore"):  # integers may wrap: the doubles beside them tell
            found = [branch.count(new, moments, span.stamps, with_leaving) for branch in self._branches]
        return self._result(new.clock, found) if span.stamps.is_asked else None

    def _new(self, table: pa.Table) -> New:
        query = self.plan.query
        events = prepared(query, table)
        if not np.isfinite(events.ticks).all():
            raise Unsteady("an infinite time never leaves a window")
        clock = clock_of(query, events)
        groups = groups_of(query, events, clock)
        measures, _ = steady_measures(self._of_events, events)
        check_shape(measures, self._shape)
        present = distinct(groups.of_place[groups.of_place >= 0])
        numbers = np.full(groups.first_place.size, -1, np.int64)
        numbers[present] = self._groups.numbers(key_rows(events, groups.first_place[present], query.group_by))
        return New(events, clock, groups.of_place, numbers, measures)

    # --- result rows ---
    def _result(self, clock: Clock, found: list[KeyTotals]) -> pa.RecordBatch | None:
        if self._is_direct:
            timeline = found[0].by_group().at(np.argsort(found[0].group, kind="stable"))
        else:
            timeline = self._added_up(found)
        rows = result_rows(self.plan.query, clock, timeline, self._decoders, lambda: _NO_STAMPS)
        if not rows.stamp.size:
            return None
        keys = self._groups.at(rows.group.astype(np.int64)) if self.plan.query.group_by else None
        columns = [] if keys is None else [keys.column(name).combine_chunks() for name in self.plan.query.group_by]
        return as_batch(self.schema, clock, columns, rows, self._decoders)

    def _added_up(self, found: list[KeyTotals]) -> Timeline:
        """The totals of groups, from those of their keys and of all branches."""
        shown = [slice(None) if self._ticks_by_time else keys.ends for keys in found]
        groups, stamps = (
            np.concatenate([getattr(keys, name)[which] for keys, which in zip(found, shown, strict=True)])
            for name in ("group", "stamp")
        )
        leaves = Leaves.of(groups, stamps)
        canvas = Canvas(leaves, found[0].totals)
        if leaves.group.size:
            for keys in found:
                paint_keys(canvas, keys)
        return Timeline(leaves.group, leaves.stamp, canvas.ends[: leaves.group.size], canvas.finished())


_NO_STAMPS: Int64 = np.zeros(0, np.int64)
