"""Measure matches with Kleene groups: a single event counts once, a group with each of its elements."""

from __future__ import annotations

import numpy as np

from streamsift.runtime.arrays.dtypes import Float64, Int32, Int64
from streamsift.runtime.count.extremes import NOTHING
from streamsift.runtime.count.measures import Measures, Totals
from streamsift.runtime.matches import GroupValues


def totals_of_groups(measures: Measures, values: GroupValues) -> Totals:
    """Return the totals of each match as a set of one."""
    count = len(values.found)

    def bound(variable: int) -> tuple[Int32, Int64]:
        """Return the places that a variable binds, match after match, and how many each match has."""
        if variable in values.singles:
            return values.found.singles[values.singles[variable]], np.ones(count, np.int64)
        if not values.is_group(variable):
            return np.empty(0, np.int32), np.zeros(count, np.int64)
        places, offsets = values.elements(variable)
        return places, np.diff(offsets)

    integers, sizes = [np.ones(count, np.int64)], [np.ones(count)]
    for variable, addends in zip(measures.integer_variables, measures.integer_values, strict=True):
        places, many = bound(variable)
        integers.append(_integer_sums(addends[places], many))
        sizes.append(_real_sums(np.abs(addends[places].astype(np.float64)), many))
    reals = []
    for variable, parts in zip(measures.real_variables, measures.real_values, strict=True):
        places, many = bound(variable)
        reals.append(_real_sums(parts[places], many))
    least = []
    for variable, codes in zip(measures.least_variables, measures.least_values, strict=True):
        places, many = bound(variable)
        least.append(_least(codes[places], many))
    extremes = np.stack(least, axis=1) if least else np.empty((count, 0), np.int64)
    return Totals(np.stack(integers, axis=1), np.stack([*sizes, *reals], axis=1), extremes)


def _integer_sums(values: Int64, many: Int64) -> Int64:
    """Return differences of running sums: exact, as they wrap alike."""
    running = np.concatenate([[0], np.cumsum(values)])
    ends = np.cumsum(many)
    return running[ends] - running[ends - many]


def _real_sums(values: Float64, many: Int64) -> Float64:
    return np.bincount(np.repeat(np.arange(many.size), many), values, many.size).astype(np.float64, copy=False)


def _least(values: Int64, many: Int64) -> Int64:
    found = np.full(many.size, NOTHING, np.int64)
    full = many > 0
    if full.any():
        found[full] = np.minimum.reduceat(values, (np.cumsum(many) - many)[full])
    return found
