"""Run clauses on small tables, and compare all rows of the result."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

import streamsift as ss
from streamsift.errors import BadInputError, QueryError

PRICES = pa.table({"sym": ["a"] * 7, "ts": list(range(7)), "p": [9.0, 5, 7, 3, 8, 2, 6]})


def rows(clause: str, table: pa.Table = PRICES, **options: str) -> list[tuple]:
    result = ss.query(f"MATCH_RECOGNIZE ({clause})").run_local(table, **options)
    return list(zip(*(column.to_pylist() for column in result.columns), strict=True)) if result.num_columns else []


V = "PARTITION BY sym ORDER BY ts"
FALL_AND_RISE = "DEFINE D AS p < PREV(p), U AS p > PREV(p)"


def test_one_row_per_match() -> None:
    measures = "FIRST(D.ts) AS f, LAST(U.p) AS l, COUNT(*) AS n, MATCH_NUMBER() AS m, AVG(U.p) AS a, p AS last"
    assert rows(f"{V} MEASURES {measures} PATTERN (D+ U+) {FALL_AND_RISE}") == [
        ("a", 1, 7.0, 2, 1, 7.0, 7.0),
        ("a", 3, 8.0, 2, 2, 8.0, 8.0),
        ("a", 5, 6.0, 2, 3, 6.0, 6.0),
    ]


def test_running_and_final_measures_of_all_rows() -> None:
    measures = "CLASSIFIER() AS c, SUM(U.p) AS s, FINAL COUNT(U.p) AS k, D.p AS d, FINAL LAST(p) AS e"
    result = rows(f"{V} MEASURES {measures} ALL ROWS PER MATCH PATTERN (S D U) {FALL_AND_RISE}")
    assert result == [
        ("a", 0, "S", None, 1, None, 7.0, 9.0),
        ("a", 1, "D", None, 1, 5.0, 7.0, 5.0),
        ("a", 2, "U", 7.0, 1, 5.0, 7.0, 7.0),
        ("a", 4, "S", None, 1, None, 6.0, 8.0),
        ("a", 5, "D", None, 1, 2.0, 6.0, 2.0),
        ("a", 6, "U", 6.0, 1, 2.0, 6.0, 6.0),
    ]


def test_empty_matches_and_unmatched_rows() -> None:
    table = PRICES.slice(0, 4)
    clause = "ORDER BY ts MEASURES COUNT(*) AS n, MATCH_NUMBER() AS m, p AS x, CLASSIFIER() AS c {} PATTERN ({})"
    define = " DEFINE D AS p < PREV(p)"
    shown = [(0, 0, 1, None, None), (1, 1, 2, 5.0, "D"), (2, 0, 3, None, None), (3, 1, 4, 3.0, "D")]
    kept = [(row[0], *row[1:]) for row in shown if row[1]]
    all_rows = rows(clause.format("ALL ROWS PER MATCH", "D*") + define, table)
    assert [row[:5] for row in all_rows] == shown
    omitted = rows(clause.format("ALL ROWS PER MATCH OMIT EMPTY MATCHES", "D*") + define, table)
    assert [row[:5] for row in omitted] == kept
    unmatched = rows(clause.format("ALL ROWS PER MATCH WITH UNMATCHED ROWS", "D") + define, table)
    assert [row[:5] for row in unmatched] == [
        (0, None, None, None, None),
        (1, 1, 1, 5.0, "D"),
        (2, None, None, None, None),
        (3, 1, 2, 3.0, "D"),
    ]
    assert len(rows(clause.format("", "D*") + define, table)) == 4


def test_excluded_rows_count_but_are_not_returned() -> None:
    result = rows(f"{V} MEASURES COUNT(*) AS n ALL ROWS PER MATCH PATTERN (S {{- D -}} U) {FALL_AND_RISE}")
    assert [row[1:3] for row in result] == [(0, 1), (2, 3), (4, 1), (6, 3)]


def test_skip_to_a_variable() -> None:
    clause = f"ORDER BY ts MEASURES FIRST(ts) AS f AFTER MATCH SKIP TO {{}} PATTERN (D U S?) {FALL_AND_RISE}"
    assert rows(clause.format("LAST U")) == [(1,), (3,), (5,)]
    assert rows(clause.format("NEXT ROW")) == [(1,), (3,), (5,)]
    with pytest.raises(BadInputError, match=r"SKIP TO S: the variable is absent .* begins at ts = 5"):
        rows(clause.format("LAST S"))
    assert rows(clause.format("LAST S"), on_skip_error="next") == [(1,), (3,), (5,)]


def test_conditions_of_the_match() -> None:
    rising = "DEFINE U AS p > FIRST(D.p) + 1.5 AND COUNT(U.*) < 2, D AS p < PREV(p)"
    assert rows(f"ORDER BY ts MEASURES D.ts AS d, LAST(U.ts) AS u PATTERN (D U+) {rising}") == [(1, 2), (3, 4), (5, 6)]
    labeled = "DEFINE B AS MATCH_NUMBER() < 3 AND PREV(CLASSIFIER()) = 'A'"
    assert rows(f"ORDER BY ts MEASURES A.ts AS a PATTERN (A B) {labeled}") == [(0,), (2,)]


def test_within_limits_each_match() -> None:
    minutes = [datetime(2024, 1, 1, tzinfo=UTC) + timedelta(minutes=m) for m in (0, 4, 5, 30, 36, 40)]
    table = pa.table({"ts": pa.array(minutes, pa.timestamp("us", "UTC"))})
    clause = "ORDER BY ts MEASURES COUNT(*) AS n PATTERN (A B+) WITHIN INTERVAL '5' MINUTE"
    assert rows(clause, table) == [(2,), (2,)]


def test_order_nulls_and_partitions() -> None:
    table = pa.table({"k": ["y", None, "x", None, "x"], "t": [1, 2, None, None, 5]})
    clause = "PARTITION BY k ORDER BY t {} MEASURES FIRST(t) AS f, COUNT(*) AS n PATTERN (A+)"
    assert rows(clause.format(""), table) == [(None, None, 2), ("x", None, 2), ("y", 1, 1)]
    assert rows(clause.format("DESC"), table) == [(None, 2, 2), ("x", 5, 2), ("y", 1, 1)]


def test_aggregates_of_other_types() -> None:
    table = pa.table(
        {
            "t": [1, 2, 3, 4],
            "d": pa.array([Decimal("1.10"), None, Decimal("2.25"), Decimal("1.10")], pa.decimal128(10, 2)),
            "s": ["b", "a", None, "b"],
            "f": [1.0, float("nan"), -0.0, 2.0],
        }
    )
    measures = (
        "SUM(d) AS sum, AVG(d) AS avg, MAX(s) AS max, ARRAY_AGG(s) AS list, COUNT(DISTINCT s) AS c, MAX(f) AS top,"
        " MIN(f) AS low, ARRAY_AGG(B.s) AS none"
    )
    ((total, average, largest, values, distinct, top, low, none),) = rows(
        f"ORDER BY t MEASURES {measures} PATTERN (A+ B*?)", table
    )
    assert (total, average, largest) == (Decimal("4.45"), Decimal("1.483333"), "b")
    assert (values, distinct, low, none) == (["b", "a", None, "b"], 2, 0.0, None)
    assert top != top


def test_an_exponential_pattern_is_linear_or_an_error() -> None:
    table = pa.table({"t": list(range(300)), "x": [1] * 300})
    assert rows("ORDER BY t MEASURES COUNT(*) AS n PATTERN ((A+)+ B) DEFINE B AS x > 1", table) == []
    assert rows("ORDER BY t MEASURES COUNT(*) AS n PATTERN ((A+)+ B) DEFINE B AS x > A.x", table) == []


def test_too_many_steps_name_the_pattern() -> None:
    from streamsift.logical.row_match import bind_rows
    from streamsift.physical.row_match import plan_rows
    from streamsift.runtime.row_match import execute

    table = pa.table({"t": list(range(600)), "x": [1] * 600})
    clause = "MATCH_RECOGNIZE (ORDER BY t MEASURES 1 AS one PATTERN (A+ B) DEFINE B AS x > COUNT(*) * 1000)"
    plan = plan_rows(bind_rows(clause, table.schema), max_steps_per_row=100)
    with pytest.raises(QueryError, match="takes more than 100 steps per row") as error:
        list(execute(plan, table))
    assert "A+ B" in str(error.value)


def test_a_large_program_is_refused() -> None:
    assert rows("ORDER BY ts MEASURES COUNT(*) AS n PATTERN (A{2,400})") == [(7,)]
    with pytest.raises(NotImplementedError, match="more than 10,000 instructions"):
        rows("ORDER BY ts MEASURES COUNT(*) AS n PATTERN (A{10000})")
