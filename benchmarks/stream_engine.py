"""The engine of a stream on one core: what 10,000 new events cost, with a window of 20,000 events and of 2,000,000."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

import pyarrow as pa

import streamsift as ss
from benchmarks.data.uniform import REAL, uniform_events
from benchmarks.report import Measurement
from streamsift.runtime import Engine, engine_for

SMALL, LARGE = 20_000, 2_000_000
NEW, BATCHES = 10_000, 100
FILL = 100_000  # events at a time until the window is full
TARGET = 2.0
QUERIES = {
    "sequence": "PATTERN SEQ(A a, B b, C c) WHERE [id] WITHIN {window}",
    "negation": "PATTERN SEQ(A a, !B b, C c) WHERE [id] WITHIN {window}",
    "upper edge": "PATTERN SEQ(A a, B b, !C c) WHERE [id] WITHIN {window}",
    "group": "PATTERN SEQ(A a, B+ b, C c) WHERE [id] WITHIN {window}",
    "totals": "PATTERN SEQ(A a, B b, C c) WHERE [id] GROUP BY id AGG COUNT, SUM(c.x) WITHIN {window}",
    "ticks": "PATTERN SEQ(A a, B b) WHERE [id] AGG COUNT, MAX(b.x) WITHIN {window} UPDATE 10000",
}
EVENTS_OF_A_KEY = 2  # in a window, whatever its length: as many matches come of each


def make_events(start: int, count: int, window: int) -> pa.Table:
    return uniform_events(count, 3, start=start, seed=start, id=window // EVENTS_OF_A_KEY, x=REAL)


def engine_of(text: str, window: int) -> Engine:
    schema = make_events(0, 0, window).schema
    return engine_for(ss.query(text.format(window=window)).plan(schema, "t", "kind", None))


def batches(engine: Engine, window: int, count: int) -> Iterator[tuple[float, int]]:
    """Seconds of one core and rows of each batch, once the window is full."""
    for start in range(0, window, FILL):
        part = min(FILL, window - start)
        engine.push(make_events(start, part, window))
        engine.advance(start + part - 1)
        engine.changes()
    for start in range(window, window + count * NEW, NEW):
        events = make_events(start, NEW, window)
        began = time.process_time()
        engine.push(events)
        rows = engine.advance(start + NEW - 1)
        engine.changes()
        yield time.process_time() - began, rows.num_rows


def check(text: str) -> None:
    """A stream and a batch of the same events have the same rows."""
    engine, events = engine_of(text, SMALL), make_events(0, 3 * SMALL, SMALL)
    found = 0
    for start in range(0, events.num_rows, NEW):
        engine.push(events.slice(start, NEW))
        found += engine.advance(start + NEW // 2).num_rows
    found += engine.finish().num_rows
    expected = ss.query(text.format(window=SMALL)).run_local(events, time="t", type="kind").num_rows
    assert found == expected, f"{found:,} rows on a stream, {expected:,} in a batch"


def main() -> list[Measurement]:
    measured = []
    for name, text in QUERIES.items():
        check(text)
        seconds, rows = {}, {}
        for window in (SMALL, LARGE):
            found = list(batches(engine_of(text, window), window, BATCHES))
            times = [each for each, _ in found]
            seconds[window], rows[window] = statistics.median(times), sum(count for _, count in found)
            begin, end = (statistics.median(part) for part in (times[: BATCHES // 4], times[-BATCHES // 4 :]))
            print(
                f"{name}, window of {window:,}: {1000 * seconds[window]:.1f} ms for {NEW:,} events, the last quarter "
                f"{end / begin:.2f}x the first, {rows[window]:,} rows",
                flush=True,
            )
        ratio = seconds[LARGE] / seconds[SMALL]
        print(
            f"{name}: a window of {LARGE // SMALL}x the events costs {ratio:.2f}x (target: below {TARGET})", flush=True
        )
        contenders = {f"window of {window:,}": each for window, each in seconds.items()}
        measured.append(Measurement(f"stream: {name}", NEW, contenders, headline=f"{ratio:.2f}x"))
    return measured


if __name__ == "__main__":
    main()
