"""Add up the totals of each tick that were computed for different keys (`physical.stream.part_plan`)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsift.errors import BadInputError
from streamsift.logical.bound import AggregateOutput, BoundQuery
from streamsift.physical.stream import aggregates_of_part
from streamsift.runtime.arrays.dtypes import Int64
from streamsift.runtime.count.measures import LIMIT, average
from streamsift.runtime.count.output import aggregate_schema
from streamsift.runtime.expressions.columns import contiguous, nulls, plain


def merged_totals(query: BoundQuery, parts: pa.Table) -> pa.Table:
    """Return a row for each tick, from rows of the plan that `part_plan` returns."""
    schema = aggregate_schema(query)
    if not parts.num_rows:
        return schema.empty_table()
    parts = parts.take(pc.sort_indices(parts.column(0)))
    times = contiguous(parts.column(0))
    is_new = np.append(True, pc.not_equal(times[1:], times[:-1]).to_numpy(zero_copy_only=False))
    starts, tick = np.flatnonzero(is_new), np.cumsum(is_new) - 1
    columns = iter([plain(contiguous(column)) for column in parts.columns[1:]])
    merged = [_merged(one, number, columns, starts, tick) for number, one in enumerate(query.aggregates)]
    arrays = [times.take(pa.array(starts)), *merged]
    return pa.table([a.cast(field.type) for a, field in zip(arrays, schema, strict=True)], schema=schema)


def _merged(one: AggregateOutput, number: int, columns: Iterator[pa.Array], starts: Int64, tick: Int64) -> pa.Array:
    """Return an aggregate of each tick, from the next columns of its parts."""
    column, *counts = [next(columns) for _ in aggregates_of_part(number, one)]
    if pa.types.is_null(column.type):
        return pa.nulls(starts.size)
    if one.function in ("MIN", "MAX"):
        return _extreme(one.function, column, starts.size, tick)
    total = _sum(column, one.name, starts, tick)
    if not counts:
        return total
    values = _sum(counts[0], one.name, starts, tick).fill_null(0).to_numpy(zero_copy_only=False)
    return pc.if_else(pa.array(values > 0), average(total, values, values == 0), None)


def _sum(column: pa.Array, name: str, starts: Int64, tick: Int64) -> pa.Array:
    """Return the sum of each tick, null if it has no value; raise BadInputError if it does not fit in its type."""
    missing = nulls(column)
    empty = None if missing is None else np.logical_and.reduceat(missing, starts)
    if pa.types.is_decimal(column.type):
        wide = pa.table({"tick": tick, "value": column.cast(pa.decimal256(76, column.type.scale))})
        sums = wide.group_by("tick", use_threads=False).aggregate([("value", "sum")]).sort_by("tick")
        try:
            return contiguous(sums.column("value_sum")).cast(column.type)
        except pa.ArrowInvalid as error:
            raise BadInputError(f"{name} exceeds 38 digits: {error}") from error
    if pa.types.is_floating(column.type):
        reals = column.fill_null(0.0).to_numpy(zero_copy_only=False)
        with np.errstate(over="ignore", invalid="ignore"):
            return pa.array(np.add.reduceat(reals, starts), mask=empty)
    integers = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    if (np.add.reduceat(np.abs(integers.astype(np.float64)), starts) >= LIMIT).any():
        raise BadInputError(
            f"{name} exceeds the 64-bit integer range\n"
            "Hint: reduce the number of matches with a shorter WITHIN, PARTITION BY or a predicate."
        )
    return pa.array(np.add.reduceat(integers, starts), mask=empty).cast(column.type)


def _extreme(function: str, column: pa.Array, ticks: int, tick: Int64) -> pa.Array:
    """Return the least or greatest value of each tick, null if it has none. NaN is greater than every number."""
    present = np.flatnonzero(pc.is_valid(column).to_numpy(zero_copy_only=False))
    values, tick = column.take(pa.array(present)), tick[present]
    order = pc.sort_indices(values).to_numpy()  # NaN last
    order = order[np.argsort(tick[order], kind="stable")]
    first, last = (np.searchsorted(tick, np.arange(ticks), side=side) for side in ("left", "right"))
    at = first if function == "MIN" else last - 1
    which = order[np.minimum(at, order.size - 1)] if order.size else at
    return values.take(pa.array(which, mask=first == last))
