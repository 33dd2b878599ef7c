"""Encode the values of a column as integers such that the smallest code is the MIN or MAX, and decode the smallest.

Codes by rank support values of any type, but are valid for one run only. Codes by value are the same in every batch of
events, but the value must fit in 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from streamsift.errors import BadInputError
from streamsift.logical.bound import AggregateOutput
from streamsift.runtime.arrays.dtypes import UNKNOWN, Int64
from streamsift.runtime.expressions.codes import codes
from streamsift.runtime.expressions.columns import integers, nulls

NOTHING = np.iinfo(np.int64).max  # the minimum of no codes
NAN_CODE = NOTHING - 1  # greater than every number, as in Spark
MAX_VALUE = 1 << 62  # exclusive limit for integers; codes beyond it are reserved, such as NOTHING

Coded = tuple[Int64, Callable[[Int64], pa.Array]]  # the code of each row, and a function that decodes codes


class NotIncremental(BadInputError):
    """Raised for a value that cannot be aggregated without keeping its event."""


def codes_by_rank(aggregate: AggregateOutput, column: pa.Array) -> Coded:
    """Encode values by their rank: ascending for MIN, descending for MAX. A code is decoded from a row of its rank."""
    (ordered,) = codes([column])
    missing = nulls(column)
    present = np.ones(len(column), np.bool_) if missing is None else ~missing
    if pa.types.is_floating(column.type):
        ordered = np.where(present & (ordered == UNKNOWN), NOTHING, ordered)
    distinct, first, ranks = np.unique(ordered[present], return_index=True, return_inverse=True)
    rows = np.flatnonzero(present)[first]
    values = np.full(len(column), NOTHING, np.int64)
    values[present] = ranks if aggregate.function == "MIN" else (distinct.size - 1) - ranks

    def value_of(least: Int64) -> pa.Array:
        ranks = least if aggregate.function == "MIN" else (distinct.size - 1) - least
        empty = least == NOTHING
        at = rows[np.where(empty, 0, ranks)] if rows.size else np.zeros(least.size, np.int64)
        return column.take(pa.array(at, mask=empty)) if len(column) else pa.nulls(least.size, column.type)

    return values, value_of


def codes_by_value(aggregate: AggregateOutput, column: pa.Array) -> Coded:
    """Encode integers, doubles and times by their value."""
    missing, kind = nulls(column), column.type
    if pa.types.is_floating(kind):
        (ordered,) = codes([column])
        ordered = np.where(ordered == UNKNOWN, NAN_CODE, ordered)
    else:
        whole = integers(column)
        assert whole is not None
        ordered = whole
        present = whole if missing is None else whole[~missing]
        if present.size and max(-int(present.min()), int(present.max())) >= MAX_VALUE:
            raise NotIncremental(
                f"{aggregate.name}: a value beyond ±2^62 cannot be kept without its event: give a WITHIN"
            )
    ordered = ordered if aggregate.function == "MIN" else ~ordered

    def value_of(least: Int64) -> pa.Array:
        empty = least == NOTHING
        values = np.where(empty, 0, least if aggregate.function == "MIN" else ~least)
        if not pa.types.is_floating(kind):
            # Arrow casts only 32-bit integers to date32.
            wide = pa.int32() if pa.types.is_date32(kind) else pa.int64()
            return pa.array(values, mask=empty).cast(pa.int64()).cast(wide).cast(kind)
        bits = np.where(values < 0, values ^ np.int64(NOTHING), values)
        reals = np.where(values == NAN_CODE, np.nan, bits.view(np.float64))
        return pa.array(reals, mask=empty).cast(kind)

    return ordered if missing is None else np.where(missing, NOTHING, ordered), value_of
