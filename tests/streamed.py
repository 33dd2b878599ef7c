"""A plan and events in, the rows of its engine as they come bit by bit out: cut, disordered and saved at random."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import streamsift as ss
from casefile import plain
from streamsift.logical.bound import Binding
from streamsift.physical.plan import Plan
from streamsift.physical.sharing import share
from streamsift.runtime.engine import (
    ManyEngine,
    OneEngine,
    engine_for,
    engine_for_many,
    load_engine,
    load_engine_for_many,
)
from streamsift.runtime.events import ticks_of
from times import around


def plan_of(text: str, schema: pa.Schema, binding: dict[str, str | None], **choices: Any) -> Plan:
    return ss.query(text).plan(schema, binding["time"], binding.get("type"), binding.get("order"), choices)


class Saved:
    """What a state store holds: the last head, and the chunks that were added and not dropped."""

    def __init__(self) -> None:
        self.head, self.chunks = b"", dict[int, bytes]()

    def write(self, engine: OneEngine | ManyEngine) -> int:
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


@dataclass(frozen=True)
class Cut:
    """What happens next: events come, maybe time passes, maybe the state is written and read."""

    events: pa.Table
    moment: int | float | None
    saves: bool


def cuts(table: pa.Table, binding: Binding, seed: int) -> Iterator[Cut]:
    """Events out of order, in parts of a few times each. Rows of one time come in the order of the table."""
    chance = random.Random(seed)
    ticks = ticks_of(table.column(binding.time).combine_chunks(), binding)
    times = np.unique(ticks).tolist()
    arrival = sorted(times, key=lambda time: times.index(time) + chance.choice([0, 0, 1.5, 3.5]))
    while arrival:
        count = chance.randint(1, 3)
        pushed, arrival = arrival[:count], arrival[count:]
        moments = _moments(ticks, min(arrival, default=None))
        moment = chance.choice(moments) if moments and chance.random() < 0.6 else None
        yield Cut(table.filter(pa.array(np.isin(ticks, pushed))), moment, chance.random() < 0.4)


def streamed(plan: Plan, table: pa.Table, seed: int) -> list[dict[str, Any]]:
    """The rows of all advances and the finish."""
    engine, saved, found = engine_for(plan), Saved(), []
    for cut in cuts(table, plan.query.binding, seed):
        engine.push(cut.events)
        if cut.moment is not None:
            found += engine.advance(cut.moment).to_pylist()
        if cut.saves:
            saved.write(engine)
            engine = saved.load(plan)
    found += engine.finish().to_pylist()
    assert engine.late == 0
    return found


def streamed_many(plans: dict[str, Plan], table: pa.Table, seed: int) -> dict[str, list[dict[str, Any]]]:
    """The same for several queries at once."""
    plan = share(plans)
    engine, saved, found = engine_for_many(plan), Saved(), {name: [] for name in plans}
    for cut in cuts(table, next(iter(plans.values())).query.binding, seed):
        engine.push(cut.events)
        if cut.moment is not None:
            for name, rows in engine.advance(cut.moment).items():
                found[name] += rows.to_pylist()
        if cut.saves:
            saved.write(engine)
            engine = load_engine_for_many(plan, saved.head, saved.chunks.items())
    for name, rows in engine.finish().items():
        found[name] += rows.to_pylist()
    return found


def _moments(ticks: np.ndarray, first_to_come: Any) -> list[Any]:
    """Up to where time may pass: around the events, but not to one that is still to come."""
    some = {moment for tick in ticks.tolist() for moment in (tick, tick - 1, tick + 2)}
    some |= around(ticks.tolist()) if ticks.dtype == np.float64 else set()
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
