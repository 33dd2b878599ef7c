"""Double the capacity of arrays that kernels append to."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def grown(array: np.ndarray) -> np.ndarray:
    larger = np.empty((2 * array.shape[0], array.shape[1]), array.dtype)
    larger[: array.shape[0]] = array
    return larger


@njit(cache=True, nogil=True)
def longer(array: np.ndarray) -> np.ndarray:
    twice = np.empty(2 * array.size, array.dtype)
    twice[: array.size] = array
    return twice


def wider(array: np.ndarray) -> np.ndarray:
    """Double the second axis."""
    return np.concatenate((array, np.empty_like(array)), axis=1)
