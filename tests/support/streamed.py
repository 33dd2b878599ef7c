"""Run a plan on a stream that is split, reordered and saved at random, and return its rows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import streamsift as ss
from casefile import plain
from streamsift.logical.bound import Binding
from streamsift.physical.plan.plan import Plan
from streamsift.physical.share import ShareMode
from streamsift.runtime.events.times import ticks_of
from streamsift.runtime.stream import decider
from streamsift.runtime.stream.engine import ManyEngine
from times import around

decider.MAX_SHARE = 1.0  # look rows up by key even on streams with few rows


def plan_of(text: str, schema: pa.Schema, binding: dict[str, str | None], **choices: Any) -> Plan:
    return ss.query(text).plan(schema, binding["time"], binding.get("type"), binding.get("order"), choices)


class OneEngine:
    """An engine of one query."""

    def __init__(self, plan: Plan) -> None:
        self._all = ManyEngine({"": plan})
        self.push, self.wake, self.changes = self._all.push, self._all.wake, self._all.changes
        self.load, self.rows, self.size = self._all.load, self._all.rows, self._all.size

    @property
    def late(self) -> int:
        return self._all.late

    def advance(self, ticks: int | float) -> pa.Table:
        return self._all.advance(ticks)[""]

    def finish(self) -> pa.Table:
        return self._all.finish()[""]


def engine_of(plan: Plan) -> OneEngine:
    return OneEngine(plan)


def load_engine(plan: Plan, head: bytes, chunks: Iterable[tuple[int, bytes]]) -> OneEngine:
    """Load an engine from the header that was written last and the chunks that were added and not dropped."""
    engine = OneEngine(plan)
    engine.load(head, chunks)
    return engine


class Saved:
    """The content of a state store: the last header, and the chunks that were added and not dropped."""

    def __init__(self) -> None:
        self.head, self.chunks = b"", dict[int, bytes]()

    def write(self, engine: OneEngine | ManyEngine) -> int:
        """Write the changes and return their size in bytes."""
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
    """A step of a stream: new events, possibly a watermark, possibly saving and loading the state."""

    events: pa.Table
    moment: int | float | None
    late: pa.Table  # copies of events at or before the watermark, which must change nothing
    saves: bool


def cuts(table: pa.Table, binding: Binding, seed: int) -> Iterator[Cut]:
    """Yield events out of order, a few times per step. The watermark may advance after any step.

    Rows with equal times stay in the order of the table. Half of the streams are in time order, one time per step.
    """
    chance = random.Random(seed)
    ticks = ticks_of(table.column(binding.time).combine_chunks(), binding)
    times = np.unique(ticks).tolist() or np.zeros(1, ticks.dtype).tolist()
    jitter, most, advances = chance.choice([([0], 1, 0.95), ([0, 0, 1.5, 3.5], 3, 0.6)])
    arrival = sorted(times, key=lambda time: times.index(time) + chance.choice(jitter))
    passed, arrived = None, np.zeros(ticks.size, np.bool_)
    for _ in range(len(arrival) + chance.randint(0, 4)):
        count = chance.randint(1, most)
        pushed, arrival = arrival[:count], arrival[count:]
        moment = _moment(times, passed, min(arrival, default=None), chance) if chance.random() < advances else None
        passed = passed if moment is None else moment
        arrives = np.isin(ticks, pushed)
        arrived |= arrives
        is_late = arrived & (ticks <= passed) if passed is not None and chance.random() < 0.1 else arrived & False
        yield Cut(table.filter(pa.array(arrives)), moment, table.filter(pa.array(is_late)), saves=chance.random() < 0.4)


def _moment(times: list[Any], passed: Any, first_to_come: Any, chance: random.Random) -> Any:
    """Return a new watermark: at, before or after an event or anywhere else, but before all events still to come."""
    low = times[0] - 3 if passed is None else passed
    high = times[-1] + 12 if first_to_come is None else first_to_come
    if isinstance(low, float):
        near = [*times, *around(times)]
        anywhere = chance.uniform(max(low, -1e300), min(high, 1e300))
    else:
        near = [moment for time in times for moment in (time, time - 1, time + 2)]
        anywhere = chance.randint(low, max(low, high - 1))
    possible = [moment for moment in {*near, anywhere} if low < moment < high]
    return chance.choice(sorted(possible)) if possible else None


def streamed(plan: Plan, table: pa.Table, seed: int) -> list[dict[str, Any]]:
    """Return the rows that the stream emits, including those at its end."""
    engine, saved, found, late = engine_of(plan), Saved(), [], 0
    for cut in cuts(table, plan.query.binding, seed):
        engine.push(cut.events)
        if cut.moment is not None:
            found += engine.advance(cut.moment).to_pylist()
        engine.push(cut.late)
        late += cut.late.num_rows
        if cut.saves:
            saved.write(engine)
            engine = saved.load(plan)
    found += engine.finish().to_pylist()
    assert engine.late == late
    return found


def streamed_many(
    plans: dict[str, Plan], table: pa.Table, seed: int, sharing: ShareMode = ShareMode.AUTO
) -> dict[str, list[dict[str, Any]]]:
    """Return the rows that a stream of several queries emits."""
    engine, saved, found = ManyEngine(plans, sharing=sharing), Saved(), {name: [] for name in plans}
    for cut in cuts(table, next(iter(plans.values())).query.binding, seed):
        engine.push(cut.events)
        if cut.moment is not None:
            for name, rows in engine.advance(cut.moment).items():
                found[name] += rows.to_pylist()
        engine.push(cut.late)
        if cut.saves:
            saved.write(engine)
            engine = ManyEngine(plans, sharing=sharing)
            engine.load(saved.head, saved.chunks.items())
    for name, rows in engine.finish().items():
        found[name] += rows.to_pylist()
    return found


def counted(rows: list[dict[str, Any]]) -> Counter[Any]:
    return Counter(frozen(row) for row in rows)


def frozen(value: Any) -> Any:
    """Return the value in a hashable form."""
    match value:
        case dict():
            return tuple((name, frozen(value[name])) for name in sorted(value))
        case list():
            return tuple(map(frozen, value))
        case _:
            return plain(value)
