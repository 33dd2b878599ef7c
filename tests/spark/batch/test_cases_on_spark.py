"""Run the case files on Spark batch, with shuffled rows: one case in twenty, and all of them in the large profile."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import streamsift as ss
from casefile import Case, assert_rows, load_cases
from spark_check import scattered
from test_generated import LARGE

ANSWERED = [case for case in load_cases() if case.error is None]


@pytest.mark.parametrize("case", ANSWERED if LARGE else ANSWERED[::20], ids=lambda case: case.id)
def test_case(spark: SparkSession, case: Case) -> None:
    # Keep timestamps without a zone: Spark would interpret them in the session's zone.
    schema = from_arrow_schema(case.table().schema, prefer_timestamp_ntz=True)
    result = ss.query(case.query).run(
        scattered(spark, case.table(), schema), time=case.time, type=case.type, order=case.order
    )
    assert_rows(case, result.toArrow().to_pylist())
