"""Make matches of detection final.

Only newly final matches are built: they are found from the finalizing events, among the rows that share a key
with one (`physical/stream/finalizing_steps.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import WindowKind
from streamsift.physical.stream import DECIDES, OTHER, FinalizedAlternative, FinalizedBy, StreamPlan
from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64, Times
from streamsift.runtime.detect import find_matches
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.prepare import prepare
from streamsift.runtime.matches import known_columns, match_schema, result_batches
from streamsift.runtime.state import EventStore
from streamsift.runtime.stream.affected_rows import Finalizing, rows_sharing_keys
from streamsift.runtime.stream.decider import Decider
from streamsift.runtime.stream.retention import Retention, retention_of, width_of
from streamsift.runtime.stream.watermark import Tick, WatermarkStep, closing, first_open, next_closing


class MatchDecider(Decider):
    """Decides the matches of one plan."""

    def __init__(self, stream: StreamPlan) -> None:
        plan = stream.plan
        self.plan, self.schema = plan, match_schema(plan.query)
        self.retention: Retention = retention_of(stream)
        window = plan.query.window
        assert window is not None
        self._width = width_of(plan.query, window) if window.kind is WindowKind.TIME else 0
        self._known = {id(one): known_columns(one) for one in plan.alternatives}
        self._finalized = stream.alternatives
        self.keys = stream.keys

    def final(self, store: EventStore, arrived: int, step: WatermarkStep) -> pa.Table:
        if not store.rows:
            return self.schema.empty_table()
        rows = self._rows(store, arrived, step)
        if rows is not None and not rows.size:
            return self.schema.empty_table()
        table = store.events.whole() if rows is None else store.events.take(rows)
        events = prepare(self.plan.query, table)
        found = [
            pa.Table.from_batches([batch])
            for one in self._finalized
            for batch in self._batches(one, with_marks(one, events, step), step)
        ]
        return pa.concat_tables([self.schema.empty_table(), *found])

    def _rows(self, store: EventStore, arrived: int, step: WatermarkStep) -> Int64 | None:
        """Return the rows that share a key with one that may make a match final now, ascending; None for all."""
        if store.index is None or store.index.columns != self.keys or step.now is None:
            return None
        found: list[Finalizing] = []
        for one in self._finalized:
            if (part := self._finalizing(one, store, arrived, step)) is None:
                return None
            found.append((part, one.alternative.query, one.steps))
        return rows_sharing_keys(store, found)

    def _finalizing(
        self, one: FinalizedAlternative, store: EventStore, arrived: int, step: WatermarkStep
    ) -> slice | None:
        """Return rows that may be the finalizing event of a match now, and some others; None if any may."""
        window = self.plan.query.window
        assert window is not None
        if one.by is FinalizedBy.END:
            return slice(arrived - store.first, store.rows)
        if one.by is FinalizedBy.ANY or window.kind is WindowKind.COUNT:
            return None
        assert step.now is not None
        low = 0 if step.passed is None else np.searchsorted(store.ticks, first_open(step.passed, self._width))
        return slice(int(low), int(np.searchsorted(store.ticks, first_open(step.now, self._width))))

    def needed(self, store: EventStore, passed: Tick) -> int | Bool:
        return self.retention.needed(store, passed)

    def wake(self, store: EventStore, passed: Tick | None) -> Tick | None:
        """A row that is held is the first of a match that waits, or expires: the window of the first closes first."""
        if not store.rows:
            return None
        found = self.retention.expiry(store.ticks[0].item())
        if found is None or not self.retention.delay or passed is None:
            return found
        closes = next_closing(store.ticks, passed, self.retention.delay[0])
        return found if closes is None else min(found, closes)

    def _batches(self, one: FinalizedAlternative, events: Events, step: WatermarkStep) -> Iterator[pa.RecordBatch]:
        alternative = one.alternative
        known = self._known[id(alternative)]
        for variant in one.variants:
            for matches in find_matches(variant, events, one.choices):
                if one.by is FinalizedBy.ANY or alternative.groups is not None:
                    matches = matches.only(step.covers(when(one, events, matches.events())))
                if len(matches):
                    yield from result_batches(alternative, self.schema, events, matches, known)


def with_marks(one: FinalizedAlternative, events: Events, step: WatermarkStep) -> Events:
    """Return the events with the columns that mark which may make a match of the alternative final now."""
    if not one.is_marked:
        return events
    moments, query = events.ticks, one.alternative.query
    if one.by is FinalizedBy.START:
        assert query.window is not None
        moments = closing(query.window, query.partition_by, events)
    decides = step.covers(moments)
    other = np.zeros(decides.size, np.bool_)
    if one.by is FinalizedBy.END and step.passed is not None:
        other = moments <= step.passed
    elif one.by is FinalizedBy.START and step.now is not None:
        other = moments > step.now
    columns = events.columns
    for name, of_place in ((DECIDES, decides), (OTHER, other)):
        of_row = np.zeros(columns.table.num_rows, np.bool_)
        of_row[events.rows] = of_place
        columns = columns.with_array(name, pa.array(of_row))
    return replace(events, columns=columns)


def when(one: FinalizedAlternative, events: Events, places: Int32) -> Times:
    """Return the moment whose passing makes each of the matches [steps, m] final."""
    query, wait = one.alternative.query, one.awaited
    found = events.ticks[places.max(axis=0)]
    if wait.window:
        assert query.window is not None
        found = np.maximum(found, closing(query.window, query.partition_by, events)[places.min(axis=0)])
    own = {definition.name: definition for definition in query.pattern.windowed_definitions()}
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
