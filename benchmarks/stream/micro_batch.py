"""Compare the fixed cost of a micro-batch on Spark with that of processors that only count.

python -m benchmarks.stream.micro_batch [rows-per-trigger]

All have the same source, sink and number of state partitions, and few rows, so that most of a trigger is overhead. They
take turns, each round with new checkpoints. The rows of each are checked before its times are used. A first round is
not measured: it starts workers, loads kernels and lets the JVM compile.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

import streamsift as ss
from benchmarks.harness.experiment import DEFAULTS, Settings
from benchmarks.harness.turns import Samples, medians
from benchmarks.report.measurement import Measurement
from benchmarks.stream.streaming import BINDING, DETECTION, SKIPPED, Source, check_rows, counted, make_events, session
from streamsift.spark.stream.buckets import SHUFFLE_PARTITIONS

ROWS, TRIGGERS, BUCKETS = 1_000, 15, 2
COUNTING, GROUPING, OURS = "counting rows", "Spark's groupBy().count()", "streamsift"
TARGETS = {COUNTING: 1.1, GROUPING: 1.3}


def grouped(events: DataFrame) -> DataFrame:
    """Count the rows of each key and second with Spark's own operator; a time unit is a millisecond."""
    timed = events.withColumn("at", F.timestamp_millis("t")).withWatermark("at", "0 seconds")
    return timed.groupBy(F.window("at", "1 second"), "id").count().select("window.end", "id", "count")


def check_counted(source: Source, name: str) -> None:
    total = source.spark.read.parquet(str(source.path / name)).groupBy("bucket").agg(F.max("rows").alias("rows"))
    assert total.agg(F.sum("rows")).first()[0] == source.batch().count(), name  # type: ignore[index]


def check_grouped(source: Source, name: str) -> None:
    """Check the counts of all windows that the watermark, the last time, has passed."""
    last = source.batch().agg(F.timestamp_millis(F.max("t"))).first()[0]  # type: ignore[index]
    expected = grouped(source.batch()).where(F.col("end") <= F.lit(last))
    found = source.spark.read.schema(expected.schema).parquet(str(source.path / name))
    assert found.exceptAll(expected).isEmpty(), name
    assert expected.exceptAll(found).isEmpty(), name


def run_round(source: Source, number: int, settings: Settings) -> Mapping[str, Samples]:
    """Run every contender once, another one first in each round, and return their trigger times."""
    query = ss.query(DETECTION)
    frames: dict[str, Callable[[], DataFrame]] = {
        COUNTING: lambda: counted(source.stream(), frames=False, buckets=BUCKETS),
        GROUPING: lambda: grouped(source.stream()),
        OURS: lambda: query.run(source.stream(), buckets=BUCKETS, **BINDING),
    }
    start = number % len(frames)
    times: dict[str, Samples] = {}
    for name in [*frames][start:] + [*frames][:start]:
        folder = f"{number}-{name.split()[0].strip()}"
        samples, appended = source.run(frames[name](), folder)
        times[name] = samples[SKIPPED:]
        if name == OURS:
            rows = source.sizes[-1]
            last = int(make_events(rows * (len(source.sizes) - 1), rows, settings)["t"].to_numpy().max())
            check_rows(source, query, name, appended, last)
        elif name == COUNTING:
            check_counted(source, folder)
        else:
            check_grouped(source, folder)
        print(f"  round {number}: {name}: {statistics.median(times[name]):.3f} s a trigger", flush=True)
    return times


def main(settings: Settings = DEFAULTS) -> list[Measurement]:
    spark: SparkSession = session()
    spark.conf.set(SHUFFLE_PARTITIONS, str(BUCKETS))
    rows = settings.scaled(ROWS)
    source = Source(spark, [rows] * TRIGGERS, settings)
    try:
        run_round(source, 0, settings)
        rounds = [run_round(source, number, settings) for number in range(1, 1 + max(2, settings.repetitions))]
    finally:
        source.remove()
        spark.stop()
    samples = {name: tuple(time for times in rounds for time in times[name]) for name in (OURS, *TARGETS)}
    middle = medians(samples)
    ratios = [f"{middle[OURS] / middle[name]:.2f} × {name} (≤ {target})" for name, target in TARGETS.items()]
    headline = f"a trigger takes {', '.join(ratios)}"
    print(f"  {headline}", flush=True)
    return [Measurement("fixed cost of a micro-batch", rows, samples, headline=headline)]


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:] if word.isdigit()]
    main(replace(DEFAULTS, scale=given[0] / ROWS) if given else DEFAULTS)
