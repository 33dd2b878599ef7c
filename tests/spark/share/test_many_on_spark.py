"""Compare many queries in one shuffle with each query run alone by the local engine."""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import streamsift as ss
from streamsift.spark.distribute import slices as cutting
from streamsift.spark.distribute.routing import condition_key
from streamsift.spark.share.placements import placements

LARGE = os.environ.get("STREAMSIFT_HYPOTHESIS") == "large"
BINDING: dict[str, Any] = {"time": "t", "type": "kind", "order": "seq"}
QUERIES = [
    "PATTERN SEQ(A a, B b) GROUP BY id AGG COUNT WITHIN 9",
    "PATTERN SEQ(A a, B b, C c) GROUP BY id AGG COUNT, SUM(c.n) WITHIN 9",
    "PATTERN SEQ(A a, B b) GROUP BY id, s AGG COUNT WITHIN 9",
    "PATTERN SEQ(A a, B b) AGG COUNT",
    "PATTERN SEQ(A a, B b) AGG COUNT WITHIN 6",
    "PATTERN SEQ(A a, B b, C c) AGG COUNT WITHIN 6",
    "PATTERN SEQ(A a, C b, !B c) AGG COUNT, MAX(b.n) WITHIN 4 UPDATE 3",
    "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 9 RETURN a.t AS a, b.t AS b",
    "PATTERN SEQ(A a, B b) WHERE [id] AND [s] WITHIN 9 RETURN a.t AS a, b.t AS b",
    "PATTERN SEQ(A a, !C c, B b) WITHIN 3 RETURN a.t AS a, b.t AS b",
    "PATTERN SEQ(A+ a, C b) WHERE b.n > 2 WITHIN 3 RETURN COUNT(a) AS n, b.t AS b",
    "PATTERN SEQ(A a, B b) WITHIN 4 EVENTS RETURN a.t AS a, b.t AS b",
    "PATTERN SEQ(A a, B b, C c) WHERE a.id = c.id AND b.n = 1 WITHIN 90 RETURN a.t AS a, b.t AS b, c.t AS c",
    "PATTERN SEQ(A a, B b) WHERE [id] PREF MAX[a.n + b.n] WITHIN 9 RETURN TOP 5 a.t AS a, b.t AS b",
    "PATTERN SEQ(A a, B b) PREF MAX[a.n + b.n] WITHIN 9 UPDATE 4 RETURN TOP 2 a.t AS a, b.t AS b",
    "PATTERN SEQ(A a, B b) PREF MIN[a.n - b.n] WITHIN 5 UPDATE 7 RETURN TOP 3 a.t AS a, b.t AS b",
    "PATTERN SEQ(A a, B b) PREF MIN[a.n - b.n] WITHIN 5 RETURN TOP 3 a.t AS a, b.t AS b",
    "PATTERN SEQ(A a, B b) GROUP BY id PREF MAX[a.n * b.n] WITHIN 9 RETURN TOP 2 a.t AS a, b.t AS b",
]


def table() -> pa.Table:
    count = 90
    return pa.table(
        {
            "t": [i // 2 - 20 for i in range(count)],
            "seq": range(count),
            "kind": ["ABCA"[i * 7 % 4] for i in range(count)],
            "id": [i % 4 for i in range(count)],
            "s": ["xy"[i // 5 % 2] for i in range(count)],
            "n": [i * 5 % 7 for i in range(count)],
        }
    )


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("SEQ(A a, B b) WHERE a.n > 1", "SEQ(A x, B y) WHERE x.n > 1 WITHIN 3", True),
        ("SEQ(A a, B b)", "SEQ(B b, A a) AGG COUNT", True),
        ("SEQ(A a, B b) WHERE a.n > 1", "SEQ(A a, B b) WHERE a.n > 1.0", False),
        ("SEQ(A a, B b)", "SEQ(`A, B` a, `A, B` b)", False),
        ("SEQ(A a, B b)", "SEQ(A a, B b) WHERE [id]", False),
        ("SEQ(A a, B b)", "SEQ(A a, B b) WITHIN 3 EVENTS", False),
    ],
)
def test_rows_are_filtered_once_for_queries_that_ask_the_same(
    spark: SparkSession, one: str, other: str, same: bool
) -> None:
    first, second = (condition_key(ss.query(text).plan(table().schema, **BINDING)) for text in (one, other))
    assert (first == second) == same


def check(spark: SparkSession, numbers: set[int], share: Any) -> None:
    queries = {f"q{number}": QUERIES[number] for number in sorted(numbers)}
    df = spark.createDataFrame(table()).repartition(2)
    with ss.run_many(queries, df, **BINDING, share=share) as results:
        assert list(results) == list(queries)
        for name, text in queries.items():
            expected = ss.query(text).run_local(table(), **BINDING).to_pylist()
            found = results[name].toArrow().to_pylist()
            assert sorted(map(repr, found)) == sorted(map(repr, expected)), text


def test_all_together(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "SLICE_REACHES", 1)
    check(spark, set(range(len(QUERIES))), "always")


@settings(max_examples=50 if LARGE else 3, suppress_health_check=list(HealthCheck))
@given(numbers=st.sets(st.integers(0, len(QUERIES) - 1), min_size=1, max_size=4))
def test_some_together(spark: SparkSession, numbers: set[int]) -> None:
    check(spark, numbers, "auto")


def test_queries_of_one_way_go_it_together(spark: SparkSession) -> None:
    queries = {f"q{number}": query for number, query in enumerate(QUERIES)}
    plans = {name: ss.query(text).plan(table().schema, "t", "kind", "seq") for name, text in queries.items()}
    found = [(p.distribution.keys, sorted(p.plans)) for p in placements(plans, 3)]
    assert len(found) == 4  # by id, in one task, by time slices, by a partial key
    assert ("id",) in [keys for keys, _ in found]
    said = ss.explain_many(queries, spark.createDataFrame(table()), **BINDING)
    assert "Spark: 18 queries, one scan and one shuffle over 3 tasks" in said
    assert "by time slices: q4, q5, q6, q9, q10, q14, q15, q16" in said
    assert "in one task: q3, q11" in said
