"""Interim: detection behind the interface of engines, with one chunk that is rewritten."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streamsift.errors import UnsupportedQuery
from streamsift.physical.plan import DetectPlan, Plan
from streamsift.runtime.incremental import DetectionEngine


@dataclass(frozen=True, slots=True)
class Changes:
    head: bytes
    added: dict[int, bytes]
    dropped: tuple[int, ...]


class Engine:
    def __init__(self, inner: DetectionEngine, last: int = -1) -> None:
        self.inner, self.last = inner, last

    @property
    def late(self) -> int:
        return self.inner.late

    def push(self, events: pa.Table) -> None:
        self.inner.push(events)

    def advance(self, ticks: int | float) -> pa.Table:
        kind = self.inner.plan.query.schema.field(self.inner.plan.query.binding.time).type
        value = pa.array([ticks]).cast(kind) if not pa.types.is_date32(kind) else pa.array([ticks], pa.int32()).cast(kind)
        return self.inner.advance(value[0].as_py())

    def finish(self) -> pa.Table:
        return self.inner.finish()

    def wake(self) -> int | float | None:
        if not self.inner._events.num_rows:
            return None
        first = self.inner._ticks(self.inner._events.column(self.inner.plan.query.binding.time).combine_chunks())
        return max(first.min().item(), (self.inner._passed if self.inner._passed is not None else first.min().item()) + 1)

    def changes(self) -> Changes:
        dropped = (self.last,) if self.last >= 0 else ()
        self.last += 1
        return Changes(b"%d" % self.last, {self.last: self.inner.save()}, dropped)

    def rows(self) -> int:
        return self.inner._events.num_rows

    def size(self) -> int:
        return self.inner._events.nbytes


def engine_for(plan: Plan) -> Engine:
    if not isinstance(plan, DetectPlan):
        raise UnsupportedQuery("only detection on a stream yet")
    return Engine(DetectionEngine(plan))


def load_engine(plan: Plan, head: bytes, chunks: Iterable[tuple[int, bytes]]) -> Engine:
    assert isinstance(plan, DetectPlan)
    (number, state), = chunks
    return Engine(DetectionEngine.load(plan, state), number)
