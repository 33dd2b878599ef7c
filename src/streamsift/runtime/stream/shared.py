"""Make the rows of several queries over a window final from counters that they share."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from streamsift.physical.plan import Plan
from streamsift.physical.share import SharedTree, ShareMode, share_stream
from streamsift.physical.stream import StreamPlan
from streamsift.runtime.count import NotIncremental
from streamsift.runtime.share import SharedTotals
from streamsift.runtime.state import EventStore
from streamsift.runtime.stream.rows import RowDecider
from streamsift.runtime.stream.watermark import Tick, WatermarkStep


class SharedWindow:
    """The totals of the queries of a tree. The first query that a step asks computes the rows of all."""

    def __init__(self, tree: SharedTree, plans: Mapping[str, Plan]) -> None:
        self._totals: SharedTotals | None = SharedTotals(tree, plans)  # None: windows are recomputed
        self._counted: Tick | None = None  # the time of the last event that was counted
        self._step: WatermarkStep | None = None  # whose rows are in `_rows`
        self._rows: dict[str, pa.RecordBatch | None] = {}

    @property
    def nbytes(self) -> int:
        return 0 if self._totals is None else self._totals.nbytes

    def rows(self, store: EventStore, step: WatermarkStep) -> dict[str, pa.RecordBatch | None] | None:
        """Return the new rows of each query; None if they must be recomputed."""
        if self._totals is not None and self._step is not step:
            try:
                self._rows, self._step = self._updated(self._totals, store, step), step
            except NotIncremental:
                self._totals = None
        return None if self._totals is None else self._rows

    def _updated(
        self, totals: SharedTotals, store: EventStore, step: WatermarkStep
    ) -> dict[str, pa.RecordBatch | None]:
        """Count the uncounted rows: first those whose results were emitted before, then the others."""
        ticks = store.ticks
        first = 0 if self._counted is None else int(np.searchsorted(ticks, self._counted, side="right"))
        middle = first if step.passed is None else max(first, int(np.searchsorted(ticks, step.passed, side="right")))
        end = store.rows if step.now is None else int(np.searchsorted(ticks, step.now, side="right"))
        if first < middle:
            totals.add(store.events.take(np.arange(first, middle)), shows=False)
        rows = totals.add(store.events.take(np.arange(middle, end)))
        if first < end:
            self._counted = ticks[end - 1].item()
        if totals.evict_keys():
            self._counted = None
        return rows


class MemberTotals(RowDecider):
    """One query of a shared window."""

    def __init__(self, stream: StreamPlan, name: str, window: SharedWindow, reports_size: bool) -> None:
        super().__init__(stream)
        self._name, self._window, self._reports_size = name, window, reports_size

    @property
    def nbytes(self) -> int:
        return self._window.nbytes if self._reports_size else 0

    def final(self, store: EventStore, arrived: int, step: WatermarkStep) -> pa.Table:
        rows = self._window.rows(store, step) if store.rows else {}
        if rows is None:
            return super().final(store, arrived, step)
        batch = rows.get(self._name)
        return pa.Table.from_batches([] if batch is None else [batch], self.schema)


def shared_deciders(streams: Mapping[str, StreamPlan], how: ShareMode) -> dict[str, MemberTotals]:
    """Return the deciders of the queries that share counters."""
    plans = {name: stream.plan for name, stream in streams.items()}
    deciders: dict[str, MemberTotals] = {}
    for tree in share_stream(plans, how).trees:
        window = SharedWindow(tree, plans)
        for number, name in enumerate(tree.members):
            deciders[name] = MemberTotals(streams[name], name, window, reports_size=number == 0)
    return deciders
