"""Compare Streamsift on Spark with Spark SQL on the same Parquet file, after checking that results are equal.

Both read the file, run on local[2] and write the same columns to Spark's noop sink. SQL that takes too long is stopped.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession

import streamsift as ss
from benchmarks.harness.experiment import Settings
from benchmarks.harness.turns import medians, sampled, spark_cpu_s
from benchmarks.negation.nested_sql import Bucket, bucketed, plain, sequence_of
from benchmarks.report.measurement import Measurement

SETTINGS = {
    "spark.driver.memory": "6g",  # enough memory for the self-joins
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "8",  # four per core: much faster for small joins than the default of 200
    "spark.log.level": "OFF",  # a stopped job is not an error
}
LIMIT_S = 120.0
PLAIN_LIMIT_S = 60.0


def compare(trades: pa.Table, queries: list[tuple[str, int, str]], settings: Settings) -> Iterator[Measurement]:
    """Measure each (name, window, query text); the queries return the numbers of their trades."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("benchmarks")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trades.parquet"
        pyarrow.parquet.write_table(trades, path)
        spark = builder.getOrCreate()
        try:
            events = spark.read.parquet(str(path))
            events.createOrReplaceTempView("trades")
            for number, (name, window_ms, text) in enumerate(queries):
                yield _compare(events, name, window_ms, text, settings, with_plain=number == 0)
        finally:
            spark.stop()


def _compare(
    events: DataFrame, name: str, window_ms: int, text: str, settings: Settings, with_plain: bool
) -> Measurement:
    spark = events.sparkSession
    ours = ss.query(text).run(events, time="ts", type="symbol")
    sequence = sequence_of(text)
    formulations = {"Spark SQL, time buckets": (spark.sql(bucketed(sequence, window_ms, Bucket.SPARK)), LIMIT_S)}
    if with_plain:
        formulations["Spark SQL, plain"] = (spark.sql(plain(sequence, window_ms)), PLAIN_LIMIT_S)
    expected = _sorted(ours)
    runs, stopped = {"streamsift": partial(_write, ours)}, {}
    for formulation, (result, limit_s) in formulations.items():
        if not _ends_within(result, limit_s):
            stopped[formulation] = limit_s
            continue
        assert _sorted(result).equals(expected), f"{formulation} returns different matches for {name}"
        runs[formulation] = partial(_write, result)
    samples = sampled(runs, settings, warm=True, cpu=spark_cpu_s)
    measurement = Measurement(f"{name} on Spark, window {window_ms} ms", expected.num_rows, samples, stopped=stopped)
    print(f"  {measurement.workload} ({expected.num_rows:,} matches, equal results): {measurement.summary}")
    taken = medians(samples)
    for engine, seconds in taken.items():
        print(f"    {seconds * 1000:8.0f} ms  {seconds / taken['streamsift']:5.1f}x  {engine}")
    for engine, limit_s in stopped.items():
        print(f"    stopped after {limit_s:.0f} s: more than {limit_s / taken['streamsift']:.1f}x  {engine}")
    return measurement


def _sorted(result: DataFrame) -> pa.Table:
    return result.toArrow().sort_by([(name, "ascending") for name in result.columns])


def _write(result: DataFrame) -> None:
    result.write.format("noop").mode("overwrite").save()


def _ends_within(result: DataFrame, limit_s: float) -> bool:
    """Run once, and stop at the limit."""
    stopped = threading.Event()

    def stop() -> None:
        stopped.set()
        result.sparkSession.sparkContext.cancelAllJobs()

    timer = threading.Timer(limit_s, stop)
    timer.start()
    try:
        _write(result)
    except Exception:
        if not stopped.is_set():
            raise
        return False
    finally:
        timer.cancel()
    return True
