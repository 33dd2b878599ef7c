"""Detection as time passes: cut anywhere, saved and loaded anywhere, the rows are those of all events at once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import streamsift as ss
from strategies import bindings, queries, streams
from streamsift.language import Script, print_script
from streamsift.runtime.incremental import DetectionEngine
from test_generated import SCHEMA, frozen

DETECTION = {"aggregates": False, "ranking": False, "definitions": False}


def engine_of(text: str, schema: pa.Schema, **binding: str) -> DetectionEngine:
    plan = ss.query(text)._plan(schema, binding["time"], binding.get("type"), binding.get("order"), {}).plan
    return DetectionEngine(plan)


def counted(table: pa.Table) -> Counter[Any]:
    return Counter(frozen(row) for row in table.to_pylist())


@settings(max_examples=200)
@given(queries(max_depth=3, **DETECTION), streams(max_size=8), bindings(), st.data())
def test_generated_queries_cut_anywhere(
    script: Script, rows: list[dict[str, Any]], binding: dict[str, str], data: st.DataObject
) -> None:
    text = print_script(script)
    note(text)
    table = pa.Table.from_pylist(rows, SCHEMA)
    try:
        expected = ss.query(text).run_local(table, **binding)
        engine = engine_of(text, SCHEMA, **binding)
    except (ss.UnsupportedQuery, ss.BadInputError):
        return
    times = sorted({row[binding["time"]] for row in rows})
    found: Counter[Any] = Counter()
    for time in times:
        now = [row for row in rows if row[binding["time"]] == time]
        engine.push(pa.Table.from_pylist(now, SCHEMA))
        if data.draw(st.booleans()):
            found += counted(engine.advance(time))
        if data.draw(st.booleans()):
            engine = DetectionEngine.load(engine.plan, engine.save())
    found += counted(engine.finish())
    assert found == counted(expected)


EVENTS = pa.table({"t": [1, 2, 3, 8, 20], "kind": ["A", "B", "A", "B", "C"]})


def part(*rows: int) -> pa.Table:
    return EVENTS.take(list(rows))


def test_a_match_is_decided_by_its_last_event() -> None:
    engine = engine_of("PATTERN SEQ(A a, B b) WITHIN 10", EVENTS.schema, time="t", type="kind")
    engine.push(part(0, 1))
    assert engine.advance(1).num_rows == 0
    assert engine.advance(2).num_rows == 1
    assert engine.advance(9).num_rows == 0


def test_an_upper_edge_is_decided_by_time_passing() -> None:
    engine = engine_of("PATTERN SEQ(A a, B b, !C c) WITHIN 10", EVENTS.schema, time="t", type="kind")
    engine.push(part(0, 1, 2, 3))
    assert engine.advance(10).num_rows == 0
    assert engine.advance(11)["a"].to_pylist() == [{"t": 1, "kind": "A"}] * 2
    assert engine.advance(13)["a"].to_pylist() == [{"t": 3, "kind": "A"}]


def test_a_forbidding_event_comes_before_the_edge() -> None:
    engine = engine_of("PATTERN SEQ(A a, B b, !C c) WITHIN 19", EVENTS.schema, time="t", type="kind")
    engine.push(part(0, 1, 4))
    assert engine.finish().num_rows == 0


def test_late_events_are_counted_and_old_ones_forgotten() -> None:
    engine = engine_of("PATTERN SEQ(A a, B b) WITHIN 4", EVENTS.schema, time="t", type="kind")
    engine.push(part(0, 1, 2))
    engine.advance(3)
    engine.push(part(1, 3))
    assert engine.late == 1
    engine.advance(30)
    assert len(engine.save()) < 600


def test_an_unknown_format_is_an_error() -> None:
    engine = engine_of("PATTERN SEQ(A a, B b) WITHIN 4", EVENTS.schema, time="t", type="kind")
    changed = engine.save().replace(b'"format": 1', b'"format": 9')
    with pytest.raises(ss.BadInputError, match="format 9"):
        DetectionEngine.load(engine.plan, changed)
