"""Events that came and time that passes in, the rows of detection that it decides out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from streamsift.physical.definitions import own_windows
from streamsift.physical.plan import Alternative, DetectPlan
from streamsift.physical.streaming import Awaited, awaited
from streamsift.runtime.detect import CHUNK_MATCHES, group_matches, match_rows
from streamsift.runtime.event_store import EventStore
from streamsift.runtime.events import Events, prepare
from streamsift.runtime.group_output import group_batches
from streamsift.runtime.kernels import Bool, Int32, Ticks
from streamsift.runtime.output import known_columns, match_schema, result_batches
from streamsift.runtime.own_windows import with_own_windows
from streamsift.runtime.passing import Passing, Tick, closing
from streamsift.runtime.retention import Retention, retention_of


class Matches:
    """Decides the matches of one plan."""

    def __init__(self, plan: DetectPlan) -> None:
        self.plan, self.schema = plan, match_schema(plan.query)
        self.retention: Retention = retention_of(plan, of_rows=False)
        self._awaited = [awaited(alternative) for alternative in plan.alternatives]

    def decided(self, store: EventStore, arrived: int, passing: Passing) -> pa.Table:
        """The rows that time decides by passing; rows from `arrived` on came in this stretch of it."""
        if not store.rows:
            return self.schema.empty_table()
        events = with_own_windows(self.plan.query, prepare(self.plan.query, store.events.whole()))
        found = [
            pa.Table.from_batches([batch])
            for alternative, wait in zip(self.plan.alternatives, self._awaited, strict=True)
            for batch in self._batches(alternative, wait, events, passing)
        ]
        return pa.concat_tables([self.schema.empty_table(), *found])

    def needed(self, store: EventStore, passed: Tick) -> int | Bool:
        return self.retention.needed(store, passed)

    def wake(self, store: EventStore, passed: Tick | None) -> Tick | None:
        """A row that is held is the first of a match that waits, or expires: the window of the first closes first."""
        if not store.rows:
            return None
        found = self.retention.expiry(store.ticks[0].item())
        if found is None or not self.retention.delay or passed is None:
            return found
        waiting = store.ticks[np.searchsorted(store.ticks, passed - self.retention.delay[0], side="right") :]
        opens = [waiting[0].item() + self.retention.delay[0]] if waiting.size else []
        return min([found, *(moment for moment in opens if moment > passed)])

    def _batches(
        self, alternative: Alternative, wait: Awaited, events: Events, passing: Passing
    ) -> Iterator[pa.RecordBatch]:
        if alternative.groups is not None:
            for matches in group_matches(alternative, events, self.plan.choices):
                decided = passing.covers(when(alternative, wait, events, matches.events()))
                yield from group_batches(alternative, self.schema, events, matches.only(decided))
            return
        known = known_columns(alternative, CHUNK_MATCHES)
        for rows in match_rows(alternative, events, self.plan.choices):
            decided = passing.covers(when(alternative, wait, events, _places(events, rows)))
            if decided.any():
                yield from result_batches(alternative, self.schema, events, known, rows[:, decided])


def _places(events: Events, rows: Int32) -> Int32:
    if events.in_input_order:
        return rows
    place_of = np.empty(events.columns.table.num_rows, np.int32)
    place_of[events.rows] = np.arange(events.rows.size, dtype=np.int32)
    return place_of[rows]


def when(alternative: Alternative, wait: Awaited, events: Events, places: Int32) -> Ticks:
    """The moment whose passing decides each of the matches [steps, m]."""
    query = alternative.query
    found = events.ticks[places.max(axis=0)]
    if wait.window:
        assert query.window is not None
        found = np.maximum(found, closing(query.window, query.partition_by, events)[places.min(axis=0)])
    own = {definition.name: definition for definition in own_windows(query.pattern)}
    for limit in wait.definitions:
        definition = own[limit.definition or ""]
        assert definition.window is not None
        first = places[list(limit.steps)].min(axis=0)
        closes = closing(definition.window, definition.partition_by or query.partition_by, events)
        found = np.maximum(found, closes[first])
    for name in wait.inside:
        # The window begins with an event of the negated pattern, which is not later than what is known by then.
        window = own[name].window
        assert window is not None
        last = np.searchsorted(events.ticks, found, side="right").clip(max=events.ticks.size) - 1
        found = np.maximum(found, closing(window, query.partition_by, events)[last])
    return found
