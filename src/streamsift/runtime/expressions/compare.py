"""Compare two values with three-valued logic, exactly across number types."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsift.runtime.expressions.codes import nanoseconds
from streamsift.runtime.expressions.values import (
    Value,
    as_array,
    as_decimal,
    as_numpy,
    common_decimal,
    from_numpy,
    is_instant,
    is_text,
    missing,
    same_unit,
    shaped_as,
)

ARROW = {"=": pc.equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}
# Applied to two codes, or to the sign of a difference and 0.
NUMPY = {"=": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


def compare(op: str, left: Value, right: Value) -> Value:
    """Return `left op right`; null where either side is null or NaN."""
    if pa.types.is_null(left.type) or pa.types.is_null(right.type):
        return from_numpy(missing(left, right), missing(left, right), left, right)
    if pa.types.is_floating(left.type) or pa.types.is_floating(right.type):
        return _with_float(op, left, right)
    if pa.types.is_decimal(left.type) or pa.types.is_decimal(right.type):
        return ARROW[op](*_one_scale(left, right))
    if is_instant(left) or pa.types.is_duration(left.type):
        return _temporal(op, left, right)
    if is_text(left) and left.type != right.type:
        left, right = pc.cast(left, pa.large_string()), pc.cast(right, pa.large_string())
    return ARROW[op](left, right)


def _one_scale(left: Value, right: Value) -> tuple[Value, Value]:
    """Return integers and decimals as decimals of one type that is wide enough for both: at most 38 + 38 digits."""
    left, right = as_decimal(left), as_decimal(right)
    kind = common_decimal((left.type, right.type))
    return pc.cast(left, kind), pc.cast(right, kind)


def _temporal(op: str, left: Value, right: Value) -> Value:
    try:
        left_ticks, right_ticks, _ = same_unit(left, right)
    except pa.ArrowInvalid:
        # The coarser side does not fit in the finer unit: compare decimal nanoseconds.
        exact = (shaped_as(nanoseconds(as_array(value)), value) for value in (left, right))
        left_ticks, right_ticks = _one_scale(*exact)
    return ARROW[op](left_ticks, right_ticks)


def _with_float(op: str, left: Value, right: Value) -> Value:
    if pa.types.is_floating(left.type) and pa.types.is_floating(right.type):
        return ARROW[op](_without_nan(left), _without_nan(right))
    signs, null = _signs(right, left) if pa.types.is_floating(left.type) else _signs(left, right)
    return from_numpy(NUMPY[op](-signs if pa.types.is_floating(left.type) else signs, 0), null, left, right)


def _without_nan(value: Value) -> Value:
    nan = pc.is_nan(value)
    return pc.if_else(nan, pa.scalar(None, pa.float64()), value) if pc.any(as_array(nan)).as_py() else value


def _signs(exact: Value, real: Value) -> tuple[np.ndarray, np.ndarray]:
    """Return the sign of exact - real (an integer or decimal minus a double), and a mask of unknown results."""
    numbers = as_numpy(real)
    nan = np.isnan(numbers)
    null = missing(exact, real) | nan
    numbers = np.where(nan, 0.0, numbers)
    if pa.types.is_integer(exact.type):
        return _integer_signs(as_numpy(exact), numbers), null
    if isinstance(exact, pa.Scalar) and exact.is_valid:
        return _constant_signs(Fraction(exact.as_py()), numbers), null
    return _decimal_signs(exact, numbers, null), null


def _integer_signs(integers: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Compare with the floor as an integer, because a cast to double would merge integers above 2^53."""
    floor = np.floor(numbers)
    high, low = floor >= 2.0**63, floor < -(2.0**63)
    whole = np.where(high | low, 0.0, floor).astype(np.int64)
    near = np.where(integers > whole, 1, np.where((integers < whole) | (numbers > floor), -1, 0))
    return np.where(high, -1, np.where(low, 1, near))


def _constant_signs(constant: Fraction, numbers: np.ndarray) -> np.ndarray:
    """Compare with the double nearest to the constant; a number equal to that double gets the sign of the rounding."""
    nearest = float(constant)
    tie = (constant > Fraction(nearest)) - (constant < Fraction(nearest))
    return np.where(numbers < nearest, 1, np.where(numbers > nearest, -1, tie))


def _decimal_signs(decimals: Value, numbers: np.ndarray, null: np.ndarray) -> np.ndarray:
    """Compare as doubles where the values differ clearly, and as exact fractions where they are close."""
    rounded = as_numpy(pc.cast(decimals, pa.float64(), safe=False))
    rounded, numbers, null = np.broadcast_arrays(rounded, numbers, null)
    with np.errstate(invalid="ignore"):
        close = ~null & ~(np.abs(rounded - numbers) > 1e-9 * np.abs(rounded)) & np.isfinite(numbers)
    signs = np.where(rounded > numbers, 1, np.where(rounded < numbers, -1, 0))
    places = np.flatnonzero(close)
    exact = as_array(decimals) if isinstance(decimals, pa.Scalar) else decimals.take(pa.array(places))
    for place, value in zip(places, exact.to_pylist(), strict=False):
        difference = Fraction(value) - Fraction(float(numbers[place]))
        signs[place] = (difference > 0) - (difference < 0)
    return signs
