"""Measure counting on Spark end to end, and the same read, shuffle, sort and Arrow transfer without counting."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession

import streamsift as ss
from benchmarks.harness.experiment import DEFAULTS, Settings
from benchmarks.harness.turns import medians, sampled, spark_cpu_s
from benchmarks.report.measurement import Measurement

EVENTS = 10_000_000
KEYS = 10_000
QUERY = "PATTERN SEQ(A, B, C) GROUP BY key AGG COUNT WITHIN 1 s"
SEED = 5


def write_events(path: Path, events: int, seed: int) -> None:
    """Write events in time order, 100,000 per second, with random classes and keys."""
    random = np.random.default_rng(seed)
    classes = pa.array(["A", "B", "C"])
    table = pa.table(
        {
            "ts": pa.array(np.sort(random.integers(0, events * 10, events)), pa.timestamp("us", "UTC")),
            "kind": classes.take(pa.array(random.integers(0, 3, events))),
            "key": random.integers(0, KEYS, events),
        }
    )
    pa.parquet.write_table(table, path, row_group_size=max(1, events // 16))


def count_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"rows": [sum(batch.num_rows for batch in batches)]})


def transport(df: DataFrame) -> DataFrame:
    return df.repartition("key").sortWithinPartitions("key", "ts").mapInArrow(count_rows, "rows long")


def transport_unsorted(df: DataFrame) -> DataFrame:
    """Transfer the events as counting does, which sorts them in Python by time only."""
    return df.repartition("key").mapInArrow(count_rows, "rows long")


def write(df: DataFrame) -> None:
    df.write.format("noop").mode("overwrite").save()


def main(settings: Settings = DEFAULTS) -> list[Measurement]:
    events = settings.scaled(EVENTS)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    with TemporaryDirectory() as folder:
        path = Path(folder) / "events.parquet"
        write_events(path, events, settings.seeded(SEED))
        df = spark.read.parquet(str(path))
        counted = ss.query(QUERY).run(df, time="ts", type="kind")
        total = transport(df).toArrow()["rows"].to_numpy().sum()
        assert total == events, "rows were lost"
        frames = {"count": counted, "transport": transport(df), "transport, unsorted": transport_unsorted(df)}
        samples = sampled({name: partial(write, each) for name, each in frames.items()}, settings, cpu=spark_cpu_s)
    spark.stop()
    taken = medians(samples)
    print(f"  {events:,} events, {KEYS:,} keys: {taken['count']:.1f} s")
    for name in ("transport", "transport, unsorted"):
        print(f"    {name} {taken[name]:.1f} s: {taken['count'] / taken[name]:.2f}x")
    return [Measurement("Spark end to end", events, samples)]


if __name__ == "__main__":
    main(replace(DEFAULTS, scale=int(sys.argv[1]) / EVENTS) if len(sys.argv) > 1 else DEFAULTS)
