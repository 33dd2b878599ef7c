"""Run queries over unbounded events: `push` adds events, `advance` returns the rows that have become final.

A micro-batch is any number of calls of `push`, then one of `advance`. Its events are late if they are before the
horizon at its beginning. Matches whose events alone decide them come with the micro-batch in which their last event
arrives; other rows come when the horizon, or for totals and rankings the watermark, has passed what they wait for.

Contract: over all calls of `advance` and one `finish`, an engine returns exactly the rows that the plan returns for the
same events in one batch, however the events are split and wherever the engine is saved and loaded. Each row comes with
the first `advance` after which it is final. Late events are dropped and counted
(tests/generated/test_generated_streams.py, tests/generated/test_generated_releases.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa

from streamsift.errors import BadInputError
from streamsift.physical.plan import Plan
from streamsift.physical.share import ShareMode
from streamsift.physical.stream import DecideBy, StreamPlan, stream_plan
from streamsift.runtime.state import (
    HOLDS_EVENTS,
    ArrivalStore,
    Changes,
    EventLog,
    EventStore,
    chunk_bytes,
    head_bytes,
    read_chunk,
    read_head,
)
from streamsift.runtime.stream.decider import Decider
from streamsift.runtime.stream.intake import Intake
from streamsift.runtime.stream.matches import MatchDecider
from streamsift.runtime.stream.rows import RowDecider
from streamsift.runtime.stream.shared import shared_deciders
from streamsift.runtime.stream.totals import RunningTotals, WindowTotals
from streamsift.runtime.stream.watermark import Tick, WatermarkStep, following, is_real


class ManyEngine:
    """Several queries over the events of one bucket, which are stored once. Results are keyed by query name.

    The constructor raises if a query cannot run on a stream. `ordered` has columns: events that are equal in them
    arrive in order; () says that all events do, None that nothing is promised. All queries must be equal in these
    columns (`physical.stream.used_order`). `late` counts the dropped late events.
    """

    def __init__(
        self,
        plans: Mapping[str, Plan],
        ordered: tuple[str, ...] | None = None,
        sharing: ShareMode = ShareMode.AUTO,
    ) -> None:
        streams = {name: stream_plan(plan) for name, plan in plans.items()}
        matches = {name: s for name, s in streams.items() if s.decide_by is DecideBy.MATCHES}
        self.late = 0
        self._matches = {name: MatchDecider(s) for name, s in matches.items()}
        shared = shared_deciders(streams, sharing)
        self._rows: dict[str, Decider] = {
            name: shared[name] if name in shared else _DECIDERS[s.decide_by](s)
            for name, s in streams.items()
            if name not in matches
        }
        deciders: dict[str, MatchDecider | Decider] = {**self._matches, **self._rows}
        self._schemas = {name: deciders[name].schema for name in plans}
        fields = {field.name: field for plan in plans.values() for field in plan.query.schema}
        query = next(iter(plans.values())).query
        self._log = EventLog(pa.schema(fields.values()), query.binding)
        self._intake = Intake(self._log, list(streams.values()), ordered)
        self._arrivals: ArrivalStore | None = None
        if matches or ordered is not None:
            keys = ordered or _common([decider.keys for decider in self._matches.values()])
            self._arrivals = ArrivalStore(self._log, keys)
        self._store: EventStore | None = None
        if self._rows:
            self._store = EventStore(self._log, _common([decider.keys for decider in self._rows.values()]))
        self._is_real = is_real(query)
        self._passed: Tick | None = None  # the watermark
        self._released: Tick | None = None  # the watermark of the last release
        self._vectors = {
            f"{name}/{part}": vectors
            for name, decider in self._rows.items()
            for part, vectors in decider.state().items()
        }
        self._logs: dict[str, list[int]] = {holds: [] for holds in self._vectors}  # chunk numbers of each

    # --- a micro-batch ---
    def move(self, ticks: Tick) -> None:
        """Advance the watermark. Later events up to `ticks` are late; the next `advance` returns the final rows."""
        ticks = float(ticks) if self._is_real else int(ticks)
        if self._passed is None or ticks > self._passed:
            self._passed = ticks

    def push(self, events: pa.Table) -> None:
        """Add events, in any order."""
        kept, late = self._intake.admit(events, self._passed, self._arrivals)
        self.late += late
        if kept.num_rows:
            stores = [store for store in (self._arrivals, self._store) if store is not None]
            chunk = self._log.add(kept, len(stores))
            for store in stores:
                store.add(kept, chunk)

    def observe(self, events: pa.Table) -> None:
        """Note events of other buckets, which move the horizon of this one if all events arrive in order."""
        self._intake.observe(events)

    def advance(self, ticks: Tick | None = None) -> dict[str, pa.Table]:
        """End a micro-batch: advance the watermark, if one is given, and return the rows that have become final."""
        if ticks is not None:
            self.move(ticks)
        return self._release(WatermarkStep(self._released, self._passed, has_begun=self._passed is not None))

    def finish(self) -> dict[str, pa.Table]:
        """End the stream and return the remaining rows."""
        return self._release(WatermarkStep(self._released, None))

    def _release(self, step: WatermarkStep) -> dict[str, pa.Table]:
        final = {name: schema.empty_table() for name, schema in self._schemas.items()}
        if self._arrivals is not None:
            for name, matches in self._matches.items():
                final[name] = matches.final(self._arrivals, step, self._intake.ordered, self._intake.latest)
            self._arrivals.settle()
        if self._store is not None and step.moves:
            arrived = self._store.arrive(step.now)
            final |= {name: rows.final(self._store, arrived, step) for name, rows in self._rows.items()}
        self._intake.settle()
        self._released = self._passed
        if step.now is not None:
            self._evict(step.now)
        elif step.has_begun:
            for store in (self._arrivals, self._store):
                if store is not None:
                    store.drop_before(store.first + store.rows)
        return final

    # --- state ---
    def _evict(self, passed: Tick, at_once: bool = False) -> None:
        if self._store is not None:
            self._evict_passed(self._store, passed)
        if (store := self._arrivals) is None:
            return
        deciders = list(self._matches.values())
        bounds = [time for each in deciders if (time := each.needed_since(passed)) is not None]
        # The latest events of keys, too, are needed until the watermark passes them.
        older = min([*bounds, following(passed)])
        if len(bounds) == len(deciders):
            store.evict(older, at_once)
        elif at_once or store.is_full:
            masks = [each.needed_rows(store, passed) for each in deciders if each.needed_since(passed) is None]
            store.keep(reduce(np.logical_or, [*masks, store.ticks >= older]))

    def _evict_passed(self, store: EventStore, passed: Tick) -> None:
        needed = [decider.needed(store, passed) for decider in self._rows.values()]
        firsts = [first for first in needed if not isinstance(first, np.ndarray)]
        masks = [mask for mask in needed if isinstance(mask, np.ndarray)]
        if not masks:
            store.drop_before(min(firsts))
            return
        rows = np.arange(store.first, store.first + store.rows)
        store.keep(reduce(np.logical_or, [*masks, *(rows >= first for first in firsts)]))

    def wake(self) -> Tick | None:
        """Return the earliest time at which a row becomes final or state can be evicted; None if nothing waits."""
        moments: list[Tick | None] = []
        if self._store is not None:
            moments += [decider.wake(self._store, self._passed) for decider in self._rows.values()]
            moments.append(self._store.earliest_waiting())
        if self._arrivals is not None:
            moments += [decider.wake(self._arrivals, self._passed) for decider in self._matches.values()]
        return min((moment for moment in moments if moment is not None), default=None)

    def changes(self) -> Changes:
        """Return the changes since the last call."""
        added, dropped = self._log.changes()
        for holds, vectors in self._vectors.items():
            table, is_all = vectors.changes()
            if table is None:
                continue
            if is_all:
                dropped += tuple(self._logs[holds])
                self._logs[holds] = []
            number = self._log.reserve()
            self._logs[holds].append(number)
            added[number] = chunk_bytes(holds, table)
        more: dict[str, Any] = self._intake.head()
        if self._arrivals is not None:
            more["new"] = self._arrivals.new_rows
        if self._released != self._passed:
            more["released"] = self._released
        head = head_bytes(passed=self._passed, late=self.late, next_chunk=self._log.next_chunk, **more)
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
        if not all(decider.follows for decider in self._rows.values()):
            return False
        self._restore(read_head(head), [(number, read_chunk(chunk)[1]) for number, chunk in chunks])
        self._log.discard_changes()
        return True

    def _restore(self, values: dict[str, Any], events: list[tuple[int, pa.Table]]) -> None:
        if "new" not in values and any(not decider.reads_older_states for decider in self._matches.values()):
            raise BadInputError(
                "the saved state is of an older version, which released rows of this query at other times\n"
                "Hint: finish the stream with the version that wrote it, or start with an empty checkpoint."
            )
        self._passed, self.late = values["passed"], values["late"]
        self._released = values.get("released", self._passed)
        self._intake.load(values)
        stores = (self._arrivals is not None) + (self._store is not None)
        tables = [(number, self._log.loaded(number, table, stores)) for number, table in events]
        self._log.resume_at(values["next_chunk"])
        if self._arrivals is not None:
            self._arrivals.load(tables, self._passed, values.get("new"))
        if self._store is not None:
            self._store.load(tables, self._released)
        if self._released is not None:
            self._evict(self._released, at_once=True)

    @property
    def next_chunk(self) -> int:
        """Return the next free chunk number."""
        return self._log.next_chunk

    def rows(self) -> int:
        """Return the number of rows in the state."""
        count = 0 if self._store is None else self._store.rows + self._store.waiting_rows
        count = count if self._arrivals is None else max(count, self._arrivals.rows)
        return count + sum(vectors.count for vectors in self._vectors.values())

    def size(self) -> int:
        """Estimate the bytes that the state takes in memory."""
        stores = sum(store.nbytes for store in (self._arrivals, self._store) if store is not None)
        vectors = sum(vectors.nbytes for vectors in self._vectors.values())
        return stores + vectors + sum(decider.nbytes for decider in self._rows.values())


_DECIDERS: dict[DecideBy, Callable[[StreamPlan], Decider]] = {
    DecideBy.RUNNING_TOTALS: RunningTotals,
    DecideBy.WINDOW_TOTALS: WindowTotals,
    DecideBy.RECOMPUTED: RowDecider,
}


def _common(keys: list[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the columns that all deciders can find rows by."""
    first, *others = keys or [()]
    return tuple(key for key in first if all(key in other for other in others))
