"""Generate events of classes with given populations, as in a data set of music ratings."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

# Populations of tracks t147073, t56437, t189820 and t531386 in a million ratings: table 1 of the Kleene paper.
POPULATION = {"A": 1661, "B": 1350, "C": 1325, "D": 1268}


def ratings(population: dict[str, int], records: int, seed: int = 1) -> pa.Table:
    """Return the events of the four classes among the given number of records; the time is the record number."""
    random = np.random.default_rng(seed)
    counts = [count * records // 1_000_000 for count in population.values()]
    kinds = pa.array(list(population)).take(pa.array(random.permutation(np.repeat(np.arange(len(counts)), counts))))
    times = np.sort(random.choice(records, sum(counts), replace=False))
    return pa.table({"t": times, "kind": kinds, "x": random.random(times.size)})
