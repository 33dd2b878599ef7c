"""Pictures and notebook displays: what they show is what the result says."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest

import streamsift as ss
from streamsift.command import demo_data
from streamsift.errors import QueryError
from streamsift.view import notebook
from streamsift.view.gaps import gaps, interval
from streamsift.view.pictures import origin

EVENTS = demo_data.hospital(4_000, 7)
NESTED = (
    "PATTERN SEQ(Recycle r, Washing w, !SEQ(Sharpening s, Disinfection d), Operating o)\n"
    "WHERE [id] AND o.ins_type = 'surgery' WITHIN 1 hour"
)


def run(text: str, events: pa.Table = EVENTS) -> pa.Table:
    return ss.query(text).run_local(events, time="ts", type="kind")


def rows_of(chart: Any, mark: str) -> list[dict[str, Any]]:
    """The data behind the layer with a mark."""
    drawn = chart.to_dict()  # data that all layers share stands above them
    layers = [layer for layer in drawn["layer"] if layer["mark"]["type"] == mark]
    return [row for layer in layers for row in layer.get("data", drawn.get("data"))["values"]]


def test_a_timeline_has_a_lane_per_key_points_per_event_and_shaded_gaps() -> None:
    matches = run(NESTED).slice(0, 5)
    chart = ss.show(matches)
    points = rows_of(chart, "circle")
    assert len(points) == 15
    assert {p["event"] for p in points} == {"r", "w", "o"}
    assert chart.to_dict()["layer"][0]["encoding"]["y"]["title"] == "id"
    lanes = [row["row"].split("|")[1] for row in rows_of(chart, "rule")]
    ids = [str(m["r"]["id"]) for m in matches.to_pylist()]
    assert {lane for lane in lanes if lane} == set(ids)
    spans = [row for row in rows_of(chart, "rect") if "absent" in row]
    assert [s["absent"] for s in spans] == ["no Sharpening, then Disinfection"] * 5
    first = matches.to_pylist()[0]
    assert any(
        datetime.fromisoformat(s["from"]) == first["w"]["ts"] and datetime.fromisoformat(s["to"]) == first["o"]["ts"]
        for s in spans
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SEQ(A a, !B b, C c)", [(2.0, 7.0)]),
        ("SEQ(!B b, A a, C c) WITHIN 10", [(-3.0, 2.0)]),
        ("SEQ(A a, C c, !B b) WITHIN 10", [(7.0, 12.0)]),
        ("SEQ(A a, C c, !B b) WITHIN 10 EVENTS", [None]),
        ("SEQ(A a, SEQ(C c, !B b), D d)", [(7.0, 9.0)]),
        ("SEQ(A a, OR(C c, E e), !B b, D d)", [(7.0, 9.0)]),
        ("SEQ(A a, E* e, !B b, D d)", [(2.0, 9.0)]),
        ("AND(A a, !B b, C c) WITHIN 10", [(-3.0, 7.0)]),
    ],
)
def test_where_a_negation_looks(text: str, expected: list[Any]) -> None:
    query = ss.query(text).sketch
    assert query is not None
    at = {"a": [2.0], "c": [7.0], "d": [9.0] if "D d" in text else []}
    times = {v.index: at.get(v.name, []) for v in query.variables}
    window = 10.0 if query.window and query.window.kind.value == "time" else None
    assert [interval(gap, times, window) for gap in gaps(query)] == expected


def test_groups_numbers_and_missing_branches_are_drawn() -> None:
    events = pa.table({"ts": [1, 2, 3, 4], "kind": ["A", "B", "B", "C"], "x": [1.0, 2.0, None, 4.0]})
    points = rows_of(ss.show(run("PATTERN SEQ(A a, B+ b, OR(C c, D d)) WITHIN 10", events)), "circle")
    assert [(p["event"], p["at"]) for p in points] == [("a", 1.0), ("b", 2.0), ("b", 3.0), ("c", 4.0)]
    with pytest.raises(QueryError, match="no event to draw"):
        ss.show(run("PATTERN SEQ(A a, B b) RETURN a.x AS x", events))
    with pytest.raises(QueryError, match="no column `nothing`"):
        ss.show(run("PATTERN SEQ(A a, B b)", events), key="nothing")
    ss.show(run("PATTERN SEQ(A a, X x)", events))  # no match is an empty picture


def test_aggregates_are_lines_and_rankings_ladders_or_bars(tmp_path: Path) -> None:
    counted = run("PATTERN SEQ(Recycle r, Operating o) WHERE [id] GROUP BY ins_type AGG COUNT, AVG(o.temperature) AS x")
    panels = ss.plot(counted).to_dict()["vconcat"]
    assert [panel["encoding"]["y"]["title"] for panel in panels] == ["count", "x"]
    assert {v["group"] for v in panels[0]["data"]["values"]} == set(counted.column("ins_type").to_pylist())
    best = "PATTERN SEQ(Recycle r, Operating o) WHERE [id] PREF MIN[wait = o.ts - r.ts] WITHIN 2 hours"
    ladder = ss.plot(run(f"{best} UPDATE 1 hour RETURN TOP 3 r.id AS id"))
    ladder.save(str(tmp_path / "ladder.svg"))
    assert "window end" in (tmp_path / "ladder.svg").read_text(encoding="utf-8")
    assert {v["match"] for v in rows_of(ladder, "line")} <= {str(i) for i in EVENTS.column("id").to_pylist()}
    stays: dict[int, set[tuple[str, float]]] = {}
    for value in rows_of(ladder, "line"):
        stays.setdefault(value["stay"], set()).add((value["match"], value["score"]))
    assert all(len(names) == 1 for names in stays.values())
    assert [v["rank"] for v in rows_of(ss.plot(run(f"{best} RETURN TOP 3 r.id AS id")), "bar")] == [1, 2, 3]


def test_explanations_and_queries_have_a_tree() -> None:
    explained = ss.query(NESTED).explain(EVENTS, time="ts", type="kind")
    tree = ElementTree.fromstring(explained.svg)
    words = ["".join(text.itertext()) for text in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert any(word.startswith("NOT") for word in words)
    assert any("[id]" in word for word in words)
    assert "<details open><summary><b>Why" in explained._repr_html_()
    shown = ss.query("PATTERN SEQ(A a, B b) -- <pairs>\nWHERE a.s = '<x>'")._repr_html_()
    assert "&lt;pairs&gt;" in shown
    assert "<x>" not in shown
    assert ss.event("A")._repr_html_()


def test_results_know_their_query_and_show_as_html() -> None:
    matches = run(NESTED)
    assert origin(matches.schema) == (NESTED, "ts")
    formatters: dict[Any, Any] = {}
    formatter = SimpleNamespace(for_type=formatters.__setitem__, pop=formatters.pop)
    ipython = SimpleNamespace(display_formatter=SimpleNamespace(formatters={"text/html": formatter}))
    ss.load_ipython_extension(ipython)
    html = formatters[pa.Table](matches)
    assert html.count("<tr>") == 1 + min(notebook.SHOWN_ROWS, matches.num_rows)
    ss.unload_ipython_extension(ipython)
    assert formatters == {}


def test_altair_is_imported_for_pictures_only() -> None:
    script = "import streamsift, sys; assert not {'altair', 'pyspark'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_without_altair_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(ss.SetupError, match=r"pip install 'streamsift\[plot\]'"):
        ss.show(run(NESTED))
