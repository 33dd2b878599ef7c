"""Make rows of totals without a window final: nothing is kept of an event."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from streamsift.physical.plan import AggregatePlan
from streamsift.physical.stream import StreamPlan
from streamsift.runtime.arrays.dtypes import Bool
from streamsift.runtime.count import IncrementalTotals
from streamsift.runtime.state import EventStore, KeyedVectors
from streamsift.runtime.stream.decider import Decider
from streamsift.runtime.stream.watermark import Tick, WatermarkStep


class RunningTotals(Decider):
    """Decides the rows of one plan, from the events of a step and the totals before it."""

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
