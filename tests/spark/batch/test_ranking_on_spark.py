"""Compare generated rankings on Spark batch, merged from the partitions' candidates, with the oracle."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, given, settings
from pyspark.sql import SparkSession

from spark_check import check_on_spark
from strategies import queries, streams
from streamsift.language import Script
from test_generated import Rows
from test_generated_ranking import RANKING

LARGE = os.environ.get("STREAMSIFT_HYPOTHESIS") == "large"


# With `order`: rows of equal time have no order on Spark.
@settings(max_examples=500 if LARGE else 12, suppress_health_check=list(HealthCheck))
@given(script=queries(max_depth=3, **RANKING), rows=streams())
def test_rankings(spark: SparkSession, script: Script, rows: Rows) -> None:
    check_on_spark(spark, script, rows)
