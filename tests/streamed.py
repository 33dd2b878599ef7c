"""A plan and events in, the rows of its engine as they come bit by bit out: cut, disordered and saved at random."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

import streamsift as ss
from casefile import plain
from streamsift.physical.plan import Plan
from streamsift.runtime.engine import OneEngine, engine_for, load_engine
from streamsift.runtime.events import ticks_of


def plan_of(text: str, schema: pa.Schema, binding: dict[str, str | None], **choices: Any) -> Plan:
    return ss.query(text).plan(schema, binding["time"], binding.get("type"), binding.get("order"), choices)


class Saved:
    """What a state store holds: the last head, and the chunks that were added and not dropped."""

    def __init__(self) -> None:
        self.head, self.chunks = b"", dict[int, bytes]()

    def write(self, engine: OneEngine) -> int:
        """Writes what changed; returns how many bytes that are."""
        changes = engine.changes()
        self.head = changes.head
        for number in changes.dropped:
            del self.chunks[number]
        assert not self.chunks.keys() & changes.added.keys(), "a chunk never changes"
        self.chunks |= changes.added
        return changes.size

    def load(self, plan: Plan) -> OneEngine:
        return load_engine(plan, self.head, list(self.chunks.items())[::-1])


def streamed(plan: Plan, table: pa.Table, seed: int) -> list[dict[str, Any]]:
    """The rows of all advances and the finish. Rows of one time come in the order that they have in the table."""
    chance = random.Random(seed)
    ticks = ticks_of(table.column(plan.query.binding.time).combine_chunks(), plan.query.binding)
    times = np.unique(ticks).tolist()
    arrival = sorted(times, key=lambda time: times.index(time) + chance.choice([0, 0, 1.5, 3.5]))
    engine, saved, found = engine_for(plan), Saved(), []
    while arrival:
        count = chance.randint(1, 3)
        pushed, arrival = arrival[:count], arrival[count:]
        engine.push(table.filter(pa.array(np.isin(ticks, pushed))))
        moments = _moments(ticks, min(arrival, default=None))
        if moments and chance.random() < 0.6:
            found += engine.advance(chance.choice(moments)).to_pylist()
        if chance.random() < 0.4:
            saved.write(engine)
            engine = saved.load(plan)
    found += engine.finish().to_pylist()
    assert engine.late == 0
    return found


def _moments(ticks: np.ndarray, first_to_come: Any) -> list[Any]:
    """Up to where time may pass: around the events, but not to one that is still to come."""
    some = {moment for tick in ticks.tolist() for moment in (tick, tick - 1, tick + 2)}
    return sorted(moment for moment in some if first_to_come is None or moment < first_to_come)


def counted(rows: list[dict[str, Any]]) -> Counter[Any]:
    return Counter(frozen(row) for row in rows)


def frozen(value: Any) -> Any:
    """A value that can be counted."""
    match value:
        case dict():
            return tuple((name, frozen(value[name])) for name in sorted(value))
        case list():
            return tuple(map(frozen, value))
        case _:
            return plain(value)
