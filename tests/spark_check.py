"""A generated query and its rows in: what Spark batch answers, and that it is what the oracle says."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import assume, note
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

import streamsift as ss
from streamsift.language import Script, print_script
from test_generated import SCHEMA, Rows, assert_same

# With `order` bound: rows of equal time have no order of their own on Spark.
BINDING = {"time": "t", "type": "kind", "order": "seq"}


def rows_on_spark(spark: SparkSession, script: Script, rows: Rows, **options: Any) -> Rows:
    for place, row in enumerate(rows):
        row["seq"] = place
    note(print_script(script))
    df = spark.createDataFrame(pa.Table.from_pylist(rows, SCHEMA)).repartition(2)
    return ss.query(print_script(script)).run(df, **BINDING, **options).toArrow().to_pylist()


def check_on_spark(spark: SparkSession, script: Script, rows: Rows, **options: Any) -> None:
    try:
        actual = rows_on_spark(spark, script, rows, **options)
    except PythonException as failure:
        assume("64 bits" not in str(failure))
        raise
    assert_same(script, rows, BINDING, actual)
