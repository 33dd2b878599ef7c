"""What a move of the window costs a ranking: windows of 10^3 to 10^6 events, steps of 10^2 to 10^4.

The whole engine on generated readings, without a key and with one of 2,000 keys that all events of a match share. The
score is a reading's level, a real number of its own: where very many sums of doubles are equal (54 distances), their
rounding must be looked at one by one, and windows of 10,000 events and more cost what their ties are. A score that
is no sum, SQRT(a.level^2 + b.level^2), goes by a rank join, which is compared with finding all matches.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa

import streamsift as ss
from benchmarks.data.sensors import generated
from benchmarks.report import Measurement

EVENTS = 2_000_000
ROOTS = 400_000  # of them for the score that is no sum
KEYS = 2_000
CHECKED = 20_000  # events on which results are compared
ROUNDS = 3


def readings() -> pa.Table:
    random, table = np.random.default_rng(3), generated(EVENTS)
    table = table.append_column("id", pa.array(random.integers(0, KEYS, EVENTS)))
    return table.append_column("level", pa.array(random.random(EVENTS)))


def query(window: int, step: int, *, keyed: bool) -> ss.Query:
    where = "WHERE [id] " if keyed else ""
    return ss.query(
        f"SEQ(EG a, EH b, EJ c) {where}PREF MAX[a.level + b.level + c.level] "
        f"WITHIN {window} EVENTS UPDATE {step} EVENTS RETURN 10"
    )


def root_query(window: int, step: int) -> ss.Query:
    return ss.query(
        f"SEQ(EG a, EH b) PREF MAX[SQRT(a.level^2 + b.level^2)] WITHIN {window} EVENTS UPDATE {step} EVENTS RETURN 10"
    )


def milliseconds(table: pa.Table, wanted: ss.Query, step: int, by: str, other: str) -> float:
    """Of one move, after the results were compared with those of another algorithm."""
    found, again = (_ranked(wanted, table.slice(0, CHECKED), each) for each in (by, other))
    assert found.equals(again), f"{wanted.text}: the algorithms differ"
    seconds = np.inf
    for _ in range(ROUNDS):
        begin = time.thread_time()
        _ranked(wanted, table, by)
        seconds = min(seconds, time.thread_time() - begin)
    return seconds / (table.num_rows // step) * 1e3


def _ranked(wanted: ss.Query, table: pa.Table, by: Any) -> pa.Table:
    return wanted.run_local(table, time="t", type="kind", rank=by)


def main() -> list[Measurement]:
    table, found = readings(), []
    for keyed in (False, True):
        name = "2,000 keys" if keyed else "no key"
        by_window = {
            window: milliseconds(table, query(window, 1_000, keyed=keyed), 1_000, "auto", "k-ssp")
            for window in (1_000, 10_000, 100_000, 1_000_000)
        }
        found.append(_told(name, table.num_rows, by_window))
        by_step = {
            step: milliseconds(table, query(100_000, step, keyed=keyed), step, "auto", "k-ssp")
            for step in (100, 1_000, 10_000)
        }
        told = ", ".join(f"{step:,}: {taken:.3f} ms" for step, taken in by_step.items())
        print(f"  {name}, a window of 100,000 moved by {told}", flush=True)
    some = table.slice(0, ROOTS)
    by_window = {
        window: milliseconds(some, root_query(window, 1_000), 1_000, "join", "enumerate")
        for window in (1_000, 10_000, 100_000)
    }
    found.append(_told("no sum", some.num_rows, by_window))
    return found


def _told(name: str, rows: int, by_window: dict[int, float]) -> Measurement:
    (first, base), *_ = by_window.items()
    told = ", ".join(f"{window:,}: {taken:.3f} ms ({taken / base:.2f})" for window, taken in by_window.items())
    print(f"  {name}, moves by 1,000 of windows of {told}", flush=True)
    largest = max(by_window)
    headline = f"{largest:,} events cost {by_window[largest] / base:.2f} times as much as {first:,}"
    seconds = {f"{window:,} events": taken / 1e3 for window, taken in by_window.items()}
    return Measurement(f"one move of 1,000 events, {name}", rows, seconds, headline=headline)


if __name__ == "__main__":
    main()
