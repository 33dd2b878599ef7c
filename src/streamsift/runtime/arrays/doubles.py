"""Compare times exactly: find the last double within a window, and the tick of UPDATE at or before a time.

For integer times, ticks are found by division. For doubles, a tick is the double nearest to its exact time.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numba import njit

from streamsift.errors import BadInputError
from streamsift.runtime.arrays.dtypes import LARGEST, Float64, Int64, Times

INFINITY = 0x7FF0 << 48  # the code of infinity; codes are consecutive integers in the order of the doubles
LONGEST_STEP = 1 << 61
EXACT = 2.0**52  # integers up to this one and their neighbors are exact in a double
SAFE = 2**62


@njit(cache=True, nogil=True)
def last_within(starts: Float64, width: float) -> Float64:
    """Return for each start the last double y such that y - start, rounded to a double, is <= width; width >= 0.

    Rounded subtraction is monotone, so y can be searched for among the codes of doubles: galloping from the rounded
    sum, then bisection.
    """
    last = np.empty(starts.size, np.float64)
    bits = np.empty(1, np.int64)
    real = bits.view(np.float64)
    for i in range(starts.size):
        start = starts[i]
        if width == np.inf or np.isinf(start):
            last[i] = np.inf if width == np.inf else start
            continue
        low, high, step = code_of(start, bits, real), INFINITY, 1
        guess = max(code_of(start + width, bits, real), low + 1)
        while low < guess < high:
            if double_of(guess, bits, real) - start <= width:
                low = guess
                guess = guess + step if guess <= INFINITY - step else INFINITY
            else:
                high = guess
                guess = guess - step if guess >= step - INFINITY else -INFINITY
            step = min(2 * step, LONGEST_STEP)
        while low + 1 < high:
            middle = (low & high) + ((low ^ high) >> 1)  # the mean, without overflow
            if double_of(middle, bits, real) - start <= width:
                low = middle
            else:
                high = middle
        last[i] = double_of(low, bits, real)
    return last


@njit(cache=True, nogil=True)
def code_of(value: float, bits: Int64, real: Float64) -> int:
    """Return the code of a double; `bits` and `real` are views of the same 8 bytes."""
    real[0] = value
    return bits[0] if bits[0] >= 0 else bits[0] ^ LARGEST


@njit(cache=True, nogil=True)
def double_of(code: int, bits: Int64, real: Float64) -> float:
    bits[0] = code if code >= 0 else code ^ LARGEST
    return real[0]


# --- ticks -----------------------------------------------------------------------------------------------------------


def floor_quotients(times: Times, shift: Fraction, step: Fraction) -> Int64:
    """Return for each of the ascending times the largest k with k * step - shift <= time; ±SAFE for infinite times.

    For doubles, k * step - shift is rounded to a double first.
    """
    if not times.size:
        return np.empty(0, np.int64)
    if times.dtype == np.float64:
        return _quotients_of_doubles(times.view(np.float64), shift, step)
    # (time + a/b) * q/p = (time * bq + aq) / (bp)
    factor = shift.denominator * step.denominator
    plus, divisor = shift.numerator * step.denominator, shift.denominator * step.numerator
    if max(abs(int(times[0])), abs(int(times[-1]))) * factor + abs(plus) < SAFE and divisor < SAFE:
        return np.floor_divide(times.astype(np.int64) * factor + plus, divisor)
    return _as_int64([(time * factor + plus) // divisor for time in times.tolist()])


def _quotients_of_doubles(times: Float64, shift: Fraction, step: Fraction) -> Int64:
    """Use a kernel for numbers that are exact in doubles, and fractions, once per distinct time, for the others."""
    divisor = math.lcm(shift.denominator, step.denominator)
    each, moved = int(step * divisor), int(shift * divisor)
    quotients = np.full(times.size, ~LARGEST, np.int64)
    if max(divisor, each, abs(moved)) < EXACT:
        quotients = last_multiples(times, each, moved, divisor)
    others = np.flatnonzero((quotients == ~LARGEST) & np.isfinite(times))
    distinct, which = np.unique(times[others], return_inverse=True)
    quotients[others] = _as_int64([last_multiple(time, step, shift) for time in distinct.tolist()])[which]
    quotients[times == np.inf], quotients[times == -np.inf] = SAFE, -SAFE
    return quotients


def _as_int64(numbers: list[int]) -> Int64:
    if any(not ~LARGEST <= number <= LARGEST for number in numbers):
        raise BadInputError("ticks of UPDATE do not fit in 64 bits\nHint: use a longer UPDATE interval.")
    return np.array(numbers, np.int64)


@njit(cache=True, nogil=True)
def last_multiples(times: Float64, step: int, shift: int, divisor: int) -> Int64:
    """Return for each time the largest k such that (k * step - shift) / divisor, rounded to a double, is <= time.

    Return the smallest int64 for infinite times, and where an intermediate number may not be exact in a double.
    """
    multiples = np.full(times.size, ~LARGEST, np.int64)
    for i in range(times.size):
        about = np.floor((times[i] * divisor + shift) / step)
        if not abs(about) * step + abs(shift) + abs(times[i] * divisor) < EXACT:
            continue
        k = int(about)
        while ((k + 1) * step - shift) / divisor <= times[i]:
            k += 1
        while (k * step - shift) / divisor > times[i]:
            k -= 1
        multiples[i] = k
    return multiples


def last_multiple(time: float, step: Fraction, shift: Fraction) -> int:
    """Return the largest k such that k * step - shift, rounded to a double, is <= time."""
    # A number rounds to `time` or below if it lies before the midpoint to the next double, or on it if ties round down.
    half = Fraction(math.ulp(time)) / 2
    above = math.nextafter(time, math.inf)
    middle = Fraction(time) + half if math.isinf(above) else (Fraction(time) + Fraction(above)) / 2
    k, rest = divmod(middle + shift, step)
    is_odd = bool(np.float64(time).view(np.int64) & 1)
    return int(k) - (rest == 0 and is_odd)
