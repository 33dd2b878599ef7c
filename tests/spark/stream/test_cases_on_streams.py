"""Run case files as streams, one file per micro-batch: a few in every run, all of them in the large profile."""

from __future__ import annotations

import os
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

import streamsift as ss
from casefile import Case, assert_rows, load_cases
from streamsift.physical.plan.plan import Plan
from streamsift.physical.stream import stream_plan
from test_generated import LARGE

FILES = 3
# One for each strategy; tests/spark/stream/test_stateful.py runs the others without Spark.
ALWAYS = ("kleene: ", "aggregation: ", "ranking: ")
LATER: dict[str, Any] = {
    "int": 10**7,
    "float": 1e7,
    "string": "2199-01-01T00:00:00Z",
    "decimal": Decimal(9999),
    "timestamp": datetime(2199, 1, 1),
    "timestamp_tz": datetime.fromisoformat("2199-01-01T00:00:00+00:00"),
    "date": date(2199, 1, 1),
}


def plan_of(case: Case) -> Plan | None:
    """Return the plan of a case whose rows all become final on a stream."""
    if case.error is not None or not case.table().num_rows:
        return None
    try:
        plan = ss.query(case.query).plan(case.table().schema, case.time, case.type, case.order)
        stream = stream_plan(plan)
    except (ss.QueryError, ss.UnsupportedQuery):
        return None
    return None if stream.counts_rows and stream.waits else plan


def chosen() -> list[Case]:
    cases = load_cases()
    if LARGE:
        return [case for case in cases if plan_of(case) is not None]
    return [next(case for case in cases if case.id.startswith(start) and plan_of(case)) for start in ALWAYS]


def write_files(case: Case, folder: Path) -> None:
    """Write the events by time into a few files, then a heartbeat that advances the watermark."""
    table = case.table().sort_by(case.time)
    kind = next(column.type for column in case.events if column.name == case.time).partition("(")[0]
    later = LATER[kind]
    if kind == "int":
        later = max(later, 2 * max(table[case.time].to_pylist()))
    row = dict.fromkeys(table.column_names) | {case.time: later}
    if case.order is not None:
        row[case.order] = max(table[case.order].to_pylist())
    size = -(-table.num_rows // FILES)
    parts = [table.slice(start, size) for start in range(0, table.num_rows, size)]
    for number, part in enumerate([*parts, pa.Table.from_pylist([row], table.schema)]):
        path = folder / f"{number}.parquet"
        pa.parquet.write_table(part, path)
        os.utime(path, (number + 10**9, number + 10**9))  # Spark reads the oldest file first


@pytest.mark.parametrize("case", chosen(), ids=lambda case: case.id)
def test_case(spark: SparkSession, case: Case, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write_files(case, tmp_path / "in")
    schema = spark.read.parquet(str(tmp_path / "in")).schema
    events = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    result = ss.query(case.query).run(events, time=case.time, type=case.type, order=case.order)
    name = f"case_{abs(hash(case.id))}"
    writer = result.writeStream.format("memory").queryName(name).trigger(availableNow=True)
    stream = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    stream.awaitTermination()
    assert ss.metrics(stream).late == 0
    assert_rows(case, spark.table(name).toArrow().to_pylist())
    spark.catalog.dropTempView(name)
