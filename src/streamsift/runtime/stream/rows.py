"""Events that came and time that passes in, the rows of aggregation and ranking that it decides out."""

from __future__ import annotations

from dataclasses import replace

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
from streamsift.runtime.rank import rank
from streamsift.runtime.schema import output_schema
from streamsift.runtime.state import EventStore, KeyedVectors
from streamsift.runtime.stream.affected_rows import rows_sharing_keys
from streamsift.runtime.stream.retention import Retention, retention_of
from streamsift.runtime.stream.row_counts import RowCounts
from streamsift.runtime.stream.watermark import (
    Passing,
    Tick,
    after,
    closing,
    in_order,
    last_tick,
    next_closing,
    time_of_tick,
)


class Rows:
    """Decides the rows of one plan over the matches in a window: those of a time, or of a tick of UPDATE.

    A row of a time is decided when time has passed it, and all windows that begin before it where matches wait for
    their end. Rows of EMIT CHANGES compare with the row at the relevant event before: the window of that one is held.
    """

    def __init__(self, stream: StreamPlan) -> None:
        plan = stream.plan
        assert isinstance(plan, AggregatePlan | RankPlan)
        self.plan: AggregatePlan | RankPlan = plan
        self.schema = output_schema(plan.query)
        self.retention: Retention = retention_of(stream)
        self._ticks_by_time = plan.query.update is not None and plan.query.update.kind is WindowKind.TIME
        self._waits = stream.waits
        self.keys, self._last_steps = stream.keys, stream.last_steps
        self._row_counts: RowCounts | None = None
        if plan.query.update is not None and not self._ticks_by_time:
            step = int(plan.query.update.length)
            self._row_counts = RowCounts(plan.query.schema, plan.query.partition_by, step)
        self._changes = plan.query.emit is Emit.CHANGES
        self._last_relevant: Tick | None = None

    @property
    def follows(self) -> bool:
        return self._row_counts is None and not self._changes

    @property
    def nbytes(self) -> int:
        return 0

    def decided(self, store: EventStore, arrived: int, passing: Passing) -> pa.Table:
        """The rows that time decides by passing; rows from `arrived` on came in this stretch of it."""
        query = self.plan.query
        if self._row_counts is not None and arrived < store.first + store.rows:
            self._row_counts.add(store.events.take(np.arange(arrived - store.first, store.rows)))
        if not store.rows or self._no_tick_passes(passing):
            return self.schema.empty_table()
        rows = self._rows(store, arrived)
        events = prepare(query, store.events.whole() if rows is None else store.events.take(rows))
        if isinstance(self.plan, RankPlan):
            batches = list(rank(self.plan, events, wanted=lambda ticks: self._wanted_ticks(events, ticks, passing)))
        else:
            batches = list(aggregate(self.plan, events, lambda clock, of: self._wanted(events, clock, of, passing)))
            self._remember(events, passing)
        return pa.Table.from_batches(batches, self.schema)

    def _rows(self, store: EventStore, arrived: int) -> Int64 | None:
        """The rows of the groups in which a match may end now; None for all."""
        if store.index is None or store.index.columns != self.keys:
            return None
        new = slice(arrived - store.first, store.rows)
        return rows_sharing_keys(
            store,
            ((new, a.query, last) for a, last in zip(self.plan.alternatives, self._last_steps, strict=True)),
        )

    # --- which rows ---
    def _numbers(self, passing: Passing) -> tuple[int | None, int | None]:
        """The last ticks that were decided before, and that are decided now."""

        def number(moment: Tick | None) -> int | None:
            return None if moment is None else last_tick(self.plan.query, moment, *self.retention.delay)

        return number(passing.passed), number(passing.now)

    def _no_tick_passes(self, passing: Passing) -> bool:
        if not self._ticks_by_time:
            return False
        low, high = self._numbers(passing)
        return low is not None and low == high

    def _wanted(self, events: Events, clock: Clock, stamps: Int64, passing: Passing) -> Bool:
        """Which rows of aggregation, by the stamps of their clock."""
        if self._ticks_by_time:
            return in_order(stamps, *self._numbers(passing))
        assert clock.places is not None
        return passing.covers(self._when(events)[clock.places(stamps)])

    def _wanted_ticks(self, events: Events, ticks: UpdateTicks, passing: Passing) -> UpdateTicks:
        """The ticks of a ranking without those that are not wanted."""
        if self._ticks_by_time:
            low, high = self._numbers(passing)
            first = ticks.first if low is None else np.maximum(ticks.first, low + 1)
            return replace(ticks, first=first, last=ticks.last if high is None else np.minimum(ticks.last, high))
        # Ticks of a partition are numbered on and ascend in time: those that are wanted are its last ones.
        count = ticks.row_places.size
        wanted = np.flatnonzero(passing.covers(self._when(events)[ticks.row_places]))
        following = np.append(wanted, count)[np.searchsorted(wanted, ticks.first)]
        last = np.append(-1, wanted)[np.searchsorted(wanted, ticks.last, side="right")]
        return replace(ticks, first=following, last=last)

    def _when(self, events: Events) -> np.ndarray:
        """By place, the moment whose passing decides a row that is made there."""
        window = self.plan.query.window
        if not self._waits or window is None:
            return events.ticks
        found = closing(window, self.plan.query.partition_by, events)
        for width in self.retention.delay[1:]:
            found = after(found, width)
        return found

    # --- what must be held ---
    def _remember(self, events: Events, passing: Passing) -> None:
        """The last relevant event whose row is decided."""
        if self._changes and isinstance(self.plan, AggregatePlan):
            places = relevant_places(self.plan, events)
            # The row of a time is made at its last place.
            rows = np.searchsorted(events.rank, events.rank[places], side="right") - 1
            decided = places[Passing(None, passing.now).covers(self._when(events)[rows])]
            if decided.size:
                self._last_relevant = events.ticks[decided[-1]].item()

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
        found = [] if self._changes else [self.retention.expiry(store.ticks[0].item())]
        if self._ticks_by_time:
            known = store.ticks[0].item() if passed is None else passed
            following = last_tick(self.plan.query, known, *self.retention.delay) + 1
            found.append(time_of_tick(self.plan.query, following, *self.retention.delay))
        elif self._waits and passed is not None and self.retention.delay:
            found.append(next_closing(store.ticks, passed, *self.retention.delay))
        later = [moment for moment in found if moment is not None and (passed is None or moment > passed)]
        return min(later, default=None)
