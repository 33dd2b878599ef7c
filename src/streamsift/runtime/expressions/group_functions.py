"""Aggregate the elements of Kleene groups, laid end to end: exactly, null for an empty group."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsift.logical.bound import GroupAggregate
from streamsift.runtime.arrays.dtypes import UNKNOWN, Bool, Int64
from streamsift.runtime.expressions.arithmetic import Overflow, arithmetic
from streamsift.runtime.expressions.codes import codes
from streamsift.runtime.expressions.columns import Columns
from streamsift.runtime.expressions.values import as_numpy, column_value, is_decimal, is_duration, is_float, missing

SAFE_TOTAL = 2.0**62  # the absolute values of a group that sum to less than this cannot wrap
LARGEST = np.iinfo(np.int64).max


def aggregate(function: str, elements: pa.Array, offsets: Int64) -> pa.Array:
    """Group i is elements[offsets[i]:offsets[i + 1]]. Nulls do not count, but FIRST and LAST look at one element."""
    if function in ("FIRST", "LAST"):
        at = offsets[:-1] if function == "FIRST" else offsets[1:] - 1
        return elements.take(pa.array(at, mask=offsets[1:] == offsets[:-1]))
    values = column_value(elements)
    known = ~missing(values) if len(values) else np.zeros(0, np.bool_)
    known = np.broadcast_to(known, len(values))
    counts = _totals(known.astype(np.int64), offsets)
    match function:
        case "COUNT":
            return pa.array(counts)
        case "MIN" | "MAX":
            return _extreme(values, known, offsets, largest=function == "MAX")
        case "SUM":
            return _sum(values, offsets, counts)
        case _:
            return _average(values, offsets, counts)


def empty_aggregate(expression: GroupAggregate, columns: Columns) -> pa.Array:
    """The aggregate of no group, in its type."""
    if expression.column is None:
        return pa.array([], pa.int64())
    return aggregate(expression.function, columns.whole(expression.column).slice(0, 0), np.zeros(1, np.int64))


def _totals(numbers: np.ndarray, offsets: Int64) -> np.ndarray:
    """The sum of each group; int64 may wrap."""
    found = np.zeros(offsets.size - 1, numbers.dtype)
    some = offsets[1:] > offsets[:-1]
    if some.any():
        with np.errstate(invalid="ignore", over="ignore"):
            found[some] = np.add.reduceat(numbers, offsets[:-1][some])
    return found


def _extreme(values: pa.Array, known: Bool, offsets: Int64, *, largest: bool) -> pa.Array:
    """The least or greatest element; NaN is greater than every number."""
    if pa.types.is_null(values.type) or not len(values):
        return pa.nulls(offsets.size - 1, values.type)
    (ranks,) = codes([values])
    ranks = np.where(known & (ranks == UNKNOWN), LARGEST, ranks)  # NaN
    order = ranks if largest else -np.maximum(ranks, -LARGEST)
    order = np.where(known, order, UNKNOWN)
    some = offsets[1:] > offsets[:-1]
    best = np.full(offsets.size - 1, UNKNOWN, np.int64)
    best[some] = np.maximum.reduceat(order, offsets[:-1][some])
    groups = np.repeat(np.arange(best.size), np.diff(offsets))
    hits = np.flatnonzero((order == best[groups]) & known)
    found, first = np.unique(groups[hits], return_index=True)
    at = np.zeros(best.size, np.int64)
    at[found] = hits[first]
    none = np.ones(best.size, np.bool_)
    none[found] = False
    return values.take(pa.array(at, mask=none))


def _sum(values: pa.Array, offsets: Int64, counts: Int64) -> pa.Array:
    none = counts == 0
    if is_float(values):
        return pa.array(_totals(as_numpy(values), offsets), mask=none, from_pandas=False)
    if is_decimal(values):
        sums = zip(_decimal_totals(values, offsets), none, strict=True)
        return pa.array([None if empty else total for total, empty in sums], pa.decimal256(76, values.type.scale))
    if pa.types.is_null(values.type):
        return pa.nulls(none.size, values.type)
    numbers = as_numpy(pc.cast(values, pa.int64()))
    totals = _totals(numbers, offsets)
    for group in _risky(numbers, offsets):
        exact = _exact_total(numbers, offsets, group)
        if not -LARGEST - 1 <= exact <= LARGEST:
            raise Overflow("the sum of a group does not fit 64 bits")
    return pc.cast(pa.array(totals, mask=none), values.type)


def _average(values: pa.Array, offsets: Int64, counts: Int64) -> pa.Array:
    none = counts == 0
    if is_duration(values):
        return arithmetic("/", [_sum(values, offsets, counts), pa.array(np.where(none, 1, counts), mask=none)])
    if pa.types.is_null(values.type):
        return pa.nulls(none.size, pa.float64())
    if is_decimal(values):
        totals = np.array([float(total) for total in _decimal_totals(values, offsets)], np.float64)
    elif is_float(values):
        totals = _totals(as_numpy(values), offsets)
    else:
        numbers = as_numpy(values)
        totals = _totals(numbers, offsets).astype(np.float64)
        for group in _risky(numbers, offsets):
            totals[group] = float(_exact_total(numbers, offsets, group))
    return pa.array(totals / np.where(none, 1, counts), mask=none, from_pandas=False)


def _risky(numbers: np.ndarray, offsets: Int64) -> Int64:
    """The groups whose sum of 64-bit integers might wrap."""
    return np.flatnonzero(_totals(np.abs(numbers.astype(np.float64)), offsets) >= SAFE_TOTAL)


def _exact_total(numbers: np.ndarray, offsets: Int64, group: int) -> int:
    return sum(numbers[offsets[group] : offsets[group + 1]].tolist())


def _decimal_totals(values: pa.Array, offsets: Int64) -> list[Decimal]:
    """Sums of decimals, by Python's, since Arrow has none that are exact for every number of digits."""
    numbers = [Decimal(0) if number is None else number for number in values.to_pylist()]
    return [sum(numbers[start:stop], Decimal(0)) for start, stop in pairwise(offsets.tolist())]
