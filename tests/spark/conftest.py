"""Share one Spark session among the tests of a process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import SparkSession

import fast_spark
from kafka_jars import NoJars, broker_jars, connector_jars

if TYPE_CHECKING:
    from kafka_broker import Broker

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
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Run a Kafka broker, shared by the tests of this process. Without its jars, the tests are skipped."""
    pytest.importorskip("confluent_kafka", reason="tests with Kafka need its client: make setup")
    from kafka_broker import running_broker

    try:
        broker_jars()
    except NoJars as reason:
        pytest.skip(str(reason))
    with running_broker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture(scope="session")
def kafka_spark(spark: SparkSession, broker: Broker) -> SparkSession:
    """Return the session of all tests, with Spark's Kafka connector."""
    try:
        jars = connector_jars()
    except NoJars as reason:
        pytest.skip(str(reason))
    for jar in jars:
        spark.sql(f"ADD JAR '{jar}'")
    return spark


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("streamsift tests")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()
