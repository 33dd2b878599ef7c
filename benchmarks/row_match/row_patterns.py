"""Measure MATCH_RECOGNIZE: conditions and matcher on sorted rows, worst cases, and gaps and islands against DuckDB.

The matcher runs on 2 million rows in 1, 1,000 and 200,000 partitions; sorting and output are not measured. The islands
are compared with DuckDB's window functions on one thread, with the whole result as an Arrow table.
"""

from __future__ import annotations

from functools import partial

import duckdb
import numpy as np
import pyarrow as pa

import streamsift as ss
from benchmarks.harness.answers import Answer, answer_of
from benchmarks.harness.experiment import DEFAULTS, Settings
from benchmarks.harness.turns import sampled
from benchmarks.report.measurement import Measurement
from streamsift.logical.row_match import bind_rows
from streamsift.physical.row_match import plan_rows
from streamsift.runtime.row_match import SortedRows, sort_rows, start_run, with_computed

ROWS = 2_000_000
PARTITIONS = (1, 1_000, 200_000)
GAP = 30
PATTERNS = {
    "V shape": "PATTERN (S D+ U+) DEFINE D AS p < PREV(p), U AS p > PREV(p)",
    "V shape with a condition of the match": (
        "PATTERN (S D+ U+) DEFINE D AS p < PREV(p), U AS p > PREV(p) AND p < FIRST(S.p)"
    ),
    "running SUM": "PATTERN (A+ B) DEFINE A AS SUM(A.q) < 5000",
    "A* B without a B": "PATTERN (A* B) DEFINE B AS p < -1000000",
    "(A+)+ B without a B": "PATTERN ((A+)+ B) DEFINE B AS p < -1000000",
}
ISLANDS = f"""MATCH_RECOGNIZE (PARTITION BY k ORDER BY t
    MEASURES FIRST(t) AS first, LAST(t) AS last, COUNT(*) AS n PATTERN (A B*) DEFINE B AS t - PREV(t) <= {GAP})"""
ISLANDS_SQL = f"""
    WITH marked AS (SELECT k, t, CASE WHEN t - lag(t) OVER w <= {GAP} THEN 0 ELSE 1 END AS begins
                    FROM events WINDOW w AS (PARTITION BY k ORDER BY t)),
         numbered AS (SELECT k, t, sum(begins) OVER (PARTITION BY k ORDER BY t) AS island FROM marked)
    SELECT k, min(t) AS first, max(t) AS last, count(*) AS n FROM numbered GROUP BY k, island"""


def make_rows(rows: int, partitions: int, seed: int) -> pa.Table:
    """Return sorted rows: a random walk of prices, quantities, and times with gaps."""
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "k": np.arange(rows) * partitions // rows,
            "t": np.cumsum(random.integers(1, 40, rows)),
            "p": np.cumsum(random.normal(size=rows)),
            "q": random.integers(0, 1000, rows),
        }
    )


def matches(text: str, rows: SortedRows) -> int:
    """Evaluate the conditions and match; return the number of matches."""
    plan = plan_rows(bind_rows(text, rows.table.schema))
    rows = SortedRows(with_computed(plan, rows.table), rows.bounds)
    return sum(chunk.start.size for chunk in start_run(plan, rows).matches())


def measure_patterns(settings: Settings) -> list[Measurement]:
    measured = []
    size = settings.scaled(ROWS)
    for name, pattern in PATTERNS.items():
        text = f"MATCH_RECOGNIZE (PARTITION BY k ORDER BY t MEASURES COUNT(*) AS n {pattern})"
        runs, counts = {}, []
        for partitions in PARTITIONS:
            bound = bind_rows(text, make_rows(1, 1, 0).schema)
            rows = sort_rows(make_rows(size, min(partitions, size), settings.seed), ("k",), bound.order_by)
            counts.append(matches(text, rows))
            runs[f"{partitions:,} partitions"] = partial(matches, text, rows)
        samples = sampled(runs, settings, warm=True)
        measurement = Measurement(f"{name}, {size:,} rows", counts[0], samples)
        for engine, seconds in measurement.medians.items():
            print(f"  {name}: {size / seconds / 1e6:6.1f} M rows/s in {engine}")
        measured.append(measurement)
    return measured


def answer(result: pa.Table) -> Answer:
    return answer_of([result.column(name).to_numpy().astype(np.int64) for name in ("k", "first", "last", "n")])


def measure_islands(settings: Settings) -> Measurement:
    table = make_rows(settings.scaled(ROWS), 1_000, settings.seed)
    table = table.take(pa.array(np.random.default_rng(settings.seed).permutation(table.num_rows)))
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.register("events", table)
    runs = {
        "streamsift": partial(ss.query(ISLANDS).run_local, table),
        "DuckDB window functions": lambda: connection.sql(ISLANDS_SQL).to_arrow_table(),
    }
    expected = answer(runs["streamsift"]())
    assert answer(runs["DuckDB window functions"]()) == expected, "DuckDB returns different islands"
    measurement = Measurement("gaps and islands, unsorted", expected.rows, sampled(runs, settings, warm=True))
    taken = measurement.medians
    for name, seconds in taken.items():
        print(f"  islands: {seconds * 1000:8.0f} ms  {seconds / taken['streamsift']:5.1f}x  {name}")
    return measurement


def main(settings: Settings = DEFAULTS) -> list[Measurement]:
    return [*measure_patterns(settings), measure_islands(settings)]


if __name__ == "__main__":
    main()
