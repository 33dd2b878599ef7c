"""Measures of paths in, those of longer paths out: what an event does to them, forwards and backwards.

A path is a part of a match. Integers and reals follow the same rule, wrapping
and rounding: extending a path by an event adds, to each sum, the event's value once for each path. For extremes, a path
holds the code of its event, or the least number before it has one; a longer path the greater of both; of several paths
the least counts. Like (+, *) that is a semiring, so windows are products here too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Float64, Int64
from streamsift.runtime.count.measures import NOTHING

BEFORE = np.iinfo(np.int64).min  # the code of a path that has not reached the event whose code counts


class Loads(NamedTuple):
    """What an event adds when it becomes the given level of a path. Number 0 of integers and reals counts paths."""

    integer_levels: Int64  # [integers]
    integers: Int64  # [integers, places]
    real_levels: Int64  # [reals]
    reals: Float64  # [reals, places]
    least_levels: Int64  # [extremes]
    least: Int64  # [extremes, places]


class Paths(NamedTuple):
    """The measures of paths from one row's beginning to each level."""

    integers: Int64  # [rows, integers, levels + 1]
    reals: Float64  # [rows, reals, levels + 1]
    least: Int64  # [rows, extremes, levels + 1]


@njit(cache=True, nogil=True)
def no_paths(rows: int, loads: Loads, levels: int) -> Paths:
    return Paths(
        np.zeros((rows, loads.integer_levels.size, levels + 1), np.int64),
        np.zeros((rows, loads.real_levels.size, levels + 1), np.float64),
        np.full((rows, loads.least_levels.size, levels + 1), NOTHING, np.int64),
    )


@njit(cache=True, nogil=True)
def clear(paths: Paths, row: int, level: int) -> None:
    paths.integers[row, :, level] = 0
    paths.reals[row, :, level] = 0.0
    paths.least[row, :, level] = NOTHING


@njit(cache=True, nogil=True)
def begin(paths: Paths, row: int, level: int) -> None:
    """The row has the empty path, which ends at `level`, and no other."""
    paths.integers[row] = 0
    paths.reals[row] = 0.0
    paths.least[row] = NOTHING
    paths.integers[row, 0, level] = 1
    paths.reals[row, 0, level] = 1.0
    paths.least[row, :, level] = BEFORE


@njit(cache=True, nogil=True)
def extend(paths: Paths, row: int, level: int, place: int, loads: Loads) -> None:
    """Every path to level - 1 also goes on to `level` by the event at `place`."""
    integers, reals, least = paths.integers[row], paths.reals[row], paths.least[row]
    many = integers[0, level - 1]
    for c in range(loads.integer_levels.size):
        integers[c, level] += integers[c, level - 1]
        if loads.integer_levels[c] == level:
            integers[c, level] += loads.integers[c, place] * many
    size = reals[0, level - 1]
    for c in range(loads.real_levels.size):
        reals[c, level] += reals[c, level - 1]
        if loads.real_levels[c] == level:
            reals[c, level] += loads.reals[c, place] * size
    for c in range(loads.least_levels.size):
        code = least[c, level - 1]
        if loads.least_levels[c] == level:
            code = max(code, loads.least[c, place])
        least[c, level] = min(least[c, level], code)


@njit(cache=True, nogil=True)
def precede(paths: Paths, level: int, place: int, loads: Loads, levels: int) -> None:
    """Row p being the paths from level p on: those from level - 1 may first go to `level` by the event at `place`."""
    for p in range(level, levels + 1):
        many = paths.integers[level, 0, p]
        for c in range(loads.integer_levels.size):
            paths.integers[level - 1, c, p] += paths.integers[level, c, p]
            if loads.integer_levels[c] == level:
                paths.integers[level - 1, c, p] += loads.integers[c, place] * many
        size = paths.reals[level, 0, p]
        for c in range(loads.real_levels.size):
            paths.reals[level - 1, c, p] += paths.reals[level, c, p]
            if loads.real_levels[c] == level:
                paths.reals[level - 1, c, p] += loads.reals[c, place] * size
        for c in range(loads.least_levels.size):
            code = paths.least[level, c, p]
            if loads.least_levels[c] == level:
                code = max(code, loads.least[c, place])
            paths.least[level - 1, c, p] = min(paths.least[level - 1, c, p], code)
