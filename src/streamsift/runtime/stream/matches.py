"""Events that came and time that passes in, the rows of detection that it decides out.

Only matches that are newly decided are built: they are found from the events that decide them, among the rows that
share a key with such an event (`physical/stream/finalizing_steps.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import WindowKind
from streamsift.physical.stream import DECIDES, OTHER, FinalizedAlternative, FinalizedBy, StreamPlan
from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64, Times
from streamsift.runtime.detect import group_matches, match_rows
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.prepare import prepare
from streamsift.runtime.matches import group_batches, known_columns, match_schema, result_batches
from streamsift.runtime.state import EventStore, KeyedVectors
from streamsift.runtime.stream.affected_rows import Deciding, rows_sharing_keys
from streamsift.runtime.stream.retention import Retention, retention_of, width_of
from streamsift.runtime.stream.watermark import Passing, Tick, closing, first_open, next_closing


class Matches:
    """Decides the matches of one plan."""

    follows, nbytes = True, 0

    def __init__(self, stream: StreamPlan) -> None:
        plan = stream.plan
        self.plan, self.schema = plan, match_schema(plan.query)
        self.retention: Retention = retention_of(stream)
        window = plan.query.window
        assert window is not None
        self._width = width_of(plan.query, window) if window.kind is WindowKind.TIME else 0
        self._known = {id(one): known_columns(one) for one in plan.alternatives if one.groups is None}
        self._finalized = stream.alternatives
        self.keys = stream.keys

    def decided(self, store: EventStore, arrived: int, passing: Passing) -> pa.Table:
        """The rows that time decides by passing; rows from `arrived` on came in this stretch of it."""
        if not store.rows:
            return self.schema.empty_table()
        rows = self._rows(store, arrived, passing)
        if rows is not None and not rows.size:
            return self.schema.empty_table()
        table = store.events.whole() if rows is None else store.events.take(rows)
        events = prepare(self.plan.query, table)
        found = [
            pa.Table.from_batches([batch])
            for one in self._finalized
            for batch in self._batches(one, with_marks(one, events, passing), passing)
        ]
        return pa.concat_tables([self.schema.empty_table(), *found])

    def _rows(self, store: EventStore, arrived: int, passing: Passing) -> Int64 | None:
        """The rows that share a key with one that may decide a match now, ascending; None for all."""
        if store.index is None or store.index.columns != self.keys or passing.now is None:
            return None
        found: list[Deciding] = []
        for one in self._finalized:
            if (part := self._deciding(one, store, arrived, passing)) is None:
                return None
            found.append((part, one.alternative.query, one.steps))
        return rows_sharing_keys(store, found)

    def _deciding(self, one: FinalizedAlternative, store: EventStore, arrived: int, passing: Passing) -> slice | None:
        """Rows that may be what decides a match now, and some others; None if any may."""
        window = self.plan.query.window
        assert window is not None
        if one.by is FinalizedBy.END:
            return slice(arrived - store.first, store.rows)
        if one.by is FinalizedBy.ANY or window.kind is WindowKind.COUNT:
            return None
        assert passing.now is not None
        low = 0 if passing.passed is None else np.searchsorted(store.ticks, first_open(passing.passed, self._width))
        return slice(int(low), int(np.searchsorted(store.ticks, first_open(passing.now, self._width))))

    def needed(self, store: EventStore, passed: Tick) -> int | Bool:
        return self.retention.needed(store, passed)

    def state(self) -> dict[str, KeyedVectors]:
        return {}

    def wake(self, store: EventStore, passed: Tick | None) -> Tick | None:
        """A row that is held is the first of a match that waits, or expires: the window of the first closes first."""
        if not store.rows:
            return None
        found = self.retention.expiry(store.ticks[0].item())
        if found is None or not self.retention.delay or passed is None:
            return found
        closes = next_closing(store.ticks, passed, self.retention.delay[0])
        return found if closes is None else min(found, closes)

    def _batches(self, one: FinalizedAlternative, events: Events, passing: Passing) -> Iterator[pa.RecordBatch]:
        alternative = one.alternative
        if alternative.groups is not None:
            for variant in one.variants:
                for matches in group_matches(variant, events, one.choices):
                    decided = passing.covers(when(one, events, matches.events()))
                    yield from group_batches(alternative, self.schema, events, matches.only(decided))
            return
        known = self._known[id(alternative)]
        for variant in one.variants:
            for rows in match_rows(variant, events, one.choices):
                if one.by is FinalizedBy.ANY:
                    rows = rows[:, passing.covers(when(one, events, _places(events, rows)))]
                if rows.shape[1]:
                    yield from result_batches(alternative, self.schema, events, known, rows)


def with_marks(one: FinalizedAlternative, events: Events, passing: Passing) -> Events:
    """The events with the columns that tell which of them may decide a match of the alternative now."""
    if not one.is_marked:
        return events
    moments, query = events.ticks, one.alternative.query
    if one.by is FinalizedBy.START:
        assert query.window is not None
        moments = closing(query.window, query.partition_by, events)
    decides = passing.covers(moments)
    other = np.zeros(decides.size, np.bool_)
    if one.by is FinalizedBy.END and passing.passed is not None:
        other = moments <= passing.passed
    elif one.by is FinalizedBy.START and passing.now is not None:
        other = moments > passing.now
    columns = events.columns
    for name, of_place in ((DECIDES, decides), (OTHER, other)):
        of_row = np.zeros(columns.table.num_rows, np.bool_)
        of_row[events.rows] = of_place
        columns = columns.with_array(name, pa.array(of_row))
    return replace(events, columns=columns)


def _places(events: Events, rows: Int32) -> Int32:
    if events.in_input_order:
        return rows
    place_of = np.empty(events.columns.table.num_rows, np.int32)
    place_of[events.rows] = np.arange(events.rows.size, dtype=np.int32)
    return place_of[rows]


def when(one: FinalizedAlternative, events: Events, places: Int32) -> Times:
    """The moment whose passing decides each of the matches [steps, m]."""
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
