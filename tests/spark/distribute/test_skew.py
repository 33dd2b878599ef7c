"""Test that a hot key is split by time over several tasks, with the same results."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, assume, given, settings
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import streamsift as ss
from spark_check import check_on_spark
from strategies import queries, streams
from streamsift.language import Script
from streamsift.spark.distribute import slices as cutting
from supported import may_be_refused
from test_generated import DETECTION, Rows

LARGE = os.environ.get("STREAMSIFT_HYPOTHESIS") == "large"


@pytest.fixture
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "SLICE_REACHES", 1)


@settings(max_examples=200 if LARGE else 6, suppress_health_check=list(HealthCheck))
@given(script=queries(**{**DETECTION, "kleene": True}), rows=streams(max_size=7))
def test_generated_queries(spark: SparkSession, short_slices: None, script: Script, rows: Rows) -> None:
    assume(not may_be_refused(script))
    check_on_spark(spark, script, rows)


def test_a_hot_key_has_several_tasks(spark: SparkSession, short_slices: None) -> None:
    rows = [(t, "AB"[t % 2], 1 if t % 8 else t) for t in range(400)]
    df = spark.createDataFrame(rows, "t INT, kind STRING, id INT").repartition(3)
    query = ss.query("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5 RETURN a.t AS a, b.t AS b, a.id AS id")
    assert "Spark: split into time slices per id" in query.explain(df, time="t", type="kind")
    spark.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    found = query.run(df, time="t", type="kind").withColumn("task", F.spark_partition_id()).toArrow()
    spark.conf.unset("spark.sql.adaptive.coalescePartitions.enabled")
    tasks = {(row["id"], row["task"]) for row in found.to_pylist()}
    assert len([task for key, task in tasks if key == 1]) == 3
    expected = query.run(df, time="t", type="kind", spread="keys").toArrow().to_pylist()
    assert sorted(map(str, found.drop_columns("task").to_pylist())) == sorted(map(str, expected))
    assert len(expected) > 400


def test_explain_shows_why_a_key_is_not_split(spark: SparkSession) -> None:
    df = spark.createDataFrame([], "t INT, kind STRING, id INT")
    for query, reason in (
        ("SEQ(A a, B b) WHERE [id]", "without WITHIN"),
        ("SEQ(A a, B b) PARTITION BY id WITHIN 5 EVENTS", "a count window counts all earlier rows"),
        (
            "SEQ(A a, B+ b) GROUP BY id AGG COUNT WITHIN 5",
            "events outside the window can decide whether a Kleene group",
        ),
        ("SEQ(A a, B b) GROUP BY id PREF MAX[a.t] WITHIN 5 RETURN 3", "one task ranks all matches of a key"),
    ):
        assert f"not split by time: {reason}" in ss.query(f"PATTERN {query}").explain(df, time="t", type="kind")
