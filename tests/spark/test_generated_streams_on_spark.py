"""Generated queries on real streams: files cut at random, rows in disorder inside the lateness, as a batch answers."""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from hypothesis import HealthCheck, Phase, event, given, note, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

import streamsift as ss
from strategies import aggregations, flat_queries, negating_queries, queries, streams
from streamed import counted
from streamsift.language import Script, print_script
from streamsift.language import syntax as s
from streamsift.physical.streaming import check_stream, counts_rows, is_awaited
from streamsift.spark.packing import table_of
from test_generated import EXAMPLES, LARGE, SCHEMA, Rows

BINDING = {"time": "t", "type": "kind", "order": "seq"}  # rows of equal time have no order of their own on Spark
LATENESS, END = 3, 10**6
COLUMNS = "t bigint, kind string, id bigint, x double, n bigint, s string, seq bigint"
SEEDS = st.integers(0, 2**32)
# Not shrunk: each try is a stream. What fails is tried again by tests/test_generated_streams.py, in memory.
SLOW = {"suppress_health_check": list(HealthCheck), "phases": [Phase.generate], "deadline": None}


@st.composite
def ranked(draw: st.DrawFn) -> Script:
    """Without UPDATE a stream cannot be ranked: it is given one."""
    script = draw(queries(max_depth=2, kleene=False, aggregates=False, detection=False))
    window = script.statement.window or s.Window(s.Duration(5, s.Unit.NONE))
    update = script.statement.update or s.Duration(draw(st.integers(1, 4)), window.length.unit)
    return replace(script, statement=replace(script.statement, window=window, update=update))


@st.composite
def keyed(draw: st.DrawFn) -> Script:
    """Queries whose events are spread over buckets by their key."""
    script = draw(st.one_of(flat_queries(), aggregations(max_depth=2, ranking=False, kleene=False), ranked()))
    statement = replace(script.statement, partition_by=script.statement.partition_by or (s.Name(("id",)),))
    return replace(script, statement=statement)


def is_decided(script: Script) -> bool:
    """Whether a stream can have the query, and time alone decides all of it."""
    try:
        plan = ss.query(print_script(script)).plan(SCHEMA, "t", "kind", "seq")
        check_stream(plan)
    except (ss.QueryError, ss.UnsupportedQuery):
        return False
    return not (counts_rows(plan.query) and is_awaited(plan))


def write_files(rows: Rows, folder: Path, chance: random.Random) -> None:
    """A file is a micro-batch: some have no row, and none has rows that are late for those before it."""
    rows = sorted(rows, key=lambda row: row["t"] + chance.randrange(LATENESS))
    cuts = sorted(chance.choices(range(len(rows) + 1), k=2))  # two may be the same
    parts = [rows[low:high] for low, high in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    last = dict.fromkeys(SCHEMA.names) | {"t": END, "seq": END}  # lets time pass, and is never decided itself
    for number, part in enumerate([*parts, [last]]):
        path = folder / f"{number}.parquet"
        pa.parquet.write_table(pa.Table.from_pylist(part, SCHEMA), path)
        os.utime(path, (number + 10**9, number + 10**9))  # Spark takes the oldest file first


def run(spark: SparkSession, rows: Rows, seed: int, texts: list[str]) -> dict[str, list[Any]]:
    """The rows that each query appends: one query has its own stream, several share one."""
    chance = random.Random(seed)
    with TemporaryDirectory(prefix="streamsift-test-") as directory:
        folder = Path(directory) / "in"
        folder.mkdir()
        write_files(rows, folder, chance)
        events = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(folder))
        if len(texts) == 1:
            result = ss.query(texts[0]).run(events, lateness=LATENESS, **BINDING)
            return {texts[0]: _appended(spark, result, directory)}
        shared = ss.run_many({text: ss.query(text) for text in texts}, events, lateness=LATENESS, **BINDING)
        found: dict[str, list[Any]] = {text: [] for text in texts}
        for row in _appended(spark, shared.together, directory):
            if row["message"] is not None:
                found[row["query"]] += table_of(row["message"]).to_pylist()
        return found


def _appended(spark: SparkSession, result: DataFrame, directory: str) -> list[Any]:
    name = f"generated_{random.randrange(10**12)}"
    writer = result.writeStream.format("memory").queryName(name).trigger(availableNow=True)
    stream = writer.option("checkpointLocation", f"{directory}/checkpoint").start()
    stream.awaitTermination()
    assert ss.metrics(stream).late == 0
    rows = spark.table(name).toArrow().to_pylist()
    spark.catalog.dropTempView(name)
    return rows


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


ANY_KIND = st.one_of(
    flat_queries(),
    queries(aggregates=False, ranking=False, max_depth=2),
    negating_queries(),
    aggregations(ranking=False),
    ranked(),
).filter(is_decided)


@settings(max_examples=EXAMPLES or (100 if LARGE else 3), **SLOW)
@given(scripts=st.lists(ANY_KIND, min_size=8, max_size=8), rows=streams(max_size=9), seed=SEEDS)
def test_several_queries_in_one_stream(spark: SparkSession, scripts: list[Script], rows: Rows, seed: int) -> None:
    check(spark, scripts, rows, seed)


@settings(max_examples=EXAMPLES or (100 if LARGE else 3), **SLOW)
@given(script=keyed().filter(is_decided), rows=streams(), seed=SEEDS)
def test_a_query_with_a_key(spark: SparkSession, script: Script, rows: Rows, seed: int) -> None:
    check(spark, [script], rows, seed)
