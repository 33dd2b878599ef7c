"""The flat case files on Spark batch, in as many partitions as there are."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import streamsift as ss
from casefile import Case, assert_rows, load_cases


@pytest.mark.parametrize(
    "case", [c for c in load_cases() if c.file.startswith("flat_") and c.error is None], ids=lambda case: case.id
)
def test_flat_case(spark: SparkSession, case: Case) -> None:
    df = spark.createDataFrame(case.table()).repartition(2)
    result = ss.query(case.query).run(df, time=case.time, type=case.type, order=case.order)
    assert_rows(case, result.toArrow().to_pylist())
