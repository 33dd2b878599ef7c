"""100 queries of all kinds over one DataFrame: in one shuffle, against one after the other. `[events] [queries]`"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import streamsift as ss
from benchmarks.report import Measurement
from benchmarks.scale_events import session, write_events

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


def main(events: int = EVENTS, count: int = QUERIES) -> list[Measurement]:
    spark = session()
    asked = queries(count)
    with TemporaryDirectory() as folder:
        df = spark.read.parquet(str(write_events(Path(folder) / "events", events, KEYS)))
        binding = {"time": "ts", "type": "kind"}
        next(iter(ss.run_many(dict(list(asked.items())[:5]), df, **binding).values())).count()  # kernels are compiled
        start = time.perf_counter()
        with ss.run_many(asked, df, **binding) as results:  # type: ignore[arg-type]
            together = {name: frame.count() for name, frame in results.items()}
        taken = {"together": time.perf_counter() - start}
        start = time.perf_counter()
        alone = {name: ss.query(text).run(df, **binding).count() for name, text in asked.items()}  # type: ignore[arg-type]
        taken["one by one"] = time.perf_counter() - start
        assert together == alone, "not the same rows"
    spark.stop()
    print(
        f"  {count} queries, {events:,} events, {sum(alone.values()):,} rows: together {taken['together']:.1f} s, "
        f"one by one {taken['one by one']:.1f} s ({taken['one by one'] / taken['together']:.1f}x)",
        flush=True,
    )
    return [Measurement(f"{count} queries", events, taken)]


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
