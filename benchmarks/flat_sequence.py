"""SEQ(A a, B b, C c) WHERE [key] WITHIN w on 2 million events, against DuckDB on one thread, with equal results."""

from __future__ import annotations

import cProfile
import pstats
import time
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

import streamsift as ss
from benchmarks import flat_sequence_sql
from benchmarks.report import Measurement

EVENTS = 2_000_000
KEYS = 1_000
EVENTS_PER_KEY_AND_WINDOW = 24
MICROSECONDS_PER_EVENT = 50
WINDOW_US = MICROSECONDS_PER_EVENT * KEYS * EVENTS_PER_KEY_AND_WINDOW
QUERY = f"SEQ(A a, B b, C c) WHERE [key] WITHIN {WINDOW_US // 1000} ms"
ROUNDS = 4
FINALISTS = 3  # rivals that take part in every round; all take part in the first


def make_events(classes: int, events: int = EVENTS, seed: int = 1) -> pa.Table:
    """Events in order of time, some at the same microsecond; class, key and value uniformly at random."""
    random = np.random.default_rng(seed)
    names = pa.array([chr(ord("A") + number) for number in range(classes)])
    return pa.table(
        {
            "ts": pa.array(np.sort(random.integers(0, events * MICROSECONDS_PER_EVENT, events)), pa.timestamp("us")),
            "kind": names.take(pa.array(random.integers(0, classes, events))),
            "key": random.integers(0, KEYS, events),
            "value": random.permutation(events) / 4,  # each value once, so that a value tells its event
        }
    )


def ours(table: pa.Table) -> pa.Table:
    return ss.query(QUERY).run_local(table, time="ts", type="kind")


def match_codes(table: pa.Table, result: pa.Table) -> np.ndarray:
    """Each match as one integer, sorted: the numbers of its three events, which their values tell, 21 bits each.

    Every attribute of every event is compared with the event's row, so equal codes mean equal results.
    """
    row_of = np.argsort(table.column("value").to_numpy())
    parts = []
    for batch in result.to_batches():
        codes = np.zeros(batch.num_rows, np.int64)
        for variable in "abc":
            event = batch.column(variable)
            rows = row_of[(event.field("value").to_numpy() * 4).astype(np.int64)]
            for name in table.column_names:
                wanted = table.column(name).chunk(0).take(pa.array(rows))
                assert event.field(name).cast(wanted.type).equals(wanted), f"{variable}.{name}"
            codes = codes << 21 | rows
        assert batch.column("match_start").equals(batch.column("a").field("ts"))
        assert batch.column("match_end").equals(batch.column("c").field("ts"))
        parts.append(codes)
    return np.sort(np.concatenate(parts))


def seconds(run: Callable[[], pa.Table]) -> float:
    """The time until the whole result is an Arrow table."""
    start = time.perf_counter()
    result = run()
    taken = time.perf_counter() - start
    assert result.num_rows
    return taken


def compiled_share(run: Callable[[], pa.Table]) -> float:
    """The part of a run's time inside Numba kernels, Arrow and NumPy functions; indexing counts as Python.

    The profiler makes Python look slower than it is, so this is a lower bound.
    """
    profile = cProfile.Profile()
    profile.runcall(run)
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    spent = {place: own for place, (_, _, own, _, _) in stats.items()}

    def compiled(file: str, function: str) -> bool:
        # `take` is one call of Arrow, which this profiler does not see from outside.
        return file == "~" or "pyarrow" in file or file.endswith(("kernels.py", "search.py")) or function == "take"

    return sum(own for (file, _, name), own in spent.items() if compiled(file, name)) / sum(spent.values())


def compare(workload: str, table: pa.Table) -> Measurement:
    rivals = flat_sequence_sql.rivals(table, WINDOW_US)
    expected = match_codes(table, ours(table))
    best = {"streamsift": np.inf}
    for name, run in rivals.items():
        assert np.array_equal(expected, match_codes(table, run())), f"{name} finds other matches"
        best[name] = seconds(run)
    finalists = sorted(rivals, key=best.__getitem__)[:FINALISTS]
    for _ in range(ROUNDS):
        best["streamsift"] = min(best["streamsift"], seconds(lambda: ours(table)))
        for name in finalists:
            best[name] = min(best[name], seconds(rivals[name]))
    return Measurement(workload, len(expected), best, compiled_share(lambda: ours(table)))


def workloads() -> Iterator[tuple[str, pa.Table]]:
    yield "3 classes: matches dominate", make_events(3)
    yield "12 classes: events dominate", make_events(12)


def main() -> list[Measurement]:
    found = []
    for workload, table in workloads():
        measurement = compare(workload, table)
        print(f"{workload} ({table.num_rows:,} events, {measurement.rows:,} matches, equal results)")
        for name, taken in sorted(measurement.seconds.items(), key=lambda item: item[1]):
            print(f"  {taken * 1000:8.0f} ms  {taken / measurement.seconds['streamsift']:5.1f}x  {name}")
        print(f"  {measurement.compiled_share:.0%} of our time is in compiled code or Arrow")
        found.append(measurement)
    return found


if __name__ == "__main__":
    main()
