"""Generate events of many keys with distinct times."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

MEAN_GAP_MS = 2


def keyed_events(events: int, classes: int, keys: int, seed: int = 1) -> pa.Table:
    """Return events with number, time in milliseconds, class and key; class, key and gaps are uniformly random.

    No two events have the same time, because engines differ in how they order equal times.
    """
    random = np.random.default_rng(seed)
    names = pa.array([chr(ord("A") + number) for number in range(classes)])
    return pa.table(
        {
            "n": np.arange(events),
            "t": np.cumsum(random.integers(1, 2 * MEAN_GAP_MS, events)),
            "kind": names.take(pa.array(random.integers(0, classes, events))),
            "key": random.integers(0, keys, events),
        }
    )


def window_ms(keys: int, events_per_key: int) -> int:
    """Return the length of a window in which a key has the given number of events on average."""
    return MEAN_GAP_MS * keys * events_per_key
