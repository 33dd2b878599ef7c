"""Many queries at once: each result is what the query gives alone, and what the oracle says."""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, given, note, settings
from hypothesis import strategies as st

import naive
import streamsift as ss
from golden import check_golden
from strategies import COLUMNS, Event, streams
from test_generated import SCHEMA, assert_equal

EXAMPLES = int(os.environ.get("STREAMSIFT_EXAMPLES", "0"))
LARGE = os.environ.get("STREAMSIFT_HYPOTHESIS") == "large"

STEPS = ["A", "A", "B", "B", "C", "ANY", "Big"]
AGGREGATES = [
    "COUNT, SUM({}.n)",
    "AVG({}.x)",
    "MIN({}.x), MAX(v0.s)",
    "SUM({}.x), SUM(v0.n)",
    "MAX({}.n)",
    "COUNT, MIN({}.s) AS a, MAX({}.x) AS b, AVG({}.n) AS c",
]


@st.composite
def workloads(draw: st.DrawFn) -> dict[str, str]:
    """Two to eight queries that often begin alike, or have an inner part in common: few classes, windows and groups."""
    window = draw(st.sampled_from(["", " WITHIN 4", " WITHIN 3 EXCLUSIVE", " WITHIN 4 EVENTS"]))
    group = draw(st.sampled_from(["", "", " GROUP BY id", " GROUP BY s"]))
    asked = draw(st.sampled_from([["COUNT"], ["COUNT", "COUNT, SUM({}.n)"], AGGREGATES]))
    common = draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=3))
    most_before = draw(st.sampled_from([0, 2]))
    queries: dict[str, str] = {}
    for number in range(draw(st.integers(2, 8))):
        before = draw(st.lists(st.sampled_from(STEPS), max_size=most_before))
        steps = [*before, *common, *draw(st.lists(st.sampled_from(STEPS), max_size=2))]
        parts = [f"{step} v{place}" for place, step in enumerate(steps)]
        if len(parts) > 1 and draw(st.integers(0, 3)) == 0:
            parts.insert(draw(st.integers(1, len(parts) - 1)), f"!{draw(st.sampled_from(STEPS))} w")
        condition = draw(st.sampled_from(["", "", "", " WHERE v0.x > 0", " WHERE [n]"]))
        variable = f"v{draw(st.integers(0, len(steps) - 1))}"
        aggregates = draw(st.sampled_from(asked)).format(*[variable] * 3)
        emit = draw(st.sampled_from(["", "", "", "", " EMIT CHANGES"]))
        classes = " WITH Big = (n > 1)" if any("Big" in part for part in parts) else ""
        queries[f"q{number}"] = (
            f"PATTERN SEQ({', '.join(parts)}){classes}{condition}{group} AGG {aggregates}{window}{emit}"
        )
    return queries


@st.composite
def chopped_workloads(draw: st.DrawFn) -> dict[str, str]:
    """Two to eight queries with one or two inner parts in common, and what is their own before, between and behind."""
    window = draw(st.sampled_from([" WITHIN 9", " WITHIN 6", " WITHIN 7 EXCLUSIVE"]))
    group = draw(st.sampled_from(["", "", " GROUP BY id"]))
    step = st.sampled_from(["A", "B", "ANY"])
    inner = [[draw(step), *draw(st.sampled_from([[], [], ["!C"]])), draw(step)] for _ in range(2)]
    own = st.lists(st.sampled_from(["A", "B", "ANY", "!C"]), max_size=1)
    queries: dict[str, str] = {}
    for number in range(draw(st.integers(2, 8))):
        first = draw(st.sampled_from(["A", "B", "ANY"]))
        steps = [first, *draw(own), *inner[0], *draw(own), *(inner[1] if draw(st.booleans()) else []), *draw(own)]
        if steps[-1].startswith("!"):
            steps.pop()
        written = ", ".join(f"{step} v{place}" for place, step in enumerate(steps))
        # No two begin alike: trees would take those.
        condition = f" WHERE v0.n > {-number - 1}"
        queries[f"q{number}"] = f"PATTERN SEQ({written}){condition}{group} AGG COUNT{window}"
    return queries


@st.composite
def dense_streams(draw: st.DrawFn) -> list[Event]:
    """Few classes and small gaps, so that windows hold many matches, and some leave them."""
    events = draw(
        st.lists(st.tuples(st.integers(0, 1), st.sampled_from("AABBC"), st.integers(1, 2)), min_size=8, max_size=13)
    )
    time = 0
    rows: list[Event] = []
    for gap, kind, identity in events:
        time += gap
        rows.append({**dict.fromkeys(COLUMNS), "t": time, "kind": kind, "id": identity, "n": 1})
    return rows


def check_workload(queries: dict[str, str], rows: list[Event], share: Any) -> None:
    for text in queries.values():
        note(text)
    table, binding = pa.Table.from_pylist(rows, SCHEMA), {"time": "t", "type": "kind"}
    results = ss.run_many(queries, table, **binding, share=share)
    explained = ss.explain_many(queries, table, **binding, share=share)
    found = sum(result.num_rows for result in results.values())
    event(f"{explained.count('tree')} trees, {explained.count('chop')} chopped, {'some' if found else 'no'} rows")
    for name, text in queries.items():
        assert_equal(naive.run(text, rows, **binding, columns=COLUMNS), results[name].to_pylist())


@settings(max_examples=EXAMPLES or (5_000 if LARGE else 40))
@given(workloads(), streams(), st.sampled_from(["auto", "always"]))
def test_workloads(queries: dict[str, str], rows: list[Event], share: Any) -> None:
    check_workload(queries, rows, share)


@settings(max_examples=EXAMPLES or (5_000 if LARGE else 40))
@given(chopped_workloads(), dense_streams())
def test_workloads_with_inner_parts_in_common(queries: dict[str, str], rows: list[Event]) -> None:
    check_workload(queries, rows, "always")


KINDLE = {
    "q1": "PATTERN SEQ(VKindle, BKindle, VCase, BCase) AGG COUNT WITHIN 1 hour",
    "q2": "PATTERN SEQ(VKindle, BKindle, VStylus) AGG COUNT WITHIN 1 hour",
    "q3": "PATTERN SEQ(VKindle, BKindle, VCase, BCase, VLight) AGG COUNT WITHIN 1 hour",
    "q4": "PATTERN SEQ(VKindle, BKindle, !BCase, VCase) AGG COUNT WITHIN 1 hour",
    "q5": "PATTERN SEQ(ViPad, VKindle, BKindle) AGG COUNT WITHIN 1 hour",
    "q6": "PATTERN SEQ(VKindle, BKindle) AGG AVG(BKindle.price) WITHIN 1 hour",
    "q7": "PATTERN SEQ(VKindle, BKindle) WITHIN 1 hour",
}
SHOP = pa.schema([("at", pa.timestamp("us")), ("kind", pa.string()), ("price", pa.float64())])


def test_explain_many() -> None:
    check_golden("explain_many/kindle.txt", ss.explain_many(KINDLE, SHOP, time="at", type="kind"))


PAPER = {
    "whole": "PATTERN SEQ(A, B, C, D, E, F, G) AGG COUNT WITHIN 15",
    "middle": "PATTERN SEQ(X, D, E) AGG COUNT WITHIN 15",
    "tail": "PATTERN SEQ(Y, F, G) AGG COUNT WITHIN 15",
}
LETTERS = pa.schema([("t", pa.int64()), ("kind", pa.string())])


def test_multi_connect() -> None:
    """The chopping of section 4.2: (A, B, C) (D, E) (F, G)."""
    kinds = "AABCXDYDEBCDEFEFGAG"
    table = pa.table({"t": range(len(kinds)), "kind": list(kinds)})
    binding = {"time": "t", "type": "kind"}
    check_golden("explain_many/multi_connect.txt", ss.explain_many(PAPER, LETTERS, **binding, share="always"))
    shared, alone = (ss.run_many(PAPER, table, **binding, share=share) for share in ("always", "never"))
    assert {name: result.to_pylist() for name, result in shared.items()} == {
        "whole": [{"time": 16, "count": 19}],  # of the second A; at 18 it has left too
        "middle": [{"time": 8, "count": 2}, {"time": 12, "count": 5}, {"time": 14, "count": 8}],
        "tail": [{"time": 16, "count": 2}, {"time": 18, "count": 4}],
    }
    assert all(shared[name].equals(alone[name]) for name in PAPER)


def test_inner_parts_are_shared_by_cost() -> None:
    """Few short queries cost less alone; many with a long part in common do not."""
    few = ss.explain_many(PAPER, LETTERS, time="t", type="kind")
    assert few.count("runs alone") == 3
    many = {f"q{n}": f"PATTERN SEQ(X{n}, A, B, C, D, E, F) AGG COUNT WITHIN 12" for n in range(8)}
    check_golden("explain_many/chopped.txt", ss.explain_many(many, LETTERS, time="t", type="kind"))


@pytest.mark.parametrize("window", ["", " WITHIN 7", " WITHIN 200"])
def test_sums_and_extremes_are_shared(window: str) -> None:
    """One tree, in which a measure is carried from the step that has it to the ends of the queries that ask for it."""
    aggregates = ["COUNT, SUM(a.n)", "SUM(a.n), AVG(b.x)", "MIN(b.x), MAX(c.n)", "SUM(c.x), MIN(a.x) AS low"]
    queries = {
        f"q{n}": f"PATTERN SEQ(A a, !D d, B b, {end} c) AGG {wanted}{window}"
        for n, (end, wanted) in enumerate(zip("ABCA", aggregates, strict=True))
    }
    table = pa.table(
        {
            "t": [n // 2 for n in range(400)],
            "kind": ["ABCABDB"[n * n % 7] for n in range(400)],
            "n": pa.array([None if n % 5 == 0 else n % 11 - 5 for n in range(400)], pa.int64()),
            "x": [n % 13 / 4 for n in range(400)],
        }
    )
    assert "tree 1: 4 queries" in ss.explain_many(queries, table, time="t", type="kind", share="always")
    shared, alone = (ss.run_many(queries, table, time="t", type="kind", share=how) for how in ("always", "never"))
    assert all(alone[name].num_rows > 5 for name in queries)
    assert all(shared[name].equals(alone[name]) for name in queries)


def test_choices_hold_for_every_query() -> None:
    queries = {name: text for name, text in KINDLE.items() if name in ("q1", "q2", "q5")}
    by_sem = ss.explain_many(queries, SHOP, time="at", type="kind", strategy="sem")
    assert by_sem.count("runs alone: it uses strategy sem") == 3
    with pytest.raises(ss.UnsupportedQuery, match='strategy="prefix" does not apply'):
        ss.run_many(queries, SHOP.empty_table(), time="at", type="kind", strategy="prefix")
    wrong: Any = "sometimes"
    with pytest.raises(ss.QueryError, match="invalid value for share: 'sometimes'"):
        ss.run_many(queries, SHOP.empty_table(), time="at", type="kind", share=wrong)


def test_no_queries() -> None:
    with pytest.raises(ss.QueryError, match="no queries"):
        ss.run_many({}, SHOP.empty_table(), time="at")


def test_empty_input_has_every_schema() -> None:
    results: dict[str, Any] = ss.run_many(KINDLE, SHOP.empty_table(), time="at", type="kind")
    assert {name: result.num_rows for name, result in results.items()} == dict.fromkeys(KINDLE, 0)
    assert results["q6"].column_names == ["time", "avg_BKindle_price"]


def test_bad_rows_are_reported_once() -> None:
    table = pa.table(
        {"at": pa.array([None, 1], pa.timestamp("us")), "kind": ["VKindle", "BKindle"], "price": [1.0, 2.0]}
    )
    with pytest.warns(ss.BadRowsWarning) as caught:
        ss.run_many(KINDLE, table, time="at", type="kind", bad_rows="drop")
    assert [warning.category for warning in caught].count(ss.BadRowsWarning) == 1


def test_a_count_past_64_bits_is_told_by_its_query_only() -> None:
    table = pa.table({"t": range(130), "kind": ["A"] * 130})
    long = "PATTERN SEQ(" + ", ".join(f"A a{i}" for i in range(65)) + ") AGG COUNT"
    with pytest.raises(ss.BadInputError, match="COUNT exceeds the 64-bit integer range"):
        ss.run_many({"long": long, "longer": long.replace(")", ", A z)")}, table, time="t", type="kind")
    short = ss.query("PATTERN SEQ(A a, A b) AGG COUNT").run_local(table, time="t", type="kind")
    assert short["count"][-1].as_py() == 130 * 129 // 2
