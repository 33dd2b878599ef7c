"""Runs every benchmark, or those named, prints ratios, and leaves numbers and a picture in benchmarks/results."""

from __future__ import annotations

import sys

from benchmarks import (
    aggregation,
    condensed,
    drift,
    flat_sequence,
    kleene,
    merging,
    nested,
    ranking,
    schedules,
    shapes,
    stream_engine,
    throughput,
    window_moves,
)
from benchmarks.report import save


def main(wanted: list[str]) -> None:
    for benchmark in (
        throughput,
        flat_sequence,
        nested,
        condensed,
        shapes,
        drift,
        kleene,
        aggregation,
        ranking,
        window_moves,
        merging,
        schedules,
        stream_engine,
    ):
        name = benchmark.__name__.rsplit(".", 1)[-1]
        if not wanted or name in wanted:
            print(f"\n{name}: {(benchmark.__doc__ or '').splitlines()[0]}", flush=True)
            save(name, benchmark.main())


if __name__ == "__main__":
    main(sys.argv[1:])
