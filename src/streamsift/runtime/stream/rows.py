"""Make rows of aggregation and ranking final by recomputing the window from its events."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from streamsift.language.syntax import Emit
from streamsift.logical.bound import WindowKind
from streamsift.physical.plan import AggregatePlan, RankPlan
from streamsift.physical.stream import StreamPlan
from streamsift.runtime.arrays.dtypes import Bool, Int64
from streamsift.runtime.count import aggregate, relevant_places
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.prepare import prepare
from streamsift.runtime.events.stamps import Clock
from streamsift.runtime.events.update_ticks import UpdateTicks
from streamsift.runtime.execute import output_schema
from streamsift.runtime.rank import rank
from streamsift.runtime.state import EventStore, KeyedVectors
from streamsift.runtime.stream.decider import Decider, affected_rows, bound_by
from streamsift.runtime.stream.retention import Retention, RowCounts, retention_of
from streamsift.runtime.stream.watermark import (
    Tick,
    WatermarkStep,
    after,
    closing,
    last_tick,
    next_closing,
    time_of_tick,
)


class RowDecider(Decider):
    """Make the rows of one plan final: one row per time, or per tick of UPDATE.

    A row is final once the watermark has passed its time and, if matches wait for the end of their window, all windows
    that begin before it. EMIT CHANGES compares with the row at the previous relevant event, so its window is retained.
    """

    def __init__(self, stream: StreamPlan) -> None:
        plan = stream.plan
        assert isinstance(plan, AggregatePlan | RankPlan)
        self.plan: AggregatePlan | RankPlan = plan
        self.schema = output_schema(plan.query)
        self.retention: Retention = retention_of(stream)
        self.ticks_by_time = plan.query.update is not None and plan.query.update.kind is WindowKind.TIME
        self._waits = stream.waits
        self.keys, self._last_steps = stream.keys, stream.last_steps
        self._row_counts: RowCounts | None = None
        if plan.query.update is not None and not self.ticks_by_time:
            step = int(plan.query.update.length)
            self._row_counts = RowCounts(plan.query.schema, plan.query.partition_by, step)
        self._changes = plan.query.emit is Emit.CHANGES
        self._last_relevant: Tick | None = None

    @property
    def follows(self) -> bool:
        return self._row_counts is None and not self._changes

    def final(self, store: EventStore, arrived: int, step: WatermarkStep) -> pa.Table:
        query = self.plan.query
        if self._row_counts is not None and arrived < store.first + store.rows:
            self._row_counts.add(store.events.take(np.arange(arrived - store.first, store.rows)))
        if not store.rows or self.no_tick_passes(step):
            return self.schema.empty_table()
        rows: Int64 | None = None  # all
        if self.keys:
            new = np.arange(arrived - store.first, store.rows)
            last_steps = zip(self.plan.alternatives, self._last_steps, strict=True)
            rows = affected_rows(store, self.keys, (bound_by(store, new, one.query, last) for one, last in last_steps))
        events = prepare(query, store.events.whole() if rows is None else store.events.take(rows))
        if isinstance(self.plan, RankPlan):
            wanted = partial(self._wanted_ticks, events, step=step)
            ranked = list(rank(self.plan, events, ties=self.plan.with_ties, wanted=wanted))
            return pa.Table.from_batches(ranked) if ranked else self.schema.empty_table()
        batches = list(aggregate(self.plan, events, lambda clock, of: self._wanted(events, clock, of, step)))
        self._remember(events, step)
        return pa.Table.from_batches(batches, self.schema)

    # --- which rows ---
    def tick_numbers(self, step: WatermarkStep) -> WatermarkStep:
        """Return the step in tick numbers: the last tick that was final before, and the last that is final now."""

        def number(moment: Tick | None) -> int | None:
            return None if moment is None else last_tick(self.plan.query, moment, *self.retention.delay)

        return WatermarkStep(number(step.passed), number(step.now))

    def no_tick_passes(self, step: WatermarkStep) -> bool:
        if not self.ticks_by_time:
            return False
        numbers = self.tick_numbers(step)
        return numbers.passed is not None and numbers.passed == numbers.now

    def _wanted(self, events: Events, clock: Clock, stamps: Int64, step: WatermarkStep) -> Bool:
        """Return a mask of the newly final rows of an aggregation, by stamp."""
        if self.ticks_by_time:
            return self.tick_numbers(step).covers(stamps)
        assert clock.places is not None
        return step.covers(self._when(events)[clock.places(stamps)])

    def _wanted_ticks(self, events: Events, ticks: UpdateTicks, step: WatermarkStep) -> UpdateTicks:
        """Return the newly final ticks of a ranking."""
        if self.ticks_by_time:
            numbers, first, last = self.tick_numbers(step), ticks.first, ticks.last
            first = first if numbers.passed is None else np.maximum(first, int(numbers.passed) + 1)
            return replace(ticks, first=first, last=last if numbers.now is None else np.minimum(last, int(numbers.now)))
        # Ticks of a partition ascend in time, so its newly final ticks are the last ones.
        count = ticks.row_places.size
        wanted = np.flatnonzero(step.covers(self._when(events)[ticks.row_places]))
        following = np.append(wanted, count)[np.searchsorted(wanted, ticks.first)]
        last = np.append(-1, wanted)[np.searchsorted(wanted, ticks.last, side="right")]
        return replace(ticks, first=following, last=last)

    def _when(self, events: Events) -> np.ndarray:
        """Return for each place the finalizing time of the row computed there."""
        window = self.plan.query.window
        if not self._waits or window is None:
            return events.ticks
        return after(closing(window, self.plan.query.partition_by, events), *self.retention.delay[1:])

    # --- what must be retained ---
    def _remember(self, events: Events, step: WatermarkStep) -> None:
        """Record the last relevant event whose row is final."""
        if self._changes and isinstance(self.plan, AggregatePlan):
            places = relevant_places(self.plan, events)
            # The row of a time is computed at its last place.
            rows = np.searchsorted(events.rank, events.rank[places], side="right") - 1
            final = places[WatermarkStep(None, step.now).covers(self._when(events)[rows])]
            if final.size:
                self._last_relevant = events.ticks[final[-1]].item()

    def needed(self, store: EventStore, passed: Tick) -> int | Bool:
        if self._row_counts is not None:
            return self._row_counts.needed(store, self.retention.rows)
        if not self._changes:
            return self.retention.needed(store, passed)
        if self._last_relevant is None:
            return store.first
        return self.retention.needed(store, min(passed, self._last_relevant))

    def state(self) -> dict[str, KeyedVectors]:
        return {} if self._row_counts is None else {"rows": self._row_counts.vectors}

    def wake(self, store: EventStore, passed: Tick | None) -> Tick | None:
        if not store.rows:
            return None
        moments = [] if self._changes else [self.retention.expiry(store.ticks[0].item())]
        if self.ticks_by_time:
            since = store.ticks[0].item() if passed is None else passed
            following = last_tick(self.plan.query, since, *self.retention.delay) + 1
            moments.append(time_of_tick(self.plan.query, following, *self.retention.delay))
        elif self._waits and passed is not None and self.retention.delay:
            moments.append(next_closing(store.ticks, passed, *self.retention.delay))
        return min((m for m in moments if m is not None and (passed is None or m > passed)), default=None)
