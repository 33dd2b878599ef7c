"""Infer the Arrow types of expressions, with the rules of Spark SQL for results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import reduce

import pyarrow as pa
from pyarrow import types as t

from streamsift.logical.bound import Column, Constant, Expr, Kind, Operation

_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
_OF_KIND = {
    Kind.INTEGER: pa.int64(),
    Kind.DECIMAL: pa.decimal128(38, 18),
    Kind.FLOAT: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.TIMESTAMP: pa.timestamp("us", "UTC"),
    Kind.DATE: pa.date32(),
    Kind.DURATION: pa.duration("us"),
    Kind.NULL: pa.null(),
    Kind.OTHER: pa.null(),
}
_ARITHMETIC = frozenset({"+", "-", "*", "/", "%"})


def result_type(expression: Expr, type_of: Callable[[str], pa.DataType]) -> pa.DataType:
    """Return the type of an expression's values; `type_of` gives that of a column."""
    match expression:
        case Column():
            return plain(type_of(expression.name))
        case Constant():
            return _constant_type(expression)
        case Operation():
            types = [result_type(operand, type_of) for operand in expression.operands]
            return _operation_type(expression, types)
    return _OF_KIND[expression.kind]


def plain(data_type: pa.DataType) -> pa.DataType:
    """Return the type that Spark has for a type of Arrow: no dictionaries, unsigned or large types."""
    if t.is_dictionary(data_type):
        return plain(data_type.value_type)
    if t.is_unsigned_integer(data_type):
        return {8: pa.int16(), 16: pa.int32(), 32: pa.int64()}.get(data_type.bit_width, pa.decimal128(20, 0))
    if t.is_large_string(data_type) or t.is_string_view(data_type):
        return pa.string()
    return data_type


def sum_type(data_type: pa.DataType) -> pa.DataType:
    data_type = plain(data_type)
    if t.is_integer(data_type):
        return pa.int64()
    if t.is_decimal(data_type):
        return pa.decimal128(min(38, data_type.precision + 10), data_type.scale)
    return data_type if t.is_duration(data_type) else pa.float64()


def average_type(data_type: pa.DataType) -> pa.DataType:
    data_type = plain(data_type)
    if t.is_decimal(data_type):
        return _bounded(data_type.precision + 4, data_type.scale + 4)
    return data_type if t.is_duration(data_type) else pa.float64()


def _constant_type(constant: Constant) -> pa.DataType:
    match constant.value:
        case bool():
            return pa.bool_()
        case int() as value:
            return pa.int32() if -(2**31) <= value < 2**31 else pa.int64()
        case Decimal() as value:
            _, digits, exponent = value.as_tuple()
            scale = max(0, -int(exponent))
            return pa.decimal128(max(len(digits) + max(int(exponent), 0), scale), scale)
    return _OF_KIND[constant.kind]


def _operation_type(operation: Operation, types: list[pa.DataType]) -> pa.DataType:
    match operation.op:
        case op if op in _ARITHMETIC and len(types) == 2:
            return _arithmetic_type(op, operation, types)
        case "negative" | "abs":
            return types[0]
        case "case":
            return common_type([*types[1:-1:2], types[-1]], operation.kind)
        case "least" | "greatest" | "coalesce":
            return common_type(types, operation.kind)
        case "if":
            return common_type(types[1:], operation.kind)
    return _OF_KIND[operation.kind]


def _arithmetic_type(op: str, operation: Operation, types: list[pa.DataType]) -> pa.DataType:
    left, right = types
    if pa.null() in types:
        left = right = right if left == pa.null() else left
        if left == pa.null():
            return pa.float64() if op == "/" else pa.null()
    is_number = [t.is_integer(each) or t.is_floating(each) or t.is_decimal(each) for each in (left, right)]
    if not all(is_number):
        instant = next((each for each in (left, right) if t.is_timestamp(each)), None)
        return instant if operation.kind is Kind.TIMESTAMP and instant is not None else _OF_KIND[operation.kind]
    if any(t.is_decimal(each) for each in (left, right)) and not any(t.is_floating(each) for each in (left, right)):
        return _decimal_arithmetic(op, *_as_decimals(operation, left, right))
    if op == "/":
        return pa.float64()
    return common_type([left, right], operation.kind)


def _as_decimals(operation: Operation, *types: pa.DataType) -> list[tuple[int, int]]:
    """Return precision and scale of both operands; an integer literal has only the digits that it is written with."""
    sizes = []
    for operand, data_type in zip(operation.operands, types, strict=True):
        if t.is_decimal(data_type):
            sizes.append((data_type.precision, data_type.scale))
        elif isinstance(operand, Constant) and isinstance(operand.value, int):
            sizes.append((len(str(abs(operand.value))), 0))
        else:
            sizes.append((_DIGITS[data_type], 0))
    return sizes


def _decimal_arithmetic(op: str, left: tuple[int, int], right: tuple[int, int]) -> pa.DataType:
    (p1, s1), (p2, s2) = left, right
    match op:
        case "+" | "-":
            scale = max(s1, s2)
            return _bounded(max(p1 - s1, p2 - s2) + scale + 1, scale)
        case "*":
            return _bounded(p1 + p2 + 1, s1 + s2)
        case "/":
            scale = max(6, s1 + p2 + 1)
            return _bounded(p1 - s1 + s2 + scale, scale)
        case _:
            scale = max(s1, s2)
            return _bounded(min(p1 - s1, p2 - s2) + scale, scale)


def _bounded(precision: int, scale: int) -> pa.DataType:
    """Return a decimal type of at most 38 digits, with the loss of scale that Spark allows."""
    if precision <= 38:
        return pa.decimal128(precision, scale)
    digits = precision - scale
    return pa.decimal128(38, max(38 - digits, min(scale, 6)))


def common_type(types: Sequence[pa.DataType], kind: Kind) -> pa.DataType:
    """Return the type that holds the values of several types."""
    given = [each for each in types if each != pa.null()]
    return reduce(lambda a, b: _wider(a, b, kind), given) if given else pa.null()


def _wider(left: pa.DataType, right: pa.DataType, kind: Kind) -> pa.DataType:
    if left == right:
        return left
    if left in _INTEGERS and right in _INTEGERS:
        return max(left, right, key=lambda each: each.bit_width)
    if t.is_floating(left) or t.is_floating(right):
        return pa.float64()
    if t.is_decimal(left) or t.is_decimal(right):
        sizes = [(d.precision, d.scale) if t.is_decimal(d) else (_DIGITS.get(d, 20), 0) for d in (left, right)]
        scale = max(s for _, s in sizes)
        return _bounded(max(p - s for p, s in sizes) + scale, scale)
    return left if t.is_timestamp(left) else right if t.is_timestamp(right) else _OF_KIND[kind]
