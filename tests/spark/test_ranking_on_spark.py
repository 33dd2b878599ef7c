"""Generated rankings on Spark batch: each partition's candidates, merged, are what the oracle ranks."""

from __future__ import annotations

import os

import pyarrow as pa
from hypothesis import HealthCheck, assume, given, note, settings
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

import streamsift as ss
from strategies import queries, streams
from streamsift.language import Script, print_script
from test_generated import SCHEMA, Rows, assert_same
from test_generated_ranking import RANKING

LARGE = os.environ.get("STREAMSIFT_HYPOTHESIS") == "large"


# With `order` bound: rows of equal time have no order of their own on Spark.
@settings(max_examples=500 if LARGE else 40, suppress_health_check=list(HealthCheck))
@given(script=queries(max_depth=3, **RANKING), rows=streams())
def test_rankings(spark: SparkSession, script: Script, rows: Rows) -> None:
    for place, row in enumerate(rows):
        row["seq"] = place
    note(print_script(script))
    binding = {"time": "t", "type": "kind", "order": "seq"}
    df = spark.createDataFrame(pa.Table.from_pylist(rows, SCHEMA)).repartition(2)
    try:
        actual = ss.query(print_script(script)).run(df, **binding).toArrow().to_pylist()
    except PythonException as failure:
        assume("64 bits" not in str(failure))
        raise
    assert_same(script, rows, binding, actual)
