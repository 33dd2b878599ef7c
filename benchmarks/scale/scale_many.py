"""Compare 100 queries of all kinds over one DataFrame in one shuffle with running them one after the other.

`python -m benchmarks.scale.scale_many [events] [queries] [alone]`: measures `alone` queries separately and extrapolates
to all; by default, it measures all. There are no repetitions. A scale factor only makes inputs smaller.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import DataFrame

import streamsift as ss
from benchmarks.harness.experiment import DEFAULTS, Settings
from benchmarks.report.measurement import Measurement
from benchmarks.scale.scale_events import digest, session, write_events

EVENTS, QUERIES, KEYS = 2_000_000, 100, 10_000
KINDS = [
    "PATTERN SEQ({0} a, {1} b) WHERE [key] AND b.price > {2} * a.price WITHIN 1 s RETURN a.ts AS a, b.ts AS b",
    "PATTERN SEQ({0} a, {1} b) WHERE a.price > 99 AND b.price < {2} WITHIN 1 ms RETURN a.ts AS a, b.ts AS b",
    "PATTERN SEQ({0} a, {1} b, {0} c) GROUP BY key AGG COUNT WITHIN {2} s",
    "PATTERN SEQ({0} a, {1} b) WHERE a.price > 90 AGG COUNT, SUM(b.price) WITHIN {2} ms UPDATE 1 s",
    "PATTERN SEQ({0} a, {1} b) WHERE [key] PREF MAX[a.price + b.price] WITHIN {2} s RETURN TOP 10 a.ts AS a, b.ts AS b",
]


def queries(count: int) -> dict[str, str]:
    classes = [(one, other) for one in "ABCD" for other in "ABCD" if one != other]
    return {
        f"q{number}": KINDS[number % len(KINDS)].format(*classes[number // 5 % len(classes)], 2 + number % 3)
        for number in range(count)
    }


def main(settings: Settings = DEFAULTS, count: int = QUERIES, alone: int = 0) -> list[Measurement]:
    spark = session()
    events = min(EVENTS, settings.scaled(EVENTS))
    texts = queries(count)
    # Kinds alternate, so that the sample has the same number of each.
    sample = dict(list(texts.items())[: alone or count])
    with TemporaryDirectory() as folder:
        df = spark.read.parquet(str(write_events(Path(folder) / "events", events, KEYS)))
        kinds = dict(list(texts.items())[: len(KINDS)])
        together_of(df, kinds)  # compile kernels and warm up both ways
        alone_of(df, kinds)
        start = time.perf_counter()
        together = together_of(df, texts)
        taken = {"together": time.perf_counter() - start}
        start = time.perf_counter()
        each = alone_of(df, sample)
        taken["one by one"] = (time.perf_counter() - start) * count / len(sample)
        assert {name: together[name] for name in sample} == each, "the rows differ"
    spark.stop()
    measured = "" if len(sample) == count else f", extrapolated from {len(sample)} of them"
    print(
        f"  {count} queries, {events:,} events, {sum(rows for rows, _ in together.values()):,} rows: "
        f"together {taken['together']:.1f} s, one by one {taken['one by one']:.1f} s{measured} "
        f"({taken['one by one'] / taken['together']:.1f}x)",
        flush=True,
    )
    return [Measurement(f"{count} queries", events, taken)]


def together_of(df: DataFrame, asked: dict[str, str]) -> dict[str, tuple[int, int]]:
    with ss.run_many(asked, df, time="ts", type="kind") as results:
        return {name: digest(frame) for name, frame in results.items()}


def alone_of(df: DataFrame, asked: dict[str, str]) -> dict[str, tuple[int, int]]:
    return {name: digest(ss.query(text).run(df, time="ts", type="kind")) for name, text in asked.items()}


if __name__ == "__main__":
    wanted, *numbers = map(int, sys.argv[1:4] or [EVENTS])
    main(Settings(scale=wanted / EVENTS), *numbers)
