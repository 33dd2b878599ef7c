"""Compare generated queries on Spark batch, with shuffled rows, with the oracle."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from spark_check import BINDING, check_on_spark, rows_on_spark
from strategies import aggregations, flat_queries, queries, streams
from streamsift.language import Script
from supported import may_be_refused
from test_generated import DETECTION, Rows, assert_same
from test_generated_aggregation import DETECTED

LARGE = os.environ.get("STREAMSIFT_HYPOTHESIS") == "large"


# With `order`: rows of equal time have no order on Spark, which count windows depend on.
@settings(max_examples=500 if LARGE else 12, suppress_health_check=list(HealthCheck))
@given(script=st.one_of(flat_queries(), queries(max_depth=4, **DETECTION)), rows=streams())
def test_queries(spark: SparkSession, script: Script, rows: Rows) -> None:
    check_on_spark(spark, script, rows)


@settings(max_examples=200 if LARGE else 7, suppress_health_check=list(HealthCheck))
@given(script=queries(**{**DETECTION, "kleene": True}), rows=streams(max_size=7))
def test_kleene_queries(spark: SparkSession, script: Script, rows: Rows) -> None:
    assume(not may_be_refused(script))
    check_on_spark(spark, script, rows)


@settings(max_examples=500 if LARGE else 9, suppress_health_check=list(HealthCheck))
@given(script=aggregations(**DETECTED), rows=streams())
def test_aggregations(spark: SparkSession, script: Script, rows: Rows) -> None:
    assert_same(script, rows, BINDING, rows_on_spark(spark, script, rows))
