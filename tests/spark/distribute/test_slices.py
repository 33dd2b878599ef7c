"""Test time slices: exactly one task finds each match, for all slice boundaries and types of time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import streamsift as ss
from spark_check import check_on_spark, check_tasks, planned
from strategies import queries, streams
from streamsift.language import Script
from streamsift.physical import DetectPlan
from streamsift.spark.batch import spill as task_tables
from streamsift.spark.batch.task import Task
from streamsift.spark.distribute import slices as cutting
from streamsift.spark.distribute.distribution import Distribution
from streamsift.spark.distribute.slices import Slices, slices
from supported import may_be_refused
from test_generated import DETECTION, Rows

LARGE = os.environ.get("STREAMSIFT_HYPOTHESIS") == "large"
FLAT = ss.query("PATTERN SEQ(A a, B b) WITHIN 5")


@pytest.fixture(autouse=True)
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "SLICE_REACHES", 1)


@pytest.fixture
def cut_spark(spark: SparkSession) -> Iterator[SparkSession]:
    """Return a session that does not coalesce small tasks."""
    spark.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    yield spark
    spark.conf.unset("spark.sql.adaptive.coalescePartitions.enabled")


@settings(max_examples=3_000 if LARGE else 200, suppress_health_check=list(HealthCheck))
@given(
    script=st.one_of(queries(max_depth=4, **DETECTION), queries(**{**DETECTION, "kleene": True})),
    rows=streams(max_size=8),
    partition_of=st.lists(st.integers(0, 2), min_size=1, max_size=4),
    most_rows=st.sampled_from([1, 3, 100]),
)
def test_however_tasks_are_put_together(
    monkeypatch: pytest.MonkeyPatch, script: Script, rows: Rows, partition_of: list[int], most_rows: int
) -> None:
    plan = planned(script, rows)
    how = slices(plan)
    assume(isinstance(plan, DetectPlan) and isinstance(how, Slices))
    assert isinstance(how, Slices)

    def copies(row: dict[str, Any]) -> tuple[int, range]:
        low, high = (row["t"] - how.after) // how.length, (row["t"] + how.before) // how.length
        return int(row["t"] // how.length), range(int(low), int(high) + 1)

    monkeypatch.setattr(task_tables, "MAX_ROWS", most_rows)
    check_tasks(script, rows, Task(plan, Distribution((), how), "fail"), copies, partition_of)


@settings(max_examples=300 if LARGE else 10, suppress_health_check=list(HealthCheck))
@given(script=queries(**{**DETECTION, "kleene": True}), rows=streams(max_size=7))
def test_generated_queries(cut_spark: SparkSession, script: Script, rows: Rows) -> None:
    assume(not may_be_refused(script))
    check_on_spark(cut_spark, script, rows, spread="slices")


def epoch(microseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)


TIMES: dict[str, Any] = {
    "TIMESTAMP": lambda t: epoch(t * 1_000_000),
    "TIMESTAMP_NTZ": lambda t: epoch(t * 1_000_000).replace(tzinfo=None),
    "DATE": lambda t: date(1970, 1, 1) + timedelta(days=t),
    "INT": lambda t: t,
    "BIGINT": lambda t: t - 2**63 + 60,
    "DOUBLE": lambda t: t + 1.7e9,
    "DECIMAL(38,18)": lambda t: Decimal(t) / 8,
}
WINDOWS = {"TIMESTAMP": "5 s", "TIMESTAMP_NTZ": "5 s", "DATE": "5 d", "DECIMAL(38,18)": "0.625"}


def timed(spark: SparkSession, kind: str) -> DataFrame:
    rows = [(TIMES[kind](t), "AB"[t % 2], t % 3) for t in range(-60, 60)]
    return spark.createDataFrame(rows, f"t {kind}, kind STRING, id INT").repartition(3)


@pytest.mark.parametrize("kind", TIMES)
@pytest.mark.parametrize("keys", ["", " WHERE [id]"])
def test_any_type_of_time(cut_spark: SparkSession, kind: str, keys: str) -> None:
    query = ss.query(f"PATTERN SEQ(A a, !C, B b){keys} WITHIN {WINDOWS.get(kind, '5')}")
    df = timed(cut_spark, kind)
    found = query.run(df, time="t", type="kind", spread="slices")
    with_task = found.withColumn("task", F.spark_partition_id())
    assert with_task.select("task").distinct().count() > 1
    expected = query.run(df, time="t", type="kind", spread="keys")
    assert sorted(map(str, found.collect())) == sorted(map(str, expected.collect()))
    assert expected.count() > 0


def test_infinite_times_are_ordinary(cut_spark: SparkSession) -> None:
    rows = [(float("-inf"), "A"), (1.0, "A"), (2.0, "B"), (1e308, "A"), (float("inf"), "B")]
    df = cut_spark.createDataFrame(rows, "t DOUBLE, kind STRING")
    assert [(r.a.t, r.b.t) for r in FLAT.run(df, time="t", type="kind").collect()] == [(1.0, 2.0)]


def test_all_bad_rows_are_reported(cut_spark: SparkSession) -> None:
    rows = [(t if t % 3 else None, "AB"[t % 2]) for t in range(40)]
    df = cut_spark.createDataFrame(rows, "t INT, kind STRING").repartition(3)
    with pytest.raises(Exception, match="14 rows have no usable time"):
        FLAT.run(df, time="t", type="kind").collect()
    assert FLAT.run(df, time="t", type="kind", bad_rows="drop").count() > 0


def test_explain_shows_how_time_is_split(spark: SparkSession) -> None:
    df = spark.createDataFrame([], "t TIMESTAMP, kind STRING, id INT")
    timed = ss.query("PATTERN SEQ(A a, B b) WITHIN 5 s")
    assert "time slices (5 s each), assigned to tasks round-robin" in timed.explain(df, time="t", type="kind")
    both_ends = ss.query("PATTERN SEQ(!C, A a, B b) WITHIN 5 s").explain(df, time="t", type="kind")
    assert "replicas: about 1 per event" in both_ends
    for query, reason in (
        ("SEQ(A a, B b)", "without WITHIN"),
        ("SEQ(A a, B b) WITHIN 5 EVENTS", "counts all earlier rows"),
    ):
        assert reason in ss.query(f"PATTERN {query}").explain(df, time="t", type="kind")
