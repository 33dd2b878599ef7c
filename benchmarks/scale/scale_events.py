"""Write generated events to a Parquet file, start a Spark session, and compute digests of results."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

ROWS_AT_A_TIME = 1 << 20
EVENTS_PER_SECOND = 100_000


def write_events(path: Path, events: int, keys: int, zipf: float = 0.0, seed: int = 5) -> Path:
    """Write events in time order, of classes A to D, with equal or Zipf-distributed key frequencies, in pieces."""
    random = np.random.default_rng(seed)
    classes = pa.array(["A", "B", "C", "D"])
    weights = np.arange(1, keys + 1, dtype=np.float64) ** -zipf
    ends = np.cumsum(weights / weights.sum())
    writer = None
    for start in range(0, events, ROWS_AT_A_TIME):
        count = min(ROWS_AT_A_TIME, events - start)
        times = (np.arange(start, start + count) * (1_000_000 / EVENTS_PER_SECOND)).astype(np.int64)
        drawn = np.searchsorted(ends, random.random(count)) if zipf else random.integers(0, keys, count)
        table = pa.table(
            {
                "ts": pa.array(times, pa.timestamp("us", "UTC")),
                "kind": classes.take(pa.array(random.integers(0, 4, count))),
                "key": np.minimum(drawn, keys - 1).astype(np.int64),
                "price": random.random(count) * 100,
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=ROWS_AT_A_TIME // 4)
    if writer is not None:
        writer.close()
    return path


def digest(frame: DataFrame) -> tuple[int, int]:
    """Return the number of rows and the sum of their hashes, which do not depend on the order of the rows.

    Sums of doubles may be added in another order, so only nine digits of them are hashed.
    """
    real = {name for name, kind in frame.dtypes if kind == "double"}
    shown = [F.format_string("%.8e", F.col(name)) if name in real else F.col(name) for name in frame.columns]
    hashed = F.xxhash64(*shown).cast("decimal(38,0)")
    rows, total = frame.agg(F.count(F.lit(1)), F.coalesce(F.sum(hashed), F.lit(0))).toArrow().to_pylist()[0].values()
    return rows, int(total)


def session(cores: int = 2, **more: str) -> SparkSession:
    """Start a new local session, after stopping a running one."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    running = SparkSession.getActiveSession()
    if running is not None:
        running.stop()
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "4g",
        "spark.sql.shuffle.partitions": "8",  # four for each of two cores
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.log.level": "ERROR",
        **{name.replace("__", "."): value for name, value in more.items()},
    }
    builder = SparkSession.builder.master(f"local[{cores}]").appName("benchmarks")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
