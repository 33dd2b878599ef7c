"""Sort rows by partition and order as Spark does, and find the partitions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from streamsift.logical.row_match.bound import SortKey
from streamsift.runtime.arrays.dtypes import LARGEST, Bool, Float64, Int64
from streamsift.runtime.expressions.codes import codes, float_codes
from streamsift.runtime.expressions.columns import fixed_width, nulls, plain

Array = pa.Array


@dataclass(frozen=True, slots=True)
class SortedRows:
    """A table in partition and order, one chunk for each column, and where each partition begins and ends."""

    table: pa.Table
    bounds: Int64  # partition p has rows bounds[p] to bounds[p + 1]

    def column(self, name: str) -> pa.Array:
        return plain_column(self.table, name)


def plain_column(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])


def sort_rows(table: pa.Table, partition_by: tuple[str, ...], order_by: tuple[SortKey, ...]) -> SortedRows:
    """Sort a table; rows that are equal under ORDER BY keep their order. A sorted table is not copied."""
    table = table.combine_chunks()
    keys: list[Int64] = []
    for name in partition_by:
        keys += sort_codes(plain_column(table, name), nulls_first=True)
    parts = len(keys)
    for key in order_by:
        keys += sort_codes(plain_column(table, key.column), key.nulls_first, descending=key.descending)
    if keys and not _is_sorted(keys):
        order = np.lexsort(keys[::-1])
        table = table.take(pa.array(order)).combine_chunks()
        keys = [key[order] for key in keys[:parts]]
    return SortedRows(table, _bounds(keys[:parts], table.num_rows))


def sort_codes(array: pa.Array, nulls_first: bool, *, descending: bool = False) -> list[Int64]:
    """Return keys that sort as the column: NaN is the largest number, and null is placed as asked."""
    array = plain(array)
    missing = nulls(array)
    if pa.types.is_null(array.type):
        return []
    if pa.types.is_floating(array.type):
        doubles: Float64 = fixed_width(array.cast(pa.float64()), np.dtype(np.float64))
        values = np.where(np.isnan(doubles), LARGEST, float_codes(doubles, doubles.view(np.int64)))
    else:
        (values,) = codes([array])
    if descending:
        values = ~values
    if missing is None:
        return [values]
    values = np.where(missing, 0, values)
    return [np.where(missing, 0 if nulls_first else 2, 1), values]


@njit(cache=True, nogil=True)
def _first_descent(key: Int64, equal: Bool) -> bool:
    """Return True if the key descends among rows that are equal so far; else clear `equal` where it rises."""
    for i in range(1, key.size):
        if equal[i]:
            if key[i] < key[i - 1]:
                return True
            if key[i] > key[i - 1]:
                equal[i] = False
    return False


def _is_sorted(keys: list[Int64]) -> bool:
    equal = np.ones(keys[0].size, np.bool_)
    return not any(_first_descent(np.ascontiguousarray(key), equal) for key in keys)


def _bounds(keys: list[Int64], length: int) -> Int64:
    if length == 0:
        return np.zeros(1, np.int64)
    changed = np.zeros(length + 1, np.bool_)
    changed[0] = changed[length] = True
    for key in keys:
        changed[1:length] |= key[1:] != key[:-1]
    return np.flatnonzero(changed)


def shifted(array: pa.Array, shift: int, bounds: Int64) -> pa.Array:
    """Return, for each row, the value `shift` rows later in its partition; null where there is no such row."""
    length = len(array)
    if shift == 0 or length == 0:
        return array
    outside = np.zeros(length, np.bool_)
    _mark_outside(bounds, shift, outside)
    places = np.arange(length, dtype=np.int64) + shift
    places[outside] = 0
    if array.null_count == 0 and _is_fixed(array.type):
        width = array.type.bit_width // 8
        values = fixed_width(array, np.dtype(f"V{width}"))
        moved = np.empty_like(values)
        if abs(shift) < length:
            if shift < 0:
                moved[-shift:] = values[:shift]
            else:
                moved[:-shift] = values[shift:]
        valid = pa.array(~outside)
        return pa.Array.from_buffers(array.type, length, [valid.buffers()[1], pa.py_buffer(moved)])
    return array.take(pa.array(places, mask=outside))


def _is_fixed(kind: pa.DataType) -> bool:
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return (is_number or pa.types.is_temporal(kind) or pa.types.is_decimal128(kind)) and kind.bit_width % 8 == 0


@njit(cache=True, nogil=True)
def _mark_outside(bounds: Int64, shift: int, outside: Bool) -> None:
    for p in range(bounds.size - 1):
        low, high = bounds[p], bounds[p + 1]
        if shift < 0:
            for row in range(low, min(high, low - shift)):
                outside[row] = True
        else:
            for row in range(max(low, high - shift), high):
                outside[row] = True


def descriptive_key(rows: SortedRows, partition_by: tuple[str, ...], row: int) -> str:
    """Return the partition key of a row, for messages."""
    values = (f"{name} = {pc.cast(rows.table.column(name), pa.string())[row].as_py()}" for name in partition_by)
    return ", ".join(values) or "the only partition"
