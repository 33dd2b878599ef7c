"""Check that a definition window limits the search: a pattern with a definition costs about what its parts cost."""

from __future__ import annotations

import time
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import streamsift as ss

EVENTS = 20_000
MAX_RATIO = 10  # to the cost of the parts; comparing all pairs of events of an hour would cost hundreds of times more
SLACK_S = 0.05
RISES = "ANY a; ANY b; ANY c WHERE a.price < b.price AND b.price < c.price"


def trades() -> pa.Table:
    """Prices of a random walk, about 7,000 per hour."""
    random = np.random.default_rng(19)
    times = 1_714_521_600_000 + np.sort(random.integers(0, 3 * 3_600_000, EVENTS))
    return pa.table(
        {
            "ts": pa.array(times).cast(pa.timestamp("ms")),
            "symbol": random.choice(["X", "Y", "Z"], EVENTS),
            "price": 100.0 + np.cumsum(random.normal(0.0, 0.1, EVENTS)),
            "volume": random.integers(0, 1_000, EVENTS),
        }
    )


def least_seconds(text: str, table: pa.Table) -> float:
    """Return the CPU time of the fastest of three runs, after a first run that compiles kernels."""
    query, seconds = ss.query(text), []
    for _ in range(4):
        started = time.process_time()
        query.run_local(table, time="ts")
        seconds.append(time.process_time() - started)
    return min(seconds[1:])


DEFINITIONS = [
    f"{RISES} WITHIN 3 EVENTS",
    f"{RISES} WITHIN 3 EVENTS PARTITION BY symbol",
    f"{RISES} WITHIN 1 s EXCLUSIVE",
    "AND(ANY a, ANY c) WHERE a.price < c.price - 0.2 WITHIN 3 EVENTS",
]
GROUP = "ANY a; ANY+ b; ANY c WHERE a.price < b.price AND b.price < c.price WITHIN 4 EVENTS"
PATTERNS = ["R; ANY e", "ANY e; R", "R; !ANY z; ANY e", "ANY d; R; ANY e", "AND(R, ANY e)"]


@pytest.mark.parametrize(
    ("definition", "pattern"),
    [*product(DEFINITIONS, PATTERNS), *product([GROUP], PATTERNS[:3])],  # a group is found for each match around it
)
def test_a_pattern_around_a_definition_costs_its_parts(definition: str, pattern: str) -> None:
    table = trades()
    alone = least_seconds(f"PATTERN {definition}", table)
    # Few other events qualify, so that the search costs more than building the result.
    rest = " AND ".join(f"{name}.volume = 999" for name in "dez" if f"ANY {name}" in pattern)
    end = "WITHIN 1 hour RETURN e.price"
    around = least_seconds(f"PATTERN {pattern.replace('R', 'ANY r')} WHERE r.volume < 500 AND {rest} {end}", table)
    both = least_seconds(f"SEQ R = {definition} PATTERN {pattern} WHERE {rest} {end}", table)
    assert both < MAX_RATIO * (alone + around) + SLACK_S
