"""JSON payloads become typed columns; a payload that does not fit is an error, or is dropped and counted."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

import streamsift as ss
from streamsift.errors import SetupError
from streamsift.spark.files.payloads import given_schema, json_columns, sampled_schema

SCHEMA = "t bigint, kind string, x double, on boolean, tags array<string>, at struct<room: string, bed: int>"
GOOD: list[tuple[str, dict[str, Any]]] = [
    ('{"t": 1, "kind": "A", "x": 2.5, "on": true}', {"t": 1, "kind": "A", "x": 2.5, "on": True}),
    (' {"x": 3, "t": 2, "other": {"a": [1]}}\n', {"t": 2, "x": 3.0}),
    (
        '{"t": 9007199254740993, "kind": "é\\n\\"", "tags": ["a", null]}',
        {"t": 2**53 + 1, "kind": 'é\n"', "tags": ["a", None]},
    ),
    ('{"t": 4, "at": {"room": "r", "bed": 3}}', {"t": 4, "at": Row(room="r", bed=3)}),
    ("{}", {}),
]
BAD = [
    None,
    b"",
    b"  ",
    b"null",
    b"1",
    b'"t"',
    b"not JSON",
    b'{"t": 1',
    b'{"t": 1} garbage',
    b'{"t": 1}{"t": 2}',
    b'{"t": 1}, {"t": 2}',
    b'[{"t": 1}]',
    b'{"t": "1"}',
    b'{"t": 1.5}',
    b'{"t": 1e3}',
    b'{"t": 9223372036854775808}',
    b'{"t": 1, "x": "2.5"}',
    b'{"t": 1, "on": 1}',
    b'{"t": 1, "tags": "a"}',
    b'{"t": 1, "at": {"room": "r", "bed": "x"}}',
    b'{"t": 1, "at": 5}',
    b'{"t": 1, "kind": "\xff"}',
]
NAMES = ["t", "kind", "x", "on", "tags", "at"]


def records(spark: SparkSession, values: list[bytes | None]) -> Any:
    rows = [(value, 3, offset) for offset, value in enumerate(values)]
    return spark.createDataFrame(rows, "value binary, partition int, offset bigint")


def test_good_payloads(spark: SparkSession) -> None:
    events = json_columns(
        records(spark, [text.encode() for text, _ in GOOD]), given_schema(SCHEMA), keep=["offset", "t"], bad_rows="fail"
    )
    assert events.columns == [*NAMES, "offset"]
    expected = [(*(values.get(name) for name in NAMES), offset) for offset, (_, values) in enumerate(GOOD)]
    assert sorted(map(tuple, events.collect()), key=lambda row: row[-1]) == expected


def test_bad_payloads_are_all_null(spark: SparkSession) -> None:
    events = json_columns(records(spark, [b'{"t": 7}', *BAD]), given_schema(SCHEMA), keep=["offset"], bad_rows="drop")
    read = [tuple(row) for row in events.collect()]
    assert (7, *[None] * 5, 0) in read
    read.remove((7, *[None] * 5, 0))
    assert read == [(None,) * 7] * len(BAD)


@pytest.mark.parametrize("bad", [*BAD[::7]])
def test_a_bad_payload_is_an_error_whatever_is_read(spark: SparkSession, bad: bytes | None) -> None:
    events = json_columns(records(spark, [b'{"t": 7}', bad]), given_schema(SCHEMA), bad_rows="fail")
    with pytest.raises(PySparkException, match=r"not a JSON object of the schema.*\(partition 3, offset 1\)"):
        events.select("kind").collect()


def test_dropped_payloads_are_counted(spark: SparkSession) -> None:
    from pyspark.sql import Observation

    events = json_columns(
        records(spark, [b'{"t": 1, "kind": "A"}', b"x", b'{"t": 2, "kind": "B"}', b'{"t": "3"}']),
        given_schema("t bigint, kind string"),
        bad_rows="drop",
    )
    observation = Observation()
    query = ss.query("PATTERN SEQ(A a, B b) WITHIN 5")
    matches = query.run(events, time="t", type="kind", bad_rows="drop", observation=observation)
    assert len(matches.collect()) == 1
    assert observation.get["bad_rows"] == 2


def test_types_are_chosen_from_a_sample(spark: SparkSession) -> None:
    lines = [
        b'{"t": 1, "kind": "2024-05-01T10:00:00", "x": 1, "n": null}',
        b'{"t": 12345678901234567890, "x": 1.5,\n "tags": ["a"]}',
        None,
    ]
    schema = sampled_schema(records(spark, lines), "here", bad_rows="fail")
    assert schema.simpleString() == "struct<t:decimal(38,0),kind:string,x:double,n:string,tags:array<string>>"


def test_a_sample_skips_bad_payloads_that_are_dropped(spark: SparkSession) -> None:
    lines: list[bytes | None] = [b"junk", b"\xff", b"[1]", b'{"t": 1}']
    assert sampled_schema(records(spark, lines), "here", bad_rows="drop").simpleString() == "struct<t:bigint>"
    with pytest.raises(ss.BadInputError, match="here"):
        sampled_schema(records(spark, lines), "here", bad_rows="fail")
    with pytest.raises(SetupError, match="here has no records"):
        sampled_schema(records(spark, lines[:3]), "here", bad_rows="drop")


@pytest.mark.parametrize("text", ["bigint", "t wrong", "t bigint kind"])
def test_a_schema_that_does_not_parse(spark: SparkSession, text: str) -> None:
    with pytest.raises(SetupError, match="schema"):
        given_schema(text)
