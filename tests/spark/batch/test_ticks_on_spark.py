"""Compare ticks of UPDATE and windows of doubles on Spark with run_local: types and rows."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as t

import streamsift as ss

TOTALS, RANKING = "PATTERN ANY v AGG COUNT", "PATTERN ANY v PREF MAX[v.x]"
CASES = [
    (t.DecimalType(10, 0), [Decimal(-1), Decimal(4)], "WITHIN 1 UPDATE 0.5", t.DecimalType(38, 1)),
    (t.LongType(), [-1, 4], "WITHIN 1 UPDATE 0.5", t.DoubleType()),
    (t.IntegerType(), [-1, 4], "WITHIN 2 UPDATE 2", t.IntegerType()),
    (t.DoubleType(), [0.3, 0.7], "WITHIN 0.2 UPDATE 0.1", t.DoubleType()),
    (t.FloatType(), [0.25, 0.5], "WITHIN 0.2 UPDATE 0.1", t.DoubleType()),
    (t.DateType(), [date(1969, 12, 31), date(2024, 3, 1)], "WITHIN 1 day UPDATE 12 hours", t.TimestampNTZType()),
    (t.TimestampNTZType(), [datetime(2024, 3, 1)], "WITHIN 1 s UPDATE 0.5 s", t.TimestampNTZType()),
    (t.TimestampType(), [datetime(2024, 3, 1, tzinfo=UTC)], "WITHIN 1 s UPDATE 0.5 s", t.TimestampType()),
    (t.StringType(), ["2024-03-01"], "WITHIN 1 s UPDATE 0.5 s", t.TimestampType()),
]


@pytest.mark.parametrize(("kind", "times", "window", "wanted"), CASES, ids=lambda each: str(each)[:30])
def test_totals_and_rankings_agree(
    spark: SparkSession, kind: t.DataType, times: list[Any], window: str, wanted: t.DataType
) -> None:
    schema = t.StructType([t.StructField("at", kind), t.StructField("x", t.LongType())])
    frame = spark.createDataFrame([(time, number) for number, time in enumerate(times)], schema)
    local = frame.toArrow()
    for text, name in ((f"{TOTALS} {window}", "time"), (f"{RANKING} {window} RETURN TOP 1 v.x", "window_end")):
        found = ss.query(text).run(frame, time="at")
        assert found.schema[name].dataType == wanted
        expected = ss.query(text).run_local(local, time="at").to_pylist()
        assert len(expected) >= 2
        assert _sorted(found.toArrow().to_pylist(), name) == _sorted(expected, name)


def _sorted(rows: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: str(row[name]))


@pytest.mark.parametrize("query", [TOTALS, f"{RANKING} RETURN 1"])
def test_ticks_finer_than_sparks_timestamps(spark: SparkSession, query: str) -> None:
    frame = spark.createDataFrame([(datetime(2024, 3, 1),)], t.StructType([t.StructField("at", t.TimestampType())]))
    text = f"{query.replace('v.x', '1')} WITHIN 1 ms UPDATE 0.0000005 s"
    with pytest.raises(ss.UnsupportedQuery, match="microseconds"):
        ss.query(text).run(frame, time="at")


@pytest.mark.parametrize(
    "query",
    [
        "SEQ(A a, B b) WITHIN 0.3",
        "SEQ(A a, !B b) WITHIN 0.2 EXCLUSIVE",
        "SEQ(!B b, A a) WITHIN 0.7",
        "A a PREF MAX[a.x] WITHIN 0.3 UPDATE 0.1 RETURN TOP 2 a.x",
        "SEQ(A a, B b) AGG COUNT WITHIN 0.3 UPDATE 0.1",
        "SEQ(A a, B b) AGG COUNT WITHIN 0.3",
    ],
)
def test_slices_of_tenths(spark: SparkSession, query: str) -> None:
    """Slices can hold more events than a window; the window is still exact."""
    random = np.random.default_rng(5)
    times = np.sort(random.integers(-400, 400, 600)) / 10
    kinds = pa.array(["A", "B"]).take(pa.array(random.integers(0, 2, 600)))
    table = pa.table({"t": times, "kind": kinds, "x": random.integers(0, 9, 600), "seq": np.arange(600)})
    binding: dict[str, Any] = {"time": "t", "type": "kind", "order": "seq"}
    wanted = ss.query(query).run_local(table, **binding)
    frame = spark.createDataFrame(table.to_pandas()).repartition(4)
    found = ss.query(query).run(frame, **binding).toArrow()
    assert wanted.num_rows > 0
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, wanted.to_pylist()))
