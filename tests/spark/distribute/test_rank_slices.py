"""Compare rankings that are split by time, also per key, with the result of one task."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from pyspark.sql import SparkSession

import streamsift as ss
from spark_check import check_on_spark
from strategies import queries, streams
from streamsift.language import Script
from test_generated import Rows
from test_generated_ranking import RANKING

LARGE = os.environ.get("STREAMSIFT_HYPOTHESIS") == "large"
QUERIES = [
    "A a; B b; C c PREF MAX[a.x + b.x + c.x] WITHIN 30 UPDATE 7 RETURN 3",
    "A a; B b; C c PREF MIN[a.x - b.x + 2 * c.x] WITHIN 30 RETURN 9",
    "A a & B b PREF MAX[a.x * b.x - b.x] WITHIN 12 RETURN 4",
    "A a PREF MAX[a.x] WITHIN 5 UPDATE 2 RETURN 2",
    "A a; !D d; B b PREF MAX[a.x + b.x] WITHIN 20 UPDATE 5 RETURN 2",
    "!D d; A a; B b PREF MAX[a.x + b.x] WITHIN 8 RETURN 5",
    "A a; B b; C c PREF MAX[a.x + c.x] AND MAX[b.x] WITHIN 40 UPDATE 20 RETURN 3",
    "A+ a; B b PREF MAX[SUM(a.x) + b.x] WITHIN 6 UPDATE 3 RETURN 2",
    "A+ a; B b PREF MAX[b.x] WITHIN 6 RETURN 3",
    "SEQ(A a, B b, C c) WHERE [id] PREF MAX[a.x + b.x + c.x] WITHIN 40 RETURN 9",
    "SEQ(A a, !D d, B b) WHERE [id] PREF MIN[a.x - b.x] WITHIN 30 RETURN 6",
]


def events(count: int, seed: int = 3) -> pa.Table:
    random = np.random.default_rng(seed)
    kinds = pa.array(["A", "B", "C", "D"]).take(pa.array(random.choice(4, count, p=[0.35, 0.35, 0.25, 0.05])))
    times = np.sort(random.integers(-count // 2, count // 2, count))
    x, keys = random.integers(0, 9, count), random.zipf(2.0, count) % 5
    return pa.table({"t": times, "kind": kinds, "x": x, "id": keys, "seq": np.arange(count)})


@pytest.mark.parametrize(
    ("query", "kind"), [*((query, "int64") for query in QUERIES), (QUERIES[0], "float64"), (QUERIES[1], "timestamp")]
)
def test_many_slices(spark: SparkSession, query: str, kind: str) -> None:
    table = events(400)
    if kind == "timestamp":
        times = pa.array(table.column("t").to_numpy() * 1_000_000, pa.timestamp("us", "UTC"))
        table = table.set_column(0, "t", times)
    elif kind == "float64":
        table = table.set_column(0, "t", pa.array(table.column("t").to_numpy() / 1.0))
    binding: dict[str, Any] = {"time": "t", "type": "kind", "order": "seq"}
    frame = spark.createDataFrame(table.to_pandas())
    wanted = ss.query(query).run_local(table, **binding)
    found = ss.query(query).run(frame, **binding).toArrow()
    assert "time slices" in ss.query(query).explain(frame, **binding)
    assert wanted.num_rows > 0
    shown = ("window_end", "rank", "score", "match_start", "match_end")
    names = [name for name in shown if name in wanted.column_names]
    order = [(name, "ascending") for name in names]
    assert found.select(names).sort_by(order).to_pylist() == wanted.select(names).sort_by(order).to_pylist()


# With `order`: rows of equal time have no order on Spark.
@settings(max_examples=500 if LARGE else 9, suppress_health_check=list(HealthCheck))
@given(script=queries(max_depth=3, **RANKING), rows=streams())
def test_rankings_without_groups(spark: SparkSession, script: Script, rows: Rows) -> None:
    window = script.statement.window
    assume(window is not None and not script.statement.partition_by and not script.statement.group_by)
    check_on_spark(spark, script, rows)
