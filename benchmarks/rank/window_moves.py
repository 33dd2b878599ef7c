"""Measure the cost of moving the window of a ranking: windows of 10^3 to 10^6 events, steps of 10^2 to 10^4.

The whole engine runs on generated readings, without a key and with one of 2,000 keys that all events of a match share.
The score is a sum of levels, which are real numbers that rarely tie, or of values that tie often, exactly or up to
rounding: integers, tenths (0 to 99.9, and 0 to 0.9), the distances of 54 motes, and rises that telescope. A score that
is not a sum, SQRT(a.level^2 + b.level^2), uses a rank join, which is compared with finding all matches. A larger scale
makes only the stream longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

import streamsift as ss
from benchmarks.data.sensors import generated
from benchmarks.harness.experiment import DEFAULTS, Settings
from benchmarks.harness.turns import Samples, medians, sampled
from benchmarks.report.measurement import Measurement

EVENTS = 2_000_000
WINDOWS, STEP = (1_000, 10_000, 100_000, 1_000_000), 1_000
ROOTS = 400_000  # events for the score that is not a sum
KEYS = 2_000
CHECKED = 20_000  # events on which results are compared
TIED = 1_500  # the same for scores with many ties, because the check enumerates all matches
SEED = 3

TIES = {
    "integers": "a.whole + b.whole + c.whole",
    "tenths up to 99.9": "a.tenths + b.tenths + c.tenths",
    "tenths up to 0.9": "a.few + b.few + c.few",
    "54 distances": "a.distance + b.distance + c.distance",
    "rises that telescope": "(b.tenths - a.tenths) + (c.tenths - b.tenths)",
    "a variable without a component": "a.level + c.level",
}


def readings(settings: Settings) -> pa.Table:
    events = settings.scaled(EVENTS)
    random, table = np.random.default_rng(settings.seeded(SEED)), generated(events, settings.seed)
    table = table.append_column("id", pa.array(random.integers(0, KEYS, events)))
    table = table.append_column("level", pa.array(random.random(events)))
    table = table.append_column("whole", pa.array(random.integers(0, 100, events)))
    table = table.append_column("tenths", pa.array(random.integers(0, 1_000, events) / 10))
    return table.append_column("few", pa.array(random.integers(0, 10, events) / 10))


def query(window: int, step: int, *, keyed: bool, score: str = "a.level + b.level + c.level") -> ss.Query:
    where = "WHERE [id] " if keyed else ""
    return ss.query(
        f"SEQ(EG a, EH b, EJ c) {where}PREF MAX[{score}] WITHIN {window} EVENTS UPDATE {step} EVENTS RETURN 10"
    )


def root_query(window: int, step: int) -> ss.Query:
    return ss.query(
        f"SEQ(EG a, EH b) PREF MAX[SQRT(a.level^2 + b.level^2)] WITHIN {window} EVENTS UPDATE {step} EVENTS RETURN 10"
    )


def checked(table: pa.Table, wanted: ss.Query, by: str, other: str, checked_rows: int) -> None:
    """Check that another algorithm returns the same results."""
    found, again = (_ranked(wanted, table.slice(0, checked_rows), each) for each in (by, other))
    assert found.equals(again), f"{wanted.text}: the algorithms differ"


def _ranked(wanted: ss.Query, table: pa.Table, by: Any) -> pa.Table:
    return wanted.run_local(table, time="t", type="kind", rank=by)


def moved(
    table: pa.Table,
    queries: dict[tuple[int, int], ss.Query],  # by window and step
    settings: Settings,
    by: str = "auto",
    other: str = "k-ssp",
    checked_rows: int = CHECKED,
) -> dict[tuple[int, int], Samples]:
    """Return the seconds of one move of each window by its step, after checking the results."""
    for wanted in queries.values():
        checked(table, wanted, by, other, checked_rows)
    runs = {str(sizes): partial(_ranked, wanted, table, by) for sizes, wanted in queries.items()}
    samples = sampled(runs, settings, warm=True)
    moves = {sizes: max(1, table.num_rows // sizes[1]) for sizes in queries}
    return {sizes: tuple(taken / moves[sizes] for taken in samples[str(sizes)]) for sizes in queries}


def _by_window(name: str, table: pa.Table, queries: dict[int, ss.Query], settings: Settings, **how: Any) -> Measurement:
    samples = moved(table, {(window, STEP): each for window, each in queries.items()}, settings, **how)
    times = {f"{window:,} events": taken for (window, _), taken in samples.items()}
    return _reported(f"one move of {STEP:,} events, {name}", table.num_rows, times)


def both_axes(table: pa.Table, settings: Settings) -> Iterator[Measurement]:
    for keyed in (False, True):
        name = "2,000 keys" if keyed else "no key"
        yield _by_window(name, table, {window: query(window, STEP, keyed=keyed) for window in WINDOWS}, settings)
        by_step = {(100_000, step): query(100_000, step, keyed=keyed) for step in (100, 1_000, 10_000)}
        times = {f"a step of {step:,}": taken for (_, step), taken in moved(table, by_step, settings).items()}
        yield _reported(f"one move of a window of 100,000 events, {name}", table.num_rows, times)


def main(settings: Settings = DEFAULTS) -> list[Measurement]:
    table = readings(settings)
    found = list(both_axes(table, settings))
    for (name, score), keyed in product(TIES.items(), (False, True)):
        queries = {window: query(window, STEP, keyed=keyed, score=score) for window in WINDOWS}
        named = f"{name}, {'2,000 keys' if keyed else 'no key'}"
        found.append(_by_window(named, table, queries, settings, other="enumerate", checked_rows=TIED))
    some = table.slice(0, settings.scaled(ROOTS))
    queries = {window: root_query(window, STEP) for window in WINDOWS[:-1]}
    found.append(_by_window("not a sum", some, queries, settings, by="join", other="enumerate"))
    return found


def _reported(name: str, rows: int, times: dict[str, Samples]) -> Measurement:
    taken = medians(times)
    (first, base), *_, (last, most) = taken.items()
    listed = ", ".join(f"{each}: {seconds * 1e3:.3f} ms ({seconds / base:.2f})" for each, seconds in taken.items())
    print(f"  {name}: {listed}", flush=True)
    return Measurement(name, rows, times, headline=f"{last} cost {most / base:.2f} times as much as {first}")


if __name__ == "__main__":
    main()
