"""Measure the latency of matches: from the arrival of a match's last event to its row, at three rates.

python -m benchmarks.stream.latency [rate …]

Events have the times at which they are due, and are sent on schedule, whatever the engines do. On Spark and Flink the
events come from a Kafka topic and the rows go to another one; both times are Kafka's append times. In process, an event
arrives when it is due, and its rows are there when `push` returns, so an event also waits for the push before. All
engines must emit the rows of the batch query. With a lateness, Spark and Flink wait for it if the query needs it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

import streamsift as ss
from benchmarks.data.uniform import uniform_events
from benchmarks.engines.flink import Unavailable
from benchmarks.harness.experiment import DEFAULTS, Settings
from benchmarks.report.measurement import Measurement

RATES = {1_000: 20, 20_000: 20, 100_000: 10}  # events/s, and for how many seconds they are measured
LATENESS_MS = (0, 10_000)
WINDOW_MS, CLASSES, EVENTS_OF_A_KEY = 2_000, 6, 4  # per window
QUERY = f"PATTERN SEQ(A a, B b, C c) WHERE [id] WITHIN {WINDOW_MS} RETURN a.n AS a, b.n AS b, c.n AS c"
BINDING = {"time": "ts", "type": "kind"}
PERCENTILES = (50, 95, 99)
WARM_SHARE = 0.25  # of the events, whose matches are checked but not measured


@dataclass(frozen=True, slots=True)
class Tape:
    """Events in the order of their times, which are relative to the beginning of a run."""

    rate: int
    events: pa.Table  # n, ts (milliseconds), kind, id
    due_s: np.ndarray

    def started_at(self, start_ms: int) -> pa.Table:
        """Return the events of a run that begins at a time."""
        return self.events.set_column(1, "ts", pa.array(self.events["ts"].to_numpy() + start_ms))

    @property
    def warm(self) -> int:
        """Return the number of events that warm up the engines."""
        return int(len(self.due_s) * WARM_SHARE)


def tape(rate: int, settings: Settings) -> Tape:
    count = max(rate, round(settings.scaled(rate * RATES.get(rate, 10)) / (1 - WARM_SHARE)))
    keys = max(1, rate * WINDOW_MS // 1000 // EVENTS_OF_A_KEY)
    drawn = uniform_events(count, CLASSES, seed=settings.seeded(rate), id=keys)
    due_s = np.arange(count) / rate
    columns = {"n": np.arange(count), "ts": (due_s * 1000).astype(np.int64), "kind": drawn["kind"], "id": drawn["id"]}
    return Tape(rate, pa.table(columns), due_s)


Rows = pa.Table  # a, b, c: the numbers of a match's events


def check(rows: Rows, expected: Rows, name: str, *, repeats: bool = False) -> None:
    """Raise if rows are missing or wrong. Spark's Kafka sink may repeat rows."""
    order = [(column, "ascending") for column in "abc"]
    given = rows.group_by(list("abc")).aggregate([]) if repeats else rows
    assert given.select(list("abc")).sort_by(order).equals(expected.sort_by(order)), (
        f"{name}: {rows.num_rows} rows, but the batch query has {expected.num_rows}"
    )


def expected_rows(events: Tape) -> Rows:
    return ss.query(QUERY).run_local(events.started_at(0), **BINDING).select(list("abc")).combine_chunks()


def in_process(events: Tape, lateness_ms: int) -> tuple[Rows, np.ndarray]:
    """Return the rows, and the seconds from the time when an event is due to the end of the push with its rows."""
    schema = events.events.schema
    table = events.started_at(round(time.time() * 1000)).combine_chunks()
    stream = ss.query(QUERY).open(schema, lateness=lateness_ms, **BINDING)
    rows, delays, pushed = [], [], 0
    start = time.perf_counter()
    while pushed < table.num_rows:
        now = time.perf_counter() - start
        until = int(np.searchsorted(events.due_s, now, side="right"))
        if until == pushed:
            time.sleep(max(0.0, events.due_s[pushed] - now))
            continue
        new = stream.push(table.slice(pushed, until - pushed))
        pushed, now = until, time.perf_counter() - start
        if new.num_rows:
            rows.append(new)
            delays.append(now - events.due_s[new["c"].to_numpy()])
    # The remaining rows wait for the watermark, which the clock moves: a heartbeat after each tenth of a second.
    end = start + events.due_s[-1] + (WINDOW_MS + lateness_ms) / 1000 + 1
    last = int(table["ts"][-1].as_py())
    while time.perf_counter() < end:
        time.sleep(0.1)
        passed = last + round((time.perf_counter() - start - events.due_s[-1]) * 1000) - lateness_ms
        new = stream.advance(passed)
        if new.num_rows:
            rows.append(new)
            delays.append(time.perf_counter() - start - events.due_s[new["c"].to_numpy()])
    rows.append(stream.finish())
    assert rows[-1].num_rows == 0, "the heartbeats did not advance the watermark past all matches"
    found = pa.concat_tables(rows)
    measured = np.concatenate(delays) if delays else np.empty(0)
    return found, measured[found["c"].to_numpy() >= events.warm]


Engine = Callable[[Tape, int], tuple[Rows, np.ndarray]]


def report(name: str, lateness_ms: int, events: Tape, delays: np.ndarray) -> Measurement:
    """Print percentiles, and return them in seconds."""
    values = np.percentile(delays, PERCENTILES)
    shown = ", ".join(f"p{each} {value * 1000:,.1f} ms" for each, value in zip(PERCENTILES, values, strict=True))
    workload = f"{name}, {events.rate:,} events/s, lateness {lateness_ms / 1000:.0f} s"
    print(f"  {workload}: {shown}; {delays.size:,} matches", flush=True)
    seconds = {f"p{each}": float(value) for each, value in zip(PERCENTILES, values, strict=True)}
    return Measurement(workload, len(events.due_s), seconds, headline=shown)


def main(settings: Settings = DEFAULTS, rates: tuple[int, ...] = tuple(RATES)) -> list[Measurement]:
    from benchmarks.stream.latency_kafka import KafkaEngines

    found: list[Measurement] = []
    in_process(tape(1_000, replace(settings, scale=0.1)), 0)  # compiles the kernels
    try:
        kafka: KafkaEngines | None = KafkaEngines()
    except Unavailable as reason:
        kafka = print(f"  without Kafka: {reason}", flush=True)
    engines: dict[str, Engine] = {"Streamsift in process": in_process}
    try:
        if kafka is not None:
            engines |= kafka.engines()
        for rate in rates:
            events = tape(rate, settings)
            expected = expected_rows(events)
            for lateness_ms in LATENESS_MS:
                for name, engine in engines.items():
                    rows, delays = engine(events, lateness_ms)
                    check(rows, expected, name, repeats="Spark" in name)
                    found.append(report(name, lateness_ms, events, delays))
    finally:
        if kafka is not None:
            kafka.stop()
    return found


if __name__ == "__main__":
    main(DEFAULTS, tuple(int(word) for word in sys.argv[1:]) or tuple(RATES))
