"""Test Structured Streaming: sources, watermarks, sinks, restarts, rejected queries. Few streams: each is slow."""

from __future__ import annotations

import json
import os
import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

import streamsift as ss
from streamsift.spark.stream.buckets import buckets_of

COLUMNS = "ts timestamp, t bigint, kind string, id int, x double"
BINDING = {"time": "t", "type": "kind"}
PAIRS = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5"
START = datetime(2024, 5, 1)


def events(count: int, seed: int = 3) -> list[dict[str, Any]]:
    """Return events of five keys in order of time, a few with equal times."""
    chance = random.Random(seed)
    times = sorted(chance.randrange(count * 2) for _ in range(count))
    return [
        {
            "ts": (START + timedelta(seconds=t)).isoformat() + "Z",
            "t": t,
            "kind": chance.choice("ABC"),
            "id": chance.randrange(5),
            "x": float(chance.randrange(10)),
        }
        for t in times
    ]


def heartbeat(t: int = 100_000) -> dict[str, Any]:
    """Return a heartbeat: a row of no class of the query that advances the watermark."""
    return {"ts": (START + timedelta(seconds=t)).isoformat() + "Z", "t": t, "kind": "-", "id": 0, "x": 0.0}


class Directory:
    """A directory to write files into, and DataFrames that read it."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self.spark, self.path, self.files = spark, path / "in", 0
        self.path.mkdir()

    def drop(self, rows: list[dict[str, Any]]) -> None:
        hidden = self.path / f".{self.files}"
        hidden.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(hidden, (self.files + 1_000_000_000, self.files + 1_000_000_000))  # Spark reads the oldest file first
        hidden.rename(self.path / f"{self.files:04}.json")
        self.files += 1

    def cut(self, rows: list[dict[str, Any]], size: int) -> None:
        """Write files in order of time, each with shuffled rows."""
        for start in range(0, len(rows), size):
            part = rows[start : start + size]
            self.drop(random.Random(start).sample(part, len(part)))

    def stream(self) -> DataFrame:
        return self.spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).json(str(self.path))

    def batch(self) -> DataFrame:
        return self.spark.read.schema(COLUMNS).json(str(self.path))


@pytest.fixture
def directory(spark: SparkSession, tmp_path: Path) -> Directory:
    return Directory(spark, tmp_path)


def as_sorted(df: DataFrame) -> list[str]:
    return sorted(df.select(F.to_json(F.struct("*")).alias("row")).toPandas()["row"])


def run_once(writer: Any, checkpoint: Path) -> Any:
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    return query


def to_memory(df: DataFrame, name: str, checkpoint: Path) -> Any:
    return run_once(df.writeStream.format("memory").queryName(name), checkpoint)


def test_detection_with_the_callers_watermark(directory: Directory, tmp_path: Path) -> None:
    rows = events(90)
    directory.cut(rows, 30)
    late = {**heartbeat(1), "kind": "A"}
    directory.drop([late, heartbeat()])
    query = ss.query("PATTERN SEQ(A a, B b, !C c) WHERE [id] WITHIN 20 s")
    found = query.run(directory.stream().withWatermark("ts", "5 seconds"), time="ts", type="kind")
    stream = to_memory(found, "detection", tmp_path / "checkpoint")
    expected = query.run(directory.batch().where(F.col("t") != 1), time="ts", type="kind")
    assert as_sorted(directory.spark.table("detection")) == as_sorted(expected)

    metrics = ss.metrics(stream)
    assert metrics.late == 1
    assert metrics.matches == expected.count()
    assert [t.rows for t in metrics.triggers] == [30, 30, 30, 2, 0]  # Spark ends with a micro-batch without data
    assert metrics.state_rows == 0, "the events of keys that went silent are dropped, too"
    assert all(trigger.latency_ms > 0 for trigger in metrics.triggers)
    assert "latency ms" in str(metrics)


def test_two_runs_of_a_directory_into_files(directory: Directory, tmp_path: Path) -> None:
    """Aggregate over all keys, with numeric times and lateness, and restart from the checkpoint."""
    rows = events(80, seed=5)
    chance = random.Random(1)
    disordered = sorted(rows, key=lambda row: row["t"] + chance.randrange(10))
    query = ss.query("PATTERN SEQ(A a, B b) WHERE [id] AGG COUNT, SUM(b.x) WITHIN 20 UPDATE 7")

    def run(text: ss.Query) -> None:
        found = text.run(directory.stream(), lateness=10, **BINDING)
        run_once(found.writeStream.format("json").option("path", str(tmp_path / "out")), tmp_path / "checkpoint")

    directory.cut(disordered[:40], 20)
    run(query)
    directory.cut(disordered[40:], 20)
    directory.drop([heartbeat()])
    # Renaming a variable does not change the query.
    run(ss.query("PATTERN SEQ(A first, B second) WHERE [id] AGG COUNT, SUM(second.x) AS sum_b_x WITHIN 20 UPDATE 7"))
    expected = query.run(directory.batch(), **BINDING)
    written = directory.spark.read.schema(expected.schema).json(str(tmp_path / "out"))
    assert as_sorted(written) == as_sorted(expected)
    directory.drop([heartbeat(200_000)])
    with pytest.raises(StreamingQueryException, match="WITHIN: 20 time in the checkpoint, 30 time in this query"):
        run(ss.query("PATTERN SEQ(A a, B b) WHERE [id] AGG COUNT, SUM(b.x) WITHIN 30 UPDATE 7"))


def test_several_queries_in_one_pass(directory: Directory, tmp_path: Path) -> None:
    directory.cut(events(60, seed=9), 20)
    directory.drop([heartbeat()])
    queries = {
        "pairs": "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 9",
        "best": "PATTERN SEQ(A a, B b) WHERE [id] PREF MAX[a.x + b.x] WITHIN 30 UPDATE 20 RETURN 3",
        "groups": "PATTERN SEQ(A a, C c) WHERE [id] GROUP BY id AGG COUNT WITHIN 15",
    }
    shared = ss.run_many(queries, directory.stream(), **BINDING)
    found: dict[str, list[str]] = {name: [] for name in queries}

    def write(results: dict[str, DataFrame], _: int) -> None:
        for name, rows in results.items():
            found[name] += as_sorted(rows)

    stream = shared.together.writeStream.foreachBatch(shared.each(write))
    run_once(stream, tmp_path / "checkpoint")
    for name, text in queries.items():
        assert sorted(found[name]) == as_sorted(ss.query(text).run(directory.batch(), **BINDING)), name


def test_rows_without_a_time(directory: Directory, tmp_path: Path) -> None:
    directory.drop([*events(10), {**heartbeat(), "t": None}, heartbeat()])
    query = ss.query("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 20")
    stream = to_memory(query.run(directory.stream(), bad_rows="drop", **BINDING), "bad", tmp_path / "drop")
    assert ss.metrics(stream).bad_rows == 1
    with pytest.raises(StreamingQueryException, match="1 row has no usable time or order"):
        to_memory(query.run(directory.stream(), **BINDING), "failing", tmp_path / "fail")


# --- before any data is read ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("PATTERN SEQ(A a, B b)", {}, "detection on a stream requires WITHIN"),
        ("PATTERN SEQ(A a, B b) PREF MAX[a.x] WITHIN 5 RETURN 3", {}, "ranking on a stream requires UPDATE"),
        ("PATTERN SEQ(A a, B b) WITHIN 5", {"lateness": "5 s"}, "`t` is an integer"),
        ("PATTERN SEQ(A a, B b) WITHIN 5", {"lateness": "soon"}, "soon"),
        ("PATTERN SEQ(A a, B b) WITHIN 5", {"lateness": True}, "a duration"),
        ("PATTERN SEQ(A a, B b) WITHIN 5", {"buckets": 0}, "invalid value for buckets: 0"),
        ("PATTERN SEQ(A a, B b) WITHIN 5", {"buckets": True}, "invalid value for buckets: True"),
    ],
)
def test_refusals(directory: Directory, text: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ss.QueryError, match=message):
        ss.query(text).run(directory.stream(), **BINDING, **options)


def test_a_watermark_that_is_not_on_the_time(directory: Directory) -> None:
    marked = directory.stream().withWatermark("ts", "5 seconds")
    with pytest.raises(ss.QueryError, match="the watermark is on `ts`, but the time column is `t`"):
        ss.query("PATTERN SEQ(A a, B b) WITHIN 5").run(marked, **BINDING)
    with pytest.raises(ss.QueryError, match="cannot be combined with withWatermark"):
        ss.query("PATTERN SEQ(A a, B b) WITHIN 5 s").run(marked, time="ts", type="kind", lateness="1 s")


def test_explain(directory: Directory) -> None:
    keyed = ss.query("PATTERN SEQ(A a, B b, !C c) WHERE [id] WITHIN 5").explain(directory.stream(), **BINDING)
    assert f"Spark: stateful stream in {buckets_of(directory.stream())} hash buckets by id" in keyed
    assert "emit:   when all events of the match have arrived and the watermark has passed the end of the" in keyed
    assert "watermark: maximum `t` of earlier micro-batches minus `lateness`" in keyed
    total = ss.query("PATTERN SEQ(A a, B b) WHERE [id] AGG COUNT WITHIN 5").explain(directory.stream(), **BINDING)
    assert "in one bucket: without UPDATE, a match of any id can make a row of the totals over all of them" in total
    assert "cost: one task processes every event" in total
    both = ss.explain_many({"keyed": PAIRS, "any": "PATTERN SEQ(A a, B b) WITHIN 5"}, directory.stream(), **BINDING)
    assert f"{buckets_of(directory.stream())} hash buckets by id: keyed\none bucket: any\n" in both
    assert "any: no column is shared by all variables" in both
    assert "copies: up to 2 per event" in both
    best = ss.query("PATTERN SEQ(A a, B b) WHERE [id] PREF MAX[a.x] WITHIN 5 UPDATE 5 RETURN 3")
    ranked = best.explain(directory.stream(), **BINDING)
    assert "hash buckets by id" in ranked
    assert "merge: each bucket ranks its own matches; in the same micro-batch, one task merges the top k" in ranked
    ticks = ss.query("PATTERN SEQ(A a, B b) WHERE [id] AGG COUNT WITHIN 5 UPDATE 5")
    added = ticks.explain(directory.stream(), **BINDING)
    assert "merge: each bucket computes the totals of its own keys; in the same micro-batch, one task adds" in added
