"""Admit pushed events: drop and count late ones, and leave out those that no result or horizon depends on.

If events arrive in order (`ordered`), an event before the latest one of its key is late, unless both come in the same
micro-batch. The latest event of a key is retained until the watermark passes it, even if no step can bind it.
"""

from __future__ import annotations

from base64 import b64decode, b64encode

import numpy as np
import pyarrow as pa

from streamsift.language.syntax import Emit
from streamsift.physical.plan import AggregatePlan, Alternative, Plan
from streamsift.physical.stream import StreamPlan
from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64, Times
from streamsift.runtime.count import relevant_places
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.prepare import prepare
from streamsift.runtime.expressions.codes import codes
from streamsift.runtime.expressions.columns import contiguous
from streamsift.runtime.state import ArrivalStore, EventLog, chunk_bytes, read_chunk
from streamsift.runtime.stream.retention import partitions_of
from streamsift.runtime.stream.watermark import Tick

Latest = tuple[pa.Table | None, pa.Table | None]  # the latest event of the stream before a step and after it
HOLDS_LATEST = "latest"


class Intake:
    """Which events of a push are kept. `ordered` has the columns whose keys arrive in order; () means all events."""

    def __init__(self, log: EventLog, streams: list[StreamPlan], ordered: tuple[str, ...] | None) -> None:
        self._log, self._streams, self.ordered = log, streams, ordered
        self.keeps_all = any(stream.counts_rows for stream in streams)
        self.latest: Latest = (None, None)

    def admit(self, events: pa.Table, passed: Tick | None, arrivals: ArrivalStore | None) -> tuple[pa.Table, int]:
        """Return the events to keep, and the number of late ones."""
        events, late = self._log.admit(events, passed)
        if not events.num_rows:
            return events, late
        kept = self.relevant(events)
        if self.ordered is not None:
            behind, last = self._ordering(events, passed, arrivals)
            late += int(np.count_nonzero(behind))
            kept = (kept | last) & ~behind
        return (events if kept.all() else events.filter(pa.array(kept))), late

    def relevant(self, table: pa.Table) -> Bool:
        """Return a mask of the events that can affect a result."""
        relevant = np.full(table.num_rows, self.keeps_all)
        if not self.keeps_all:
            for stream in self._streams:
                events = prepare(stream.plan.query, table)
                for places in _relevant_places(stream.plan, events):
                    relevant[events.rows[places]] = True
        return relevant

    # --- events that arrive in order ---
    def _ordering(self, events: pa.Table, passed: Tick | None, arrivals: ArrivalStore | None) -> tuple[Bool, Bool]:
        """Return which events come before the latest earlier one of their key, and which are the last of their key."""
        assert self.ordered is not None
        if not self.ordered:
            return self._observed(events), np.zeros(events.num_rows, np.bool_)
        names = [*self.ordered, self._log.binding.time, *filter(None, [self._log.binding.order])]
        columns = events.select(list(dict.fromkeys(names)))
        old = columns.slice(0, 0)
        if arrivals is not None and arrivals.arrived > arrivals.first:
            rows = arrivals.rows_sharing(events)
            rows = rows[rows < arrivals.arrived - arrivals.first]
            rows = rows if passed is None else rows[arrivals.ticks[rows] > passed]
            old = arrivals.events.take(rows).select(columns.schema.names)
        both = pa.concat_tables([old, columns])
        groups, count = partitions_of(both, self.ordered)
        rank = self._ranks(both)
        is_old = np.arange(both.num_rows) < old.num_rows
        before, last = (_greatest(groups, rank, count, members) for members in (is_old, ~is_old))
        groups, rank = groups[old.num_rows :], rank[old.num_rows :]
        return (groups >= 0) & (rank < before[groups]), (groups >= 0) & (rank == last[groups])

    def observe(self, events: pa.Table) -> None:
        """Note events of other buckets: with `ordered=True` they move the horizon of this one too."""
        if self.ordered == () and events.num_rows:
            self._observed(events)

    def _observed(self, events: pa.Table) -> Bool:
        """Note the latest event of the stream; return which events come before the one of earlier micro-batches."""
        order, time = self._log.binding.order, self._log.ticks_of(events)
        moments = pa.table({"tick": time})
        if order is not None:
            moments = moments.append_column("order", contiguous(events.column(order)))
        earlier = [row for row in self.latest if row is not None]
        both = pa.concat_tables([*earlier, moments]) if earlier else moments
        rank = _pair_ranks(both.column("tick").to_numpy(), None if order is None else both.column("order"))
        before = rank[0] if self.latest[0] is not None else -1
        self.latest = (self.latest[0], both.slice(int(rank.argmax()), 1))
        return np.asarray(rank[len(earlier) :] < before)

    def settle(self) -> None:
        """Note the end of a micro-batch."""
        self.latest = (self.latest[1], self.latest[1])

    def _ranks(self, table: pa.Table) -> Int64:
        order = self._log.binding.order
        return _pair_ranks(self._log.ticks_of(table), None if order is None else table.column(order))

    # --- state ---
    def head(self) -> dict[str, str]:
        """Return what the header of the state has to hold."""
        texts = [
            (name, row) for name, row in zip(("latest", "latest_now"), self.latest, strict=True) if row is not None
        ]
        return {name: b64encode(chunk_bytes(HOLDS_LATEST, row)).decode() for name, row in texts}

    def load(self, values: dict[str, str]) -> None:
        texts = [values.get(name) for name in ("latest", "latest_now")]
        before, now = (None if text is None else read_chunk(b64decode(text))[1] for text in texts)
        self.latest = (before, now)


def _pair_ranks(ticks: Times, order: pa.ChunkedArray | None) -> Int64:
    """Return dense ranks of (time, order)."""
    if order is None:
        return np.unique(ticks, return_inverse=True)[1].astype(np.int64)
    (numbers,) = codes([contiguous(order)])
    ascending = np.lexsort((numbers, ticks))
    is_new = np.zeros(ticks.size, np.bool_)
    for values in (ticks[ascending], numbers[ascending]):
        is_new[1:] |= values[1:] != values[:-1]
    ranks = np.empty(ticks.size, np.int64)
    ranks[ascending] = np.cumsum(is_new)
    return ranks


def _greatest(groups: Int32, rank: Int64, count: int, members: Bool) -> Int64:
    """Return for each group, and for no group (-1), the greatest rank of its members; -1 if it has none."""
    greatest = np.full(count + 1, -1, np.int64)
    chosen = np.flatnonzero(members & (groups >= 0))
    np.maximum.at(greatest, groups[chosen], rank[chosen])
    return greatest


def _relevant_places(plan: Plan, events: Events) -> list[Int32]:
    if isinstance(plan, AggregatePlan) and plan.query.emit is Emit.CHANGES:
        return [relevant_places(plan, events)]
    steps = (Alternative(one.query, tuple(one.all_steps()), ()) for one in plan.alternatives)
    return [places for one in steps for places in candidates(one, events)]
