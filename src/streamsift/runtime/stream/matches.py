"""Make matches of detection final.

Only newly final matches are built: the search starts from finalizing events, among the rows that share a key with one
(`physical/stream/finalizing_steps.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import WindowKind
from streamsift.physical.stream import DECIDES, OTHER, FinalizedAlternative, FinalizedBy, StreamPlan
from streamsift.runtime.arrays.dtypes import Bool, Int32, Times
from streamsift.runtime.detect import SearchMemory, find_matches
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.prepare import prepare
from streamsift.runtime.matches import determined_columns, match_schema, result_batches
from streamsift.runtime.state import EventStore
from streamsift.runtime.stream.decider import Decider
from streamsift.runtime.stream.retention import Retention, retention_of, width_of
from streamsift.runtime.stream.watermark import Tick, WatermarkStep, closing, first_open, next_closing


class MatchDecider(Decider):
    """Make the matches of one plan final."""

    def __init__(self, stream: StreamPlan) -> None:
        plan = stream.plan
        self.plan, self.schema = plan, match_schema(plan.query)
        self.retention: Retention = retention_of(stream)
        window = plan.query.window
        assert window is not None
        self._width = width_of(plan.query, window) if window.kind is WindowKind.TIME else 0
        self._columns = {id(one): determined_columns(one) for one in plan.alternatives}
        self._finalized = stream.alternatives
        self._memory = {id(variant): SearchMemory(variant) for one in stream.alternatives for variant in one.variants}
        self.keys = stream.keys

    def final(self, store: EventStore, arrived: int, step: WatermarkStep) -> pa.Table:
        if not store.rows:
            return self.schema.empty_table()
        finalizing = (
            (self._finalizing(one, store, arrived, step), one.alternative.query, one.steps) for one in self._finalized
        )
        table = self.affected(store, finalizing)
        batches: list[pa.RecordBatch] = []
        if table.num_rows:
            events = prepare(self.plan.query, table)
            for one in self._finalized:
                batches += self._batches(one, with_marks(one, events, step), step)
        return pa.Table.from_batches(batches, self.schema)

    def _finalizing(
        self, one: FinalizedAlternative, store: EventStore, arrived: int, step: WatermarkStep
    ) -> slice | None:
        """Return a superset of the rows that can be finalizing events now; None if any row can."""
        window = self.plan.query.window
        if step.now is None or one.by is FinalizedBy.ANY:
            return None
        if one.by is FinalizedBy.END:
            return slice(arrived - store.first, store.rows)
        if window is None or window.kind is WindowKind.COUNT:
            return None
        low = 0 if step.passed is None else np.searchsorted(store.ticks, first_open(step.passed, self._width))
        return slice(int(low), int(np.searchsorted(store.ticks, first_open(step.now, self._width))))

    def needed(self, store: EventStore, passed: Tick) -> int | Bool:
        return self.retention.needed(store, passed)

    def wake(self, store: EventStore, passed: Tick | None) -> Tick | None:
        """Return when the first row expires or the next window of a waiting match closes."""
        if not store.rows:
            return None
        expiry = self.retention.expiry(store.ticks[0].item())
        if expiry is None or not self.retention.delay or passed is None:
            return expiry
        closes = next_closing(store.ticks, passed, self.retention.delay[0])
        return expiry if closes is None else min(expiry, closes)

    def _batches(self, one: FinalizedAlternative, events: Events, step: WatermarkStep) -> Iterator[pa.RecordBatch]:
        alternative = one.alternative
        for variant in one.variants:
            for matches in find_matches(variant, events, one.choices, memory=self._memory[id(variant)]):
                if one.by is FinalizedBy.ANY or alternative.groups is not None:
                    matches = matches.only(step.covers(when(one, events, matches.events())))
                if len(matches):
                    yield from result_batches(alternative, self.schema, events, matches, self._columns[id(alternative)])


def with_marks(one: FinalizedAlternative, events: Events, step: WatermarkStep) -> Events:
    """Add the columns that mark the events that can make a match of the alternative final now."""
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
    """Return the finalizing time of each match in `places` [steps, m]."""
    query, wait = one.alternative.query, one.awaited
    moments = events.ticks[places.max(axis=0)]
    if wait.window:
        assert query.window is not None
        moments = np.maximum(moments, closing(query.window, query.partition_by, events)[places.min(axis=0)])
    definitions = {definition.name: definition for definition in query.pattern.windowed_definitions()}
    for limit in wait.definitions:
        definition = definitions[limit.definition or ""]
        assert definition.window is not None
        first = places[list(limit.steps)].min(axis=0)
        closes = closing(definition.window, definition.partition_by or query.partition_by, events)
        moments = np.maximum(moments, closes[first])
    for name in wait.inside:
        # The window begins with an event of the negated pattern, which has arrived by then.
        window = definitions[name].window
        assert window is not None
        last = np.searchsorted(events.ticks, moments, side="right").clip(max=events.ticks.size) - 1
        moments = np.maximum(moments, closing(window, query.partition_by, events)[last])
    return moments
