"""Times in, the numbers of the ticks of UPDATE out: exact floors of quotients, for whole and for real times."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from streamsift.errors import BadInputError
from streamsift.runtime.kernels import Float64, Int64, Ticks

INT64 = np.iinfo(np.int64)
SAFE = 2**62


def floor_quotients(ticks: Ticks, shift: Fraction, step: Fraction) -> Int64:
    """floor((tick + shift) / step) for each of the ascending ticks, exactly; ± SAFE for infinite ones."""
    if not ticks.size:
        return np.empty(0, np.int64)
    if ticks.dtype == np.float64:
        return _of_reals(ticks.view(np.float64), shift, step)
    # (tick + a/b) * q/p = (tick * bq + aq) / (bp)
    factor = shift.denominator * step.denominator
    plus, divisor = shift.numerator * step.denominator, shift.denominator * step.numerator
    largest = max(abs(int(ticks[0])), abs(int(ticks[-1]))) * factor + abs(plus)
    if largest < SAFE and divisor < SAFE:
        return np.floor_divide(ticks.astype(np.int64) * factor + plus, divisor)
    return _fitting([(int(tick) * factor + plus) // divisor for tick in ticks.tolist()])


def _of_reals(ticks: Float64, shift: Fraction, step: Fraction) -> Int64:
    """By division in doubles, but exactly wherever rounding could have passed a whole number."""
    finite = np.isfinite(ticks)
    about = (np.where(finite, ticks, 0.0) + float(shift)) / float(step)
    slack = 1e-12 * (np.abs(about) + abs(float(shift / step)) + 1)
    doubtful = finite & (np.floor(about - slack) != np.floor(about + slack))
    found = np.floor(np.clip(about, -float(SAFE), float(SAFE))).astype(np.int64)
    found[doubtful] = _fitting([(Fraction(tick) + shift) // step for tick in ticks[doubtful].tolist()])
    found[~finite] = np.where(ticks[~finite] > 0, SAFE, -SAFE)
    return found


def _fitting(numbers: list[int]) -> Int64:
    if any(not INT64.min <= number <= INT64.max for number in numbers):
        raise BadInputError("The ticks of UPDATE do not fit 64 bits: update less often.")
    return np.array(numbers, np.int64)
