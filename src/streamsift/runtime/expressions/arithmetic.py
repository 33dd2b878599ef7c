"""Apply one arithmetic operator or function to its operands.

Integers and decimals are exact; what does not fit raises Overflow, never wraps. Division and the functions of
real numbers are float64; where they have no value (a zero divisor, a logarithm of 0) the result is null.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsift.runtime.expressions.columns import integers
from streamsift.runtime.expressions.real_kernels import exponential, logarithm, power
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
    is_decimal,
    is_duration,
    is_float,
    is_instant,
    is_integer,
    missing,
    same_unit,
    spread,
)

CHECKED = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
WIDE_CONTEXT = Context(prec=2 * WIDEST)


class Overflow(ArithmeticError):
    """A result that its type cannot hold."""


def arithmetic(op: str, operands: Sequence[Value]) -> Value:
    try:
        if len(operands) == 1:
            return UNARY[op](operands[0])
        left, right = operands
        if any(is_instant(value) or is_duration(value) for value in operands):
            return _temporal(op, left, right)
        return BINARY[op](op, left, right)
    except pa.ArrowInvalid as error:
        raise Overflow("the result does not fit 64 bits") from error


def _linear(op: str, left: Value, right: Value) -> Value:
    if is_float(left) or is_float(right):
        return CHECKED[op](as_float(left), as_float(right))
    if is_integer(left) and is_integer(right):
        return CHECKED[op](left, right)
    return _linear_decimals(op, as_decimal(left), as_decimal(right))


def _linear_decimals(op: str, left: Value, right: Value) -> Value:
    precision = _precision(op, left, right)
    if precision <= WIDEST:
        wide = pa.decimal128 if precision <= 38 else pa.decimal256
        return CHECKED[op](*(pc.cast(v, wide(v.type.precision, v.type.scale)) for v in (left, right)))
    # By their types the operands might need more digits than there are; by their values they may not.
    left, right = _narrowed(left), _narrowed(right)
    precision = _precision(op, left, right)
    if precision > WIDEST:
        raise Overflow(f"the result may need {precision} digits, more than {WIDEST}")
    found = CHECKED[op](left, right)
    return pc.cast(found, pa.decimal256(WIDEST, found.type.scale))


def _precision(op: str, left: Value, right: Value) -> int:
    """The digits that Arrow gives the result of `+`, `-` or `*`."""
    (p1, s1), (p2, s2) = ((value.type.precision, value.type.scale) for value in (left, right))
    return p1 + p2 + 1 if op == "*" else max(p1 - s1, p2 - s2) + max(s1, s2) + 1


def _narrowed(value: Value) -> Value:
    """A decimal with only the digits that its largest value has."""
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
    """The remainder with the sign of the dividend."""
    if is_float(left) or is_float(right):
        left, right = as_float(left), as_float(right)
    elif is_decimal(left) or is_decimal(right):
        return _decimal_remainder(as_decimal(left), as_decimal(right))
    return _remainder_of_numbers(as_numpy(left), as_numpy(right), left, right)


def _remainder_of_numbers(above: np.ndarray, below: np.ndarray, left: Value, right: Value) -> Value:
    zero = below == 0
    with np.errstate(all="ignore"):
        found = np.fmod(above, np.where(zero, below.dtype.type(1), below))
    return from_numpy(found, missing(left, right) | zero, left, right)


def _decimal_remainder(left: Value, right: Value) -> Value:
    kind = common_decimal((left.type, right.type))
    arrays = [as_array(pc.cast(value, kind)) for value in (left, right)]
    above, below = (integers(array) for array in arrays)
    if above is not None and below is not None and kind.precision <= 38:
        known = [np.where(missing(array), 0, numbers) for array, numbers in zip(arrays, (above, below), strict=True)]
        unscaled = spread(_remainder_of_numbers(known[0], known[1], left, right), 1)
        # An integer n stands for n / 10^scale: as a decimal of scale 0 it is reinterpreted, not rescaled.
        digits = unscaled.cast(pa.decimal128(38, 0))
        wide = pa.decimal128(38, kind.scale)
        found = pa.Array.from_buffers(wide, len(digits), digits.buffers(), digits.null_count, 0).cast(kind)
    else:
        # More digits than 64 bits hold: Python's decimals, value by value.
        length = max(len(array) for array in arrays) if all(len(array) for array in arrays) else 0
        pairs = zip(*(spread(a[0], length) if len(a) == 1 else a for a in arrays), strict=True) if length else ()
        found = pa.array([_remainder_of_decimals(a.as_py(), b.as_py()) for a, b in pairs], kind)
    return found[0] if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar) else found


def _remainder_of_decimals(above: Decimal | None, below: Decimal | None) -> Decimal | None:
    return None if above is None or not below else WIDE_CONTEXT.remainder(above, below)


def _power(_: str, left: Value, right: Value) -> Value:
    base, exponent = as_numpy(as_float(left)), as_numpy(as_float(right))
    with np.errstate(all="ignore"):
        found = power(base, exponent)
    # No value: a root of a negative number, or 0 to a negative power.
    undefined = (np.isnan(found) & ~np.isnan(base) & ~np.isnan(exponent)) | ((base == 0) & (exponent < 0))
    return from_numpy(found, missing(left, right) | undefined, left, right)


def _real(function: Callable[..., np.ndarray], undefined: Callable[..., np.ndarray]) -> Callable[[Value], Value]:
    def apply(value: Value) -> Value:
        numbers = as_numpy(as_float(value))
        with np.errstate(all="ignore"):
            return from_numpy(function(numbers), missing(value) | undefined(numbers), value)

    return apply


def _negative(value: Value) -> Value:
    if is_duration(value):
        return pc.cast(pc.negate_checked(pc.cast(value, pa.int64())), value.type)
    return pc.negate(value) if is_decimal(value) else pc.negate_checked(value)


def _absolute(value: Value) -> Value:
    if is_duration(value):
        return pc.cast(pc.abs_checked(pc.cast(value, pa.int64())), value.type)
    return pc.abs(value) if is_decimal(value) else pc.abs_checked(value)


def _temporal(op: str, left: Value, right: Value) -> Value:
    """Instants and durations: i - i, i + d, d + i, i - d, d + d, d - d, d * n, n * d, d / n, d / d, d % d."""
    if op in ("*", "/") and not (is_duration(left) and is_duration(right)):
        return _scaled(op, left, right) if is_duration(left) else _scaled(op, right, left)
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
    if op == "*" and is_integer(number):
        return pc.cast(pc.multiply_checked(ticks, number), duration.type)
    # A fraction of a duration is rounded to microseconds, or to its own unit if that is finer.
    ticks, _, unit = same_unit(duration, pa.scalar(0, pa.duration("us")))
    found = CHECKED["*"](as_float(ticks), as_float(number)) if op == "*" else _divide(op, ticks, number)
    rounded = np.rint(as_numpy(found))
    null = missing(found) | np.isnan(rounded)
    if (~null & (np.abs(rounded) >= 2.0**63)).any():
        raise Overflow("the duration does not fit 64 bits")
    counts = from_numpy(np.where(null, 0, rounded).astype(np.int64), null, duration, number)
    return pc.cast(counts, pa.duration(unit))


UNARY: dict[str, Callable[[Value], Value]] = {
    "negative": _negative,
    "abs": _absolute,
    "sqrt": _real(np.sqrt, lambda x: x < 0),
    "log": _real(logarithm, lambda x: x <= 0),
    "exp": _real(exponential, lambda x: np.zeros(x.shape, np.bool_)),
}
BINARY: dict[str, Callable[[str, Value, Value], Value]] = {
    "+": _linear,
    "-": _linear,
    "*": _linear,
    "/": _divide,
    "%": _remainder,
    "^": _power,
}
