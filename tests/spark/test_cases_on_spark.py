"""The case files on Spark batch, wherever the rows lie."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import streamsift as ss
from casefile import Case, assert_rows, load_cases
from supported import is_evaluated


@pytest.mark.parametrize(
    "case", [c for c in load_cases() if c.error is None and is_evaluated(c.query)], ids=lambda case: case.id
)
def test_case(spark: SparkSession, case: Case) -> None:
    table = case.table()
    # Ticks are multiples since the epoch in UTC: as instants of the session's zone, times would have other ticks.
    schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True) if "UPDATE" in case.query else None
    df = spark.createDataFrame(table, schema).repartition(2)
    result = ss.query(case.query).run(df, time=case.time, type=case.type, order=case.order)
    assert_rows(case, result.toArrow().to_pylist())
