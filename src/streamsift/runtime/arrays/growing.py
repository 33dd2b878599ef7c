"""Enlarge arrays that are appended to, such that an entry is copied a constant number of times."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

MIN_ROOM = 64


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


def with_room(array: np.ndarray, needed: int, fill: int = 0) -> np.ndarray:
    """Return an array of at least `needed` rows that begins with the given ones; new rows hold `fill`."""
    if needed <= array.shape[0]:
        return array
    larger = np.full((max(2 * needed, MIN_ROOM), *array.shape[1:]), fill, array.dtype)
    larger[: array.shape[0]] = array
    return larger


def ring_with_room(ring: np.ndarray, first: int, end: int, needed: int, axis: int = 0) -> np.ndarray:
    """Return a ring buffer of at least `needed` entries that holds the given one's entries [first, end).

    Entry n lies at n & (size - 1) along the axis; sizes are powers of two.
    """
    size = ring.shape[axis]
    if needed <= size:
        return ring
    larger_size = max(1 << (needed - 1).bit_length(), 2 * size)
    shape, numbers = list(ring.shape), np.arange(first, end)
    shape[axis] = larger_size
    larger: np.ndarray[Any, Any] = np.zeros(shape, ring.dtype)
    ahead = (slice(None),) * axis
    larger[(*ahead, numbers & (larger_size - 1))] = ring[(*ahead, numbers & (size - 1))]
    return larger


def wider(array: np.ndarray) -> np.ndarray:
    """Double the second axis."""
    return np.concatenate((array, np.empty_like(array)), axis=1)
