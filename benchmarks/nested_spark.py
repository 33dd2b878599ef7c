"""Trades and queries in, our time on Spark against Spark SQL on the same Parquet file out, with equal results.

Both read the file, run on local[2] and write the same columns to Spark's noop sink. SQL that takes too long is stopped.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession

import streamsift as ss
from benchmarks.nested_sql import Bucket, bucketed, plain, sequence_of
from benchmarks.report import Measurement

SETTINGS = {
    "spark.driver.memory": "6g",  # the self-joins must not fail for want of memory
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "8",  # four for each core: for small joins far better than the default of 200
    "spark.log.level": "OFF",  # a stopped job is no error here
}
LIMIT_S = 120.0
PLAIN_LIMIT_S = 60.0
ROUNDS = 3
SQL_ROUNDS_S = 20.0  # SQL that takes longer than this is not run again


def compare(trades: pa.Table, queries: list[tuple[str, int, str]]) -> Iterator[Measurement]:
    """For each (name, window, text of a query that returns the numbers of its trades)."""
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
                yield _compare(events, name, window_ms, text, with_plain=number == 0)
        finally:
            spark.stop()


def _compare(events: DataFrame, name: str, window_ms: int, text: str, with_plain: bool) -> Measurement:
    spark = events.sparkSession
    ours = ss.query(text).run(events, time="ts", type="symbol")
    sequence = sequence_of(text)
    rivals = {"Spark SQL, time buckets": (spark.sql(bucketed(sequence, window_ms, Bucket.SPARK)), LIMIT_S)}
    if with_plain:
        rivals["Spark SQL, plain"] = (spark.sql(plain(sequence, window_ms)), PLAIN_LIMIT_S)
    expected = _sorted(ours)
    seconds = {"streamsift": min(_seconds(ours) for _ in range(ROUNDS))}
    stopped = {}
    for rival, (result, limit_s) in rivals.items():
        taken = _limited(result, limit_s)
        if taken is None:
            stopped[rival] = limit_s
            continue
        assert _sorted(result).equals(expected), f"{rival} finds other matches of {name}"
        again = [_seconds(result) for _ in range(ROUNDS - 1)] if taken < SQL_ROUNDS_S else []
        seconds[rival] = min([taken, *again])
    measurement = Measurement(f"{name} on Spark, window {window_ms} ms", expected.num_rows, seconds, stopped=stopped)
    print(f"  {measurement.workload} ({expected.num_rows:,} matches, equal results): {measurement.told}")
    for contender, best in seconds.items():
        print(f"    {best * 1000:8.0f} ms  {best / seconds['streamsift']:5.1f}x  {contender}")
    for contender, limit_s in stopped.items():
        print(f"    stopped after {limit_s:.0f} s: more than {limit_s / seconds['streamsift']:.1f}x  {contender}")
    return measurement


def _sorted(result: DataFrame) -> pa.Table:
    return result.toArrow().sort_by([(name, "ascending") for name in result.columns])


def _seconds(result: DataFrame) -> float:
    start = time.perf_counter()
    result.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start


def _limited(result: DataFrame, limit_s: float) -> float | None:
    """The time of one run; None if it was stopped at the limit."""
    stopped = threading.Event()

    def stop() -> None:
        stopped.set()
        result.sparkSession.sparkContext.cancelAllJobs()

    timer = threading.Timer(limit_s, stop)
    timer.start()
    try:
        return _seconds(result)
    except Exception:
        if not stopped.is_set():
            raise
        return None
    finally:
        timer.cancel()
