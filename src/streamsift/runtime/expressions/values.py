"""Convert columns and constants to the few types that operators support.

Integers become int64 (uint64: decimal), floats float64, decimals decimal128 or decimal256; other types are kept.
A constant stays an Arrow scalar until the whole expression has been evaluated.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsift.logical.bound import Kind, Scalar
from streamsift.logical.durations import UNITS_PER_SECOND
from streamsift.runtime.arrays.dtypes import Bool, Float64
from streamsift.runtime.expressions.columns import integers, nulls, plain

Value: TypeAlias = pa.Array | pa.Scalar

EXACT_INTEGERS = 2**53  # integers up to this one are exact in a double
EXACT_POWERS = 22  # powers of ten up to this exponent are exact in a double
WIDEST = 76  # digits of a decimal256
DEFAULT_TYPES = {
    Kind.INTEGER: pa.int64(),
    Kind.DECIMAL: pa.decimal128(38, 0),
    Kind.FLOAT: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.TIMESTAMP: pa.timestamp("us"),
    Kind.DATE: pa.date32(),
    Kind.DURATION: pa.duration("us"),
    Kind.NULL: pa.null(),
    Kind.OTHER: pa.null(),
}


def column_value(array: pa.Array) -> pa.Array:
    """Cast a column to a type that operators support."""
    array = plain(array)
    kind = array.type
    if pa.types.is_uint64(kind):
        return array.cast(pa.decimal128(20, 0))
    if pa.types.is_integer(kind):
        return array.cast(pa.int64())
    if pa.types.is_floating(kind):
        return array.cast(pa.float64())
    if pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind):
        return array.cast(pa.decimal128(kind.precision, kind.scale))
    if pa.types.is_date64(kind):
        return array.cast(pa.timestamp("ms"))
    return array


def constant_value(value: Scalar) -> pa.Scalar:
    """Convert a constant to a type that operators support."""
    if isinstance(value, datetime):
        return pa.scalar(value, pa.timestamp("us", "UTC" if value.tzinfo else None))
    if not isinstance(value, Decimal) and not (isinstance(value, int) and not -(2**63) <= value < 2**63):
        return pa.scalar(value)  # null, boolean, string, int64, double, date32, or a duration in microseconds
    _, digits, exponent = Decimal(value).as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    precision = max(1, scale, len(digits) + max(0, exponent))
    if precision > WIDEST:
        return pa.scalar(float(value))
    return pa.scalar(value, decimal_type(precision, scale))


def decimal_type(precision: int, scale: int) -> pa.DataType:
    return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)


def common_decimal(kinds: Iterable[pa.DataType]) -> pa.DataType:
    """Return the decimal type that holds the values of all given decimal types, with at most 76 digits."""
    decimals = list(kinds)
    scale = max(kind.scale for kind in decimals)
    return decimal_type(min(WIDEST, max(kind.precision - kind.scale for kind in decimals) + scale), scale)


def as_decimal(value: Value) -> Value:
    """Return integers as decimals, and decimals unchanged."""
    if pa.types.is_decimal(value.type):
        return value
    return pc.cast(value, pa.decimal128(20 if pa.types.is_uint64(value.type) else 19, 0))


def is_instant(value: Value) -> bool:
    return pa.types.is_timestamp(value.type) or pa.types.is_date(value.type)


def is_text(value: Value) -> bool:
    return pa.types.is_string(value.type) or pa.types.is_large_string(value.type)


def spread(value: Value, length: int) -> pa.Array:
    """Return the value as an array; repeat a constant."""
    return pa.repeat(value, length) if isinstance(value, pa.Scalar) else value


def as_array(value: Value) -> pa.Array:
    """Return the value as an array that NumPy can broadcast: a constant becomes an array of size 1."""
    return spread(value, 1)


def shaped_as(array: pa.Array, *operands: Value) -> Value:
    """Return the array, or its only value if all operands are constants."""
    return array[0] if all(isinstance(value, pa.Scalar) for value in operands) else array


def as_float(value: Value) -> Value:
    """Return each value as the nearest double."""
    if pa.types.is_decimal(value.type):
        array = as_array(value)
        return shaped_as(pa.array(_nearest_doubles(array), mask=nulls(array), from_pandas=False), value)
    return value if pa.types.is_floating(value.type) else pc.cast(value, pa.float64(), safe=False)


def _nearest_doubles(decimals: pa.Array) -> Float64:
    """Round to the nearest double. Arrow's cast is often off by one bit: 38.41 becomes 38.410000000000004."""
    scale, unscaled = decimals.type.scale, integers(decimals)
    if unscaled is None or not 0 <= scale <= EXACT_POWERS:
        doubles, inexact = np.zeros(len(decimals)), np.ones(len(decimals), np.bool_)
    else:
        # The quotient is rounded once if both the integer and the power of ten are exact in a double.
        doubles = unscaled / float(10**scale)
        inexact = (unscaled > EXACT_INTEGERS) | (unscaled < -EXACT_INTEGERS)
    if inexact.any():
        encoded = decimals.filter(pa.array(inexact)).dictionary_encode()
        numbers = np.array([*map(float, encoded.dictionary.to_pylist()), np.nan])
        doubles[inexact] = numbers[pc.fill_null(encoded.indices, -1).to_numpy()]
    return doubles


def as_numpy(value: Value) -> np.ndarray:
    """Return an int64 or float64 value as a NumPy array; arbitrary where null."""
    array = as_array(value)
    if array.null_count:
        array = pc.fill_null(array, 0)
    return array.to_numpy(zero_copy_only=False)


def missing(*values: Value) -> Bool:
    """Return a mask of the rows in which any of the values is null, broadcast together."""
    is_null: Bool = np.zeros(1, np.bool_)
    for value in values:
        if isinstance(value, pa.Scalar):
            is_null = is_null | (not value.is_valid)
        elif value.null_count or len(value) != is_null.size:
            is_null = is_null | pc.is_null(value).to_numpy(zero_copy_only=False)
    return is_null


def from_numpy(numbers: np.ndarray, null: Bool, *operands: Value) -> Value:
    """Convert NumPy results to an Arrow value: a scalar if all operands are scalars."""
    null = np.broadcast_to(null, numbers.shape)
    return shaped_as(pa.array(numbers, mask=null if null.any() else None, from_pandas=False), *operands)


def instant_ticks(value: Value) -> tuple[Value, str]:
    """Return an instant or a duration as an int64 count of its unit, and the unit; a date means its midnight in UTC."""
    if pa.types.is_date32(value.type):
        days = pc.cast(pc.cast(value, pa.int32()), pa.int64())
        return pc.multiply_checked(days, pa.scalar(86_400, pa.int64())), "s"
    return pc.cast(value, pa.int64()), value.type.unit


def same_unit(left: Value, right: Value) -> tuple[Value, Value, str]:
    """Return both as counts of the finer of their units; raise ArrowInvalid if a count does not fit in 64 bits."""
    (left_ticks, left_unit), (right_ticks, right_unit) = instant_ticks(left), instant_ticks(right)
    finer = max(left_unit, right_unit, key=UNITS_PER_SECOND.__getitem__)
    return _rescaled(left_ticks, left_unit, finer), _rescaled(right_ticks, right_unit, finer), finer


def _rescaled(ticks: Value, unit: str, finer: str) -> Value:
    factor = UNITS_PER_SECOND[finer] // UNITS_PER_SECOND[unit]
    return ticks if factor == 1 else pc.multiply_checked(ticks, pa.scalar(factor, pa.int64()))
