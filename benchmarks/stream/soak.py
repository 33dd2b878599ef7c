"""Run a stream at a constant rate: state, memory of driver and workers, and trigger time must not grow.

python -m benchmarks.stream.soak [minutes]
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

import streamsift as ss
from benchmarks.stream.streaming import KEYS, session

MINUTES, ROWS_PER_SECOND, SECONDS_PER_LOOK = 30, 5_000, 5
QUERY = "PATTERN SEQ(A a, B b, !C c) WHERE [id] AND a.x < b.x WITHIN 20 s"
ALLOWED_GROWTH = 1.25  # last quarter relative to the second; the first one warms up


@dataclass(frozen=True, slots=True)
class Look:
    trigger_ms: float
    state_rows: float
    state_bytes: float
    driver_mib: float
    workers_mib: float


def events(spark: SparkSession) -> DataFrame:
    """Return Spark's rate source with classes, keys and values from a hash of its numbers."""
    rows = spark.readStream.format("rate").option("rowsPerSecond", ROWS_PER_SECOND).load()
    number = F.col("value")
    return rows.select(
        F.col("timestamp").alias("ts"),
        F.element_at(F.array(*map(F.lit, "ABCDEF")), F.pmod(F.hash(number), F.lit(6)) + 1).alias("kind"),
        F.pmod(F.xxhash64(number), F.lit(KEYS)).cast("int").alias("id"),
        (F.pmod(F.hash(number, F.lit(1)), F.lit(1000)) / 1000).alias("x"),
    )


def memory_mib() -> tuple[float, float]:
    """Return the resident memory of this process with its JVM, and of its Python workers."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid,rss,args"], capture_output=True, text=True, check=True).stdout
    lines = [line.split(None, 3) for line in listed.splitlines()[1:]]
    below, driver, workers = {os.getpid()}, 0, 0
    for pid, parent, resident, arguments in sorted(lines, key=lambda line: int(line[0])):
        if int(pid) != os.getpid() and int(parent) not in below:
            continue
        below.add(int(pid))
        if "pyspark.daemon" in arguments:
            workers += int(resident)
        else:
            driver += int(resident)
    return driver / 1024, workers / 1024


def main(minutes: float = MINUTES) -> None:
    spark = session()
    directory = tempfile.mkdtemp(prefix="streamsift-soak-")
    found = ss.query(QUERY).run(events(spark), time="ts", type="kind", lateness="1 s")
    writer = found.writeStream.format("noop").option("checkpointLocation", f"{directory}/checkpoint")
    stream = writer.trigger(processingTime="2 seconds").start()
    looks: list[Look] = []
    matches = 0
    last = -1
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end and not stream.awaitTermination(SECONDS_PER_LOOK):
        triggers = [t for t in ss.metrics(stream).triggers if t.batch > last and t.rows]
        if not triggers or triggers[-1].state_rows is None or triggers[-1].state_bytes is None:
            continue
        last = triggers[-1].batch
        matches += sum(t.matches for t in triggers)
        latency = statistics.mean(t.latency_ms for t in triggers)
        looks.append(Look(latency, triggers[-1].state_rows, triggers[-1].state_bytes, *memory_mib()))
    late = ss.metrics(stream).late
    stream.stop()
    spark.stop()
    shutil.rmtree(directory, ignore_errors=True)
    print(f"{minutes:g} minutes at {ROWS_PER_SECOND:,} rows/s: {last + 1:,} micro-batches, {matches:,} matches")
    print(f"  {late:,} late events in the last of them")
    report(looks)


def report(looks: list[Look]) -> None:
    quarter = len(looks) // 4
    assert quarter, "too short to compare its quarters"
    grown = []
    for name in Look.__slots__:
        second, final = (
            statistics.median(getattr(look, name) for look in looks[i * quarter : (i + 1) * quarter]) for i in (1, 3)
        )
        ratio = final / second if second else 1.0
        print(f"  {name:12} {second:14,.1f} in the second quarter, {final:14,.1f} in the last: {ratio:.2f} ×")
        grown += [name] if ratio > ALLOWED_GROWTH else []
    if grown:
        sys.exit(f"  grown by more than {ALLOWED_GROWTH} ×: {', '.join(grown)}")
    print(f"  nothing has grown by more than {ALLOWED_GROWTH} ×")


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
