"""Measure how detection on Spark scales, compared with transport alone and SQL: keys, skew, growth, wide rows.

`python -m benchmarks.scale.scale [cores|transport|sql|skew|keys|growth|wide] [events]`; without a name, all of them.
Inputs have a size that a small machine processes in minutes. A scale factor makes them smaller, never larger.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import streamsift as ss
from benchmarks.harness.experiment import DEFAULTS, Settings
from benchmarks.harness.measure import pin
from benchmarks.harness.turns import Samples, medians, sampled, spark_cpu_s
from benchmarks.report.measurement import Measurement
from benchmarks.scale.scale_events import digest, session, write_events

EVENTS, KEYS = 10_000_000, 10_000
WIDE_EVENTS = 1_000_000
SQL_EVENTS = 1_000_000  # for the self-joins, which take too long on more
SELECTIVE = "PATTERN SEQ(A a, B b, C c) WHERE [key] AND c.price > 1.1 * a.price WITHIN 1 s RETURN a.ts AS a, c.ts AS c"
PAIRWISE = "PATTERN SEQ(A a, B b, C c) WHERE b.price > 40 * a.price AND c.price < a.price WITHIN 1 ms RETURN a.ts AS a"
# The most frequent key has two fifths of all events: about 40 in such a window, and as many matches as As.
SKEWED = "PATTERN SEQ(A a, B b, C c) WHERE [key] AND c.price > 20 * a.price WITHIN 1 ms RETURN a.ts AS a, c.ts AS c"
SELF_JOINS = """SELECT a.ts AS a, c.ts AS c FROM events a JOIN events b ON a.key = b.key JOIN events c ON a.key = c.key
  WHERE a.kind = 'A' AND b.kind = 'B' AND c.kind = 'C' AND a.ts < b.ts AND b.ts < c.ts
  AND c.ts <= a.ts + INTERVAL 1 SECOND AND c.price > 1.1 * a.price"""


def count_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"rows": [sum(batch.num_rows for batch in batches)]})


def transport(df: DataFrame) -> DataFrame:
    """Read, repartition, sort, convert to Arrow and count: the work of any such job besides finding matches."""
    return df.repartition("key").sortWithinPartitions("key", "ts").mapInArrow(count_rows, "rows long")


def found(query: str, df: DataFrame, **options: str) -> DataFrame:
    return ss.query(query).run(df, time="ts", type="kind", **options)  # type: ignore[arg-type]


def samples(frames: Mapping[str, DataFrame], settings: Settings, *, warm: bool = False) -> dict[str, Samples]:
    runs = {name: partial(_written_nowhere, frame) for name, frame in frames.items()}
    return sampled(runs, settings, warm=warm, cpu=spark_cpu_s)


def _written_nowhere(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def told(workload: str, events: int, taken: Mapping[str, Samples]) -> Measurement:
    ours, *others = medians(taken).items()
    ratios = (f"{ours[1] / value:.2f}x as long as {name} ({value:.1f} s)" for name, value in others)
    print(f"  {workload}, {events:,} events: {ours[0]} {ours[1]:.1f} s, {', '.join(ratios)}", flush=True)
    return Measurement(workload, events, dict(taken))


def checked(query: str, df: DataFrame) -> DataFrame:
    """Return the result, after checking that it equals the result of tasks with whole keys."""
    frame = found(query, df)
    assert digest(frame) == digest(found(query, df, spread="keys")), "the matches differ"
    return frame


def against_transport(folder: Path, events: int, settings: Settings) -> list[Measurement]:
    spark = session()
    df = spark.read.parquet(str(write_events(folder / "uniform", events, KEYS)))
    frames = {"auto": checked(SELECTIVE, df), "keys": found(SELECTIVE, df, spread="keys"), "transport": transport(df)}
    return [told("keyed, selective", events, samples(frames, settings))]


def against_sql(folder: Path, events: int, settings: Settings) -> list[Measurement]:
    spark = session()
    events = min(events, SQL_EVENTS)
    df = spark.read.parquet(str(write_events(folder / "few", events, KEYS // 10)))
    df.createOrReplaceTempView("events")
    frames = {"keys": found(SELECTIVE, df, spread="keys"), "Spark SQL self-joins": spark.sql(SELF_JOINS)}
    assert len({digest(frame) for frame in frames.values()}) == 1, "the matches differ"
    return [told("keyed, selective", events, samples(frames, settings, warm=True))]


def on_cores(folder: Path, events: int, settings: Settings) -> list[Measurement]:
    """Run Spark on one core and on two, each in a process pinned to them, because a JVM uses all cores that it sees."""
    path = write_events(folder / "keyless", events, KEYS)
    taken: dict[str, Samples] = {}
    matches = set()
    for cores in (2, 1):
        command = [
            sys.executable,
            "-m",
            "benchmarks.scale.scale",
            "pinned",
            str(path),
            str(cores),
            str(settings.repetitions),
        ]
        shown = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1]
        rows, total, *took = shown.split()
        taken[f"{cores} cores"] = tuple(map(float, took))
        matches.add((rows, total))
    assert len(matches) == 1, "the matches differ"
    return [told("keyless, pairwise", events, taken)]


def pinned(path: str, cores: int, repetitions: int) -> None:
    """Return the digest of the keyless query's matches, and its seconds."""
    pin(cores)
    frame = found(PAIRWISE, session(cores).read.parquet(path))
    rows = digest(frame)
    print(*rows, *samples({"": frame}, Settings(repetitions=repetitions))[""])


def with_skew(folder: Path, events: int, settings: Settings) -> list[Measurement]:
    spark = session()
    uniform = spark.read.parquet(str(write_events(folder / "even", events, KEYS)))
    skewed = spark.read.parquet(str(write_events(folder / "zipf", events, KEYS, zipf=1.5)))
    frames = {"Zipf(1.5)": checked(SKEWED, skewed), "uniform": checked(SKEWED, uniform)}
    frames["Zipf(1.5), by keys only"] = found(SKEWED, skewed, spread="keys")
    return [told("skewed keys", events, samples(frames, settings))]


def with_many_keys(folder: Path, events: int, settings: Settings) -> list[Measurement]:
    spark = session()
    frames = {}
    for keys in (1_000_000, 1_000):
        df = spark.read.parquet(str(write_events(folder / f"keys_{keys}", events, keys)))
        frames[f"{keys:,} keys"] = checked(SKEWED, df)
    return [told("number of keys", events, samples(frames, settings))]


def as_events_grow(folder: Path, events: int, settings: Settings) -> list[Measurement]:
    spark = session()
    taken: dict[str, Samples] = {}
    each = {}
    for count in (3 * events, events, 3 * events // 10, events // 10):
        df = spark.read.parquet(str(write_events(folder / f"grown_{count}", count, KEYS)))
        taken |= samples({f"{count:,}": checked(SELECTIVE, df)}, settings)
        each[count] = medians(taken)[f"{count:,}"] / count * 1e6
    print(
        "  growth: " + ", ".join(f"{count:,} events {value:.2f} µs each" for count, value in each.items()), flush=True
    )
    return [Measurement("growth", 3 * events, dict(taken))]


def with_wide_rows(folder: Path, events: int, settings: Settings) -> list[Measurement]:
    """Compare carrying whole events of 24 columns with two of their columns, and with joining the events back."""
    spark = session()
    events = min(events, WIDE_EVENTS)
    narrow = spark.read.parquet(str(write_events(folder / "narrow", events, KEYS)))
    more = {f"more_{n}": F.concat(F.lit("m"), F.hex(F.xxhash64("ts", F.lit(n)))) for n in range(20)}
    narrow.withColumns(more).write.parquet(str(folder / "wide"))
    wide = spark.read.parquet(str(folder / "wide"))
    # Times are unique here, so the joins below find each event once.
    of_times = found(SELECTIVE, wide)
    first, last = wide.alias("first"), wide.alias("last")
    joined = of_times.join(first, F.col("a") == F.col("first.ts")).join(last, F.col("c") == F.col("last.ts"))
    frames = {
        "whole events": found(SELECTIVE.replace("RETURN a.ts AS a, c.ts AS c", "RETURN a, c"), wide),
        "two columns": of_times,
        "two columns and joins": joined,
    }
    of_whole = frames["whole events"].select(F.col("a.ts").alias("a"), F.col("c.ts").alias("c"))
    of_joins = joined.select("a", "c")
    assert len({digest(frame) for frame in (of_whole, of_times, of_joins)}) == 1, "the matches differ"
    return [told("24 columns", events, samples(frames, settings))]


PARTS: dict[str, Callable[[Path, int, Settings], list[Measurement]]] = {
    "cores": on_cores,  # before this process starts a JVM, whose background work would use a core
    "transport": against_transport,
    "sql": against_sql,
    "skew": with_skew,
    "keys": with_many_keys,
    "growth": as_events_grow,
    "wide": with_wide_rows,
}


def main(settings: Settings = DEFAULTS, wanted: str = "") -> list[Measurement]:
    measured: list[Measurement] = []
    events = min(EVENTS, settings.scaled(EVENTS))
    for name, part in PARTS.items():
        if wanted in ("", name):
            with TemporaryDirectory() as folder:
                measured += part(Path(folder), events, settings)
    running = SparkSession.getActiveSession()
    if running is not None:
        running.stop()
    return measured


if __name__ == "__main__" and sys.argv[1:2] == ["pinned"]:
    pinned(sys.argv[2], *map(int, sys.argv[3:]))
elif __name__ == "__main__":
    asked = int(sys.argv[2]) if len(sys.argv) > 2 else EVENTS
    main(Settings(scale=asked / EVENTS), *sys.argv[1:2])
