"""Lay arrays end to end, and tell where each of them starts: how steps of any number share the arrays of a kernel."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(slots=True)
class Parts:
    """Arrays to be laid end to end."""

    arrays: list[np.ndarray] = field(default_factory=list)
    size: int = 0

    def add(self, array: np.ndarray) -> int:
        """Append an array and return where it starts."""
        self.arrays.append(array)
        self.size += array.size
        return self.size - array.size

    def joined(self, dtype: type) -> np.ndarray:
        return np.concatenate([np.empty(0, dtype), *self.arrays])
