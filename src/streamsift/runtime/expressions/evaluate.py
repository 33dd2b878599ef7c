"""Evaluate a bound expression over n rows to an Arrow array of n values.

SQL's three-valued logic: a comparison with null or NaN is unknown (null), and a filter keeps only what is true.
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
    is_decimal,
    is_float,
    is_instant,
    is_null_typed,
    missing,
    spread,
)

Provider = Callable[[int, str], pa.Array]
MANY_ITEMS = 4  # from here on a set lookup beats one comparison per item of IN


@dataclass(frozen=True, slots=True)
class Rows:
    """n rows to evaluate over: `column(variable, name)` gives their values; `text` is the query's, for messages.

    `group` gives the aggregates of groups, where there are any.
    """

    column: Provider
    length: int
    text: str
    group: Callable[[GroupAggregate], pa.Array] | None = None


def evaluate(expression: Expr, rows: Rows) -> pa.Array:
    """Return the value of the expression in each row. Integers are int64 (uint64: decimal), floats float64."""
    if isinstance(expression, Column) and expression.kind in (Kind.OTHER, Kind.DATE):
        # Carried through as it is.
        return rows.column(expression.variable, expression.name)
    if isinstance(expression, GroupAggregate) and expression.kind in (Kind.OTHER, Kind.DATE):
        return _group_value(expression, rows)
    return spread(_value(expression, rows), rows.length)


def _group_value(expression: GroupAggregate, rows: Rows) -> pa.Array:
    assert rows.group is not None, "aggregates over groups are evaluated over matches only"
    try:
        return rows.group(expression)
    except Overflow as error:
        raise _bad_value(str(error), expression, rows) from error


def mask(expression: Expr, rows: Rows) -> Bool:
    """Return where the predicate is true."""
    array = evaluate(expression, rows)
    if is_null_typed(array):
        return np.zeros(rows.length, np.bool_)
    if array.null_count:
        array = pc.fill_null(array, False)
    return truths(array)


def _bad_value(message: str, expression: Expr, rows: Rows) -> BadInputError:
    return BadInputError(render(f"Arithmetic overflow: {message}", rows.text, expression.span, ""))


def _value(expression: Expr, rows: Rows) -> Value:
    match expression:
        case Column(variable=variable, name=name):
            return column_value(rows.column(variable, name))
        case Constant(value=value):
            return constant_value(value)
        case GroupAggregate():
            return column_value(_group_value(expression, rows))
        case Operation(op=op, operands=operands):
            values = [_value(operand, rows) for operand in operands]
            return _operation(op, values, expression, rows)


def _operation(op: str, values: Sequence[Value], expression: Operation, rows: Rows) -> Value:
    if op in ARROW:
        return compare(op, *values)
    if op in LOGIC:
        return LOGIC[op](*(_boolean(value) for value in values))
    if op == "in":
        return _in(values)
    try:
        if op in FUNCTIONS:
            return FUNCTIONS[op](values, expression.kind)
        assert op in UNARY or op in BINARY, op
        if any(is_null_typed(value) for value in values):
            return pa.scalar(None, DEFAULT_TYPES[expression.kind])
        return arithmetic(op, values)
    except Overflow as error:
        raise _bad_value(str(error), expression, rows) from error


def _boolean(value: Value) -> Value:
    return pc.cast(value, pa.bool_()) if is_null_typed(value) else value


def _in(values: Sequence[Value]) -> Value:
    """value = item OR value = item ...: unknown if no item is equal and one comparison is unknown."""
    value, items = values[0], values[1:]
    same = all(isinstance(item, pa.Scalar) and item.is_valid and item.type == value.type for item in items)
    if len(items) >= MANY_ITEMS and same and not is_float(value):
        found = pc.is_in(value, value_set=pa.concat_arrays([as_array(item) for item in items]))
        return pc.if_else(pc.is_valid(value), found, pa.scalar(None, pa.bool_()))
    return reduce(pc.or_kleene, (compare("=", value, item) for item in items))


def _like(values: Sequence[Value], _: Kind) -> Value:
    value, pattern = values
    if is_null_typed(value) or not pattern.is_valid:
        return pa.scalar(None, pa.bool_())
    text = pattern.as_py()
    return pc.match_substring_regex(value, _regex(text)) if "\\" in text else pc.match_like(value, text)


def _regex(pattern: str) -> str:
    """A LIKE pattern with escapes as a regular expression: a backslash makes any character stand for itself."""
    signs = {"%": ".*", "_": "."}
    tokens = re.findall(r"\\.|.", pattern, re.DOTALL)
    return "(?s)^" + "".join(signs.get(token) or f"\\x{{{ord(token[-1]):x}}}" for token in tokens) + "$"


def _letters(ascii_only: Callable[[Value], Value], change: Callable[[str], str]) -> Callable[..., Value]:
    def apply(values: Sequence[Value], _: Kind) -> Value:
        value = values[0]
        array = as_array(value)
        if is_null_typed(value):
            return pa.scalar(None, pa.string())
        if pc.all(pc.string_is_ascii(array)).as_py() is not False:
            return ascii_only(value)
        # Unicode's full mappings (ß becomes SS), once per distinct text; Arrow has the one-to-one mappings only.
        encoded = pc.dictionary_encode(array)
        changed = pa.array([change(text) for text in encoded.dictionary.to_pylist()], array.type)
        found = changed.take(encoded.indices)
        return found[0] if isinstance(value, pa.Scalar) else found

    return apply


def common(values: Sequence[Value], kind: Kind) -> list[Value]:
    """Return the values in the one type that a choice among them has."""
    known = [value for value in values if not is_null_typed(value)]
    if any(is_float(value) for value in known):
        target = pa.float64()
    elif any(is_decimal(value) for value in known):
        target = common_decimal(v.type if is_decimal(v) else pa.decimal128(19, 0) for v in known)
    elif any(is_instant(value) for value in known):
        target = _common_instant([value.type for value in known])
    elif len({value.type for value in known}) > 1:
        durations = all(pa.types.is_duration(value.type) for value in known)
        target = pa.duration(_finest([value.type for value in known])) if durations else pa.large_string()
    else:
        target = known[0].type if known else DEFAULT_TYPES[kind]
    try:
        return [as_float(value) if target == pa.float64() else pc.cast(value, target) for value in values]
    except pa.ArrowInvalid as error:
        raise Overflow(f"a value does not fit {target}, the type that all of them have in common") from error


def _finest(types: Sequence[pa.DataType]) -> str:
    return max((t.unit for t in types if not pa.types.is_date32(t)), key=["s", "ms", "us", "ns"].index)


def _common_instant(types: Sequence[pa.DataType]) -> pa.DataType:
    if all(pa.types.is_date32(t) for t in types):
        return pa.date32()
    zones = [t.tz for t in types if pa.types.is_timestamp(t) and t.tz]
    return pa.timestamp(_finest(types), zones[0] if zones else None)


def _extreme(largest: bool) -> Callable[[Sequence[Value], Kind], Value]:
    """LEAST and GREATEST: nulls are skipped, NaN is greater than every number."""

    def apply(values: Sequence[Value], kind: Kind) -> Value:
        values = common(values, kind)
        if not is_float(values[0]):
            target = values[0].type
            # Arrow has no extremes of booleans and of times with a zone: those of the numbers behind them.
            numbers = pa.int8() if pa.types.is_boolean(target) else pa.int64() if is_instant(values[0]) else target
            numbers = pa.int32() if pa.types.is_date32(target) else numbers
            found = (pc.max_element_wise if largest else pc.min_element_wise)(*(pc.cast(v, numbers) for v in values))
            return pc.cast(found, target)
        best, null = as_numpy(values[0]), missing(values[0])
        for value in values[1:]:
            other, gone = as_numpy(value), missing(value)
            # np.maximum keeps a NaN, np.fmin drops it unless both are.
            chosen = np.maximum(best, other) if largest else np.fmin(best, other)
            best = np.where(null, other, np.where(gone, best, chosen))
            null = null & gone
        return from_numpy(best, null, *values)

    return apply


LOGIC: dict[str, Callable[..., Value]] = {
    "and": lambda *values: reduce(pc.and_kleene, values),
    "or": lambda *values: reduce(pc.or_kleene, values),
    "not": pc.invert,
}
FUNCTIONS: dict[str, Callable[[Sequence[Value], Kind], Value]] = {
    "is_null": lambda values, _: pc.is_null(values[0]),
    "like": _like,
    "lower": _letters(pc.ascii_lower, str.lower),
    "upper": _letters(pc.ascii_upper, str.upper),
    "least": _extreme(largest=False),
    "greatest": _extreme(largest=True),
    "coalesce": lambda values, kind: pc.coalesce(*common(values, kind)),
}
