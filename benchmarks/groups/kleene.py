"""Compare SEQ(A a, B+ b, C c) WITHIN w and similar queries on a million events with DuckDB on one thread."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import duckdb
import numpy as np
import pyarrow as pa

import streamsift as ss
from benchmarks.data.uniform import REAL, uniform_events
from benchmarks.detect.intermediate import peak_mb, searched
from benchmarks.harness.experiment import DEFAULTS, Settings
from benchmarks.harness.turns import medians, sampled
from benchmarks.report.measurement import Measurement
from streamsift.physical.plan.plan import DetectPlan
from streamsift.runtime.events.prepare import prepare

EVENTS = 1_000_000
CLASSES = 8
WINDOW = 20


@dataclass(frozen=True, slots=True)
class Workload:
    """A query for Streamsift, and the same query in SQL with one row (a, all of b, c) per match."""

    name: str
    pattern: str
    sql: str


# Join on time buckets, each event in its own and the next one: range joins may not finish on DuckDB.
PAIRS = f"""WITH starts AS (SELECT t, x, t // {WINDOW} AS bucket FROM a
  UNION ALL SELECT t, x, t // {WINDOW} + 1 FROM a),
pairs AS (SELECT a.t AS a, a.x AS x, c.t AS c FROM starts a JOIN c ON c.t // {WINDOW} = a.bucket AND c.t > a.t
  AND c.t <= a.t + {WINDOW}),
spans AS (SELECT *, a // {WINDOW} AS bucket FROM pairs
  UNION ALL SELECT *, a // {WINDOW} + 1 FROM pairs WHERE c // {WINDOW} > a // {WINDOW})
SELECT a, list(b ORDER BY b.t) AS b, c FROM spans JOIN b ON b.t // {WINDOW} = bucket AND b.t > a AND b.t < c"""
WORKLOADS = (
    Workload(
        "B+ between",
        f"PATTERN A a; B+ b; C c WITHIN {WINDOW} RETURN a.t AS a, b, c.t AS c",
        f"{PAIRS} GROUP BY a, c",
    ),
    Workload(
        "B+ between, compared with A",
        f"PATTERN A a; B+ b; C c WHERE b.x > a.x WITHIN {WINDOW} RETURN a.t AS a, b, c.t AS c",
        f"{PAIRS} AND b.x > spans.x GROUP BY a, c",
    ),
    Workload(
        "trailing B+",
        f"PATTERN A a; B+ b WITHIN {WINDOW} RETURN a.t AS a, b, a.t AS c",
        f"SELECT a.t AS a, list(b ORDER BY b.t) AS b, a.t AS c FROM a JOIN b ON b.t > a.t AND b.t <= a.t + {WINDOW} "
        "GROUP BY a.t",
    ),
)


def ours(workload: Workload, table: pa.Table) -> pa.Table:
    return ss.query(workload.pattern).run_local(table, time="t", type="kind")


def rival(workload: Workload, connection: duckdb.DuckDBPyConnection) -> pa.Table:
    return connection.sql(workload.sql).to_arrow_table()


def flat(result: pa.Table) -> list[np.ndarray]:
    """Return the sorted matches: a, c, the size of b, and the times of its elements."""
    columns = [result.column(name).combine_chunks() for name in ("a", "c", "b")]
    groups = columns[2]
    times = groups.flatten()
    times = times.field("t") if pa.types.is_struct(times.type) else times
    offsets = groups.offsets.to_numpy()
    sizes = np.diff(offsets)
    first = times.to_numpy()[offsets[:-1] - offsets[0]]
    rows = [column.to_numpy() for column in columns[:2]]
    owner = np.repeat(np.arange(sizes.size), sizes)
    order = np.lexsort((sizes, first, rows[1], rows[0]))
    place = np.empty(order.size, np.int64)
    place[order] = np.arange(order.size)
    by_match = np.lexsort((times.to_numpy(), place[owner]))
    return [*(row[order] for row in rows), sizes[order], times.to_numpy()[by_match]]


def anchors(workload: Workload, table: pa.Table) -> int:
    """Return the number of matches of the single events, before groups are built."""
    plan = ss.query(workload.pattern).plan(table.schema, "t", "kind", None)
    assert isinstance(plan, DetectPlan)
    search = searched(plan.alternatives[0], prepare(plan.query, table), plan.choices)
    return sum(chosen.matches for chosen in search.log)


def elements(found: pa.Table) -> int:
    return len(found.column("b").combine_chunks().flatten())


def compare(
    workload: Workload, table: pa.Table, connection: duckdb.DuckDBPyConnection, settings: Settings
) -> Measurement:
    runs = {"streamsift": partial(ours, workload, table), "DuckDB, one thread": partial(rival, workload, connection)}
    found, expected = (run() for run in runs.values())
    assert all(np.array_equal(*pair) for pair in zip(flat(found), flat(expected), strict=True)), workload.name
    samples = sampled(runs, settings, warm=True)
    taken, theirs = medians(samples).values()
    memory = peak_mb(runs["streamsift"])
    print(f"{workload.name} ({table.num_rows:,} events, {found.num_rows:,} matches, equal results)")
    print(f"  {taken * 1000:8.0f} ms   1.0x  streamsift, {memory:.0f} MB at most")
    print(f"{'':20}built {anchors(workload, table):,} rows of single events, {elements(found):,} elements of groups")
    print(f"  {theirs * 1000:8.0f} ms  {theirs / taken:4.1f}x  DuckDB, one thread")
    return Measurement(workload.name, found.num_rows, samples)


def main(settings: Settings = DEFAULTS) -> list[Measurement]:
    table = uniform_events(settings.scaled(EVENTS), CLASSES, seed=settings.seed, x=REAL)
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.register("events", table)
    for name in "abc":
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM events WHERE kind = '{name.upper()}'")
    return [compare(workload, table, connection, settings) for workload in WORKLOADS]


if __name__ == "__main__":
    main()
