"""Find the ticks of UPDATE around times, exactly: for counts of units by division, for doubles as doubles compare."""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import numpy as np

from streamsift.errors import BadInputError
from streamsift.runtime.arrays.doubles import last_multiple, last_multiples
from streamsift.runtime.arrays.dtypes import LARGEST, Float64, Int64, Times

INT64 = np.iinfo(np.int64)
SAFE = 2**62
SMALL = 2**52


def floor_quotients(ticks: Times, shift: Fraction, step: Fraction) -> Int64:
    """The largest k with k * step - shift <= tick, for each of the ascending ticks; ± SAFE for infinite ones.

    With doubles, k * step - shift is rounded to a double first.
    """
    if not ticks.size:
        return np.empty(0, np.int64)
    if ticks.dtype == np.float64:
        return _of_doubles(ticks.view(np.float64), shift, step)
    # (tick + a/b) * q/p = (tick * bq + aq) / (bp)
    factor = shift.denominator * step.denominator
    plus, divisor = shift.numerator * step.denominator, shift.denominator * step.numerator
    largest = max(abs(int(ticks[0])), abs(int(ticks[-1]))) * factor + abs(plus)
    if largest < SAFE and divisor < SAFE:
        return np.floor_divide(ticks.astype(np.int64) * factor + plus, divisor)
    return _fitting([(int(tick) * factor + plus) // divisor for tick in ticks.tolist()])


def _of_doubles(times: Float64, shift: Fraction, step: Fraction) -> Int64:
    """By a kernel where all numbers are small enough for it, else by fractions, once for each distinct time."""
    divisor = lcm(shift.denominator, step.denominator)
    each, moved = int(step * divisor), int(shift * divisor)
    found = np.full(times.size, ~LARGEST, np.int64)
    if max(divisor, each, abs(moved)) < SMALL:
        found = last_multiples(times, each, moved, divisor)
    others = np.flatnonzero((found == ~LARGEST) & np.isfinite(times))
    distinct, which = np.unique(times[others], return_inverse=True)
    found[others] = _fitting([last_multiple(time, step, shift) for time in distinct.tolist()])[which]
    found[times == np.inf], found[times == -np.inf] = SAFE, -SAFE
    return found


def _fitting(numbers: list[int]) -> Int64:
    if any(not INT64.min <= number <= INT64.max for number in numbers):
        raise BadInputError("The ticks of UPDATE do not fit 64 bits: update less often.")
    return np.array(numbers, np.int64)
