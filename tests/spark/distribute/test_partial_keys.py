"""Test partial keys: the other events are replicated to every task, and exactly one task finds each match."""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import streamsift as ss
from spark_check import check_on_spark, check_tasks, planned
from strategies import queries, streams
from streamsift.language import Script, parse
from streamsift.physical import DetectPlan
from streamsift.physical.detect.partial_keys import partial_key
from streamsift.spark.batch.task import Task
from streamsift.spark.distribute import distribution as decided
from streamsift.spark.distribute.distribution import Distribution
from test_generated import DETECTION, Rows

LARGE = os.environ.get("STREAMSIFT_HYPOTHESIS") == "large"
EXAMPLES = int(os.environ.get("STREAMSIFT_EXAMPLES", "0"))
WRITTEN = [
    "PATTERN SEQ(A a, B b, C c) WHERE a.id = c.id AND b.s = 'a' WITHIN 5",
    "PATTERN SEQ(A a, B b, A c) WHERE b.id = c.id",
    "PATTERN SEQ(A a, !B b, C c) WHERE a.id = c.id WITHIN 6",
    "PATTERN SEQ(A a, B b, !C c) WHERE a.id = b.id WITHIN 4",
    "PATTERN SEQ(A a, B b, !SEQ(C c, A d)) WHERE a.id = b.id AND c.id = a.id WITHIN 4",
    "PATTERN AND(ANY a, ANY b, ANY c) WHERE a.id = b.id AND c.x > 1 WITHIN 3",
    "PATTERN SEQ(A a, B+ b, C c) WHERE a.id = c.id WITHIN 6",
    "PATTERN SEQ(A+ a, B b, C c) WHERE b.id = c.id WITHIN 6",
    "PATTERN SEQ(A a, B* b, C c) WHERE a.id = b.id = c.id AND a.n < 2",
    "PATTERN SEQ(A a, OR(B b, SEQ(C c, A d)), ANY e) WHERE a.id = b.id AND c.id = e.id WITHIN 5",
    "PATTERN SEQ(ANY a, ANY b, ANY c, ANY d) WHERE a.id = c.id AND b.id = d.id AND b.id = 1 WITHIN 4",
]


@settings(max_examples=EXAMPLES or (3_000 if LARGE else 150), suppress_health_check=list(HealthCheck))
@given(
    script=st.one_of(
        st.sampled_from(WRITTEN).map(parse),
        queries(max_depth=4, **DETECTION),
        queries(**{**DETECTION, "kleene": True}),
    ),
    rows=streams(max_size=8),
    partition_of=st.lists(st.integers(0, 2), min_size=1, max_size=4),
)
def test_however_tasks_are_put_together(script: Script, rows: Rows, partition_of: list[int]) -> None:
    plan = planned(script, rows)
    assume(isinstance(plan, DetectPlan) and not plan.keys)
    assert isinstance(plan, DetectPlan)
    key = None if decided.counted_keys(plan.query) else partial_key(plan)
    assume(key is not None)
    assert key is not None
    tasks = len(partition_of)
    everywhere = any(key.copied) or any(owner is None for owner in key.owners)  # classes are ignored

    def copies(row: dict[str, Any]) -> tuple[int, range]:
        home = hash(row[key.column]) % tasks
        return home, range(tasks) if everywhere else range(home, home + 1)

    check_tasks(script, rows, Task(plan, Distribution((key.column,), partial=key), "fail"), copies, partition_of)


@pytest.fixture
def any_number_of_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decided, "MAX_COPIES", 1_000)


@settings(max_examples=100 if LARGE else 8, suppress_health_check=list(HealthCheck))
@given(script=st.sampled_from(WRITTEN).map(parse), rows=streams(max_size=8))
def test_on_spark(spark: SparkSession, any_number_of_copies: None, script: Script, rows: Rows) -> None:
    check_on_spark(spark, script, rows, spread="keys")


TRADES: dict[str, Any] = {
    "t": list(range(60)),
    "name": ["IBM", "Google", "Sun", "Oracle", "IBM", "Google"] * 10,
    "price": [float(i * 7 % 11) for i in range(60)],
}
QUERY_1 = """PATTERN T1;T2;T3 WHERE T1.name = T3.name AND T2.name = 'Google'
             AND T1.price >= T2.price + 2.0 AND T3.price < T2.price WITHIN 500"""
QUERY_3 = """PATTERN T1;T2;T3;T4 WHERE T1.name = T3.name AND T2.name = T4.name AND T2.name = 'Google'
             AND T1.price < T2.price - 0.02 AND T3.price > T4.price + 0.02 WITHIN 20"""


@pytest.mark.parametrize(("text", "copied"), [(QUERY_1, "T2"), (QUERY_3, "T2, T4")])
def test_the_condensed_composition_papers_queries_run_in_parallel(spark: SparkSession, text: str, copied: str) -> None:
    query, table = ss.query(text), pa.table(TRADES)
    df = spark.createDataFrame(table).repartition(2)
    said = query.explain(df, time="t")
    assert f"Spark: shuffled by name; events of {copied}, about 0.01 of all, are replicated to all 3 tasks" in said
    assert "replicas: about 0.02 per event; not split by time: that would make 0.062 replicas per event" in said
    found = query.run(df, time="t").toArrow().to_pylist()
    expected = query.run_local(table, time="t").to_pylist()
    assert len(expected) > 10
    assert sorted(map(str, found)) == sorted(map(str, expected))


def test_too_many_copies_are_not_made(spark: SparkSession) -> None:
    df = spark.createDataFrame(pa.table(TRADES))
    most = ss.query("PATTERN T1;T2;T3 WHERE T1.name = T3.name").explain(df, time="t")
    assert "Spark: one task: no column is shared by all variables" in most
    assert "not by name: that would make 2 replicas per event (events of T2, about 1 of all, to all 3 tasks)" in most
    timed = ss.query("PATTERN T1;T2;T3 WHERE T1.name = T3.name AND T2.price > 3 WITHIN 5").explain(df, time="t")
    assert "time slices" in timed
    assert "replicas: about 0.062 per event; not by name: that would make 0.67 replicas per event" in timed
