"""Generate uniformly random events, one for each time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

REAL = 0  # a column of real numbers from 0 to 1; other columns have integers from 0


def uniform_events(events: int, classes: int, *, start: int = 0, seed: int = 1, **columns: int) -> pa.Table:
    """Return times from `start` on, classes, and further columns by their number of values, or REAL."""
    random = np.random.default_rng(seed)
    names = pa.array([chr(ord("A") + number) for number in range(classes)])
    found: dict[str, np.ndarray | pa.Array] = {
        "t": np.arange(start, start + events),
        "kind": names.take(pa.array(random.integers(0, classes, events))),
    }
    for name, values in columns.items():
        found[name] = random.random(events) if values == REAL else random.integers(0, values, events)
    return pa.table(found)
