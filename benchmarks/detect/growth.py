"""Measure how Streamsift's time grows with events, window, pattern length, keys, k and number of queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa

import streamsift as ss
from benchmarks.data.keyed import keyed_events, window_ms
from benchmarks.harness.answers import Answer
from benchmarks.harness.experiment import Experiment, Settings, Side, Workload, in_process

EVENTS = 200_000
KEYS = 100
CLASSES = 12
EVENTS_PER_KEY = 24
LETTERS = "ABCDEFGHIJKL"

EVENT_COUNTS = (50_000, 100_000, 200_000, 400_000, 800_000)
EVENTS_PER_KEY_AND_WINDOW = (24, 48, 96, 192)
LENGTHS = (2, 3, 4, 6, 8)
KEY_COUNTS = (10, 100, 1_000, 10_000)
BEST = (1, 10, 100, 1_000)
QUERY_COUNTS = (1, 4, 16, 64)


def workloads(settings: Settings) -> Iterator[Workload]:
    """Return the curves; along each axis, all other parameters are constant."""
    make = partial(keyed_events, classes=CLASSES, seed=settings.seed)
    events = make(settings.scaled(EVENTS), keys=KEYS)
    window = window_ms(KEYS, EVENTS_PER_KEY)
    for name, text in (("detect", _sequence(3)), ("count", _count(4)), ("rank", _rank(10))):
        for count in EVENT_COUNTS:
            table = make(settings.scaled(count), keys=KEYS)
            yield _one(f"{name}, events", "events", table.num_rows, text(window), table)
        for held in EVENTS_PER_KEY_AND_WINDOW:
            yield _one(f"{name}, window", "window", held, text(window_ms(KEYS, held)), events)
        for keys in KEY_COUNTS:
            table = make(settings.scaled(EVENTS), keys=keys)
            yield _one(f"{name}, keys", "keys", keys, text(window_ms(keys, EVENTS_PER_KEY)), table)
    for length in LENGTHS:
        yield _one("detect, length", "length", length, _sequence(length)(window), events)
        yield _one("count, length", "length", length, _count(length)(window), events)
    for k in BEST:
        yield _one("rank, k", "k", k, _rank(k)(window), events)
    for count in QUERY_COUNTS:
        yield _many(count, window, events)


def _steps(length: int) -> str:
    return ", ".join(f"{letter} {letter.lower()}" for letter in LETTERS[:length])


def _sequence(length: int) -> Callable[[int], str]:
    return lambda window: f"SEQ({_steps(length)}) WHERE [key] WITHIN {window} RETURN a.n AS a"


def _count(length: int) -> Callable[[int], str]:
    return lambda window: f"SEQ({_steps(length)}) GROUP BY key AGG COUNT WITHIN {window}"


def _rank(k: int) -> Callable[[int], str]:
    return lambda window: f"SEQ({_steps(3)}) WHERE [key] WITHIN {window} PREF MAX[c.n - a.n] RETURN {k}"


def _one(name: str, axis: str, value: int, text: str, events: pa.Table) -> Workload:
    run = partial(_run, text, events)
    contender = in_process("streamsift", Side.OURS, run, lambda rows: Answer(rows, 0))
    return Workload(f"{name} = {value:,}", events.num_rows, (contender,), query=text, parameters={axis: value})


def _run(text: str, events: pa.Table) -> int:
    return int(ss.query(text).run_local(events, time="t", type="kind").num_rows)


def _many(count: int, window: int, events: pa.Table) -> Workload:
    """Return counts of sequences with a common prefix: A, B, then two of the other classes."""
    others = [(one, other) for one in LETTERS[2:] for other in LETTERS[2:] if one != other][:count]
    texts = {
        f"q{number}": f"SEQ(A a, B b, {one} x, {other} y) GROUP BY key AGG COUNT WITHIN {window}"
        for number, (one, other) in enumerate(others)
    }

    def run() -> int:
        queries = {name: ss.query(text) for name, text in texts.items()}
        return sum(table.num_rows for table in ss.run_many(queries, events, time="t", type="kind").values())

    contender = in_process("streamsift", Side.OURS, run, lambda rows: Answer(rows, 0))
    name = f"count, queries = {count}"
    return Workload(name, events.num_rows, (contender,), query=texts["q0"], parameters={"queries": count})


EXPERIMENT = Experiment("growth", (__doc__ or "").strip(), workloads)
