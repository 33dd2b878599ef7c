"""Find the end of each start row's window: the first row whose time is not less than the interval after it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
from numba import njit

from streamsift.errors import BadInputError
from streamsift.logical.bound import BoundWindow
from streamsift.logical.durations import units_per_second
from streamsift.runtime.arrays.dtypes import Float64, Int64
from streamsift.runtime.expressions.columns import fixed_width, integers, nulls, plain
from streamsift.runtime.row_match.order import SortedRows

UNBOUNDED = 2**31 - 1


def window_length(window: BoundWindow, data_type: pa.DataType) -> Fraction:
    """Return the interval in the units of the words of a column."""
    if pa.types.is_date32(data_type):
        return window.length / 86_400
    if pa.types.is_decimal(data_type):
        return Fraction(window.length) * 10**data_type.scale
    return Fraction(window.length) * (units_per_second(data_type) or 1)


def window_limits(rows: SortedRows, column: str, window: BoundWindow) -> Int64:
    """Return the end of each row's window: UNBOUNDED if it is after the partition, the row itself without a time."""
    array = plain(rows.column(column))
    length = window_length(window, array.type)
    missing = nulls(array)
    if pa.types.is_floating(array.type):
        doubles: Float64 = fixed_width(array.cast(pa.float64()), np.dtype(np.float64))
        doubles = doubles if missing is None else np.where(missing, np.nan, doubles)
        return _limits(doubles, np.isnan(doubles), rows.bounds, float(length))
    times = integers(array)
    if times is None:
        raise BadInputError(f"column `{column}` has times of more than 64 bits, which WITHIN cannot use")
    unknown = np.zeros(times.size, np.bool_) if missing is None else missing
    # A difference of integers is less than the length exactly if it is less than the length rounded up.
    return _limits(times, unknown, rows.bounds, min(-(-length.numerator // length.denominator), 2**62))


@njit(cache=True, nogil=True)
def _limits(times: Int64 | Float64, unknown: np.ndarray, bounds: Int64, length: float) -> Int64:
    limits = np.empty(times.size, np.int64)
    for p in range(bounds.size - 1):
        low, high = bounds[p], bounds[p + 1]
        end = low
        for row in range(low, high):
            if unknown[row]:
                limits[row] = row
                continue
            end = max(end, row)
            while end < high and not unknown[end] and times[end] - times[row] < length:
                end += 1
            limits[row] = end if end < high else np.int64(UNBOUNDED)
    return limits
