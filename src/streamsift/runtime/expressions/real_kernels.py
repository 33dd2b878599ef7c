"""Compute with floating-point numbers exactly as the C library and Python do."""

from __future__ import annotations

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import LARGEST, UNKNOWN, Float64, Int64


@njit(cache=True, nogil=True)
def float_codes(values: Float64, bits: Int64) -> Int64:
    """The bits of doubles, such that integers ascend as the numbers do: those of negative ones are turned round."""
    found = np.empty(values.size, np.int64)
    for i in range(values.size):
        code = bits[i]
        if values[i] == 0.0:
            code = 0  # -0.0 is 0.0
        elif code < 0:
            code ^= LARGEST
        found[i] = code if values[i] == values[i] else UNKNOWN
    return found


@njit(cache=True, nogil=True)
def exponential(values: Float64) -> Float64:
    """The C library's exp, as Python's own: NumPy's vectorised one differs in the last bit."""
    found = np.empty(values.size, np.float64)
    for i in range(values.size):
        found[i] = np.exp(values[i])
    return found


@njit(cache=True, nogil=True)
def logarithm(values: Float64) -> Float64:
    """The C library's log, of positive numbers; NaN elsewhere."""
    found = np.empty(values.size, np.float64)
    for i in range(values.size):
        found[i] = np.log(values[i]) if values[i] > 0 else np.nan
    return found


@njit(cache=True, nogil=True)
def power(bases: Float64, exponents: Float64) -> Float64:
    """The C library's pow; either side may be one number for all."""
    size = bases.size if exponents.size == 1 else exponents.size
    found = np.empty(size, np.float64)
    for i in range(size):
        base = bases[0] if bases.size == 1 else bases[i]
        found[i] = np.power(base, exponents[0] if exponents.size == 1 else exponents[i])
    return found
