"""The session of the tests, with the settings of the command line."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession


@pytest.fixture
def utc(spark: SparkSession) -> SparkSession:
    """The session with the settings that the command line gives it."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    return session
