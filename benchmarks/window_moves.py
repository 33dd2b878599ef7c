"""What a move of the window costs a ranking: windows of 10^3 to 10^6 events, steps of 10^2 to 10^4.

The whole engine on generated readings, without a key and with one of 2,000 keys that all events of a match share. The
score is a reading's level, a real number of its own: where very many sums of doubles are equal (54 distances), their
rounding must be looked at one by one, and windows of 10,000 events and more cost what their ties are.
"""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

import streamsift as ss
from benchmarks.report import Measurement
from benchmarks.sensors import generated

EVENTS = 2_000_000
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


def milliseconds(table: pa.Table, window: int, step: int, *, keyed: bool) -> float:
    """Of one move, after the results were compared with those of another algorithm."""
    wanted = query(window, step, keyed=keyed)
    some = table.slice(0, CHECKED)
    found, other = (wanted.run_local(some, time="t", type="kind", rank=by) for by in ("auto", "k-ssp"))
    assert found.equals(other), f"window {window:,}, step {step:,}: the algorithms differ"
    seconds = np.inf
    for _ in range(ROUNDS):
        begin = time.thread_time()
        wanted.run_local(table, time="t", type="kind")
        seconds = min(seconds, time.thread_time() - begin)
    return seconds / (EVENTS // step) * 1e3


def main() -> list[Measurement]:
    table, found = readings(), []
    for keyed in (False, True):
        name = "2,000 keys" if keyed else "no key"
        by_window = {w: milliseconds(table, w, 1_000, keyed=keyed) for w in (1_000, 10_000, 100_000, 1_000_000)}
        base = by_window[1_000]
        told = ", ".join(f"{window:,}: {taken:.3f} ms ({taken / base:.2f})" for window, taken in by_window.items())
        print(f"  {name}, moves by 1,000 of windows of {told}", flush=True)
        by_step = {s: milliseconds(table, 100_000, s, keyed=keyed) for s in (100, 1_000, 10_000)}
        told = ", ".join(f"{step:,}: {taken:.3f} ms" for step, taken in by_step.items())
        print(f"  {name}, a window of 100,000 moved by {told}", flush=True)
        headline = f"10^6 events cost {by_window[1_000_000] / base:.2f} times as much as 10^3"
        seconds = {f"{window:,} events": taken / 1e3 for window, taken in by_window.items()}
        found.append(Measurement(f"one move of 1,000 events, {name}", EVENTS, seconds, headline=headline))
    return found


if __name__ == "__main__":
    main()
