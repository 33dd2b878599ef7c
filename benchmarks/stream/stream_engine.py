"""Measure the streaming engine on one core: the cost of 10,000 new events with windows of 20,000 and 2,000,000 events.

Each batch of new events is a sample, for both windows in turns. A larger scale adds batches.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import count

import pyarrow as pa

import streamsift as ss
from benchmarks.data.uniform import REAL, uniform_events
from benchmarks.harness.clock import Taken, taken_by
from benchmarks.harness.experiment import DEFAULTS, Settings
from benchmarks.harness.turns import by_clock, in_turns, medians
from benchmarks.report.measurement import Measurement
from streamsift.runtime.stream import ManyEngine

SMALL, LARGE = 20_000, 2_000_000
NEW, BATCHES = 10_000, 100
FILL = 100_000  # batch size until the window is full
TARGET = 2.0
QUERIES = {
    "sequence": "PATTERN SEQ(A a, B b, C c) WHERE [id] WITHIN {window}",
    "negation": "PATTERN SEQ(A a, !B b, C c) WHERE [id] WITHIN {window}",
    "trailing negation": "PATTERN SEQ(A a, B b, !C c) WHERE [id] WITHIN {window}",
    "group": "PATTERN SEQ(A a, B+ b, C c) WHERE [id] WITHIN {window}",
    "totals": "PATTERN SEQ(A a, B b, C c) WHERE [id] GROUP BY id AGG COUNT, SUM(c.x) WITHIN {window}",
    "ticks of all keys": "PATTERN SEQ(A a, B b) WHERE [id] AGG COUNT WITHIN {window} UPDATE 1000",
    "ticks": "PATTERN SEQ(A a, B b) WHERE [id] AGG COUNT, MAX(b.x) WITHIN {window} UPDATE 10000",
}
EVENTS_OF_A_KEY = 2  # per window of any length, so that both have the same number of matches


def make_events(start: int, events: int, window: int, settings: Settings = DEFAULTS) -> pa.Table:
    return uniform_events(events, 3, start=start, seed=settings.seeded(start), id=window // EVENTS_OF_A_KEY, x=REAL)


def engine_of(text: str, window: int) -> ManyEngine:
    schema = make_events(0, 0, window).schema
    return ManyEngine({text: ss.query(text.format(window=window)).plan(schema, "t", "kind", None)})


def batches(engine: ManyEngine, window: int, settings: Settings) -> Iterator[Taken]:
    """Return the time of each batch, once the window is full."""
    for start in range(0, window, FILL):
        part = min(FILL, window - start)
        engine.push(make_events(start, part, window, settings))
        engine.advance(start + part - 1)
        engine.changes()
    for start in count(window, NEW):
        yield taken_by(partial(_take, engine, make_events(start, NEW, window, settings), start + NEW - 1))


def _take(engine: ManyEngine, events: pa.Table, until: int) -> None:
    engine.push(events)
    engine.advance(until)
    engine.changes()


def check(text: str) -> None:
    """Check that a stream and a batch of the same events return the same rows."""
    engine, events = engine_of(text, SMALL), make_events(0, 3 * SMALL, SMALL)
    found = 0
    for start in range(0, events.num_rows, NEW):
        engine.push(events.slice(start, NEW))
        found += engine.advance(start + NEW // 2)[text].num_rows
    found += engine.finish()[text].num_rows
    expected = ss.query(text.format(window=SMALL)).run_local(events, time="t", type="kind").num_rows
    assert found == expected, f"{found:,} rows on a stream, {expected:,} in a batch"


def compare(name: str, text: str, settings: Settings) -> Measurement:
    check(text)
    streams = {window: batches(engine_of(text, window), window, settings) for window in (SMALL, LARGE)}
    many = replace(settings, repetitions=max(settings.repetitions, settings.scaled(BATCHES)))
    taken = in_turns({f"window of {window:,}": partial(next, each) for window, each in streams.items()}, many)
    samples = {each: by_clock(times, settings) for each, times in taken.items()}
    for each, times in samples.items():
        quarter = max(1, len(times) // 4)
        begin, end = statistics.median(times[:quarter]), statistics.median(times[-quarter:])
        print(
            f"{name}, {each}: {1000 * statistics.median(times):.1f} ms for {NEW:,} events, the last quarter "
            f"{end / begin:.2f}x the first",
            flush=True,
        )
    small, large = medians(samples).values()
    ratio = large / small
    print(f"{name}: a window of {LARGE // SMALL}x the events costs {ratio:.2f}x (target: below {TARGET})", flush=True)
    return Measurement(f"stream: {name}", NEW, samples, headline=f"{ratio:.2f}x")


def main(settings: Settings = DEFAULTS) -> list[Measurement]:
    return [compare(name, text, settings) for name, text in QUERIES.items()]


if __name__ == "__main__":
    main()
