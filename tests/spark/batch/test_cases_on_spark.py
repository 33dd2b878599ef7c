"""The case files on Spark batch, wherever the rows lie."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import streamsift as ss
from casefile import Case, assert_rows, load_cases


@pytest.mark.parametrize("case", [c for c in load_cases() if c.error is None], ids=lambda case: case.id)
def test_case(spark: SparkSession, case: Case) -> None:
    # Times without a zone stay so; Spark would take them to be in the session's.
    schema = from_arrow_schema(case.table().schema, prefer_timestamp_ntz=True)
    df = spark.createDataFrame(case.table(), schema).repartition(2)
    result = ss.query(case.query).run(df, time=case.time, type=case.type, order=case.order)
    assert_rows(case, result.toArrow().to_pylist())
