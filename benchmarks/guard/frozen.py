"""Run plain loops that never change, to measure how fast this machine currently is.

Contract: this code never changes. A change invalidates every threshold; if it is unavoidable, record them again with
`python -m benchmarks check --record`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

EVENTS = 400_000


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def count_triples(kinds: np.ndarray, window: int) -> int:
    """Test branches and integers: A, B, C at increasing indices, at most `window` apart."""
    found = 0
    for first in range(kinds.size):
        if kinds[first] != 0:
            continue
        last = min(first + window + 1, kinds.size)
        for second in range(first + 1, last):
            if kinds[second] != 1:
                continue
            for third in range(second + 1, last):
                if kinds[third] == 2:
                    found += 1
    return found


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def add_prefixes(kinds: np.ndarray, rounds: int) -> int:
    """Test dependent additions on a small vector, which wrap."""
    prefixes = np.zeros(4, np.int64)
    for _ in range(rounds):
        prefixes[0] += 1
        for place in range(kinds.size):
            step = kinds[place]
            prefixes[step + 1] += prefixes[step]
    return prefixes[3]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def gather(values: np.ndarray, order: np.ndarray, out: np.ndarray) -> float:
    """Test memory: read values in another order."""
    for place in range(order.size):
        out[place] = values[order[place]]
    return out[order.size // 2]


class Frozen:
    """The three loops with their data; `run` runs one by name."""

    def __init__(self, seed: int = 1) -> None:
        random = np.random.default_rng(seed)
        self.kinds = random.integers(0, 3, EVENTS).astype(np.int8)
        self.values = random.random(4 * EVENTS)
        self.order = random.permutation(4 * EVENTS)
        self.out = np.empty_like(self.values)

    def run(self, name: str) -> float:
        match name:
            case "branches":
                return float(count_triples(self.kinds, 12))
            case "additions":
                return float(add_prefixes(self.kinds, 8))
            case "memory":
                return float(gather(self.values, self.order, self.out))
        raise ValueError(f"no frozen loop `{name}`")
