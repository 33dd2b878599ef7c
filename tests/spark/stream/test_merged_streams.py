"""Compare totals and rankings that are merged from buckets, and queries with different keys, with a batch."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import streamsift as ss
from streamed import counted
from streamsift.spark.stream.packing import table_of

SCHEMA = pa.schema(
    {"t": pa.int64(), "kind": pa.string(), "id": pa.int64(), "g": pa.int64(), "x": pa.float64(), "seq": pa.int64()}
)
QUERIES = {
    "total": "PATTERN SEQ(A a, B b) WHERE [id] AGG COUNT, SUM(b.x), AVG(b.x), MAX(a.x) WITHIN 6 UPDATE 4",
    "best": "PATTERN SEQ(A a, B b) WHERE [id] PREF MAX[a.x + b.x] WITHIN 6 UPDATE 4 RETURN 3",
    "another key": "PATTERN SEQ(A a, C c) WHERE [g] WITHIN 4",
    "no key": "PATTERN SEQ(A a, B b) AGG COUNT WITHIN 2",
}
BINDING = {"time": "t", "type": "kind", "order": "seq"}
END = 10**6
LATE = 7


def write_files(folder: Path, rows: list[dict[str, Any]]) -> None:
    """Write three files, the second with late rows, and one that lets time pass."""
    folder.mkdir()
    last = dict.fromkeys(SCHEMA.names) | {"t": END, "seq": END}
    for number, part in enumerate([rows[:40], rows[40:80] + rows[:LATE], rows[80:], [last]]):
        path = folder / f"{number}.parquet"
        pa.parquet.write_table(pa.Table.from_pylist(part, SCHEMA), path)
        os.utime(path, (number + 10**9, number + 10**9))  # Spark reads the oldest file first


def test_queries_with_different_keys(spark: SparkSession, tmp_path: Path) -> None:
    """The stream fails once and starts again from its checkpoint. Late events are counted once, not per copy."""
    chance, found, fails_at = random.Random(1), dict[int, list[Any]](), {2}
    rows = [
        {"t": n // 3, "kind": chance.choice("ABC"), "id": n % 5, "g": n % 3, "x": chance.randrange(8) / 4, "seq": n}
        for n in range(120)
    ]
    write_files(tmp_path / "in", rows)
    columns = "t bigint, kind string, id bigint, g bigint, x double, seq bigint"
    events = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    shared = ss.run_many(QUERIES, events, buckets=3, **BINDING)

    def write(df: DataFrame, number: int) -> None:
        found[number] = df.toArrow().to_pylist()
        if number in fails_at:
            fails_at.clear()
            raise InterruptedError

    writer = shared.together.writeStream.foreachBatch(write).trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    failing = writer.start()
    with pytest.raises(StreamingQueryException):
        failing.awaitTermination()
    stream = writer.start()
    stream.awaitTermination()
    assert ss.metrics(failing).late + ss.metrics(stream).late == LATE
    results: dict[str, list[Any]] = {name: [] for name in QUERIES}
    for row in (row for batch in found.values() for row in batch if row["message"] is not None):
        results[row["query"]] += table_of(row["message"]).to_pylist()
    for name, text in QUERIES.items():
        expected = ss.query(text).run_local(pa.Table.from_pylist(rows, SCHEMA), **BINDING)
        assert counted(results[name]) == counted(expected.to_pylist())
