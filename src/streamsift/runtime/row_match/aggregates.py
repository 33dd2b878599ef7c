"""Aggregate the labeled rows of matches, up to the current row or over the whole match.

The labeled rows of all matches lie one after the other. An aggregate is computed for each of them, over its match up to
that row; a result row takes the value at its last labeled row.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np
import pyarrow as pa
from numba import njit

from streamsift.errors import BadInputError
from streamsift.logical.row_match.bound import RowAggregate
from streamsift.runtime.arrays.dtypes import LARGEST, Bool, Float64, Int64
from streamsift.runtime.expressions.codes import codes, float_codes
from streamsift.runtime.expressions.columns import fixed_width, integers, nulls, plain
from streamsift.runtime.row_match.listing import collected

WIDE = Context(prec=80, rounding=ROUND_HALF_UP)


@dataclass(frozen=True, slots=True)
class LabeledRows:
    """The rows of matches that have one of some labels.

    Those of match m begin at begin[m]; before[i] is how many there are before label i of all matches.
    """

    rows: Int64
    begin: Int64  # one more than there are matches
    before: Int64


def aggregate(node: RowAggregate, values: pa.Array | None, begin: Int64, first: Int64, end: Int64) -> pa.Array:
    """Return the aggregate over values first[i] to end[i] for each result row; `begin` is where matches begin."""
    if values is None:
        return pa.array(end - first)
    values = plain(values)
    counted = ~_missing(values)
    if node.distinct:
        counted &= first_occurrences(values, begin)
    if node.function in ("ARRAY_AGG", "COLLECT_LIST", "COLLECT_SET"):
        distinct = node.distinct or node.function == "COLLECT_SET"
        kept = first_occurrences(values, begin) if distinct else np.ones(len(values), np.bool_)
        return collected(values, kept, first, end)
    counts = _running_counts(counted, begin)
    last = end - 1
    empty = end <= first
    number = np.where(empty, 0, counts[np.where(empty, 0, last)] if counts.size else 0)
    if node.function == "COUNT":
        return pa.array(number)
    absent = number == 0
    if node.function in ("MIN", "MAX"):
        best = _running_best(order_codes(values), counted, begin, node.function == "MAX")
        place = np.where(absent, 0, best[np.where(empty, 0, last)]) if best.size else np.zeros(number.size, np.int64)
        return values.take(pa.array(place, mask=absent))
    return _total(node, values, counted, begin, np.where(absent, 0, last), number)


def _missing(values: pa.Array) -> Bool:
    missing = nulls(values)
    return np.zeros(len(values), np.bool_) if missing is None else missing


def order_codes(values: pa.Array) -> Int64:
    """Return codes that sort as Spark sorts the values: NaN is the largest number."""
    if pa.types.is_null(values.type):
        return np.zeros(len(values), np.int64)
    if pa.types.is_floating(values.type):
        doubles: Float64 = fixed_width(values.cast(pa.float64()), np.dtype(np.float64))
        return np.where(np.isnan(doubles), LARGEST, float_codes(doubles, doubles.view(np.int64)))
    (coded,) = codes([values])
    return coded


def first_occurrences(values: pa.Array, begin: Int64) -> Bool:
    """Return a mask of the values that did not occur earlier in their match; null is a value like any other."""
    coded = order_codes(values)
    missing = _missing(values)
    match = np.repeat(np.arange(begin.size - 1), np.diff(begin))
    coded = np.where(missing, 0, coded)
    order = np.lexsort((coded, missing, match))
    is_first = np.ones(order.size, np.bool_)
    keys = (coded[order], missing[order], match[order])
    is_first[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    result = np.empty(order.size, np.bool_)
    result[order] = is_first
    return result


@njit(cache=True, nogil=True)
def _running_counts(counted: Bool, begin: Int64) -> Int64:
    counts = np.empty(counted.size, np.int64)
    for m in range(begin.size - 1):
        count = 0
        for i in range(begin[m], begin[m + 1]):
            count += counted[i]
            counts[i] = count
    return counts


@njit(cache=True, nogil=True)
def _running_best(coded: Int64, counted: Bool, begin: Int64, largest: bool) -> Int64:
    """Return the place of the smallest or largest value so far."""
    best = np.zeros(coded.size, np.int64)
    for m in range(begin.size - 1):
        place = -1
        for i in range(begin[m], begin[m + 1]):
            is_better = place < 0 or (coded[i] > coded[place] if largest else coded[i] < coded[place])
            if counted[i] and is_better:
                place = i
            best[i] = max(place, 0)
    return best


@njit(cache=True, nogil=True)
def _running_sums(values: Float64, counted: Bool, begin: Int64) -> Float64:
    sums = np.empty(values.size, np.float64)
    for m in range(begin.size - 1):
        total = 0.0
        for i in range(begin[m], begin[m + 1]):
            if counted[i]:
                total += values[i]
            sums[i] = total
    return sums


@njit(cache=True, nogil=True)
def _running_exact_sums(values: Int64, counted: Bool, begin: Int64) -> tuple[Int64, bool]:
    """Return running sums, and False if one of them does not fit in 64 bits."""
    sums = np.empty(values.size, np.int64)
    largest = np.int64(LARGEST)
    for m in range(begin.size - 1):
        total = np.int64(0)
        for i in range(begin[m], begin[m + 1]):
            if counted[i]:
                value = values[i]
                if (value > 0 and total > largest - value) or (value < 0 and total < -largest - value):
                    return sums, False
                total += value
            sums[i] = total
    return sums, True


def _total(node: RowAggregate, values: pa.Array, counted: Bool, begin: Int64, last: Int64, number: Int64) -> pa.Array:
    """Return SUM or AVG at the last rows; null where no value is counted."""
    absent = number == 0
    is_average = node.function == "AVG"
    kind = values.type
    if pa.types.is_decimal(kind):
        return _decimal_total(values, counted, begin, last, number, is_average)
    exact = None if pa.types.is_floating(kind) else integers(values)
    if exact is None:
        doubles = fixed_width(values.cast(pa.float64(), safe=False), np.dtype(np.float64))
        sums = _running_sums(doubles, counted, begin)
        totals = sums[last] if sums.size else np.zeros(last.size)
        return pa.array(totals / np.maximum(number, 1) if is_average else totals, mask=absent, from_pandas=False)
    whole, fits = _running_exact_sums(exact, counted, begin)
    if not fits:
        raise BadInputError(f"arithmetic overflow: {node.function} does not fit in 64 bits\nHint: cast to DOUBLE.")
    sums_at = whole[last] if whole.size else np.zeros(last.size, np.int64)
    if is_average:
        averages = sums_at / np.maximum(number, 1)
        if pa.types.is_duration(kind):
            return pa.array(np.trunc(averages).astype(np.int64), mask=absent).cast(kind)
        return pa.array(averages, mask=absent, from_pandas=False)
    totals_array = pa.array(sums_at, mask=absent)
    return totals_array.cast(kind) if pa.types.is_duration(kind) else totals_array


def _decimal_total(
    values: pa.Array, counted: Bool, begin: Int64, last: Int64, number: Int64, is_average: bool
) -> pa.Array:
    """Return exact sums or averages of decimals, as decimals of 38 digits; averages have four more decimal places."""
    scale = values.type.scale
    exact = integers(values)
    sums, fits = (np.zeros(0, np.int64), False) if exact is None else _running_exact_sums(exact, counted, begin)
    absent = number == 0
    if fits:
        digits = pa.array(sums[last] if sums.size else np.zeros(last.size, np.int64), mask=absent).cast(
            pa.decimal128(38, 0)
        )
        wide = pa.decimal128(38, scale)
        totals = pa.Array.from_buffers(wide, len(digits), digits.buffers(), digits.null_count, 0)
        if not is_average:
            return totals
        numbers = totals.to_pylist()
    else:
        # Too large for 64 bits: add Python's decimals.
        items, running = values.to_pylist(), []
        for m in range(begin.size - 1):
            total = Decimal(0)
            for i in range(begin[m], begin[m + 1]):
                total = WIDE.add(total, items[i]) if counted[i] else total
                running.append(total)
        numbers = [None if none else running[i] for i, none in zip(last, absent, strict=True)]
    if is_average:
        unit = Decimal(1).scaleb(-min(scale + 4, 37))
        numbers = [
            None if n is None else WIDE.divide(n, Decimal(int(c))).quantize(unit, context=WIDE)
            for n, c in zip(numbers, number, strict=True)
        ]
        scale = min(scale + 4, 37)
    return pa.array(numbers, pa.decimal128(38, scale))
