"""Compare SEQ(A a, B b, C c) WHERE [key] WITHIN w on 2 million events with DuckDB on one thread.

A run ends when the whole result is an Arrow table. A larger scale makes only the stream longer. With three classes, the
stream has at most two million events, because more matches would not fit in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa

import streamsift as ss
from benchmarks.detect import flat_sequence_sql
from benchmarks.harness.answers import Answer, answer_of
from benchmarks.harness.clock import taken_by
from benchmarks.harness.experiment import DEFAULTS, Settings
from benchmarks.harness.turns import sampled
from benchmarks.report.measurement import Measurement

EVENTS = 2_000_000
KEYS = 1_000
EVENTS_PER_KEY_AND_WINDOW = 24
MICROSECONDS_PER_EVENT = 50
WINDOW_US = MICROSECONDS_PER_EVENT * KEYS * EVENTS_PER_KEY_AND_WINDOW
QUERY = f"SEQ(A a, B b, C c) WHERE [key] WITHIN {WINDOW_US // 1000} ms"
FINALISTS = 3  # engines that run in turns with Streamsift; all are timed once


def make_events(classes: int, events: int, seed: int) -> pa.Table:
    """Return events in time order, some at the same microsecond; class, key and value are uniformly random."""
    random = np.random.default_rng(seed)
    names = pa.array([chr(ord("A") + number) for number in range(classes)])
    return pa.table(
        {
            "ts": pa.array(np.sort(random.integers(0, events * MICROSECONDS_PER_EVENT, events)), pa.timestamp("us")),
            "kind": names.take(pa.array(random.integers(0, classes, events))),
            "key": random.integers(0, KEYS, events),
            "value": random.permutation(events) / 4,  # each value once, so that a value identifies its event
        }
    )


def ours(table: pa.Table) -> pa.Table:
    return ss.query(QUERY).run_local(table, time="ts", type="kind")


def answer(table: pa.Table, result: pa.Table) -> Answer:
    """Return the answer as the numbers of each match's events, which their values identify.

    Every attribute of every event is compared with the event's row, so equal answers mean equal results.
    """
    row_of = np.argsort(table.column("value").to_numpy())
    parts: list[list[np.ndarray]] = [[], [], []]
    for batch in result.to_batches():
        for part, variable in zip(parts, "abc", strict=True):
            event = batch.column(variable)
            rows = row_of[(event.field("value").to_numpy() * 4).astype(np.int64)]
            for name in table.column_names:
                wanted = table.column(name).chunk(0).take(pa.array(rows))
                assert event.field(name).cast(wanted.type).equals(wanted), f"{variable}.{name}"
            part.append(rows)
        assert batch.column("match_start").equals(batch.column("a").field("ts"))
        assert batch.column("match_end").equals(batch.column("c").field("ts"))
    return answer_of([np.concatenate(part) for part in parts])


def compare(workload: str, table: pa.Table, settings: Settings) -> Measurement:
    formulations = flat_sequence_sql.rivals(table, WINDOW_US)
    expected = answer(table, ours(table))
    once = {}
    for name, run in formulations.items():
        assert answer(table, run()) == expected, f"{name} returns different matches"
        once[name] = taken_by(run).by(settings.clock)
    finalists = sorted(formulations, key=once.__getitem__)[:FINALISTS]
    runs = {"streamsift": partial(ours, table)} | {name: formulations[name] for name in finalists}
    samples = sampled(runs, settings, warm=True)
    return Measurement(workload, expected.rows, {"streamsift": samples["streamsift"], **once, **samples})


def workloads(settings: Settings) -> Iterator[tuple[str, pa.Table]]:
    events = settings.scaled(EVENTS)
    yield "3 classes: matches dominate", make_events(3, min(events, EVENTS), settings.seed)
    yield "12 classes: events dominate", make_events(12, events, settings.seed)


def main(settings: Settings = DEFAULTS) -> list[Measurement]:
    found = []
    for workload, table in workloads(settings):
        measurement = compare(workload, table, settings)
        taken = measurement.medians
        print(f"{workload} ({table.num_rows:,} events, {measurement.rows:,} matches, equal results)")
        for name, seconds in sorted(taken.items(), key=lambda item: item[1]):
            print(f"  {seconds * 1000:8.0f} ms  {seconds / taken['streamsift']:5.1f}x  {name}")
        found.append(measurement)
    return found


if __name__ == "__main__":
    main()
