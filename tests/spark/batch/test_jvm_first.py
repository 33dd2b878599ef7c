"""Test that the JVM prunes columns, filters rows and shuffles once before Python reads a row."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import streamsift as ss

QUERIES = {
    "keys": ("SEQ(A a, B b) WHERE [id] AND a.x > 3 WITHIN 5 RETURN a.id AS id", {"spread": "keys"}),
    "hot keys": ("SEQ(A a, B b) WHERE [id] AND a.x > 3 WITHIN 5 RETURN a.id AS id", {}),
    "slices": ("SEQ(A a, B b) WHERE a.x > 3 AND b.id = 1 WITHIN 5 RETURN a.id AS id", {}),
    "partial key": ("SEQ(A a, B b, A c) WHERE a.id = c.id AND a.x > 3 AND b.id = 1 WITHIN 5 RETURN a.id AS id", {}),
    "totals": ("SEQ(A a, B b) WHERE a.x > 3 AND b.id = 1 AGG COUNT WITHIN 5", {}),
    "groups": ("SEQ(A a, B b) WHERE a.x > 3 GROUP BY id AGG COUNT WITHIN 5", {}),
    "ranks": ("SEQ(A a, B b) WHERE a.x > 3 PREF MAX[a.id] WITHIN 5 UPDATE 2 RETURN TOP 2 a.id AS id", {}),
}


@pytest.fixture(scope="module")
def df(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    path = tmp_path_factory.mktemp("jvm") / "events.parquet"
    columns = {"t": [1, 2, 3], "kind": ["A", "B", "C"], "id": [1, 1, 1], "x": [4, 5, 6], "unread": ["p", "q", "r"]}
    pq.write_table(pa.table(columns), path)
    return spark.read.parquet(str(Path(path)))


def physical_plan(df: DataFrame) -> str:
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        df.explain("formatted")
    return text.getvalue()


@pytest.mark.parametrize("name", QUERIES)
def test_columns_and_rows_are_left_out_before_the_shuffle(df: DataFrame, name: str) -> None:
    query, options = QUERIES[name]
    plan = physical_plan(ss.query(f"PATTERN {query}").run(df, time="t", type="kind", **options))  # type: ignore[arg-type]
    assert "unread" not in plan
    # The plan is printed from the result down to the files: lines after the shuffle run before it.
    tree = plan.split("\n\n")[0]
    assert tree.index("MapInArrow") < tree.index("Exchange") < tree.index("Filter") < tree.index("Scan parquet")
    details = [part for part in plan.split("\n\n") if "Scan parquet" in part and "PushedFilters" in part]
    assert details
    for scan in details:
        assert "x,3" in scan.split("PushedFilters")[1]
        assert "kind" in scan.split("PushedFilters")[1]


@pytest.mark.parametrize("name", QUERIES)
def test_classes_are_shuffled_as_numbers(df: DataFrame, name: str) -> None:
    query, options = QUERIES[name]
    plan = physical_plan(ss.query(f"PATTERN {query}").run(df, time="t", type="kind", **options))  # type: ignore[arg-type]
    shuffled = [part for part in plan.split("\n\n") if "hashpartitioning" in part and "$streamsift_class" in part]
    assert len(shuffled) == 1
    assert "kind#" not in shuffled[0]


def test_classes_are_texts_again(df: DataFrame) -> None:
    query = ss.query("PATTERN SEQ(A a, B b) WHERE a.kind < b.kind WITHIN 5")
    assert [(row.a.kind, row.b.kind) for row in query.run(df, time="t", type="kind").collect()] == [("A", "B")]
    stays = ss.query("PATTERN SEQ(A a, ANY b) WITHIN 5").run(df, time="t", type="kind")
    assert sorted(row.b.kind for row in stays.collect()) == ["B", "C"]


def test_classes_of_bad_rows_are_shown(df: DataFrame) -> None:
    bad = df.withColumn("t", F.when(df.kind == "C", df.t))
    with pytest.raises(Exception, match="kind = 'A'"):
        ss.query("PATTERN SEQ(A a, B b) WITHIN 5").run(bad, time="t", type="kind").collect()


@pytest.mark.parametrize("name", sorted(set(QUERIES) - {"hot keys"}))
def test_events_are_shuffled_once(df: DataFrame, name: str) -> None:
    query, options = QUERIES[name]
    plan = physical_plan(ss.query(f"PATTERN {query}").run(df, time="t", type="kind", **options))  # type: ignore[arg-type]
    assert plan.split("\n\n")[0].count("Exchange") == 1


def test_many_queries_are_shuffled_once(df: DataFrame) -> None:
    queries = {name: f"PATTERN {query}" for name, (query, _) in QUERIES.items()}
    with ss.run_many(queries, df, time="t", type="kind") as results:
        for name in ("keys", "totals"):
            tree = physical_plan(results[name]).split("\n\n")[0]
            assert tree.count("Exchange") == 1, name
            assert tree.count("Scan parquet") == 1, name
