"""Apply one arithmetic operator or function to its operands.

Integers and decimals are exact: a result out of range raises Overflow and never wraps. Division, powers, roots and
logarithms return float64, and null where they are undefined (a zero divisor, a logarithm of 0).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from streamsift.runtime.arrays.dtypes import Float64
from streamsift.runtime.expressions.columns import integers
from streamsift.runtime.expressions.values import (
    WIDEST,
    Value,
    as_array,
    as_decimal,
    as_float,
    as_numpy,
    common_decimal,
    from_numpy,
    instant_ticks,
    is_instant,
    missing,
    same_unit,
    shaped_as,
)

CHECKED = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
WIDE_CONTEXT = Context(prec=2 * WIDEST)


class Overflow(ArithmeticError):
    """The result is out of range for its type."""


def arithmetic(op: str, operands: Sequence[Value]) -> Value:
    try:
        if len(operands) == 1:
            return UNARY[op](operands[0])
        left, right = operands
        if any(is_instant(value) or pa.types.is_duration(value.type) for value in operands):
            return _temporal(op, left, right)
        return BINARY[op](op, left, right)
    except pa.ArrowInvalid as error:
        raise Overflow("the result does not fit in 64 bits") from error


def _linear(op: str, left: Value, right: Value) -> Value:
    if pa.types.is_floating(left.type) or pa.types.is_floating(right.type):
        return CHECKED[op](as_float(left), as_float(right))
    if pa.types.is_integer(left.type) and pa.types.is_integer(right.type):
        return CHECKED[op](left, right)
    return _linear_decimals(op, as_decimal(left), as_decimal(right))


def _linear_decimals(op: str, left: Value, right: Value) -> Value:
    precision = _precision(op, left, right)
    if precision <= WIDEST:
        wide = pa.decimal128 if precision <= 38 else pa.decimal256
        return CHECKED[op](*(pc.cast(v, wide(v.type.precision, v.type.scale)) for v in (left, right)))
    # The types allow results with too many digits; the values may not have them.
    left, right = _narrowed(left), _narrowed(right)
    precision = _precision(op, left, right)
    if precision > WIDEST:
        raise Overflow(f"the result may need {precision} digits; at most {WIDEST} are supported")
    exact = CHECKED[op](left, right)
    return pc.cast(exact, pa.decimal256(WIDEST, exact.type.scale))


def _precision(op: str, left: Value, right: Value) -> int:
    """Return the precision of Arrow's result type for `+`, `-` or `*`."""
    (p1, s1), (p2, s2) = ((value.type.precision, value.type.scale) for value in (left, right))
    return p1 + p2 + 1 if op == "*" else max(p1 - s1, p2 - s2) + max(s1, s2) + 1


def _narrowed(value: Value) -> Value:
    """Return a decimal with the smallest precision that holds its values."""
    extremes = pc.min_max(as_array(value)).as_py().values()
    digits = [len(number.scaleb(value.type.scale, WIDE_CONTEXT).as_tuple().digits) for number in extremes if number]
    return pc.cast(value, pa.decimal256(max(1, value.type.scale, *digits), value.type.scale))


def _divide(_: str, left: Value, right: Value) -> Value:
    above, below = as_float(left), as_float(right)
    divisor = as_numpy(below)
    zero = divisor == 0
    with np.errstate(all="ignore"):
        return from_numpy(as_numpy(above) / np.where(zero, 1.0, divisor), missing(above, below) | zero, left, right)


def _remainder(_: str, left: Value, right: Value) -> Value:
    """Return the remainder with the sign of the dividend."""
    if pa.types.is_floating(left.type) or pa.types.is_floating(right.type):
        left, right = as_float(left), as_float(right)
    elif pa.types.is_decimal(left.type) or pa.types.is_decimal(right.type):
        return _decimal_remainder(as_decimal(left), as_decimal(right))
    return _remainder_of_numbers(as_numpy(left), as_numpy(right), left, right)


def _remainder_of_numbers(above: np.ndarray, below: np.ndarray, left: Value, right: Value) -> Value:
    zero = below == 0
    with np.errstate(all="ignore"):
        rest = np.fmod(above, np.where(zero, below.dtype.type(1), below))
    return from_numpy(rest, missing(left, right) | zero, left, right)


def _decimal_remainder(left: Value, right: Value) -> Value:
    kind = common_decimal((left.type, right.type))
    arrays = [as_array(pc.cast(value, kind)) for value in (left, right)]
    above, below = (integers(array) for array in arrays)
    if above is not None and below is not None and kind.precision <= 38:
        # The integer n represents n / 10^scale. Make it a decimal of scale 0, then replace the type without rescaling.
        digits = as_array(_remainder_of_numbers(above, below, left, right)).cast(pa.decimal128(38, 0))
        wide = pa.decimal128(38, kind.scale)
        rest = pa.Array.from_buffers(wide, len(digits), digits.buffers(), digits.null_count, 0).cast(kind)
    else:
        # Numbers that do not fit in 64 bits: use Python's decimals, value by value.
        pairs = np.broadcast(*(np.array(array.to_pylist(), np.object_) for array in arrays))
        rest = pa.array([None if a is None or not b else WIDE_CONTEXT.remainder(a, b) for a, b in pairs], kind)
    return shaped_as(rest, left, right)


def _power(_: str, left: Value, right: Value) -> Value:
    base, exponent = as_numpy(as_float(left)), as_numpy(as_float(right))
    with np.errstate(all="ignore"):
        powers = _powers(base, exponent)
    # Undefined: a root of a negative number, or 0 to a negative power.
    undefined = (np.isnan(powers) & ~np.isnan(base) & ~np.isnan(exponent)) | ((base == 0) & (exponent < 0))
    return from_numpy(powers, missing(left, right) | undefined, left, right)


def _real(function: Callable[..., np.ndarray], undefined: Callable[..., np.ndarray]) -> Callable[[Value], Value]:
    def apply(value: Value) -> Value:
        numbers = as_numpy(as_float(value))
        with np.errstate(all="ignore"):
            return from_numpy(function(numbers), missing(value) | undefined(numbers), value)

    return apply


def _signed(checked: Callable[[Value], Value], unchecked: Callable[[Value], Value]) -> Callable[[Value], Value]:
    """Return a function that changes signs: durations as integers, decimals unchecked because they cannot overflow."""

    def apply(value: Value) -> Value:
        if pa.types.is_duration(value.type):
            return pc.cast(checked(pc.cast(value, pa.int64())), value.type)
        return unchecked(value) if pa.types.is_decimal(value.type) else checked(value)

    return apply


def _temporal(op: str, left: Value, right: Value) -> Value:
    """Apply i - i, i ± d, d + i, d ± d, d * n, n * d, d / n, d / d or d % d (i instant, d duration, n number)."""
    if op in ("*", "/") and not (pa.types.is_duration(left.type) and pa.types.is_duration(right.type)):
        return _scaled(op, left, right) if pa.types.is_duration(left.type) else _scaled(op, right, left)
    left_ticks, right_ticks, unit = same_unit(left, right)
    if op == "/":
        return _divide(op, left_ticks, right_ticks)
    if op == "%":
        return pc.cast(_remainder(op, left_ticks, right_ticks), pa.duration(unit))
    ticks = CHECKED[op](left_ticks, right_ticks)
    if is_instant(left) == is_instant(right):
        return pc.cast(ticks, pa.duration(unit))
    instant = left if is_instant(left) else right
    return pc.cast(ticks, pa.timestamp(unit, instant.type.tz if pa.types.is_timestamp(instant.type) else None))


def _scaled(op: str, duration: Value, number: Value) -> Value:
    ticks, _ = instant_ticks(duration)
    if op == "*" and pa.types.is_integer(number.type):
        return pc.cast(pc.multiply_checked(ticks, number), duration.type)
    # Fractions of a duration are rounded to microseconds, or to the duration's unit if that is finer.
    ticks, _, unit = same_unit(duration, pa.scalar(0, pa.duration("us")))
    scaled = CHECKED["*"](as_float(ticks), as_float(number)) if op == "*" else _divide(op, ticks, number)
    rounded = np.rint(as_numpy(scaled))
    null = missing(scaled) | np.isnan(rounded)
    if (~null & (np.abs(rounded) >= 2.0**63)).any():
        raise Overflow("the duration does not fit in 64 bits")
    counts = from_numpy(np.where(null, 0, rounded).astype(np.int64), null, duration, number)
    return pc.cast(counts, pa.duration(unit))


@njit(cache=True, nogil=True)
def _exponentials(values: Float64, invert: bool) -> Float64:
    """Return exp, or log (NaN unless positive), of the C library; NumPy's results differ in the last bit."""
    results = np.empty(values.size, np.float64)
    for i in range(values.size):
        if invert:
            results[i] = np.log(values[i]) if values[i] > 0 else np.nan
        else:
            results[i] = np.exp(values[i])
    return results


@njit(cache=True, nogil=True)
def _powers(bases: Float64, exponents: Float64) -> Float64:
    """Return pow of the C library; an array of size 1 is broadcast."""
    size = bases.size if exponents.size == 1 else exponents.size
    powers = np.empty(size, np.float64)
    for i in range(size):
        base = bases[0] if bases.size == 1 else bases[i]
        powers[i] = np.power(base, exponents[0] if exponents.size == 1 else exponents[i])
    return powers


UNARY: dict[str, Callable[[Value], Value]] = {
    "negative": _signed(pc.negate_checked, pc.negate),
    "abs": _signed(pc.abs_checked, pc.abs),
    "sqrt": _real(np.sqrt, lambda x: x < 0),
    "log": _real(lambda x: _exponentials(x, True), lambda x: x <= 0),
    "exp": _real(lambda x: _exponentials(x, False), lambda x: np.zeros(x.shape, np.bool_)),
}
BINARY: dict[str, Callable[[str, Value, Value], Value]] = {
    **dict.fromkeys(CHECKED, _linear),
    "/": _divide,
    "%": _remainder,
    "^": _power,
}
