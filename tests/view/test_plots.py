"""Charts show what the result says: gaps, baselines, directions, names and ranges."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import streamsift as ss
from streamsift.command import demo_data
from streamsift.errors import QueryError
from streamsift.view.gaps import gaps, interval
from streamsift.view.plots import origin

EVENTS = demo_data.hospital(4_000, 7)
NESTED = (
    "PATTERN SEQ(Recycle r, Washing w, !SEQ(Sharpening s, Disinfection d), Operating o)\n"
    "WHERE [id] AND o.ins_type = 'surgery' WITHIN 1 hour"
)
WAIT = "PATTERN SEQ(Recycle r, Operating o) WHERE [id] PREF MIN[wait = o.ts - r.ts] WITHIN 2 hours"


def run(text: str, events: pa.Table = EVENTS) -> pa.Table:
    return ss.query(text).run_local(events, time="ts", type="kind")


def layers_of(chart: Any, mark: str) -> list[dict[str, Any]]:
    drawn = chart.to_dict()  # data that all layers share stands above them
    layers = [layer for layer in drawn["layer"] if layer["mark"]["type"] == mark]
    return [{"data": drawn.get("data"), **layer} for layer in layers]


def rows_of(chart: Any, mark: str) -> list[dict[str, Any]]:
    """The data behind the layers with a mark."""
    return [row for layer in layers_of(chart, mark) for row in layer["data"]["values"]]


def axis_title(chart: Any, mark: str, channel: str) -> Any:
    return layers_of(chart, mark)[0]["encoding"][channel]["title"]


def test_a_timeline_has_a_lane_per_key_points_per_event_and_shaded_gaps() -> None:
    matches = run(NESTED).slice(0, 5)
    chart = ss.show(matches)
    points = rows_of(chart, "circle")
    assert len(points) == 15
    assert {p["event"] for p in points} == {"Recycle", "Washing", "Operating"}
    assert axis_title(chart, "rule", "y") == "id"
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


def test_matches_far_apart_are_drawn_since_their_start() -> None:
    events = pa.table({"ts": [0, 3, 5, 90_000, 90_002, 90_009], "kind": list("ABCABC")})
    matches = run("PATTERN SEQ(A a, B b, C c) WITHIN 10", events)
    auto, elapsed, time = (ss.show(matches, axis=axis) for axis in ("auto", "elapsed", "time"))
    expected = [0.0, 3.0, 5.0, 0.0, 2.0, 9.0]
    assert sorted(p["at"] for p in rows_of(auto, "circle")) == sorted(expected)
    assert rows_of(auto, "circle") == rows_of(elapsed, "circle")
    assert axis_title(auto, "circle", "x") == "time since the first event, 0 to 9 units of ts"
    assert [row["row"].split("|")[1] for row in rows_of(auto, "rule")] == ["0", "90,000"]  # each match's start
    assert sorted(p["at"] for p in rows_of(time, "circle")) == [0.0, 3.0, 5.0, 90_000.0, 90_002.0, 90_009.0]
    assert axis_title(time, "circle", "x") == "ts, 0 to 90,009"
    with pytest.raises(QueryError, match="invalid value for axis: 'start'"):
        ss.show(matches, axis="start")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SEQ(A a, B+ b, C c)", ["A", "B+", "C"]),
        ("SEQ(A a, A b, C c)", ["A a", "A b", "C"]),
        ("SEQ(ANY before, C c)", ["before", "C"]),
        ("SEQ(A a, C c) RETURN a AS first, c", ["A", "C"]),
    ],
)
def test_a_legend_names_classes(text: str, expected: list[str]) -> None:
    events = pa.table({"ts": [1, 2, 3, 4], "kind": ["A", "A", "B", "C"]})
    chart = ss.show(run(f"PATTERN {text}", events), time="ts")
    assert layers_of(chart, "circle")[0]["encoding"]["color"]["scale"]["domain"] == expected


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
def test_the_interval_of_a_negation(text: str, expected: list[Any]) -> None:
    query = ss.query(text).sketch
    assert query is not None
    at = {"a": [2.0], "c": [7.0], "d": [9.0] if "D d" in text else []}
    times = {v.index: at.get(v.name, []) for v in query.variables}
    window = 10.0 if query.window and query.window.kind.value == "time" else None
    assert [interval(gap, times, window) for gap in gaps(query)] == expected


def test_groups_numbers_and_missing_branches_are_drawn() -> None:
    events = pa.table({"ts": [1, 2, 3, 4], "kind": ["A", "B", "B", "C"], "x": [1.0, 2.0, None, 4.0]})
    points = rows_of(ss.show(run("PATTERN SEQ(A a, B+ b, OR(C c, D d)) WITHIN 10", events)), "circle")
    assert [(p["event"], p["at"]) for p in points] == [("A", 1.0), ("B+", 2.0), ("B+", 3.0), ("C", 4.0)]
    with pytest.raises(QueryError, match="no event to draw"):
        ss.show(run("PATTERN SEQ(A a, B b) RETURN a.x AS x", events))
    with pytest.raises(QueryError, match="no column `nothing`"):
        ss.show(run("PATTERN SEQ(A a, B b)", events), key="nothing")
    assert rows_of(ss.show(run("PATTERN SEQ(A a, X x)", events)), "circle") == []


def test_aggregates_have_a_panel_per_measure_and_a_color_per_group() -> None:
    counted = run("PATTERN SEQ(Recycle r, Operating o) WHERE [id] GROUP BY ins_type AGG COUNT, AVG(o.temperature) AS x")
    count, mean = ss.plot(counted).to_dict()["vconcat"]
    points = count["layer"][-1]
    assert points["encoding"]["y"]["title"] == "count"
    assert {v["group"] for v in points["data"]["values"]} == set(counted.column("ins_type").to_pylist())
    assert mean["layer"][-1]["encoding"]["y"]["scale"] == {"zero": False}
    name, values = mean["layer"][-1]["encoding"]["y"]["title"]
    assert name == "x"
    assert values.startswith("1")  # the axis does not start at zero, so its title gives the range


def test_counts_have_gaps_at_ticks_without_a_row_and_start_at_zero() -> None:
    events = pa.table({"ts": [1, 2, 11, 12, 13, 55, 56], "kind": list("ABABBAB")})
    text = "PATTERN SEQ(A a, B b) AGG COUNT WITHIN 10"
    ticks = ss.plot(run(f"{text} UPDATE 10", events))
    points = [(p["time"], p["value"]) for p in rows_of(ticks, "circle")]
    assert points == [(10.0, 1.0), (20.0, 2.0), (60.0, 1.0)]
    lines = [(p["time"], p["value"]) for p in rows_of(ticks, "line")]
    ends = [(30.0, 2.0), (30.0, None), (60.0, 1.0), (70.0, 1.0), (70.0, None)]
    assert lines == [(10.0, 1.0), (20.0, 2.0), *ends]
    assert axis_title(ticks, "line", "x") == "time, 10 to 70"  # the last tick holds until the next one
    y = layers_of(ticks, "line")[0]["encoding"]["y"]
    assert (y["scale"], y["axis"]) == ({"zero": True}, {"format": "d", "values": [0, 1, 2]})
    assert ticks.to_dict()["title"]["text"] == ["gaps: no match in the window"]
    by_kind = ss.plot(run(f"{text} UPDATE 10 GROUP BY x", events.append_column("x", pa.array([1, 1, 2, 2, 2, 3, 3]))))
    assert "title" not in by_kind.to_dict()  # three groups with rows at all of their ticks have no gap
    # Without UPDATE there is a row only where a match ends: nothing says what the count is between two rows.
    assert rows_of(ss.plot(run(text, events)), "line") == []
    assert rows_of(ss.plot(run(f"{text} EMIT CHANGES", events)), "line") != []


def test_a_bump_chart_says_what_gray_is_and_breaks_lines() -> None:
    chart = ss.plot(run(f"{WAIT} UPDATE 1 hour RETURN TOP 3 r.id AS id"))
    assert {v["match"] for v in rows_of(chart, "line")} <= {str(i) for i in EVENTS.column("id").to_pylist()}
    stays: dict[int, set[tuple[str, float]]] = {}
    for value in rows_of(chart, "line"):
        stays.setdefault(value["stay"], set()).add((value["match"], value["score"]))
    assert all(len(names) == 1 for names in stays.values())
    gray = {v["match"] for v in rows_of(chart, "circle") if v["color"].endswith("other matches")}
    scale = layers_of(chart, "circle")[-1]["encoding"]["color"]["scale"]
    assert scale["domain"][-1] == f"{len(gray)} other matches"
    assert len(scale["domain"]) == len(scale["range"]) == 9
    assert axis_title(chart, "line", "x").startswith("window end (UTC), 2024-05-02 16:00 to ")


def test_a_stay_ends_where_a_window_has_no_row() -> None:
    events = pa.table({"ts": [1, 2, 41, 42], "kind": list("ABAB"), "x": [1, 1, 1, 1]})
    text = "PATTERN SEQ(A a, B b) PREF MAX[a.x] WITHIN 15 UPDATE 10 RETURN TOP 1 a.x AS x"
    stays = [(v["window"], v["stay"]) for v in rows_of(ss.plot(run(text, events)), "line")]
    assert [window for window, _ in stays] == [10.0, 50.0]
    assert stays[0][1] != stays[1][1]


def test_the_best_of_a_minimum_is_not_the_shortest_bar() -> None:
    shortest = ss.plot(run(f"{WAIT} RETURN TOP 3 r.id AS id"))
    assert layers_of(shortest, "bar") == []
    points = rows_of(shortest, "circle")
    assert [p["rank"] for p in points] == [1, 2, 3]
    assert 0 < points[0]["score"] <= points[1]["score"]  # the objective, not the negated score
    assert axis_title(shortest, "circle", "x") == "wait (lower is better)"
    longest = ss.plot(run(f"{WAIT.replace('MIN', 'MAX')} RETURN TOP 3 r.id AS id"))
    assert axis_title(longest, "bar", "x") == "wait (higher is better)"
    assert layers_of(longest, "bar")[0]["encoding"]["x"]["scale"] == {"zero": True}


def test_each_group_has_a_ranking_of_its_own() -> None:
    by_type = WAIT.replace("PREF", "GROUP BY ins_type PREF")
    types = set(EVENTS.column("ins_type").to_pylist())
    panels = ss.plot(run(f"{by_type} UPDATE 6 hours RETURN TOP 2 r.id AS id")).to_dict()["vconcat"]
    assert {panel["title"] for panel in panels} == types
    rows = rows_of(ss.plot(run(f"{by_type} RETURN TOP 2 r.id AS id")), "circle")
    assert len({row["row"] for row in rows}) == 2 * len(types)


def test_results_know_their_query() -> None:
    assert origin(run(NESTED).schema) == (NESTED, "ts")


def test_html_files_and_notebooks_need_no_network(tmp_path: Path) -> None:
    chart = ss.show(run(NESTED)).properties(width=300)  # as users change it
    chart.save(str(tmp_path / "chart.html"))
    html = (tmp_path / "chart.html").read_text(encoding="utf-8")
    assert "cdn" not in html.split("vegaEmbed(")[-1]
    assert 'src="http' not in html
    bundle, size = chart._repr_mimebundle_()
    assert bundle["image/png"].startswith(b"\x89PNG")
    assert size["image/png"]["width"] > 300
    assert "text/html" not in bundle
    assert {"application/vnd.vegalite.v5+json", "application/vnd.vegalite.v6+json"} < set(bundle)


def test_altair_is_imported_for_charts_only() -> None:
    script = "import streamsift, sys; assert not {'altair', 'pyspark', 'IPython'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_without_altair_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(ss.SetupError, match=r"pip install 'streamsift\[plot\]'"):
        ss.show(run(NESTED))
