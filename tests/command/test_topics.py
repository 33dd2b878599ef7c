"""Options for Kafka topics that cannot be used are reported before Spark starts."""

from __future__ import annotations

import doctest

import pytest

from run_command import command
from streamsift.runtime.input import topics

WORDS = ["run", "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5", "--time", "t"]
TOPIC = "kafka://127.0.0.1:9/events"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--input", "kafka://broker/events"], "invalid location of a Kafka topic: kafka://broker/events"),
        (["--input", "kafka://broker:9092"], "write kafka://HOST:PORT"),
        (["--input", "kafka://broker:9092/a/b"], "invalid location"),
        (["--input", TOPIC, "--output", "kafka://broker/alerts"], "invalid location"),
        (["--input", TOPIC, "--output", TOPIC, "--format", "csv"], "a topic cannot be written as csv"),
        (["--input", TOPIC, "--input-format", "csv"], "the payloads of a topic are JSON"),
        (["--input", TOPIC, "--engine", "local"], "--stream requires Spark"),
        (["--input", "events.csv", "--schema", "t bigint"], "--schema describes the payloads of a Kafka topic"),
    ],
)
def test_options_that_do_not_go_together(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamsift.command.stream_job.start_spark", None)  # called, it would be a bug
    code, _, error = command([*WORDS, *options], capsys)
    assert (code, message in error) == (2, True), error


def test_examples() -> None:
    assert doctest.testmod(topics) == (0, 1)
