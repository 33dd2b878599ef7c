"""Run queries over unbounded events: `push` adds events, `advance` returns the rows that have become final.

Contract: over all calls of `advance` and one `finish`, an engine returns exactly the rows that the plan returns for the
same events in one batch, however the events are split and wherever the engine is saved and loaded. Each row comes with
the first `advance` that passes its finalizing time. Late events are dropped and counted
(tests/generated/test_generated_streams.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa

from streamsift.language.syntax import Emit
from streamsift.physical.plan import AggregatePlan, Alternative, Plan
from streamsift.physical.share import ShareMode
from streamsift.physical.stream import DecideBy, StreamPlan, stream_plan
from streamsift.runtime.arrays.dtypes import Bool, Int32
from streamsift.runtime.count import relevant_places
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.prepare import prepare
from streamsift.runtime.state import HOLDS_EVENTS, Changes, EventStore, chunk_bytes, head_bytes, read_chunk, read_head
from streamsift.runtime.stream.decider import Decider
from streamsift.runtime.stream.matches import MatchDecider
from streamsift.runtime.stream.rows import RowDecider
from streamsift.runtime.stream.shared import shared_deciders
from streamsift.runtime.stream.totals import RunningTotals, WindowTotals
from streamsift.runtime.stream.watermark import Tick, WatermarkStep, is_real


class ManyEngine:
    """Several queries over the events of one bucket, which are stored once. Results are keyed by query name.

    The constructor raises if a query cannot run on a stream. `late` counts the dropped late events.
    """

    def __init__(self, plans: Mapping[str, Plan], sharing: ShareMode = ShareMode.AUTO) -> None:
        streams = {name: stream_plan(plan) for name, plan in plans.items()}
        self.late = 0
        shared = shared_deciders(streams, sharing)
        self._deciders: dict[str, Decider] = {
            name: shared[name] if name in shared else _DECIDERS[s.decide_by](s) for name, s in streams.items()
        }
        fields = {field.name: field for plan in plans.values() for field in plan.query.schema}
        query = next(iter(plans.values())).query
        keys = {decider.keys for decider in self._deciders.values()}
        schema, relevant = pa.schema(fields.values()), _relevant(list(streams.values()))
        self._store = EventStore(schema, query.binding, relevant, keys.pop() if len(keys) == 1 else ())
        self._is_real = is_real(query)
        self._passed: Tick | None = None
        self._vectors = {
            f"{name}/{part}": vectors
            for name, decider in self._deciders.items()
            for part, vectors in decider.state().items()
        }
        self._logs: dict[str, list[int]] = {holds: [] for holds in self._vectors}  # chunk numbers of each

    def push(self, events: pa.Table) -> None:
        """Add events, in any order."""
        self.late += self._store.push(events, self._passed)

    def advance(self, ticks: Tick) -> dict[str, pa.Table]:
        """Advance the watermark and return the rows that become final. Later events up to `ticks` are late."""
        ticks = float(ticks) if self._is_real else int(ticks)
        if self._passed is not None and ticks <= self._passed:
            return {name: decider.schema.empty_table() for name, decider in self._deciders.items()}
        return self._pass(ticks)

    def finish(self) -> dict[str, pa.Table]:
        """End the stream and return the remaining rows."""
        return self._pass(None)

    def _pass(self, now: Tick | None) -> dict[str, pa.Table]:
        store, step = self._store, WatermarkStep(self._passed, now)
        arrived = store.arrive(now)
        final = {name: decider.final(store, arrived, step) for name, decider in self._deciders.items()}
        if now is None:
            store.drop_before(store.first + store.rows)
        else:
            self._passed = now
            self._evict(now)
        return final

    def _evict(self, passed: Tick) -> None:
        needed = [decider.needed(self._store, passed) for decider in self._deciders.values()]
        firsts = [first for first in needed if not isinstance(first, np.ndarray)]
        masks = [mask for mask in needed if isinstance(mask, np.ndarray)]
        if not masks:
            self._store.drop_before(min(firsts))
            return
        rows = np.arange(self._store.first, self._store.first + self._store.rows)
        self._store.keep(reduce(np.logical_or, [*masks, *(rows >= first for first in firsts)]))

    def wake(self) -> Tick | None:
        """Return the earliest time at which a row becomes final or state can be evicted; None if nothing waits."""
        moments = [decider.wake(self._store, self._passed) for decider in self._deciders.values()]
        return min((m for m in (*moments, self._store.earliest_waiting()) if m is not None), default=None)

    def changes(self) -> Changes:
        """Return the changes since the last call."""
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
        """Load the state of an engine with the same queries. Call this before anything else."""
        values, events = read_head(head), []
        for number, chunk in sorted(chunks):
            holds, table = read_chunk(chunk)
            if holds == HOLDS_EVENTS:
                events.append((number, table))
            else:
                self._vectors[holds].load(table)
                self._logs[holds].append(number)
        self._restore(values, events)

    def follow(self, head: bytes, chunks: Iterable[tuple[int, bytes]]) -> bool:
        """Catch up with a later state of the same stream, given its header and its chunks from `next_chunk` on.

        Results derived from earlier events are kept, so the cost is that of the new events. Return False if the state
        must be loaded instead.
        """
        if not all(decider.follows for decider in self._deciders.values()):
            return False
        self._restore(read_head(head), [(number, read_chunk(chunk)[1]) for number, chunk in chunks])
        self._store.discard_changes()
        return True

    def _restore(self, values: dict[str, Any], events: list[tuple[int, pa.Table]]) -> None:
        self._passed, self.late = values["passed"], values["late"]
        self._store.load(events, values["next_chunk"], self._passed)
        if self._passed is not None:
            self._evict(self._passed)

    @property
    def next_chunk(self) -> int:
        """Return the next free chunk number."""
        return self._store.next_chunk

    def rows(self) -> int:
        """Return the number of rows in the state."""
        return self._store.rows + self._store.waiting_rows + sum(v.count for v in self._vectors.values())

    def size(self) -> int:
        """Estimate the bytes that the state takes in memory."""
        vectors = sum(vectors.nbytes for vectors in self._vectors.values())
        return self._store.nbytes + vectors + sum(decider.nbytes for decider in self._deciders.values())


_DECIDERS: dict[DecideBy, Callable[[StreamPlan], Decider]] = {
    DecideBy.MATCHES: MatchDecider,
    DecideBy.RUNNING_TOTALS: RunningTotals,
    DecideBy.WINDOW_TOTALS: WindowTotals,
    DecideBy.RECOMPUTED: RowDecider,
}


def _relevant(streams: list[StreamPlan]) -> Callable[[pa.Table], Bool] | None:
    """Return a mask of the events that can affect a result; None if every row counts."""
    if any(stream.counts_rows for stream in streams):
        return None

    def of_any(table: pa.Table) -> Bool:
        relevant = np.zeros(table.num_rows, np.bool_)
        for stream in streams:
            events = prepare(stream.plan.query, table)
            for places in _relevant_places(stream.plan, events):
                relevant[events.rows[places]] = True
        return relevant

    return of_any


def _relevant_places(plan: Plan, events: Events) -> list[Int32]:
    if isinstance(plan, AggregatePlan) and plan.query.emit is Emit.CHANGES:
        return [relevant_places(plan, events)]
    steps = (Alternative(one.query, tuple(one.all_steps()), ()) for one in plan.alternatives)
    return [places for one in steps for places in candidates(one, events)]
