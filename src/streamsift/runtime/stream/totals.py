"""Make rows of aggregation final from totals that are updated incrementally, at the cost of the new events.

Without a window no event is retained. With a window its events are retained besides the totals in memory, and events in
the store that are not counted yet are counted first: all of them after loading a state, the missing ones after catching
up with another worker. `RowDecider` handles values that cannot be updated incrementally.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from streamsift.physical.plan import AggregatePlan
from streamsift.physical.stream import StreamPlan
from streamsift.runtime.arrays.dtypes import Bool
from streamsift.runtime.count import IncrementalTotals, NotIncremental
from streamsift.runtime.events.update_ticks import first_ticks
from streamsift.runtime.state import EventStore, KeyedVectors
from streamsift.runtime.stream.decider import Decider
from streamsift.runtime.stream.rows import RowDecider
from streamsift.runtime.stream.watermark import LAST_TICK, Tick, WatermarkStep


class RunningTotals(Decider):
    """Make the rows of totals without a window final, from the events of a step and the totals before it."""

    follows = False

    def __init__(self, stream: StreamPlan) -> None:
        assert isinstance(stream.plan, AggregatePlan)
        self._totals = IncrementalTotals(stream.plan)
        self.schema = self._totals.schema

    def final(self, store: EventStore, arrived: int, step: WatermarkStep) -> pa.Table:
        rows = self._totals.add(store.events.take(np.arange(arrived - store.first, store.rows)))
        return pa.Table.from_batches([] if rows is None else [rows], self.schema)

    def needed(self, store: EventStore, passed: Tick) -> int | Bool:
        return store.first + store.rows

    def state(self) -> dict[str, KeyedVectors]:
        return self._totals.state()


class WindowTotals(Decider):
    """Make the rows of totals over a window final."""

    def __init__(self, stream: StreamPlan) -> None:
        assert isinstance(stream.plan, AggregatePlan)
        self._query = stream.plan.query
        self._totals: IncrementalTotals | None = IncrementalTotals(stream.plan)  # None: windows are recomputed
        self._recounted = RowDecider(stream)
        self.schema = self._recounted.schema
        self._counted: Tick | None = None  # the time of the last event that was counted

    @property
    def nbytes(self) -> int:
        return 0 if self._totals is None else self._totals.nbytes

    def final(self, store: EventStore, arrived: int, step: WatermarkStep) -> pa.Table:
        if not store.rows or self._recounted.no_tick_passes(step):
            return self.schema.empty_table()
        if self._totals is not None:
            try:
                return self._updated(self._totals, store, step)
            except NotIncremental:
                self._totals = None
        return self._recounted.final(store, arrived, step)

    def _updated(self, totals: IncrementalTotals, store: EventStore, step: WatermarkStep) -> pa.Table:
        """Count the uncounted rows: first those whose results were emitted before, then the others."""
        first = 0 if self._counted is None else int(np.searchsorted(store.ticks, self._counted, side="right"))
        moments, bounds, first_tick, last_tick = store.ticks[first:], step, None, None
        if self._recounted.ticks_by_time:
            bounds, moments = self._recounted.tick_numbers(step), first_ticks(self._query, moments)
            first_tick = None if bounds.passed is None else int(bounds.passed) + 1
            last_tick = LAST_TICK if bounds.now is None else int(bounds.now)
        middle = first if bounds.passed is None else first + int(np.searchsorted(moments, bounds.passed, side="right"))
        end = store.rows if bounds.now is None else first + int(np.searchsorted(moments, bounds.now, side="right"))
        if first < middle:
            totals.add(store.events.take(np.arange(first, middle)), shows=False)
        rows = totals.add(store.events.take(np.arange(middle, end)), first_tick, last_tick)
        if first < end:
            self._counted = store.ticks[end - 1].item()
        if totals.evict_keys():
            self._counted = None
        return pa.Table.from_batches([] if rows is None else [rows], self.schema)

    def needed(self, store: EventStore, passed: Tick) -> int | Bool:
        return self._recounted.needed(store, passed)

    def wake(self, store: EventStore, passed: Tick | None) -> Tick | None:
        return self._recounted.wake(store, passed)
