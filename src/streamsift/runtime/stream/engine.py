"""A plan in, the engine of its stream out: events as they come and time as it passes in, the rows that it decides out.

Contract: over all calls of `advance` and one `finish`, an engine gives exactly the rows that the plan gives for the
same events at once, however they were cut and wherever it was saved and loaded, each at the first `advance` that has
passed what decides it. Events at or before the time that has passed are left out and counted
(tests/generated/test_generated_streams.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Protocol

import numpy as np
import pyarrow as pa

from streamsift.language.syntax import Emit
from streamsift.physical.plan import AggregatePlan, Plan
from streamsift.physical.share import SharingPlan
from streamsift.physical.stream import DecideBy, StreamPlan, stream_plan
from streamsift.runtime.arrays.dtypes import Bool
from streamsift.runtime.count import relevant_places
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.prepare import prepare
from streamsift.runtime.state import (
    HOLDS_EVENTS,
    Changes,
    EventStore,
    KeyedVectors,
    chunk_bytes,
    head_bytes,
    read_chunk,
    read_head,
)
from streamsift.runtime.stream.matches import Matches
from streamsift.runtime.stream.rows import Rows
from streamsift.runtime.stream.running_totals import RunningTotals
from streamsift.runtime.stream.watermark import Passing, Tick, is_real
from streamsift.runtime.stream.window_totals import WindowTotals

ONLY = ""  # the name of the query of an engine that has one


class Engine(Protocol):
    """The state of one query over the events of one bucket of keys."""

    @property
    def late(self) -> int:
        """How many events came at or before the time that had passed."""

    def push(self, events: pa.Table) -> None:
        """Takes events in, in any order."""

    def advance(self, ticks: Tick) -> pa.Table:
        """The rows decided by time passing: no event at or before `ticks` will come any more."""

    def finish(self) -> pa.Table:
        """The rows decided by time going to its end."""

    def wake(self) -> Tick | None:
        """The earliest time whose passing would decide a row or let state be dropped; None: nothing waits."""

    def changes(self) -> Changes:
        """What must be written since the last call."""

    def rows(self) -> int:
        """How many rows the state has."""

    def size(self) -> int:
        """How many bytes the state has in memory, about."""


class Decider(Protocol):
    """What one query makes of events and time."""

    schema: pa.Schema
    keys: tuple[str, ...]  # columns by which it finds rows among those held

    @property
    def follows(self) -> bool:
        """Whether what it decides depends on the events that are held alone."""

    @property
    def nbytes(self) -> int:
        """What it holds in memory beside the events and its state."""

    def decided(self, store: EventStore, arrived: int, passing: Passing) -> pa.Table: ...
    def needed(self, store: EventStore, passed: Tick) -> int | Bool: ...
    def wake(self, store: EventStore, passed: Tick | None) -> Tick | None: ...
    def state(self) -> dict[str, KeyedVectors]: ...


class ManyEngine:
    """Several queries over the same events, which are held once: as an Engine, but rows come by name of query."""

    def __init__(self, plans: Mapping[str, Plan]) -> None:
        streams = {name: stream_plan(plan) for name, plan in plans.items()}
        self.late = 0
        self._deciders: dict[str, Decider] = {name: _decider(stream) for name, stream in streams.items()}
        fields = {field.name: field for plan in plans.values() for field in plan.query.schema}
        binding = next(iter(plans.values())).query.binding
        keys = {decider.keys for decider in self._deciders.values()}
        self._store = EventStore(
            pa.schema(fields.values()), binding, _relevant(list(streams.values())), keys.pop() if len(keys) == 1 else ()
        )
        self._is_real = is_real(next(iter(plans.values())).query)
        self._passed: Tick | None = None
        self._vectors = {
            f"{name}/{part}": vectors
            for name, decider in self._deciders.items()
            for part, vectors in decider.state().items()
        }
        self._logs: dict[str, list[int]] = {holds: [] for holds in self._vectors}  # the chunks that each is written to

    def push(self, events: pa.Table) -> None:
        self.late += self._store.push(events, self._passed)

    def advance(self, ticks: Tick) -> dict[str, pa.Table]:
        ticks = float(ticks) if self._is_real else int(ticks)
        if self._passed is not None and ticks <= self._passed:
            return {name: decider.schema.empty_table() for name, decider in self._deciders.items()}
        return self._pass(ticks)

    def finish(self) -> dict[str, pa.Table]:
        return self._pass(None)

    def _pass(self, now: Tick | None) -> dict[str, pa.Table]:
        store, passing = self._store, Passing(self._passed, now)
        arrived = store.arrive(now)
        found = {name: decider.decided(store, arrived, passing) for name, decider in self._deciders.items()}
        if now is None:
            store.drop_before(store.first + store.rows)
        else:
            self._passed = now
            self._forget(now)
        return found

    def _forget(self, passed: Tick) -> None:
        needed = [decider.needed(self._store, passed) for decider in self._deciders.values()]
        firsts = [first for first in needed if not isinstance(first, np.ndarray)]
        masks = [mask for mask in needed if isinstance(mask, np.ndarray)]
        if not masks:
            self._store.drop_before(min(firsts))
            return
        rows = np.arange(self._store.first, self._store.first + self._store.rows)
        self._store.keep(reduce(np.logical_or, [*masks, *(rows >= first for first in firsts)]))

    def wake(self) -> Tick | None:
        moments = [decider.wake(self._store, self._passed) for decider in self._deciders.values()]
        return min((m for m in (*moments, self._store.earliest_waiting()) if m is not None), default=None)

    def changes(self) -> Changes:
        added, dropped = self._store.changes()
        for holds, vectors in self._vectors.items():
            table, is_all = vectors.changes()
            if table is None:
                continue
            if is_all:
                dropped += tuple(self._logs[holds])
                self._logs[holds] = []
            number = self._store.reserve()
            self._logs[holds].append(number)
            added[number] = chunk_bytes(holds, table)
        head = head_bytes(passed=self._passed, late=self.late, next_chunk=self._store.next_chunk)
        return Changes(head, added, dropped)

    def load(self, head: bytes, chunks: Iterable[tuple[int, bytes]]) -> None:
        """Takes the state of an engine of the same queries; to be called before anything else."""
        values = read_head(head)
        self._passed, self.late = values["passed"], values["late"]
        held = [(number, *read_chunk(chunk)) for number, chunk in chunks]
        events = [(number, table) for number, holds, table in held if holds == HOLDS_EVENTS]
        for number, holds, table in sorted(held, key=lambda chunk: chunk[0]):
            if holds != HOLDS_EVENTS:
                self._vectors[holds].load(table)
                self._logs[holds].append(number)
        self._store.load(events, values["next_chunk"], self._passed)
        if self._passed is not None:
            self._forget(self._passed)

    @property
    def next_chunk(self) -> int:
        """The first number that no chunk has yet."""
        return self._store.next_chunk

    def follow(self, head: bytes, chunks: Iterable[tuple[int, bytes]]) -> bool:
        """Catches up with a later state of the same stream: its head, and its chunks from `next_chunk` on.

        What is known of earlier events stays, so it costs the new ones. False: it cannot, and must be loaded.
        """
        if not all(decider.follows for decider in self._deciders.values()):
            return False
        values = read_head(head)
        held = [(number, read_chunk(chunk)[1]) for number, chunk in chunks]
        self._passed, self.late = values["passed"], values["late"]
        self._store.load(held, values["next_chunk"], self._passed)
        if self._passed is not None:
            self._forget(self._passed)
        self._store.forget_changes()
        return True

    def rows(self) -> int:
        return self._store.rows + self._store.waiting_rows + sum(v.count for v in self._vectors.values())

    def size(self) -> int:
        vectors = sum(vectors.nbytes for vectors in self._vectors.values())
        return self._store.nbytes + vectors + sum(decider.nbytes for decider in self._deciders.values())


class OneEngine:
    """An Engine for one query."""

    def __init__(self, plan: Plan) -> None:
        self._all = ManyEngine({ONLY: plan})
        self.push, self.wake, self.changes = self._all.push, self._all.wake, self._all.changes
        self.load, self.rows, self.size = self._all.load, self._all.rows, self._all.size

    @property
    def late(self) -> int:
        return self._all.late

    def advance(self, ticks: Tick) -> pa.Table:
        return self._all.advance(ticks)[ONLY]

    def finish(self) -> pa.Table:
        return self._all.finish()[ONLY]


def engine_for(plan: Plan) -> OneEngine:
    """The engine of a query on a stream. What a stream cannot have raises here, before any event comes."""
    return OneEngine(plan)


def load_engine(plan: Plan, head: bytes, chunks: Iterable[tuple[int, bytes]]) -> OneEngine:
    """The engine whose head was written last, with the chunks that were added and not dropped."""
    engine = OneEngine(plan)
    engine.load(head, chunks)
    return engine


def engine_for_many(plan: SharingPlan) -> ManyEngine:
    """The engine of several queries at once."""
    return ManyEngine(plan.plans)


def load_engine_for_many(plan: SharingPlan, head: bytes, chunks: Iterable[tuple[int, bytes]]) -> ManyEngine:
    engine = ManyEngine(plan.plans)
    engine.load(head, chunks)
    return engine


def _decider(stream: StreamPlan) -> Decider:
    match stream.decide_by:
        case DecideBy.MATCHES:
            return Matches(stream)
        case DecideBy.RUNNING_TOTALS:
            return RunningTotals(stream)
        case DecideBy.WINDOW_TOTALS:
            return WindowTotals(stream)
        case DecideBy.RECOMPUTED:
            return Rows(stream)


# --- which events can matter ----------------------------------------------------------------------------------------


def _relevant(streams: list[StreamPlan]) -> Callable[[pa.Table], Bool] | None:
    """Which events can be in a match, or keep one from being; None if every row counts."""
    if any(stream.counts_rows for stream in streams):
        return None

    def of_any(events: pa.Table) -> Bool:
        found = np.zeros(events.num_rows, np.bool_)
        for stream in streams:
            _mark(stream.plan, events, found)
        return found

    return of_any


def _mark(plan: Plan, table: pa.Table, found: Bool) -> None:
    events = prepare(plan.query, table)
    if isinstance(plan, AggregatePlan) and plan.query.emit is Emit.CHANGES:
        found[events.rows[relevant_places(plan, events)]] = True
        return
    for alternative in plan.alternatives:
        steps = tuple(alternative.all_steps())
        for places in candidates(type(alternative)(alternative.query, steps, ()), events):
            found[events.rows[places]] = True
