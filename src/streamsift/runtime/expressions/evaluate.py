"""Evaluate a bound expression over n rows to an Arrow array of n values.

Predicates follow SQL's three-valued logic: a comparison with null or NaN is null, and a filter keeps only true rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsift.errors import BadInputError, render
from streamsift.logical.bound import Column, Constant, Expr, GroupAggregate, Kind, Operation
from streamsift.runtime.arrays.dtypes import Bool
from streamsift.runtime.expressions.arithmetic import BINARY, UNARY, Overflow, arithmetic
from streamsift.runtime.expressions.columns import truths
from streamsift.runtime.expressions.compare import ARROW, compare
from streamsift.runtime.expressions.values import (
    DEFAULT_TYPES,
    Value,
    as_array,
    as_float,
    as_numpy,
    column_value,
    common_decimal,
    constant_value,
    from_numpy,
    is_instant,
    missing,
    shaped_as,
    spread,
)

MANY_ITEMS = 4  # from this size, a set lookup is faster than one comparison per item of IN


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows to evaluate over: `column(variable, name)` returns their values; `text` is the query, for messages."""

    column: Callable[[int, str], pa.Array]
    length: int
    text: str
    group: Callable[[GroupAggregate], pa.Array] | None = None  # aggregates Kleene groups; None if there are none


def evaluate(expression: Expr, rows: Rows) -> pa.Array:
    """Return the value of the expression in each row. Integers are int64 (uint64: decimal), floats float64."""
    if isinstance(expression, Column) and expression.kind in (Kind.OTHER, Kind.DATE):
        return rows.column(expression.variable, expression.name)
    if isinstance(expression, GroupAggregate) and expression.kind in (Kind.OTHER, Kind.DATE):
        return _group_values(expression, rows)
    return spread(_value(expression, rows), rows.length)


def mask(expression: Expr, rows: Rows) -> Bool:
    """Return a mask of the rows for which the predicate is true."""
    array = evaluate(expression, rows)
    if pa.types.is_null(array.type):
        return np.zeros(rows.length, np.bool_)
    return truths(pc.fill_null(array, False) if array.null_count else array)


def _group_values(expression: GroupAggregate, rows: Rows) -> pa.Array:
    assert rows.group is not None, "group aggregates can only be evaluated over matches"
    return rows.group(expression)


def _value(expression: Expr, rows: Rows) -> Value:
    try:
        match expression:
            case Column(variable=variable, name=name):
                return column_value(rows.column(variable, name))
            case Constant(value=value):
                return constant_value(value)
            case GroupAggregate():
                return column_value(_group_values(expression, rows))
            case Operation(op=op, operands=operands, kind=kind):
                return _operation(op, [_value(operand, rows) for operand in operands], kind)
    except Overflow as error:
        raise BadInputError(render(f"arithmetic overflow: {error}", rows.text, expression.span, "")) from error


def _operation(op: str, values: Sequence[Value], kind: Kind) -> Value:
    if op in ARROW:
        return compare(op, *values)
    if op in LOGIC:
        return LOGIC[op](*(pc.cast(value, pa.bool_()) for value in values))
    if op in FUNCTIONS:
        return FUNCTIONS[op](values, kind)
    assert op in UNARY or op in BINARY, op
    if any(pa.types.is_null(value.type) for value in values):
        return pa.scalar(None, DEFAULT_TYPES[kind])
    return arithmetic(op, values)


def _in(values: Sequence[Value], _: Kind) -> Value:
    """Return `value = item OR value = item ...`: null if no item is equal and a comparison is null."""
    value, items = values[0], values[1:]
    same = all(isinstance(item, pa.Scalar) and item.is_valid and item.type == value.type for item in items)
    if len(items) >= MANY_ITEMS and same and not pa.types.is_floating(value.type):
        is_item = pc.is_in(value, value_set=pa.concat_arrays([as_array(item) for item in items]))
        return pc.if_else(pc.is_valid(value), is_item, pa.scalar(None, pa.bool_()))
    return reduce(pc.or_kleene, (compare("=", value, item) for item in items))


def _like(values: Sequence[Value], _: Kind) -> Value:
    value, pattern = values
    if pa.types.is_null(value.type) or not pattern.is_valid:
        return pa.scalar(None, pa.bool_())
    text = pattern.as_py()
    return pc.match_substring_regex(value, _regex(text)) if "\\" in text else pc.match_like(value, text)


def _regex(pattern: str) -> str:
    """Translate a LIKE pattern with escapes to a regular expression; a backslash makes any character literal."""
    signs = {"%": ".*", "_": "."}
    tokens = re.findall(r"\\.|.", pattern, re.DOTALL)
    return "(?s)^" + "".join(signs.get(token) or f"\\x{{{ord(token[-1]):x}}}" for token in tokens) + "$"


def _in_case(ascii_only: Callable[[Value], Value], change: Callable[[str], str]) -> Callable[..., Value]:
    def apply(values: Sequence[Value], _: Kind) -> Value:
        value = values[0]
        array = as_array(value)
        if pa.types.is_null(value.type):
            return pa.scalar(None, pa.string())
        if pc.all(pc.string_is_ascii(array)).as_py() is not False:
            return ascii_only(value)
        # Full Unicode mappings (ß becomes SS), once per distinct string; Arrow has only one-to-one mappings.
        encoded = pc.dictionary_encode(array)
        changed = pa.array([change(text) for text in encoded.dictionary.to_pylist()], array.type)
        return shaped_as(changed.take(encoded.indices), value)

    return apply


def common(values: Sequence[Value], kind: Kind) -> list[Value]:
    """Cast the values to their common type, the type of LEAST, GREATEST and COALESCE."""
    typed = [value for value in values if not pa.types.is_null(value.type)]
    types = [value.type for value in typed]
    if any(pa.types.is_floating(value.type) for value in typed):
        target = pa.float64()
    elif any(pa.types.is_decimal(value.type) for value in typed):
        target = common_decimal(t if pa.types.is_decimal(t) else pa.decimal128(19, 0) for t in types)
    elif any(is_instant(value) for value in typed):
        target = _common_instant(types)
    elif len(set(types)) > 1:
        target = pa.duration(_finest(types)) if all(map(pa.types.is_duration, types)) else pa.large_string()
    else:
        target = types[0] if types else DEFAULT_TYPES[kind]
    try:
        return [as_float(value) if target == pa.float64() else pc.cast(value, target) for value in values]
    except pa.ArrowInvalid as error:
        raise Overflow(f"a value does not fit in {target}, the common type of the arguments") from error


def _finest(types: Sequence[pa.DataType]) -> str:
    return max((t.unit for t in types if not pa.types.is_date32(t)), key=["s", "ms", "us", "ns"].index)


def _common_instant(types: Sequence[pa.DataType]) -> pa.DataType:
    if all(pa.types.is_date32(t) for t in types):
        return pa.date32()
    zones = [t.tz for t in types if pa.types.is_timestamp(t) and t.tz]
    return pa.timestamp(_finest(types), zones[0] if zones else None)


def _extreme(largest: bool) -> Callable[[Sequence[Value], Kind], Value]:
    """Return LEAST or GREATEST: nulls are skipped, NaN is greater than every number."""

    def apply(values: Sequence[Value], kind: Kind) -> Value:
        values = common(values, kind)
        if not pa.types.is_floating(values[0].type):
            target = values[0].type
            # Arrow has no MIN and MAX for booleans and times with a zone: use their integer representation.
            numbers = pa.int8() if pa.types.is_boolean(target) else pa.int64() if is_instant(values[0]) else target
            numbers = pa.int32() if pa.types.is_date32(target) else numbers
            extreme = pc.max_element_wise if largest else pc.min_element_wise
            return pc.cast(extreme(*(pc.cast(v, numbers) for v in values)), target)
        best, null = as_numpy(values[0]), missing(values[0])
        for value in values[1:]:
            other, gone = as_numpy(value), missing(value)
            # np.maximum keeps a NaN; np.fmin keeps it only if both are NaN.
            chosen = np.maximum(best, other) if largest else np.fmin(best, other)
            best = np.where(null, other, np.where(gone, best, chosen))
            null = null & gone
        return from_numpy(best, null, *values)

    return apply


def _case(values: Sequence[Value], kind: Kind) -> Value:
    """Return the value of the first true condition; the operands are condition, value, …, and last the default."""
    *results, chosen = common([*values[1:-1:2], values[-1]], kind)
    for condition, result in reversed([*zip(values[:-1:2], results, strict=True)]):
        chosen = pc.if_else(pc.fill_null(pc.cast(condition, pa.bool_()), False), result, chosen)
    return chosen


LOGIC: dict[str, Callable[..., Value]] = {
    "and": lambda *values: reduce(pc.and_kleene, values),
    "or": lambda *values: reduce(pc.or_kleene, values),
    "not": pc.invert,
}
FUNCTIONS: dict[str, Callable[[Sequence[Value], Kind], Value]] = {
    "is_null": lambda values, _: pc.is_null(values[0]),
    "case": _case,
    "in": _in,
    "like": _like,
    "lower": _in_case(pc.ascii_lower, str.lower),
    "upper": _in_case(pc.ascii_upper, str.upper),
    "least": _extreme(largest=False),
    "greatest": _extreme(largest=True),
    "coalesce": lambda values, kind: pc.coalesce(*common(values, kind)),
}
