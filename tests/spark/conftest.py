"""Share one Spark session among the tests of a process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import fast_spark

SETTINGS = {
    **fast_spark.SETTINGS,
    "spark.ui.enabled": "false",  # saves a port
    "spark.sql.shuffle.partitions": "3",  # more than cores, so that keys share partitions and partitions share workers
    "spark.sql.session.timeZone": "America/New_York",  # not UTC, so that a dependency on the session's zone shows
    "spark.ui.showConsoleProgress": "false",
    "spark.python.worker.faulthandler.enabled": "true",  # reports the line of a crash in a kernel
    "spark.log.level": "OFF",  # no stack traces of jobs that tests make fail
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
