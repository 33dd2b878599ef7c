"""Aggregate the concatenated elements of Kleene groups, exactly; an empty group gives null."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsift.logical.bound import GroupAggregate
from streamsift.runtime.arrays.dtypes import LARGEST, UNKNOWN, Bool, Int64
from streamsift.runtime.expressions.arithmetic import Overflow, arithmetic
from streamsift.runtime.expressions.codes import codes
from streamsift.runtime.expressions.columns import Columns
from streamsift.runtime.expressions.values import as_numpy, column_value, missing

SAFE_TOTAL = 2.0**62  # if the absolute values sum to less than this, the sum cannot wrap


def aggregate(function: str, elements: pa.Array, offsets: Int64) -> pa.Array:
    """Aggregate each group elements[offsets[i]:offsets[i + 1]]. Skip nulls, except that FIRST and LAST return them."""
    if function in ("FIRST", "LAST"):
        at = offsets[:-1] if function == "FIRST" else offsets[1:] - 1
        return elements.take(pa.array(at, mask=offsets[1:] == offsets[:-1]))
    values = column_value(elements)
    is_present = ~missing(values)
    counts = _totals(is_present.astype(np.int64), offsets)
    if function == "COUNT":
        return pa.array(counts)
    if pa.types.is_null(values.type):
        return pa.nulls(counts.size, pa.float64() if function == "AVG" else values.type)
    if function in ("MIN", "MAX"):
        return _extreme(values, is_present, offsets, largest=function == "MAX")
    return (_sum if function == "SUM" else _average)(values, offsets, counts)


def empty_aggregate(expression: GroupAggregate, columns: Columns) -> pa.Array:
    """Return an empty array of the aggregate's type."""
    if expression.column is None:
        return pa.array([], pa.int64())
    return aggregate(expression.function, columns.whole(expression.column).slice(0, 0), np.zeros(1, np.int64))


def _totals(numbers: np.ndarray, offsets: Int64) -> np.ndarray:
    """Return the sum of each group; int64 may wrap."""
    totals = np.zeros(offsets.size - 1, numbers.dtype)
    some = offsets[1:] > offsets[:-1]
    if some.any():
        with np.errstate(invalid="ignore", over="ignore"):
            totals[some] = np.add.reduceat(numbers, offsets[:-1][some])
    return totals


def _extreme(values: pa.Array, is_present: Bool, offsets: Int64, *, largest: bool) -> pa.Array:
    """Return the smallest or largest element of each group; NaN is larger than every number."""
    if not len(values):
        return pa.nulls(offsets.size - 1, values.type)
    (ranks,) = codes([values])
    ranks = np.where(is_present & (ranks == UNKNOWN), LARGEST, ranks)  # NaN
    order = ranks if largest else -np.maximum(ranks, -LARGEST)
    order = np.where(is_present, order, UNKNOWN)
    some = offsets[1:] > offsets[:-1]
    best = np.full(offsets.size - 1, UNKNOWN, np.int64)
    best[some] = np.maximum.reduceat(order, offsets[:-1][some])
    group_of = np.repeat(np.arange(best.size), np.diff(offsets))
    hits = np.flatnonzero((order == best[group_of]) & is_present)
    groups, first = np.unique(group_of[hits], return_index=True)
    at = np.full(best.size, -1, np.int64)
    at[groups] = hits[first]
    return values.take(pa.array(at, mask=at < 0))


def _sum(values: pa.Array, offsets: Int64, counts: Int64) -> pa.Array:
    none = counts == 0
    if pa.types.is_floating(values.type):
        return pa.array(_totals(as_numpy(values), offsets), mask=none, from_pandas=False)
    if pa.types.is_decimal(values.type):
        sums = zip(_decimal_totals(values, offsets), none, strict=True)
        return pa.array([None if empty else total for total, empty in sums], pa.decimal256(76, values.type.scale))
    totals, exact = _integer_totals(as_numpy(pc.cast(values, pa.int64())), offsets)
    if any(not ~LARGEST <= total <= LARGEST for total in exact.values()):
        raise Overflow("the sum of a group does not fit in 64 bits")
    return pc.cast(pa.array(totals, mask=none), values.type)


def _average(values: pa.Array, offsets: Int64, counts: Int64) -> pa.Array:
    none = counts == 0
    if pa.types.is_duration(values.type):
        return arithmetic("/", [_sum(values, offsets, counts), pa.array(np.where(none, 1, counts), mask=none)])
    if pa.types.is_decimal(values.type):
        totals = np.array([float(total) for total in _decimal_totals(values, offsets)], np.float64)
    elif pa.types.is_floating(values.type):
        totals = _totals(as_numpy(values), offsets)
    else:
        wrapped, exact = _integer_totals(as_numpy(values), offsets)
        totals = wrapped.astype(np.float64)
        totals[list(exact)] = [float(total) for total in exact.values()]
    return pa.array(totals / np.where(none, 1, counts), mask=none, from_pandas=False)


def _integer_totals(numbers: Int64, offsets: Int64) -> tuple[Int64, dict[int, int]]:
    """Return the sum of each group, and the exact sums of groups whose sum might wrap, by group."""
    risky = np.flatnonzero(_totals(np.abs(numbers.astype(np.float64)), offsets) >= SAFE_TOTAL).tolist()
    return _totals(numbers, offsets), {g: sum(numbers[offsets[g] : offsets[g + 1]].tolist()) for g in risky}


def _decimal_totals(values: pa.Array, offsets: Int64) -> list[Decimal]:
    """Sum decimals in Python: Arrow's sums are not exact for every precision."""
    numbers = [Decimal(0) if number is None else number for number in values.to_pylist()]
    return [sum(numbers[start:end], Decimal(0)) for start, end in pairwise(offsets.tolist())]
