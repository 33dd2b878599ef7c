"""Make matches of detection final.

Only newly final matches are built: the search starts from finalizing events, among the rows that share a key with one
(`physical/stream/finalizing_steps.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import WindowKind
from streamsift.physical.stream import DECIDES, OTHER, FinalizedAlternative, FinalizedBy, StreamPlan
from streamsift.runtime.arrays.dtypes import Bool, Int64
from streamsift.runtime.detect import find_matches
from streamsift.runtime.events.prepare import prepare
from streamsift.runtime.matches import determined_columns, match_schema, result_batches
from streamsift.runtime.state import ArrivalStore
from streamsift.runtime.stream.decider import affected_rows, bound_by
from streamsift.runtime.stream.horizon import Horizon, latest_of_all, latest_of_keys
from streamsift.runtime.stream.intake import Latest
from streamsift.runtime.stream.retention import Retention, retention_of, width_of
from streamsift.runtime.stream.watermark import Tick, WatermarkStep, before, earlier, first_open, following

NO_ROWS = np.empty(0, np.int64)
NOTHING: Latest = (None, None)


@dataclass(frozen=True)
class _Search:
    """What a step brings: new rows, and rows that the horizon reaches or passes. Rows are numbered from 0."""

    store: ArrivalStore
    step: WatermarkStep
    ordered: tuple[str, ...] | None
    latest: Latest

    @property
    def first_new(self) -> int:
        return self.store.arrived - self.store.first

    @cached_property
    def new(self) -> Int64:
        return np.arange(self.first_new, self.store.rows)

    @cached_property
    def is_in_order(self) -> bool:
        """Return True if all new events come after all others."""
        new = self.store.ticks[self.first_new :]
        greatest = self.store.greatest_searched
        return bool(new.size) and (greatest is None or bool(new.min() > greatest))

    def crossed(self, width: Tick) -> Int64:
        """Return the rows, or those whose window of this width ends, that the horizon passes; maybe others."""
        by_watermark = self.crossed_by_watermark(width)
        if self.ordered is None:
            return by_watermark
        if self.ordered:
            return np.union1d(self.new, by_watermark)
        if self.latest[1] is None:
            return by_watermark
        low, high = (None if row is None else row.column("tick")[0].as_py() for row in self.latest)
        if low is not None:
            low = before(earlier(low, width))
        return np.union1d(by_watermark, self.store.rows_between(low, high))

    def crossed_by_watermark(self, width: Tick) -> Int64:
        """Return the rows with times, or window ends, that the watermark reaches or passes in this step."""
        step = self.step
        if not step.moves or step.now is None:
            return NO_ROWS if not step.moves else np.arange(self.store.rows)
        low = step.passed
        if width:
            low = None if low is None else before(first_open(low, width))
            return self.store.rows_between(low, before(first_open(step.now, width)))
        return self.store.rows_between(low, following(step.now))


class MatchDecider:
    """Make the matches of one plan final."""

    def __init__(self, stream: StreamPlan) -> None:
        plan = stream.plan
        self.plan, self.schema = plan, match_schema(plan.query)
        self.retention: Retention = retention_of(stream)
        window = plan.query.window
        assert window is not None
        self._width = width_of(plan.query, window) if window.kind is WindowKind.TIME else None
        self._columns = {id(one): determined_columns(one) for one in plan.alternatives}
        self._finalized = stream.alternatives
        self.keys = stream.keys
        self.reads_older_states = not any(one.awaited.is_newer for one in stream.alternatives)

    def final(
        self, store: ArrivalStore, step: WatermarkStep, ordered: tuple[str, ...] | None = None, latest: Latest = NOTHING
    ) -> pa.Table:
        """Return the matches that the new rows of the store, or a step of the watermark, make final.

        `ordered` has the columns whose keys arrive in order. If there are none, all events do, and `latest` has the
        latest event of the stream.
        """
        if not store.rows or not (store.new_rows or step.moves or latest[0] is not latest[1]):
            return self.schema.empty_table()
        search = _Search(store, step, ordered, latest)
        starting = [self._starting(one, search) for one in self._finalized]
        rows = affected_rows(store, self.keys, starting)
        if rows is not None and not rows.size:
            return self.schema.empty_table()
        events = prepare(self.plan.query, store.events.whole() if rows is None else store.events.take(rows))
        numbers = events.rows if rows is None else rows[events.rows]
        horizon = Horizon(self.plan.query, events, step, numbers >= search.first_new)
        if ordered:
            horizon = replace(horizon, latest=latest_of_keys(events, horizon.is_new, ordered))
        elif ordered is not None and latest[1] is not None:
            horizon = replace(horizon, latest=latest_of_all(events, self.plan.query.binding.order, *latest))
        batches = [
            batch
            for one, start in zip(self._finalized, starting, strict=True)
            if start is None or start.size
            for batch in self._batches(one, horizon)
        ]
        return pa.Table.from_batches(batches, self.schema)

    def _starting(self, one: FinalizedAlternative, search: _Search) -> Int64 | None:
        """Return a superset of the rows from which newly final matches are found; None if any row can be one."""
        query, step, steps = one.alternative.query, search.step, one.steps
        if step.has_begun and step.now is None:
            return None
        if one.by in (FinalizedBy.ARRIVAL, FinalizedBy.REACHED):
            # An event that arrives in order is reached at once; one without a key waits for the watermark.
            waits = one.by is FinalizedBy.REACHED and search.ordered != ()
            crossed = search.crossed_by_watermark(0) if waits else NO_ROWS
            in_order = not crossed.size and search.is_in_order
            starting = np.union1d(search.new, crossed) if crossed.size else search.new
            return bound_by(search.store, starting, query, one.last_steps if in_order else steps)
        if one.by is FinalizedBy.ANY or self._width is None:
            # Windows are not known by time: any row can be in a match whose windows the horizon passes.
            is_any = step.moves or search.ordered == ()
            return None if is_any else search.new
        crossed = search.crossed(self._width if one.by is FinalizedBy.START else 0)
        # Any event of a key that arrives in order can finalize matches of that key.
        return crossed if search.ordered else bound_by(search.store, crossed, query, steps)

    def needed_since(self, passed: Tick) -> Tick | None:
        """Return the earliest time that a later result may read; None if it may read the last rows of partitions."""
        return self.retention.needed_since(passed)

    def needed_rows(self, store: ArrivalStore, passed: Tick) -> Bool:
        """Return a mask of the rows that a later result may read."""
        return self.retention.needed_rows(store, passed)

    def wake(self, store: ArrivalStore, passed: Tick | None) -> Tick | None:
        """Return when the first row expires, a window closes, or the watermark reaches or passes an event."""
        earliest = store.earliest()
        if earliest is None:
            return None
        moments = [self.retention.expiry(earliest)]
        kinds = {one.by for one in self._finalized}
        if kinds & {FinalizedBy.REACHED, FinalizedBy.END, FinalizedBy.ANY}:
            ahead = store.earliest(passed)
            moments.append(ahead)
            if kinds & {FinalizedBy.REACHED, FinalizedBy.ANY} and ahead is not None:
                # The watermark reaches an event with the time before it, unless it has done so already.
                beyond = ahead if passed is None or before(ahead) > passed else store.earliest(ahead)
                moments.append(None if beyond is None else before(beyond))
        if self.retention.delay and passed is not None:
            moments.append(self.retention.next_closing(store, passed))
        return min((m for m in moments if m is not None and (passed is None or m > passed)), default=None)

    def _batches(self, one: FinalizedAlternative, horizon: Horizon) -> Iterator[pa.RecordBatch]:
        alternative, events = one.alternative, horizon.events
        variants = one.in_order if _is_in_order(horizon) else one.variants
        if one.is_marked:
            decides, other = marks(one, horizon)
            if not decides.any():
                return
            columns = events.columns
            for name, of_place in ((DECIDES, decides), (OTHER, other)):
                of_row = np.zeros(columns.table.num_rows, np.bool_)
                of_row[events.rows] = of_place
                columns = columns.with_array(name, pa.array(of_row))
            events = replace(events, columns=columns)
        for variant in variants:
            for matches in find_matches(variant, events, one.choices):
                if not one.is_exact:
                    matches = matches.only(horizon.newly_final(one.awaited, matches))
                if len(matches):
                    yield from result_batches(alternative, self.schema, events, matches, self._columns[id(alternative)])


def _is_in_order(horizon: Horizon) -> bool:
    """Return True if only events arrive, and all of them come after all other events."""
    step, is_new, rank = horizon.step, horizon.is_new, horizon.events.rank
    if step.now is None or step.passed != step.now or not is_new.any():
        return False
    first = int(is_new.argmax())
    return bool(is_new[first:].all()) and (first == 0 or bool(rank[first] > rank[first - 1]))


def marks(one: FinalizedAlternative, horizon: Horizon) -> tuple[Bool, Bool]:
    """Return which events can make a match of the alternative final now, and which others it may have."""
    places = np.arange(horizon.events.rank.size, dtype=np.int32)
    query = one.alternative.query
    if one.by is FinalizedBy.ARRIVAL:
        return horizon.is_new, ~horizon.is_new
    if one.by is FinalizedBy.REACHED:
        decides = horizon.is_new | (horizon.reached(places, now=True) & ~horizon.reached(places, now=False))
        return decides, ~decides
    if one.by is FinalizedBy.END:
        had_passed = horizon.passed(places, now=False)
        return horizon.passed(places, now=True) & ~had_passed, had_passed
    assert query.window is not None
    closed = horizon.closed(query.window, query.partition_by, places, now=True)
    return closed & ~horizon.closed(query.window, query.partition_by, places, now=False), ~closed
