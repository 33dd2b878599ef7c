"""Measure pushes of a stream in process: latency of 1, 100 and 10,000 events, and few dense keys beside a small window.

Rows are compared with those of a batch first. Samples are single pushes, in turns; percentiles are printed besides the
medians, and rates are by the clock of the settings.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

import pyarrow as pa

import streamsift as ss
from benchmarks.data.uniform import REAL, uniform_events
from benchmarks.harness.clock import Taken, taken_by
from benchmarks.harness.experiment import DEFAULTS, Settings
from benchmarks.harness.turns import by_clock, in_turns
from benchmarks.report.measurement import Measurement

WINDOW, KEYS = 3_000, 1_000
SIZES = (1, 100, 10_000)
PUSHES = 200
FILL = 100_000
QUERY = "PATTERN SEQ(A a, B b, C c) WHERE [id] WITHIN {window}"
DENSE = "PATTERN SEQ(A a, B b, C c) WHERE [id] AND b.x > a.x AND b.x < a.x + 0.00001 WITHIN {window}"  # few matches
EVENTS_OF_DENSE_KEY = 2_000
TARGETS_MS = {1: 0.5, 100: 1.5, 10_000: 2.5}
DENSE_TARGET = 1.5


@dataclass(frozen=True, slots=True)
class Load:
    """A stream of one event per time unit: the events of a push, of a window, and the number of keys."""

    events: int
    window: int = WINDOW
    keys: int = KEYS
    query: str = QUERY

    @property
    def name(self) -> str:
        events = "1 event" if self.events == 1 else f"{self.events:,} events"
        return f"{events}, window of {self.window:,} events in {self.keys:,} keys"

    def make(self, start: int, events: int, settings: Settings) -> pa.Table:
        return uniform_events(events, 3, start=start, seed=settings.seeded(start), id=self.keys, x=REAL)

    def open(self) -> ss.Stream[pa.Table]:
        schema = uniform_events(0, 3, id=self.keys, x=REAL).schema
        return ss.query(self.query.format(window=self.window)).open(schema, time="t", type="kind")

    def pushes(self, settings: Settings) -> Iterator[Taken]:
        """Yield the time of each push, once the window is full."""
        stream = self.open()
        for start in range(0, self.window, FILL):
            stream.push(self.make(start, min(FILL, self.window - start), settings))
        ahead = max(1, 10_000 // self.events)  # pushes that are made at once, as slices
        for start in count(self.window, ahead * self.events):
            events = self.make(start, ahead * self.events, settings)
            for number in range(ahead):
                yield taken_by(partial(stream.push, events.slice(number * self.events, self.events)))


def check(load: Load) -> None:
    """Check that a stream and a batch of the same events return the same rows."""
    stream, events = load.open(), load.make(0, min(3 * WINDOW, 200 * load.events), DEFAULTS)
    rows: Counter[str] = Counter()
    for start in range(0, events.num_rows, load.events):
        rows.update(map(str, stream.push(events.slice(start, load.events)).to_pylist()))
    rows.update(map(str, stream.finish().to_pylist()))
    batch = ss.query(load.query.format(window=load.window)).run_local(events, time="t", type="kind")
    assert rows == Counter(map(str, batch.to_pylist())), "a stream and a batch return different rows"


def percentile(times: tuple[float, ...], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(share * len(times)))]


def compare(name: str, loads: list[Load], settings: Settings) -> tuple[Measurement, dict[Load, tuple[float, ...]]]:
    runs = {load.name: partial(next, load.pushes(settings)) for load in loads}
    many = replace(settings, repetitions=max(settings.repetitions, settings.scaled(PUSHES)))
    taken = {each: by_clock(times, settings) for each, times in in_turns(runs, many).items()}
    for load in loads:
        times = taken[load.name]
        median, high = statistics.median(times), percentile(times, 0.99)
        print(
            f"{load.name}: median {1000 * median:.2f} ms, p99 {1000 * high:.2f} ms ({high / median:.1f}x), "
            f"{load.events / median:,.0f} events/s",
            flush=True,
        )
    return Measurement(name, loads[0].events, taken), {load: taken[load.name] for load in loads}


def main(settings: Settings = DEFAULTS) -> list[Measurement]:
    found = []
    for load in map(Load, SIZES):
        check(load)
        measured, times = compare(f"push: {load.events:,}", [load], settings)
        found.append(replace(measured, headline=f"{1000 * statistics.median(times[load]):.2f} ms"))
        print(f"  target: {TARGETS_MS[load.events]} ms", flush=True)
    small, dense = (Load(10_000, window, window // EVENTS_OF_DENSE_KEY, DENSE) for window in (20_000, 2_000_000))
    check(small)
    few = replace(settings, scale=0.1 * settings.scale)
    measured, times = compare("push: few dense keys", [small, dense], few)
    ratio = statistics.median(times[dense]) / statistics.median(times[small])
    print(f"few dense keys: a window of 100x the events costs {ratio:.2f}x (target: {DENSE_TARGET})", flush=True)
    return [*found, replace(measured, headline=f"{ratio:.2f}x")]


if __name__ == "__main__":
    main()
