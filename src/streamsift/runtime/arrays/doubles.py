"""Compute with the doubles around a time: the last one within a window, and which ticks of UPDATE round to it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import LARGEST, Float64, Int64

INFINITY = 0x7FF0 << 48  # the code of infinity: codes are integers in the order of the doubles, without gaps
LONGEST_STEP = 1 << 61
EXACT = 2.0**52  # integers up to here, and those next to them, are doubles


@njit(cache=True, nogil=True)
def last_within(starts: Float64, width: float) -> Float64:
    """For each start the last double y such that y - start, rounded to a double, is <= width, which is not below 0.

    Rounded subtraction is monotone, so this is a search among the codes of doubles: away from the rounded sum, each
    step twice as long as the one before, then by bisection.
    """
    found = np.empty(starts.size, np.float64)
    bits = np.empty(1, np.int64)
    real = bits.view(np.float64)
    for i in range(starts.size):
        start = starts[i]
        if width == np.inf or np.isinf(start):
            found[i] = np.inf if width == np.inf else start
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
            middle = (low & high) + ((low ^ high) >> 1)  # their mean, which never overflows
            if double_of(middle, bits, real) - start <= width:
                low = middle
            else:
                high = middle
        found[i] = double_of(low, bits, real)
    return found


@njit(cache=True, nogil=True)
def code_of(value: float, bits: Int64, real: Float64) -> int:
    """The code of a double; `bits` and `real` are one number in memory."""
    real[0] = value
    return bits[0] if bits[0] >= 0 else bits[0] ^ LARGEST


@njit(cache=True, nogil=True)
def double_of(code: int, bits: Int64, real: Float64) -> float:
    bits[0] = code if code >= 0 else code ^ LARGEST
    return real[0]


# --- ticks -----------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def last_multiples(times: Float64, step: int, shift: int, divisor: int) -> Int64:
    """For each time the largest k such that (k * step - shift) / divisor, rounded to a double, is <= time.

    The smallest int64 where one of these numbers could be too large to be exact in a double, and for infinite times.
    """
    found = np.full(times.size, ~LARGEST, np.int64)
    for i in range(times.size):
        about = np.floor((times[i] * divisor + shift) / step)
        if not abs(about) * step + abs(shift) + abs(times[i] * divisor) < EXACT:
            continue
        k = int(about)
        while ((k + 1) * step - shift) / divisor <= times[i]:
            k += 1
        while (k * step - shift) / divisor > times[i]:
            k -= 1
        found[i] = k
    return found


def last_multiple(time: float, step: Fraction, shift: Fraction) -> int:
    """Return the largest k such that k * step - shift, rounded to a double, is <= time."""
    # What rounds to a double or below it lies before the middle to the next one, or at it if that rounds to even.
    half = Fraction(math.ulp(time)) / 2
    above = math.nextafter(time, math.inf)
    middle = Fraction(time) + half if math.isinf(above) else (Fraction(time) + Fraction(above)) / 2
    k, rest = divmod(middle + shift, step)
    is_odd = bool(np.float64(time).view(np.int64) & 1)
    return int(k) - (rest == 0 and is_odd)
