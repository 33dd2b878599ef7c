"""Engines as time passes: when rows are released, what is held and written, what is refused."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import streamsift as ss
from streamed import OneEngine, Saved, counted, engine_of, load_engine, plan_of
from streamsift.runtime.state import format
from streamsift.runtime.stream.engine import ManyEngine

EVENTS = pa.table({"t": [1, 2, 3, 8, 20], "kind": ["A", "B", "A", "B", "C"]})
BINDING: dict[str, str | None] = {"time": "t", "type": "kind"}
FORMAT_1 = Path(__file__).parents[1] / "state_format_1"


def engine_of_text(text: str) -> OneEngine:
    return engine_of(plan_of(text, EVENTS.schema, BINDING))


def part(*rows: int) -> pa.Table:
    return EVENTS.take(list(rows))


# --- when ------------------------------------------------------------------------------------------------------------


def test_a_match_is_released_when_its_last_event_arrives() -> None:
    engine = engine_of_text("PATTERN SEQ(A a, B b) WITHIN 10")
    engine.push(part(1))
    assert engine.advance(0).num_rows == 0
    engine.push(part(0))
    assert engine.advance(0).num_rows == 1
    assert engine.advance(9).num_rows == 0


def test_an_upper_edge_is_decided_by_time_passing() -> None:
    engine = engine_of_text("PATTERN SEQ(A a, B b, !C c) WITHIN 10")
    engine.push(part(0, 1, 2, 3))
    assert engine.advance(10).num_rows == 0
    assert engine.wake() == 11
    assert engine.advance(11)["a"].to_pylist() == [{"t": 1, "kind": "A"}] * 2
    assert engine.advance(13)["a"].to_pylist() == [{"t": 3, "kind": "A"}]


def test_a_forbidding_event_comes_before_the_edge() -> None:
    engine = engine_of_text("PATTERN SEQ(A a, B b, !C c) WITHIN 19")
    engine.push(part(0, 1, 4))
    assert engine.finish().num_rows == 0


def test_a_group_that_an_event_follows_is_decided_by_it() -> None:
    engine = engine_of_text("PATTERN SEQ(A+ a, B b) WITHIN 10")
    engine.push(part(0, 1))
    assert engine.advance(2).num_rows == 1


def test_a_trailing_group_is_decided_by_the_end_of_its_window() -> None:
    engine = engine_of_text("PATTERN SEQ(A a, B+ b) WITHIN 6")
    engine.push(part(0, 1))
    assert engine.advance(6).num_rows == 0
    assert engine.advance(7).num_rows == 1


# --- what was dropped -------------------------------------------------------------------------------------------------

LEADING_GROUPS = [
    "PATTERN C+ c WITHIN 4",
    "PATTERN C+ c WITHIN 4 EXCLUSIVE",
    "PATTERN C+ c WITHIN 2 EVENTS",
    "PATTERN C+ c WITHIN 4 EMIT EACH",
    "PATTERN SEQ(C+ c, A a, !B b) WITHIN 5",
    "PATTERN SEQ(C* c, A a, !B b) WITHIN 5",
    "PATTERN SEQ(C+ c, A a, !B b) WITHIN 5 EMIT EACH",
    "PATTERN AND(C+ c, A a) WITHIN 5",
    "PATTERN SEQ(C+ c, A+ a) WITHIN 5",
    "PATTERN SEQ(A* v1, C+ v2) WITHIN 5",
    "PATTERN OR(SEQ(A a, B b), C+ v) PARTITION BY kind WITHIN 2 EVENTS",
    "PATTERN OR(SEQ(A a, B b), C+ v) PARTITION BY kind WITHIN 2 EVENTS EMIT EACH",
    "PATTERN SEQ(C+ c, A a) AGG COUNT WITHIN 5",
    "PATTERN SEQ(C+ c, A a) AGG COUNT WITHIN 5 UPDATE 1",
    "PATTERN SEQ(C+ c, A a) AGG COUNT, SUM(c.t) WITHIN 5 UPDATE 3",
    "PATTERN C+ c AGG COUNT, MIN(c.t) WITHIN 4",
    "PATTERN SEQ(C+ c, A a) PREF MAX[COUNT(c)] WITHIN 5 UPDATE 1 RETURN 5",
    "PATTERN C+ c PREF MIN[COUNT(c)] WITHIN 4 UPDATE 2 RETURN 5",
    "PATTERN SEQ(!B b, C+ c, A a, !B d) WITHIN 5",
]
SPACED = [
    [(26, "C"), (29, "C")],
    [(6, "C"), (9, "C"), (10, "A"), (13, "A")],
    [(1, "C"), (3, "A"), (4, "C"), (7, "C"), (9, "A"), (9, "C"), (12, "A"), (13, "B"), (20, "C"), (24, "A")],
]


@pytest.mark.parametrize("text", LEADING_GROUPS)
@pytest.mark.parametrize("step", [1, 2, 3])
def test_an_evicted_element_still_makes_its_group_larger(text: str, step: int) -> None:
    """Time passes between any two events, so the first elements of groups are dropped before the last are decided."""
    for events in SPACED:
        table = pa.table({"t": [t for t, _ in events], "kind": [kind for _, kind in events]})
        engine = engine_of(plan_of(text, table.schema, BINDING))
        found = []
        for moment in range(0, 40, step):
            engine.push(table.filter((pc.field("t") > moment - step) & (pc.field("t") <= moment)))
            found += engine.advance(moment).to_pylist()
        assert engine.late == 0
        found += engine.finish().to_pylist()
        assert counted(found) == counted(ss.query(text).run_local(table, **BINDING).to_pylist())


def test_a_leading_group_keeps_one_more_window_and_no_more() -> None:
    engine = engine_of_text("PATTERN C+ c WITHIN 4")
    for moment in range(1, 101):
        engine.push(pa.table({"t": [moment], "kind": ["C"]}))
        engine.advance(moment)
        assert engine.rows() <= 2 * 4 + 1
    assert engine.rows() == 2 * 4 + 1


@pytest.mark.parametrize(
    ("pattern", "times", "keys"),
    [
        ("SEQ(A p, !SEQ(A q, B b))", [0, 0, 0, 1, 1, 1, 1, 7, 8, 14], [1, 2, None, 2, None, None, 2, None, None, None]),
        ("SEQ(A p, !B b)", [6] * 9 + [12], [None, 1, 2, 2, None, 2, 1, None, None, 2]),
    ],
)
@pytest.mark.parametrize("update", ["", " UPDATE 2 EVENTS", " EMIT CHANGES"])
def test_rows_of_one_time_wait_for_their_own_windows(
    pattern: str, times: list[int], keys: list[int | None], update: str
) -> None:
    """Rows that differ in `order` alone are decided one by one: the last may wait for longer than state is retained."""
    text = f"PATTERN {pattern} WHERE [id] AGG COUNT WITHIN 4 EVENTS{update}"
    table = pa.table({"t": times, "id": keys, "seq": range(len(times))})
    binding: dict[str, str | None] = {"time": "t", "order": "seq"}
    engine, found = engine_of(plan_of(text, table.schema, binding)), []
    for moment in range(20):
        found += engine.advance(moment - 1).to_pylist()
        engine.push(table.filter(pc.field("t") == moment))
    found += engine.finish().to_pylist()
    assert counted(found) == counted(ss.query(text).run_local(table, **binding).to_pylist())


def test_totals_without_a_window_on_short_decimal_times() -> None:
    times = pa.array([Decimal("0.5"), Decimal("1.0")], pa.decimal128(3, 1))
    engine = engine_of(plan_of("PATTERN ANY a AGG COUNT", pa.schema([("t", times.type)]), {"time": "t"}))
    engine.push(pa.table({"t": times}))
    assert engine.finish().to_pylist() == [
        {"time": times[0].as_py(), "count": 1},
        {"time": times[1].as_py(), "count": 2},
    ]


def test_an_upper_edge_of_rows_is_decided_by_rows() -> None:
    engine = engine_of_text("PATTERN SEQ(A a, B b, !C c) WITHIN 3 EVENTS")
    engine.push(part(0, 1))
    assert engine.advance(2).num_rows == 0
    engine.push(part(2))
    assert engine.advance(3).num_rows == 1


def test_a_definition_waits_for_its_own_window() -> None:
    engine = engine_of_text("SEQ S = (A a; !C c) WITHIN 10 PATTERN S; B b WITHIN 5")
    engine.push(part(0, 1))
    assert engine.advance(10).num_rows == 0
    assert engine.advance(11).num_rows == 1


def test_totals_come_when_time_has_passed_them() -> None:
    engine = engine_of_text("PATTERN SEQ(A a, B b) AGG COUNT WITHIN 10")
    engine.push(part(0, 1, 2, 3))
    assert engine.advance(1).num_rows == 0
    assert engine.advance(5).to_pylist() == [{"time": 2, "count": 1}]
    assert engine.advance(8).to_pylist() == [{"time": 8, "count": 3}]


def test_ticks_come_without_events() -> None:
    engine = engine_of_text("PATTERN SEQ(A a, B b) AGG COUNT WITHIN 10 UPDATE 3")
    engine.push(part(0, 1, 2, 3))
    assert engine.advance(7).to_pylist() == [{"time": 3, "count": 1}, {"time": 6, "count": 1}]
    assert engine.wake() == 8
    assert engine.advance(8).to_pylist() == [{"time": 9, "count": 3}]
    assert engine.advance(30).to_pylist() == [{"time": 12, "count": 1}]
    assert engine.rows() == 0
    assert engine.wake() is None


def test_rankings_come_at_their_ticks() -> None:
    engine = engine_of_text("PATTERN SEQ(A a, B b) PREF MAX[b.t - a.t] WITHIN 10 UPDATE 5 RETURN 1")
    engine.push(part(0, 1, 2, 3))
    assert engine.advance(3).num_rows == 0
    assert engine.advance(4)["score"].to_pylist() == [1]
    assert engine.advance(14)["score"].to_pylist() == [7]


def test_ticks_after_rows_are_counted_on_over_dropped_rows() -> None:
    text = "PATTERN A a AGG COUNT PARTITION BY kind WITHIN 4 EVENTS UPDATE 3 EVENTS"
    plan = plan_of(text, EVENTS.schema, BINDING)
    table = pa.table({"t": range(60), "kind": ["A", "B"] * 30})
    engine, saved, found = engine_of(plan), Saved(), []
    for start in range(0, 60, 4):
        engine.push(table.slice(start, 4))
        found += engine.advance(start + 2).to_pylist()
        saved.write(engine)
        engine = saved.load(plan)
        assert engine.rows() <= 2 + 2 * (4 + 3) + 4
    found += engine.finish().to_pylist()
    expected = ss.query(text).run_local(table, time="t", type="kind")
    assert counted(found) == counted(expected.to_pylist())


@pytest.mark.parametrize("kind", [pa.string_view(), pa.dictionary(pa.int8(), pa.string()), pa.large_string()])
def test_texts_of_any_type_are_keys(kind: pa.DataType) -> None:
    texts = pa.array(["x", "y", "x", "y", "x"]).cast(kind)
    table = EVENTS.append_column("id", texts)
    for text in ("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 9", "PATTERN SEQ(A a, B b) GROUP BY id AGG COUNT, MIN(b.t)"):
        engine = engine_of(plan_of(text, table.schema, BINDING))
        engine.push(table.slice(0, 3))
        found = engine.advance(2).to_pylist()
        engine.push(table.slice(3))
        found += engine.finish().to_pylist()
        assert counted(found) == counted(ss.query(text).run_local(table, time="t", type="kind").to_pylist())


# --- what is held and written ----------------------------------------------------------------------------------------


def test_late_events_are_counted_and_old_ones_forgotten() -> None:
    engine = engine_of_text("PATTERN SEQ(A a, B b) WITHIN 4")
    engine.push(part(0, 1, 2))
    engine.advance(3)
    engine.push(part(1, 3))
    assert engine.late == 1
    assert engine.wake() == 6
    engine.advance(30)
    assert engine.rows() == 0


def test_events_that_cannot_matter_are_not_held() -> None:
    engine = engine_of_text("PATTERN SEQ(A a, B b) WHERE b.t > 5 WITHIN 40")
    engine.push(EVENTS)
    engine.advance(20)
    assert engine.rows() == 3


def many_events(start: int, count: int) -> pa.Table:
    kinds = np.array(["A", "B", "C"])[np.arange(start, start + count) % 3]
    return pa.table({"t": np.arange(start, start + count), "kind": kinds}, schema=EVENTS.schema)


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="long streams, of which only bytes are asked")
@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A a, B b, C c) WHERE a.t + 2 = c.t WITHIN 5000",
        "PATTERN SEQ(A a, B b, C c) AGG COUNT, MAX(b.t) WITHIN 5000",
        "PATTERN SEQ(A a, B b) AGG COUNT(*) AS n, SUM(a.t)",
        "PATTERN SEQ(A a, B b) PREF MAX[b.t - a.t] WITHIN 5000 UPDATE 200 RETURN 1",
    ],
)
def test_what_is_written_grows_with_what_is_new(text: str) -> None:
    """And not with the window, of which nothing is written twice; what leaves it is dropped."""
    engine, saved = engine_of_text(text), Saved()
    engine.push(many_events(0, 5000))
    engine.advance(4999)
    saved.write(engine)
    sizes = []
    for start in range(5000, 15000, 100):
        engine.push(many_events(start, 100))
        engine.advance(start + 99)
        sizes.append(saved.write(engine))
    assert max(sizes) < 6000
    assert len(saved.head) < 200
    assert engine.rows() <= 5200
    engine.advance(100_000)
    saved.write(engine)
    assert engine.rows() <= 2
    assert sum(map(len, saved.chunks.values())) < 200_000


def test_many_queries_hold_their_events_once() -> None:
    texts = {"pairs": "PATTERN SEQ(A a, B b) WITHIN 10", "total": "PATTERN SEQ(A a, B b) AGG COUNT"}
    texts |= {"three": "PATTERN SEQ(A a, B b, C c) WITHIN 30"}
    plans = {name: plan_of(text, EVENTS.schema, BINDING) for name, text in texts.items()}
    engine, chunks, found = ManyEngine(plans), dict[int, bytes](), {name: [] for name in texts}
    for row, time in ((0, 1), (1, 2), (2, 4), (3, 8), (4, 20)):
        engine.push(part(row))
        for name, table in engine.advance(time).items():
            found[name] += table.to_pylist()
        changes = engine.changes()
        chunks = {n: c for n, c in (chunks | changes.added).items() if n not in changes.dropped}
        assert engine.rows() <= row + 1 + 2
        engine = ManyEngine(plans)
        engine.load(changes.head, chunks.items())
    for name, table in engine.finish().items():
        found[name] += table.to_pylist()
        expected = ss.query(texts[name]).run_local(EVENTS, time="t", type="kind")
        assert counted(found[name]) == counted(expected.to_pylist())


# --- formats ---------------------------------------------------------------------------------------------------------

KEPT = {
    "detection": "PATTERN SEQ(A a, B b, !C c) WITHIN 12",
    "totals": "PATTERN SEQ(A a, B b) AGG COUNT, MAX(a.t), AVG(b.t)",
}


@pytest.mark.parametrize("name", KEPT)
def test_states_of_format_1_are_read(name: str) -> None:
    """Bytes that were written once, and are never written again."""
    plan = plan_of(KEPT[name], EVENTS.schema, BINDING)
    chunks = [(int(path.stem), path.read_bytes()) for path in (FORMAT_1 / name).glob("*.chunk")]
    engine = load_engine(plan, (FORMAT_1 / name / "head").read_bytes(), chunks)
    before = engine_of(plan)
    before.push(part(0, 1, 2))
    released = before.advance(2).to_pylist()
    engine.push(part(3, 4))
    expected = ss.query(KEPT[name]).run_local(EVENTS, time="t", type="kind")
    assert counted(released + engine.finish().to_pylist()) == counted(expected.to_pylist())


def test_an_unknown_format_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of("PATTERN SEQ(A a, B b) WITHIN 4", EVENTS.schema, BINDING)
    engine, later = engine_of(plan), engine_of(plan)
    for each in (engine, later):
        each.push(part(0))
    head = engine.changes().head
    monkeypatch.setattr(format, "FORMAT", 9)
    changes = later.changes()
    monkeypatch.undo()
    with pytest.raises(ss.BadInputError, match="format 9"):
        load_engine(plan, changes.head, [])
    with pytest.raises(ss.BadInputError, match="format 9"):
        load_engine(plan, head, changes.added.items())
    with pytest.raises(ss.BadInputError, match="not an Arrow stream"):
        load_engine(plan, head, [(0, b"nonsense")])


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("PATTERN SEQ(A a, B b)", "detection on a stream requires WITHIN"),
        ("PATTERN SEQ(A a, B b) PREF MAX[b.t] RETURN 1", "ranking on a stream requires UPDATE"),
        ("PATTERN SEQ(A a, B+ b) AGG COUNT", "wait for later events requires WITHIN"),
        (
            "SEQ S = (A a; B b) WITHIN 3 EVENTS PATTERN S; C c WITHIN 5",
            "cannot mix time windows with count windows",
        ),
        ("PATTERN SEQ(A a, !B b) AGG COUNT PARTITION BY kind WITHIN 3 EVENTS", "count window with PARTITION BY"),
    ],
)
def test_what_a_stream_cannot_have(text: str, message: str) -> None:
    with pytest.raises((ss.QueryError, ss.UnsupportedQuery), match=message) as raised:
        engine_of_text(text)
    assert "^" in str(raised.value)
