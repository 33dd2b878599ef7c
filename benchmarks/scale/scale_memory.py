"""Measure memory: many events with 2 GB per Python worker, and more matches than fit in memory, written to Parquet.

`python -m benchmarks.scale.scale_memory [events|matches] [millions]`. The peak memory of the workers is what Linux
reports for each process that Spark started (VmHWM). Each runs once; a scale factor only makes inputs smaller.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import streamsift as ss
from benchmarks.harness.clock import taken_by
from benchmarks.harness.experiment import DEFAULTS, Settings
from benchmarks.harness.turns import spark_cpu_s
from benchmarks.report.measurement import Measurement
from benchmarks.scale.scale_events import session, write_events

WORKER_MEMORY, PARTITIONS = "2g", "200"  # Spark's default number of partitions
KEYED = "PATTERN SEQ(A a, B b, C c) WHERE [key] AND c.price > 1.1 * a.price WITHIN 1 s RETURN a.ts AS a, c.ts AS c"
# About ten matches per A: 100,000 events per second, a quarter of them B.
PAIRS = "PATTERN SEQ(A a, B b) WITHIN 0.4 ms RETURN a.ts AS a, b.ts AS b, a.price AS low, b.price AS high"
PARTS = {"events": (KEYED, 50_000_000), "matches": (PAIRS, 40_000_000)}


class PeakMemory:
    """Track the peak memory of the Python workers of this process's Spark."""

    def __enter__(self) -> PeakMemory:
        self.bytes = 0
        self._is_open = True
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_open = False
        self._thread.join()

    def _watch(self) -> None:
        while self._is_open:
            self.bytes = max([self.bytes, *map(_peak, _descendants(os.getpid()))])
            time.sleep(0.2)


def _descendants(process: int) -> list[int]:
    """Return the Python processes among the descendants of a process."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = status.read_text().partition(")")
        except OSError:
            continue  # the process has ended
        parents[int(status.parent.name)] = (int(rest.split()[1]), "python" in name)
    found, waiting = [], [process]
    while waiting:
        parent = waiting.pop()
        children = [child for child, (of, _) in parents.items() if of == parent]
        waiting += children
        found += [child for child in children if parents[child][1]]
    return found


def _peak(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)


def run(name: str, query: str, events: int, keys: int) -> Measurement:
    with TemporaryDirectory() as folder:
        spark = session(spark__executor__pyspark__memory=WORKER_MEMORY, spark__sql__shuffle__partitions=PARTITIONS)
        df = spark.read.parquet(str(write_events(Path(folder) / "events", events, keys)))
        out = str(Path(folder) / "matches")
        with PeakMemory() as peak:
            taken = taken_by(lambda: ss.query(query).run(df, time="ts", type="kind").write.parquet(out), spark_cpu_s)
        matches = spark.read.parquet(out).count()
        size = sum(file.stat().st_size for file in Path(out).glob("*.parquet"))
        spark.stop()
    summary = (
        f"{matches:,} matches ({size / 1e6:,.0f} MB of Parquet), peak worker memory {peak.bytes / 1e6:,.0f} MB "
        f"(limit {WORKER_MEMORY})"
    )
    print(f"  {name}: {events:,} events in {taken.wall_s:.1f} s, {summary}", flush=True)
    return Measurement(name, events, {"streamsift": taken.wall_s}, headline=summary)


def main(settings: Settings = DEFAULTS, wanted: str = "") -> list[Measurement]:
    return [
        run(f"many {each}", query, min(events, settings.scaled(events)), 10_000)
        for each, (query, events) in PARTS.items()
        if wanted in ("", each)
    ]


if __name__ == "__main__" and len(sys.argv) > 2:
    main(Settings(scale=int(sys.argv[2]) * 1_000_000 / PARTS[sys.argv[1]][1]), sys.argv[1])
elif __name__ == "__main__":
    main(DEFAULTS, *sys.argv[1:])
