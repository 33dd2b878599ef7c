"""Make rows of totals over a window final, at the cost of the new events.

The events of the window are held, as for any query, beside the totals in memory. Events that are held and not yet
counted are counted first: after a state was read that is all of them, after another worker had the state those that
came meanwhile. Values that cannot be added up without their events are counted with the window, by `RowDecider`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from streamsift.physical.plan import AggregatePlan
from streamsift.physical.stream import StreamPlan
from streamsift.runtime.arrays.dtypes import Bool
from streamsift.runtime.count import IncrementalTotals, NotIncremental
from streamsift.runtime.events.update_ticks import first_ticks
from streamsift.runtime.state import EventStore
from streamsift.runtime.stream.decider import Decider
from streamsift.runtime.stream.rows import RowDecider
from streamsift.runtime.stream.watermark import LAST_TICK, Tick, WatermarkStep


class WindowTotals(Decider):
    """Decides the rows of one plan."""

    def __init__(self, stream: StreamPlan) -> None:
        assert isinstance(stream.plan, AggregatePlan)
        self._query = stream.plan.query
        self._totals: IncrementalTotals | None = IncrementalTotals(stream.plan)  # None: rows are recounted
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
        """Count the rows that are not counted yet: those whose results were emitted before, then the others."""
        first = 0 if self._counted is None else int(np.searchsorted(store.ticks, self._counted, side="right"))
        moments, low, high = store.ticks[first:], step.passed, step.now
        first_tick, last_tick = None, None
        if self._recounted.ticks_by_time:
            low, high = self._recounted.tick_numbers(step)
            moments = first_ticks(self._query, moments)
            first_tick, last_tick = None if low is None else low + 1, LAST_TICK if high is None else high
        middle = first if low is None else first + int(np.searchsorted(moments, low, side="right"))
        stop = store.rows if high is None else first + int(np.searchsorted(moments, high, side="right"))
        if first < middle:
            totals.add(store.events.take(np.arange(first, middle)), shows=False)
        rows = totals.add(store.events.take(np.arange(middle, stop)), first_tick, last_tick)
        if first < stop:
            self._counted = store.ticks[stop - 1].item()
        if totals.evict_keys():
            self._counted = None
        return pa.Table.from_batches([] if rows is None else [rows], self.schema)

    def needed(self, store: EventStore, passed: Tick) -> int | Bool:
        return self._recounted.needed(store, passed)

    def wake(self, store: EventStore, passed: Tick | None) -> Tick | None:
        return self._recounted.wake(store, passed)
