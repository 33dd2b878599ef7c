"""Run the engine of a stream in this process, where each push is one micro-batch.

Contract: a push drops the events before the watermark that earlier pushes and calls of `advance` have set, then moves
the watermark to the greatest time less the lateness, exactly. If a push raises because of its rows, nothing has changed
(tests/api/test_stream.py, tests/generated/test_generated_process_streams.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa

from streamsift.logical.durations import in_units, unit_of
from streamsift.physical.plan import Plan
from streamsift.runtime.events.bad_rows import bad_rows_error, find_bad_rows
from streamsift.runtime.events.times import ticks_of
from streamsift.runtime.expressions.columns import contiguous
from streamsift.runtime.resources import Budget, limited
from streamsift.runtime.state import Changes
from streamsift.runtime.stream.engine import ManyEngine
from streamsift.runtime.stream.moments import last_before, later_of, moved_back, time_after
from streamsift.runtime.stream.watermark import Tick, is_real

ADVICE = "shorten WITHIN or add conditions to keep fewer events"
SIDE_BYTES = 32  # of each event in the state, besides its columns


@dataclass(slots=True)
class PushCounts:
    """What the pushes of a stream did."""

    pushes: int = 0
    rows: int = 0  # late and bad ones included
    matches: int = 0  # result rows, also those of `advance` and `finish`
    bad_rows: int = 0
    seconds: float = 0.0  # in `push`


class ProcessStream:
    """The engine of several queries in this process, with its watermark. Results are keyed by query name."""

    def __init__(self, plans: Mapping[str, Plan], lateness: Fraction, drops_bad_rows: bool, memory: int) -> None:
        self.query = next(iter(plans.values())).query
        self.counts = PushCounts()
        self.watermark: Tick | None = None  # the last time that has passed: later events up to it are late
        self._engine, self._is_real = ManyEngine(plans), is_real(self.query)
        self._lateness = in_units(lateness, unit_of(self.query))
        self._drops_bad_rows, self._memory = drops_bad_rows, memory
        self.is_consistent = True
        self._largest_size = 0  # no less than the bytes of the state

    # --- time ---
    def push(self, events: pa.Table) -> dict[str, pa.Table]:
        """Add events and return the rows that became final."""
        rows, usable = events.num_rows, self._usable(events)
        limit = self.watermark
        if usable.num_rows:
            times = ticks_of(contiguous(usable.column(self.query.binding.time)), self.query.binding)
            limit = later_of(limit, last_before(moved_back(times.max().item(), self._lateness), self._is_real))
        with self._changing(self._budget_for(usable)):
            self._engine.push(usable)
            final = self._advanced(limit)
        self.counts.pushes += 1
        self.counts.rows += rows
        self.counts.bad_rows += rows - usable.num_rows
        return final

    def advance(self, moment: Fraction | float) -> dict[str, pa.Table]:
        """Move the watermark, unless it is there already, and return the rows that became final."""
        with self._changing(Budget(self._memory)):
            return self._advanced(later_of(self.watermark, last_before(moment, self._is_real)))

    def finish(self) -> dict[str, pa.Table]:
        """End the stream and return the remaining rows."""
        with self._changing(Budget(self._memory)):
            final = self._engine.finish()
        self.counts.matches += sum(rows.num_rows for rows in final.values())
        return final

    def _advanced(self, limit: Tick | None) -> dict[str, pa.Table]:
        self.watermark = limit
        final = {} if limit is None else self._engine.advance(limit)
        self.counts.matches += sum(rows.num_rows for rows in final.values())
        return final

    @contextmanager
    def _changing(self, budget: Budget) -> Iterator[None]:
        """Run the engine under a budget. If it raises, its state is incomplete."""
        self.is_consistent = False
        with limited(budget):
            yield
        self.is_consistent = True

    def _usable(self, events: pa.Table) -> pa.Table:
        bad = find_bad_rows(self.query, events) if events.num_rows else None
        if bad is None:
            return events
        if not self._drops_bad_rows:
            raise bad_rows_error(bad[1], self.query.binding)
        return events.filter(pa.array(~bad[0]))

    def _budget_for(self, events: pa.Table) -> Budget:
        """Return the budget of a push. Raise if the state and the new events exceed it."""
        budget, more = Budget(self._memory), int(events.nbytes) + SIDE_BYTES * events.num_rows
        if self._largest_size + more > self._memory:
            self._largest_size = self._engine.size()
            budget.reserve(self._largest_size + more, "the state and the new events", ADVICE)
        self._largest_size += more
        return budget

    # --- state ---
    @property
    def late(self) -> int:
        return self._engine.late

    def state_rows(self) -> int:
        return self._engine.rows()

    def state_bytes(self) -> int:
        return self._engine.size()

    def horizon(self) -> Any:
        """Return the time before which events are late, as a value of the time column; None if there is none yet."""
        return None if self.watermark is None else time_after(self.watermark, self.query)

    def changes(self) -> Changes:
        """Return the changes of the state since the last call."""
        return self._engine.changes()

    def values(self) -> dict[str, Any]:
        """Return what to save besides the state of the engine, as JSON."""
        mark = self.watermark
        return {"watermark": mark.hex() if isinstance(mark, float) else mark, "counts": asdict(self.counts)}

    def load(self, values: dict[str, Any], head: bytes, chunks: Iterable[tuple[int, bytes]]) -> None:
        """Load a saved state. Call this before anything else."""
        mark = values["watermark"]
        self.watermark = float.fromhex(mark) if isinstance(mark, str) else mark
        self.counts = PushCounts(**values["counts"])
        self._engine.load(head, chunks)
        self._largest_size = self._engine.size()
