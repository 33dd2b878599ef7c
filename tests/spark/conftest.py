"""One Spark session in each process for all of its tests of this folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import fast_spark

SETTINGS = {
    **fast_spark.SETTINGS,
    "spark.ui.enabled": "false",  # no port, no page
    "spark.sql.shuffle.partitions": "3",  # more than the cores: keys share partitions, partitions share workers
    "spark.sql.session.timeZone": "America/New_York",  # not UTC: what depends on the session's zone must show
    "spark.ui.showConsoleProgress": "false",
    "spark.python.worker.faulthandler.enabled": "true",  # a crash in a kernel names its line
    "spark.log.level": "OFF",  # tests of failing jobs would print their stack traces
}

fast_spark.prepare()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("streamsift tests")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()
