"""Compare generated queries on streams, with random files and rows out of order within the lateness, with a batch."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from hypothesis import HealthCheck, Phase, event, given, note, settings
from hypothesis import strategies as st
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import streamsift as ss
from kill_rounds import workers_below
from strategies import any_queries, on_a_stream, sparse_streams
from streamed import counted
from streamsift.language import Script, print_script
from streamsift.language import syntax as s
from streamsift.physical.stream import stream_plan
from streamsift.spark.stream.packing import table_of
from test_generated import EXAMPLES, LARGE, SCHEMA, Rows

BINDING = {"time": "t", "type": "kind", "order": "seq"}  # rows of equal time have no order on Spark
LATENESS, END = 3, 10**6
COLUMNS = "t bigint, kind string, id bigint, x double, n bigint, s string, seq bigint"
SEEDS = st.integers(0, 2**32)
# Not shrunk: each attempt is a stream. tests/generated/test_generated_streams.py shrinks failures in memory.
SLOW = {"suppress_health_check": list(HealthCheck), "phases": [Phase.generate], "deadline": None}


@st.composite
def keyed(draw: st.DrawFn) -> Script:
    """Generate queries whose events are distributed over buckets by key."""
    script = draw(any_queries().map(on_a_stream))
    statement = replace(script.statement, partition_by=script.statement.partition_by or (s.Name(("id",)),))
    return replace(script, statement=statement)


def is_decided(script: Script) -> bool:
    """Return True if the query can run on a stream and the watermark makes all of its rows final."""
    try:
        plan = ss.query(print_script(script)).plan(SCHEMA, "t", "kind", "seq")
        stream = stream_plan(plan)
    except (ss.QueryError, ss.UnsupportedQuery):
        return False
    return not (stream.counts_rows and stream.waits)


def write_files(rows: Rows, folder: Path, chance: random.Random) -> int:
    """Write a file for each micro-batch, some of them empty; return how many rows are late, as copies of earlier ones.

    The other rows are in disorder inside the lateness. The last file lets time pass.
    """
    rows = sorted(rows, key=lambda row: row["t"] + chance.randrange(LATENESS))
    cuts = sorted(chance.choices(range(len(rows) + 1), k=3))  # duplicates make empty files
    parts = [rows[low:high] for low, high in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    seen, late = list[dict[str, Any]](), 0
    last = dict.fromkeys(SCHEMA.names) | {"t": END, "seq": END}
    for number, part in enumerate([*parts, [last]]):
        repeated = [row for row in seen if row["t"] < max(row["t"] for row in seen) - LATENESS]
        repeated = repeated[:2] if chance.random() < 0.3 else []
        late += len(repeated)
        path = folder / f"{number}.parquet"
        pa.parquet.write_table(pa.Table.from_pylist([*part, *repeated], SCHEMA), path)
        os.utime(path, (number + 10**9, number + 10**9))  # Spark reads the oldest file first
        seen += part
    return late


def run(spark: SparkSession, rows: Rows, seed: int, texts: list[str]) -> dict[str, list[Any]]:
    """Return the rows that each query appends: one query has its own stream, several share one."""
    chance = random.Random(seed)
    with TemporaryDirectory(prefix="streamsift-test-") as directory:
        folder = Path(directory) / "in"
        folder.mkdir()
        late = write_files(rows, folder, chance)
        events = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(folder))
        if len(texts) == 1:
            result = ss.query(texts[0]).run(events, lateness=LATENESS, **BINDING)
            return {texts[0]: _appended(result, directory, late, chance)}
        shared = ss.run_many({text: ss.query(text) for text in texts}, events, lateness=LATENESS, **BINDING)
        found: dict[str, list[Any]] = {text: [] for text in texts}
        for row in _appended(shared.together, directory, late, chance):
            if row["message"] is not None:
                found[row["query"]] += table_of(row["message"]).to_pylist()
        return found


class Interruption(Exception):
    """A failure caused by a test."""


class Sink:
    """Keep the rows of each micro-batch; a retry overwrites the rows of a failed attempt."""

    def __init__(self, fails_at: int, kills: bool) -> None:
        self.batches: dict[int, list[Any]] = {}
        self.fails_at, self.kills = (
            fails_at,
            kills,
        )  # once: lose the rows of a micro-batch, or kill its worker

    def write(self, df: DataFrame, number: int) -> None:
        fails, self.fails_at = number == self.fails_at, -1 if number == self.fails_at else self.fails_at
        if fails and self.kills:
            kill_workers()
        self.batches[number] = df.toArrow().to_pylist()
        if fails and not self.kills:
            raise Interruption


def kill_workers() -> None:
    """Kill the Python workers, which are children of Spark's daemon. The daemon starts new ones."""
    for pid in workers_below(os.getpid()):
        with suppress(ProcessLookupError):  # it has already ended
            os.kill(pid, signal.SIGKILL)


def _appended(result: DataFrame, directory: str, late: int, chance: random.Random) -> list[Any]:
    """Run the stream to its end, restart it from its checkpoint after a failure, and return the rows of its sink."""
    sink = Sink(chance.choice([-1, 0, 1, 2, 3]), chance.random() < 0.3)
    writer = result.writeStream.foreachBatch(sink.write).trigger(availableNow=True)
    writer = writer.option("checkpointLocation", f"{directory}/checkpoint")
    dropped = 0
    for attempts_left in (1, 0):
        stream = writer.start()
        try:
            stream.awaitTermination()
        except StreamingQueryException:
            if not attempts_left or sink.fails_at != -1:
                raise
        dropped += ss.metrics(stream).late
        if stream.exception() is None:
            break
    event("started again" if not attempts_left else "never failed")
    assert late or not dropped  # rows that no step can bind are filtered out, and not counted
    return [row for rows in sink.batches.values() for row in rows]


def check(spark: SparkSession, scripts: list[Script], rows: Rows, seed: int) -> None:
    for place, row in enumerate(rows):
        row["seq"] = place
    table = pa.Table.from_pylist(rows, SCHEMA)
    texts = list(dict.fromkeys(map(print_script, scripts)))
    expected = {text: ss.query(text).run_local(table, **BINDING).to_pylist() for text in texts}
    note("\n".join(texts))
    event(f"{Counter(bool(answer) for answer in expected.values())[True]} queries have rows")
    found = run(spark, rows, seed, texts)
    assert {text: counted(answer) for text, answer in found.items()} == {t: counted(a) for t, a in expected.items()}


ANY_KIND = any_queries().map(on_a_stream).filter(is_decided)


@settings(max_examples=EXAMPLES or (40 if LARGE else 3), **SLOW)
@given(scripts=st.lists(ANY_KIND, min_size=8, max_size=8), rows=sparse_streams(), seed=SEEDS)
def test_several_queries_in_one_stream(spark: SparkSession, scripts: list[Script], rows: Rows, seed: int) -> None:
    check(spark, scripts, rows, seed)


@settings(max_examples=EXAMPLES or (100 if LARGE else 3), **SLOW)
@given(script=keyed().filter(is_decided), rows=sparse_streams(), seed=SEEDS)
def test_a_query_with_a_key(spark: SparkSession, script: Script, rows: Rows, seed: int) -> None:
    check(spark, [script], rows, seed)
