"""Compare trigger times of streams on Spark with a processor that only counts rows, and between window sizes.

python -m benchmarks.stream.streaming [rows-per-trigger] [windows]

Every trigger except the first ones is a sample; its wall time is the one that Spark reports. A larger scale gives
triggers more rows, and adds triggers to the comparison of windows.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import streamsift as ss
from benchmarks.data.uniform import REAL, uniform_events
from benchmarks.harness.experiment import DEFAULTS, Settings
from benchmarks.harness.turns import Samples, medians
from benchmarks.report.measurement import Measurement
from streamsift.spark.stream.run import use_rocksdb

KEYS, ROWS, TRIGGERS, SKIPPED = 1_000, 200_000, 10, 3  # the first triggers start workers and load kernels
PARTITIONS = 4
SMALL, LARGE, STEP, STEPS = 20_000, 2_000_000, 10_000, 100
TARGET, WINDOW_TARGET = 1.6, 2.0
BINDING = {"time": "t", "type": "kind"}
DETECTION = "PATTERN SEQ(A a, B b, C c) WHERE [id] AND a.x < b.x AND b.x < c.x WITHIN 3000"
AGGREGATION = "PATTERN SEQ(A a, B b, C c) WHERE [id] GROUP BY id AGG COUNT, SUM(c.x) WITHIN 20000 UPDATE 20000"
WINDOWED = "PATTERN SEQ(A a, B b) WHERE [id] AND a.code = b.code WITHIN {window}"


def make_events(start: int, count: int, settings: Settings) -> pa.Table:
    return uniform_events(count, 6, start=start, seed=settings.seeded(start), id=KEYS, x=REAL, code=1_000)


class Source:
    """A directory of generated files, one per trigger."""

    def __init__(self, spark: SparkSession, sizes: list[int], settings: Settings) -> None:
        self.spark, self.path = spark, Path(tempfile.mkdtemp(prefix="streamsift-bench-"))
        self.sizes = sizes
        (self.path / "in").mkdir()
        start = 0
        for number, size in enumerate(sizes):
            file = self.path / "in" / f"{number:05}.parquet"
            pa.parquet.write_table(make_events(start, size, settings), file, row_group_size=max(1, size // 4))
            os.utime(file, (number + 10**9, number + 10**9))  # Spark takes the oldest file first
            start += size

    def stream(self) -> DataFrame:
        batch = self.batch()
        return self.spark.readStream.schema(batch.schema).option("maxFilesPerTrigger", 1).parquet(str(self.path / "in"))

    def batch(self) -> DataFrame:
        return self.spark.read.parquet(str(self.path / "in"))

    def run(self, result: DataFrame, name: str) -> tuple[Samples, int]:
        """Return the trigger times of micro-batches with data, and the number of emitted rows."""
        out, checkpoint = str(self.path / name), str(self.path / f"{name}.checkpoint")
        writer = result.writeStream.format("parquet").option("path", out).option("checkpointLocation", checkpoint)
        stream = writer.trigger(availableNow=True).start()
        stream.awaitTermination()
        progress = [each for each in stream.recentProgress if each["numInputRows"]]
        times = tuple(each["durationMs"]["triggerExecution"] / 1000 for each in progress)
        return times, self.spark.read.schema(result.schema).parquet(out).count()

    def remove(self) -> None:
        shutil.rmtree(self.path)


class CountRows(StatefulProcessor):
    """Count rows and store the count: the minimum cost of a processor. DataFrames are cheaper than Rows."""

    def init(self, handle: Any) -> None:
        self._count = handle.getValueState("count", "count bigint")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        import pandas as pd

        known = self._count.get()
        count = (known[0] if known else 0) + sum(len(frame) for frame in rows)
        self._count.update((count,))
        yield pd.DataFrame({"bucket": [key[0]], "rows": [count]})

    def close(self) -> None:
        pass


class CountRowObjects(CountRows):
    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
        known = self._count.get()
        count = (known[0] if known else 0) + sum(1 for _ in rows)
        self._count.update((count,))
        yield Row(bucket=key[0], rows=count)


def counted(events: DataFrame, *, frames: bool, buckets: int = PARTITIONS) -> DataFrame:
    hashed = F.pmod(F.xxhash64("id"), F.lit(buckets)).cast("int")
    groups = events.withColumn("bucket", hashed).groupBy("bucket")
    if frames:
        return groups.transformWithStateInPandas(CountRows(), "bucket int, rows bigint", "append", "None")
    return groups.transformWithState(CountRowObjects(), "bucket int, rows bigint", "append", "None")


def session() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": str(PARTITIONS),
        "spark.log.level": "ERROR",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.streaming.numRecentProgressUpdates": "100000",
    }
    builder = SparkSession.builder.master("local[2]").appName("streamsift benchmark")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    use_rocksdb(spark)
    return spark


def throughput(spark: SparkSession, settings: Settings) -> list[Measurement]:
    """Compare detection and aggregation with counting rows."""
    rows, triggers = settings.scaled(ROWS), max(TRIGGERS, SKIPPED + settings.repetitions)
    source = Source(spark, [rows] * triggers, settings)
    counting: dict[str, Samples] = {}
    for name in ("frames", "rows"):
        times, _ = source.run(counted(source.stream(), frames=name == "frames"), name)
        counting[name] = times[SKIPPED:]
        print(f"  counting {rows:,} rows as {name}: {statistics.median(times[SKIPPED:]):.3f} s a trigger", flush=True)
    floor = min(counting.values(), key=statistics.median)
    found = []
    for name, text in (("detection", DETECTION), ("aggregation", AGGREGATION)):
        query = ss.query(text)
        times, appended = source.run(query.run(source.stream(), buckets=PARTITIONS, **BINDING), name)
        last = int(make_events(rows * (triggers - 1), rows, settings)["t"].to_numpy().max())
        check_rows(source, query, name, appended, last)
        samples = {"streamsift": times[SKIPPED:], "counting rows": floor}
        ours, counted_s = medians(samples).values()
        ratio = f"{ours / counted_s:.2f} × the trigger time of counting rows (≤ {TARGET})"
        print(f"  {name}: {ours:.3f} s a trigger, {ratio}; {appended:,} rows", flush=True)
        found.append(Measurement(name, rows, samples, headline=ratio))
    source.remove()
    return found


def check_rows(source: Source, query: ss.Query, name: str, appended: int, last: int) -> None:
    """Check that the emitted rows are the batch rows that the watermark, the last time, has passed."""
    expected = query.run(source.batch(), **BINDING)
    end = "match_end" if "match_end" in expected.columns else "time"
    decided = expected.where(F.col(end) < last).count()
    assert appended == decided, f"{name}: {appended} rows on the stream, {decided} in the batch"


def windows(spark: SparkSession, settings: Settings) -> list[Measurement]:
    """Run the same micro-batches with a window 100 times as long."""
    samples: dict[str, Samples] = {}
    steps = max(2 * (SKIPPED + settings.repetitions), settings.scaled(STEPS))
    for window in (SMALL, LARGE):
        filling = [200_000] * (window // 200_000) or [window]
        source = Source(spark, [*filling, *[STEP] * steps], settings)
        times, appended = source.run(
            ss.query(WINDOWED.format(window=window)).run(source.stream(), buckets=PARTITIONS, **BINDING), "out"
        )
        times = times[len(filling) :]
        first, second = statistics.median(times[SKIPPED : steps // 2]), statistics.median(times[steps // 2 :])
        samples[f"{window:,} events"] = times[SKIPPED:]
        print(
            f"  window of {window:,} events: {statistics.median(times[SKIPPED:]):.3f} s a trigger of {STEP:,} rows; "
            f"second half {second / first:.2f} × the first; {appended:,} rows",
            flush=True,
        )
        source.remove()
    small, large = medians(samples).values()
    ratio = f"{large / small:.2f} × the trigger time of the small window (≤ {WINDOW_TARGET})"
    print(f"  {ratio}", flush=True)
    return [Measurement("windows", STEP, samples, headline=ratio)]


def main(settings: Settings = DEFAULTS, parts: str = "throughput windows") -> list[Measurement]:
    spark = session()
    try:
        found = throughput(spark, settings) if "throughput" in parts else []
        return [*found, *(windows(spark, settings) if "windows" in parts else [])]
    finally:
        spark.stop()


if __name__ == "__main__":
    rows_given = [int(word) for word in sys.argv[1:] if word.isdigit()]
    chosen = replace(DEFAULTS, scale=rows_given[0] / ROWS) if rows_given else DEFAULTS
    main(chosen, "windows" if "windows" in sys.argv else "throughput" if rows_given else "throughput windows")
