"""Runs every benchmark, prints its ratios, and leaves numbers and a picture in benchmarks/results."""

from __future__ import annotations

from benchmarks import aggregation, condensed, drift, flat_sequence, kleene, nested, ranking, shapes, throughput
from benchmarks.report import save


def main() -> None:
    for benchmark in (throughput, flat_sequence, nested, condensed, shapes, drift, kleene, aggregation, ranking):
        print(f"\n{benchmark.__name__.rsplit('.', 1)[-1]}: {(benchmark.__doc__ or '').splitlines()[0]}")
        save(benchmark.__name__.rsplit(".", 1)[-1], benchmark.main())


if __name__ == "__main__":
    main()
