"""Evaluate expressions of rows that the match may never test: a value that does not fit its type is null."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from streamsift.errors import BadInputError
from streamsift.logical.bound import Expr
from streamsift.runtime.expressions.evaluate import Rows, evaluate


def evaluate_or_null(
    expression: Expr, column: Callable[[int, str], pa.Array], length: int, text: str, data_type: pa.DataType
) -> pa.Array:
    """Return the values of an expression in a type; null for a row whose value overflows."""
    try:
        return as_type(evaluate(expression, Rows(column, length, text)), data_type)
    except BadInputError:
        if length == 1:
            return pa.nulls(1, data_type)
    half = length // 2
    parts = [
        evaluate_or_null(expression, _slice_of(column, start, size), size, text, data_type)
        for start, size in ((0, half), (half, length - half))
    ]
    return pa.concat_arrays(parts)


def _slice_of(column: Callable[[int, str], pa.Array], start: int, size: int) -> Callable[[int, str], pa.Array]:
    return lambda variable, name: column(variable, name).slice(start, size)


def as_type(array: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Return values in a type; null where an integer or a decimal does not fit. Decimals lose digits as in Spark."""
    if array.type == data_type:
        return array
    if pa.types.is_integer(data_type) and pa.types.is_integer(array.type):
        bits = data_type.bit_width - 1
        low, high = pa.scalar(-(2**bits), pa.int64()), pa.scalar(2**bits - 1, pa.int64())
        fits = pc.and_(pc.greater_equal(array, low), pc.less_equal(array, high))
        return pc.if_else(fits, array, pa.scalar(None, array.type)).cast(data_type)
    if not pa.types.is_decimal(data_type) or pa.types.is_list(data_type):
        return array.cast(data_type)
    try:
        return array.cast(data_type, safe=not pa.types.is_decimal(array.type))
    except pa.ArrowInvalid:
        return pa.concat_arrays([_one_decimal(array.slice(row, 1), data_type) for row in range(len(array))])


def _one_decimal(value: pa.Array, data_type: pa.DataType) -> pa.Array:
    try:
        return value.cast(data_type, safe=not pa.types.is_decimal(value.type))
    except pa.ArrowInvalid:
        return pa.nulls(1, data_type)
