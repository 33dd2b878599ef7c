"""Events as they come and time as it passes in, the rows that are decided by then out: detection without an end.

Contract: over all calls of `advance` and one `finish`, an engine gives exactly the rows that detection gives for the
same events at once, however they were cut, each at the first `advance` that has passed what decides it: a match's last
event, or the end of its window where an upper edge, or a group that may still grow, is to be awaited (postponed). The
state is the events of two windows and how far time has passed; it survives `save` and `load`
(tests/runtime/test_incremental.py).
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pyarrow as pa

from streamsift.errors import BadInputError
from streamsift.language.syntax import Emit
from streamsift.logical.bound import WindowKind
from streamsift.physical.plan import Alternative, DetectPlan, Edge
from streamsift.runtime.detect import detect
from streamsift.runtime.events import Events, prepare, saturating_sum, ticks_of
from streamsift.runtime.kernels import Bool, Ticks
from streamsift.runtime.output import match_schema
from streamsift.runtime.own_windows import with_own_windows

FORMAT = 1  # of saved states
BOUNDS = ("match_start", "match_end")


class DetectionEngine:
    """The state of one detection query. Events come at any time that has not passed yet; `late` counts the others."""

    def __init__(self, plan: DetectPlan) -> None:
        self.plan = plan
        self.late = 0
        self._events = plan.query.schema.empty_table()
        self._passed: int | float | None = None

    def push(self, events: pa.Table) -> None:
        """Takes events in. Those at or before the time that has passed are late: they are left out and counted."""
        events = events.select(self.plan.query.schema.names).cast(self.plan.query.schema)
        if self._passed is not None and events.num_rows:
            in_time = self._ticks(events.column(self.plan.query.binding.time).combine_chunks()) > self._passed
            self.late += int((~in_time).sum())
            events = events.filter(pa.array(in_time))
        self._events = pa.concat_tables([self._events, events])

    def advance(self, time: Any) -> pa.Table:
        """The rows decided by time passing: no event at or before `time` will come any more."""
        kind = self.plan.query.schema.field(self.plan.query.binding.time).type
        (now,) = self._ticks(pa.array([time], kind)).tolist()
        if self._passed is not None and now <= self._passed:
            return match_schema(self.plan.query).empty_table()
        decided = self._decided(now)
        self._passed = now
        self._forget(now)
        return decided

    def finish(self) -> pa.Table:
        """The rows decided by time going to its end."""
        decided = self._decided(None)
        self._events = self._events.slice(0, 0)
        return decided

    # --- state ---
    def save(self) -> bytes:
        """The state as bytes: a line of JSON, then the events as an Arrow stream."""
        head = json.dumps({"format": FORMAT, "passed": self._passed, "late": self.late}).encode() + b"\n"
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self._events.schema) as stream:
            stream.write_table(self._events)
        return head + sink.getvalue().to_pybytes()

    @classmethod
    def load(cls, plan: DetectPlan, state: bytes) -> Self:
        line, events = state.split(b"\n", 1)
        head = json.loads(line)
        if head.get("format") != FORMAT:
            raise BadInputError(f"a saved state of format {head.get('format')}; this version reads format {FORMAT}")
        engine = cls(plan)
        engine._passed, engine.late = head["passed"], head["late"]
        engine._events = pa.ipc.open_stream(events).read_all()
        return engine

    # --- deciding ---
    def _decided(self, now: int | float | None) -> pa.Table:
        """The rows of matches that are decided after what has passed and up to now; None: whenever."""
        query = self.plan.query
        schema = match_schema(query)
        arrived = self._events
        if now is not None and arrived.num_rows:
            arrived = arrived.filter(pa.array(self._ticks(arrived.column(query.binding.time).combine_chunks()) <= now))
        if not arrived.num_rows:
            return schema.empty_table()
        shown = replace(query, show_bounds=True)
        events = with_own_windows(shown, prepare(shown, arrived))
        found = [schema.empty_table()]
        for alternative in self.plan.alternatives:
            own = replace(alternative, query=replace(alternative.query, show_bounds=True))
            for batch in detect(replace(self.plan, query=shown, alternatives=(own,)), events):
                rows = pa.Table.from_batches([batch])
                rows = rows.filter(pa.array(self._is_decided(alternative, events, rows, now)))
                found.append(rows.select(range(len(schema))).cast(schema))
        return pa.concat_tables(found)

    def _is_decided(self, alternative: Alternative, events: Events, rows: pa.Table, now: int | float | None) -> Bool:
        start, end = (self._ticks(rows.column(rows.num_columns - 2 + i).combine_chunks()) for i in range(2))
        if not is_postponed(alternative):
            when = end
        elif events.window is None or events.window.kind is WindowKind.COUNT:
            return np.full(rows.num_rows, now is None)
        else:
            when = later(start, events.width)
        decided = np.ones(rows.num_rows, np.bool_)
        if self._passed is not None:
            decided &= when > self._passed
        if now is not None:
            decided &= when <= now
        return decided

    def _forget(self, now: int | float) -> None:
        """Drops events that no later match, and no negation of one, can reach: those of more than two windows ago."""
        window = self.plan.query.window
        if window is None or window.kind is WindowKind.COUNT or not self._events.num_rows:
            return
        width = prepare(self.plan.query, self._events.slice(0, 0)).width
        ticks = self._ticks(self._events.column(self.plan.query.binding.time).combine_chunks())
        self._events = self._events.filter(pa.array(later(later(ticks, width), width) >= now))

    def _ticks(self, times: pa.Array) -> Ticks:
        return ticks_of(times, self.plan.query.binding)


def later(ticks: Ticks, width: int | float) -> Ticks:
    """The times a window after these; as late as can be where that is later than any."""
    if ticks.dtype == np.float64:
        return ticks.view(np.float64) + float(width)
    return saturating_sum(ticks.view(np.int64), int(width))


def is_postponed(alternative: Alternative) -> bool:
    """Whether a match of it is decided at the end of its window only."""
    negations = list(alternative.negations)
    if alternative.groups is not None:
        if alternative.query.emit is not Emit.EACH:
            return True  # a group may still grow
        negations += alternative.groups.negations()
    return any(limit.edge is Edge.WINDOW_END for negation in negations for limit in (negation.lower, negation.upper))
