"""Streams of topics whose broker restarts or is killed, and whose partitions are added. In the large profile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import SparkSession

import streamsift as ss
from test_generated import LARGE

if TYPE_CHECKING:
    from kafka_broker import Broker

pytestmark = pytest.mark.skipif(not LARGE, reason="brokers that are killed and started take minutes: make test-large")
PATIENCE_SECONDS = 240
SCHEMA = "t bigint, kind string, id bigint"
QUERY = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5"


def events(*times: int) -> list[dict[str, Any]]:
    return [{"t": t, "kind": "AB"[t % 2], "id": t // 2} for t in times]


@pytest.fixture
def own_broker(kafka_spark: SparkSession, tmp_path: Path) -> Iterator[Broker]:
    """Return a broker that a test may stop."""
    from kafka_broker import running_broker

    with running_broker(tmp_path) as broker:
        yield broker


def wait_for(spark: SparkSession, stream: Any, path: str, starts: list[int]) -> None:
    end, read = time.monotonic() + PATIENCE_SECONDS, []
    while read != starts and time.monotonic() < end:
        assert stream.isActive, stream.exception()
        time.sleep(0.5)
        rows = spark.read.schema("match_start bigint").parquet(path) if Path(path).exists() else None
        read = [] if rows is None else sorted(row.match_start for row in rows.collect())
    assert read == starts


def test_a_broker_that_restarts_and_an_added_partition(
    kafka_spark: SparkSession, own_broker: Broker, tmp_path: Path
) -> None:
    """The running stream waits for the broker, and reads the partition that is added while it runs."""
    own_broker.create("in", 2)  # partition 1 is idle
    matches = ss.query(QUERY).run(ss.read_topic(kafka_spark, own_broker.uri("in"), SCHEMA), time="t", type="kind")
    path = str(tmp_path / "out")
    writer = matches.writeStream.format("parquet").option("path", path)
    stream = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        own_broker.send("in", events(2, 3, 4, 5), partition=0)
        own_broker.send("in", events(20), partition=0)
        wait_for(kafka_spark, stream, path, [2, 4])
        own_broker.stop()
        time.sleep(5)
        own_broker.start()
        own_broker.send("in", events(21, 30), partition=0)
        wait_for(kafka_spark, stream, path, [2, 4, 20])
        own_broker.kill()
        own_broker.start()
        own_broker.add_partitions("in", 3)
        own_broker.send("in", events(40, 41), partition=2)
        own_broker.send("in", events(50), partition=0)
        wait_for(kafka_spark, stream, path, [2, 4, 20, 40])
    finally:
        stream.stop()
    assert ss.metrics(stream).late == 0


def test_kills_of_driver_worker_and_broker(kafka_spark: SparkSession) -> None:
    import kafka_kill_rounds

    kafka_kill_rounds.rounds(20, seed=3)
