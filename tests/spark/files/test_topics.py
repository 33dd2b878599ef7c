"""Kafka for real: a stream from one topic to another, and the same on the command line. `broker` starts the broker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

import streamsift as ss
from kept_session import as_command_line
from run_command import command
from streamsift.command import stream_job
from streamsift.errors import SetupError
from streamsift.runtime.input import topic_of
from streamsift.spark.files import topic_writer

if TYPE_CHECKING:
    from kafka_broker import Broker

QUERY = "PATTERN SEQ(A a, B b, !C c) WHERE [id] WITHIN 5"
SCHEMA = "t bigint, kind string, id bigint"
ROWS = [(1, "A", 1), (2, "B", 1), (3, "A", 2), (4, "B", 2), (5, "C", 2), (6, "A", 3), (7, "B", 3), (100, "-", 0)]
MATCHES = [(1, 2), (6, 7)]


def payloads(rows: list[tuple[int, str, int]]) -> list[dict[str, object]]:
    return [{"t": t, "kind": kind, "id": key} for t, kind, key in rows]


def received(broker: Broker, topic: str) -> list[tuple[int, int]]:
    rows = [json.loads(value) for value in broker.receive(topic) if value is not None]
    return sorted((row["match_start"], row["match_end"]) for row in rows)


def test_a_topic_to_a_topic(kafka_spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """Two partitions with keys, and one that stays empty."""
    broker.create("in", 3)
    broker.create("out", 2)
    for partition in (0, 1):
        rows = [row for row in payloads(ROWS) if int(str(row["id"])) % 2 == partition]
        broker.send("in", rows, key="id", partition=partition)
    events = ss.read_topic(kafka_spark, broker.uri("in"), SCHEMA, keep=["offset", "t"])
    assert events.columns == ["t", "kind", "id", "offset"]
    matches = ss.query(QUERY).run(events, time="t", type="kind")
    writer = topic_writer(matches.select(F.to_json(F.struct("*"))), topic_of(broker.uri("out")))
    for _ in range(2):  # the first run moves the watermark, the second one emits; a restart has Spark's offsets
        stream = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
        stream.awaitTermination()
        broker.send("in", payloads([(200, "-", 0)]))
    assert received(broker, "out") == MATCHES


def test_a_bad_payload_ends_the_stream(kafka_spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    broker.create("bad")
    broker.send("bad", [*payloads(ROWS), b"{t: 1}"])
    events = ss.read_topic(kafka_spark, broker.uri("bad"), SCHEMA)
    writer = ss.query(QUERY).run(events, time="t", type="kind").writeStream.format("parquet")
    writer = writer.option("path", str(tmp_path / "out")).option("checkpointLocation", str(tmp_path / "checkpoint"))
    stream = writer.trigger(availableNow=True).start()
    with pytest.raises(PySparkException, match=r"\{t: 1\} \(topic bad, partition 0, offset 8\)"):
        stream.awaitTermination()


def test_the_command_line(
    kafka_spark: SparkSession,
    broker: Broker,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Types come from the first records; dropped payloads are counted."""
    monkeypatch.setattr(stream_job, "start_spark", lambda *_: as_command_line(kafka_spark))
    broker.create("events", 2)
    broker.create("alerts")
    broker.send("events", [*payloads(ROWS), b"junk", None])
    words = ["run", QUERY, "--input", broker.uri("events"), "--output", broker.uri("alerts"), "--time", "t"]
    words += ["--type", "kind", "--order", "offset", "--once", "--checkpoint", str(tmp_path)]
    code, out, error = command(words, capsys)
    assert (code, out) == (3, ""), error
    assert "BadInputError: " in error
    assert "--bad-rows drop" in error
    code, _, error = command([*words, "--bad-rows", "drop"], capsys)
    assert code == 0, error
    assert "10 records" in error
    assert "2 without a usable time" in error
    broker.send("events", payloads([(200, "-", 0)]))
    assert command([*words, "--bad-rows", "drop"], capsys)[0] == 0
    assert received(broker, "alerts") == MATCHES


def test_a_topic_that_cannot_be_read(kafka_spark: SparkSession, broker: Broker) -> None:
    broker.create("empty")
    with pytest.raises(SetupError, match="has no records that show the columns"):
        ss.read_topic(kafka_spark, broker.uri("empty"))
