"""Totals over windows that are counted on from batch to batch: the same as those that are counted at once."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import naive
import streamsift as ss
from strategies import bindings, streams
from streamed import Saved, counted, engine_of, plan_of, streamed
from streamsift.language import parse
from streamsift.physical.plan.plan import AggregatePlan
from streamsift.physical.stream import DecideBy, stream_plan
from streamsift.runtime.count import incremental
from streamsift.runtime.stream.engine import ManyEngine
from streamsift.runtime.stream.totals import WindowTotals
from test_generated import EXAMPLES, LARGE, SCHEMA, Rows

PATTERNS = (
    "SEQ(A a, B b) {where}",
    "SEQ(A a, B b, C c) {where}",
    "SEQ(A a, !C c, B b) {where}",
    "SEQ(A a, B b) | SEQ(C c, D d) {where}",
    "SEQ(A a, B b, A c, B d) {where}",
)
WHERE = ("", "WHERE [id]", "WHERE [id] AND b.n > 0")
GROUPS = ("", "GROUP BY id", "GROUP BY id, s")
AGGREGATES = ("COUNT", "COUNT, SUM(b.n), AVG(b.x)", "SUM(b.x), MIN(b.x), MAX(b.n)", "COUNT, MAX(b.t), SUM(b.t)")
WINDOWS = (
    "WITHIN 3",
    "WITHIN 0",
    "WITHIN 5 EXCLUSIVE",
    "WITHIN 4 UPDATE 2",
    "WITHIN 3 UPDATE 5",
    "WITHIN 2.5 UPDATE 0.5",
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    pattern, where, group, aggregates, window = (
        draw(st.sampled_from(choices)) for choices in (PATTERNS, WHERE, GROUPS, AGGREGATES, WINDOWS)
    )
    return f"PATTERN {pattern.format(where=where)} {group} AGG {aggregates} {window}"


def of_real_times(rows: Rows) -> Rows:
    return [{**row, "t": row["t"] * 0.1} for row in rows]


@settings(max_examples=EXAMPLES or (3_000 if LARGE else 50))
@given(texts(), streams(), bindings(), st.integers(0, 2**32), st.booleans())
def test_generated(text: str, rows: Rows, binding: dict[str, str], seed: int, is_real: bool) -> None:
    schema = SCHEMA
    if is_real:
        rows, schema = of_real_times(rows), SCHEMA.set(0, pa.field("t", pa.float64()))
        text = text.replace("WITHIN 3", "WITHIN 0.3").replace("WITHIN 5", "WITHIN 0.5")
    table = pa.Table.from_pylist(rows, schema)
    plan = plan_of(text, schema, dict(binding))
    assert isinstance(plan, AggregatePlan)
    assert stream_plan(plan).decide_by is DecideBy.WINDOW_TOTALS
    found = streamed(plan, table, seed)
    event("rows" if found else "no row")
    assert counted(found) == counted(naive.run(parse(text), rows, **binding, columns=schema.names))


# --- many events ------------------------------------------------------------------------------------------------------

BINDING: dict[str, str | None] = {"time": "t", "type": "kind"}
MANY = {
    "groups": "PATTERN SEQ(A a, B b, C c) WHERE [id] GROUP BY id AGG COUNT, SUM(c.n), MAX(a.n) WITHIN 300",
    "all keys": "PATTERN SEQ(A a, B b, C c) WHERE [id] AGG COUNT, SUM(c.n), MAX(a.n) WITHIN 300",
    "ticks": "PATTERN SEQ(A a, B b, C c) WHERE [id] GROUP BY id AGG COUNT, MIN(b.n) WITHIN 300 UPDATE 70",
    "ticks of all": "PATTERN SEQ(A a, !C c, B b) WHERE [id] AGG COUNT, SUM(b.n) WITHIN 300 UPDATE 70",
    "no key": "PATTERN SEQ(A a, B b) AGG COUNT, SUM(b.n) WITHIN 40",
}


def many_events(seed: int, rows: int = 4_000) -> pa.Table:
    """Keys come and go: only a few neighbours of them are there at a time."""
    chance = np.random.default_rng(seed)
    times = np.sort(chance.integers(0, 2 * rows, rows))
    kinds = pa.array(list("ABCD")).take(pa.array(chance.integers(0, 4, rows)))
    keys = times // 100 + chance.integers(0, 8, rows)
    return pa.table({"t": times, "kind": kinds, "id": keys, "n": chance.integers(-9, 9, rows)})


@pytest.mark.parametrize("spare_keys", [5, 4096])
@pytest.mark.parametrize("name", MANY)
def test_many_events(name: str, spare_keys: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long enough for logs to be moved, keys to be forgotten, states to be read."""
    monkeypatch.setattr(incremental, "SPARE_KEYS", spare_keys)
    table, chance, saved = many_events(spare_keys), random.Random(1), Saved()
    plan = plan_of(MANY[name], table.schema, BINDING)
    engine, found, start = engine_of(plan), list[dict[str, Any]](), 0
    while start < table.num_rows:
        count = chance.choice([1, 7, 60, 300])
        engine.push(table.slice(start, count))
        start += count
        found += engine.advance(table["t"][min(start, table.num_rows) - 1].as_py() - 1).to_pylist()
        saved.write(engine)
        if chance.random() < 0.1:
            engine = saved.load(plan)
    found += engine.finish().to_pylist()
    assert counted(found) == counted(ss.query(MANY[name]).run_local(table, time="t", type="kind").to_pylist())


@pytest.mark.parametrize("name", MANY)
def test_another_engine_catches_up(name: str) -> None:
    """Two engines take turns: each is told what the other wrote."""
    table, saved = many_events(3, rows=1_000), Saved()
    plan = plan_of(MANY[name], table.schema, BINDING)
    engines, found = [ManyEngine({"": plan}) for _ in range(2)], list[dict[str, Any]]()
    for number, start in enumerate(range(0, table.num_rows, 50)):
        engine = engines[number % 3 % 2]
        if saved.head:
            later = [(key, chunk) for key, chunk in saved.chunks.items() if key >= engine.next_chunk]
            assert engine.follow(saved.head, later)
        found += engine.advance(table["t"][start].as_py() - 1)[""].to_pylist()
        engine.push(table.slice(start, 50))
        changes = engine.changes()
        saved.head, saved.chunks = changes.head, {**saved.chunks, **changes.added}
        for key in changes.dropped:
            saved.chunks.pop(key)
    found += engine.finish()[""].to_pylist()
    assert counted(found) == counted(ss.query(MANY[name]).run_local(table, time="t", type="kind").to_pylist())


def test_what_stacks_cannot_hold_is_counted_with_its_window() -> None:
    """The least and the greatest whole number stand for "none"; an infinite time never leaves."""
    text = "PATTERN SEQ(A a, B b) AGG COUNT, MIN(b.n), MAX(b.n) WITHIN 3"
    for times, values in (([1.0, 2.0, 3.0, 9.0], [0, -(2**63), 2**63 - 1, 0]), ([1.0, 2.0, 3.0, np.inf], [0, 1, 2, 3])):
        table = pa.table({"t": times, "kind": ["A", "B", "B", "B"], "n": values})
        plan = plan_of(text, table.schema, BINDING)
        expected = ss.query(text).run_local(table, time="t", type="kind").to_pylist()
        for seed in range(5):
            assert counted(streamed(plan, table, seed)) == counted(expected)


def test_the_cost_does_not_grow_with_the_window() -> None:
    """What is prepared in a step is what came in it."""
    plan = plan_of("PATTERN SEQ(A a, B b) WHERE [id] AGG COUNT WITHIN 100000", many_events(0).schema, BINDING)
    assert isinstance(plan, AggregatePlan)
    decider = WindowTotals(stream_plan(plan))
    taken: list[int] = []
    totals = decider._totals
    assert totals is not None
    add = totals.add
    totals.add = lambda table, *of, **how: taken.append(table.num_rows) or add(table, *of, **how)  # type: ignore[method-assign]
    engine = ManyEngine({"": plan})
    engine._deciders[""] = decider
    table = many_events(0)
    for start in range(0, 4_000, 400):
        engine.push(table.slice(start, 400))
        engine.advance(table["t"][start + 399].as_py())
    assert max(taken) <= 400
