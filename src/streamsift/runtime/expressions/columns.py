"""Read the columns of a table as contiguous arrays, whole or at given rows, and their values as integers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64

INT32_BYTES = 2**31 - 1  # the most data that 32-bit offsets can address
WIDER = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
VIEWS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}  # Arrow cannot gather views


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a table; each becomes one contiguous array when it is first read."""

    table: pa.Table
    _arrays: dict[str, pa.Array] = field(default_factory=dict, compare=False, repr=False)

    def whole(self, name: str) -> pa.Array:
        if name not in self._arrays:
            self._arrays[name] = contiguous(self.table.column(name))
        return self._arrays[name]

    def at(self, name: str, rows: Int32 | None) -> pa.Array:
        """Return the column at `rows`; None means all rows."""
        return self.whole(name) if rows is None else take(self.whole(name), pa.array(rows))

    def arrays(self) -> dict[str, pa.Array]:
        """Return the columns that have been read, and those added with `with_array`."""
        return self._arrays

    def with_array(self, name: str, array: pa.Array) -> Columns:
        """Return these columns plus one that is not in the table."""
        return Columns(self.table, {**self._arrays, name: array})


_UNCHECKED = pc.TakeOptions(boundscheck=False)


def take(array: pa.Array, rows: pa.Array) -> pa.Array:
    """Return the values at rows, which must be in bounds: checking them would cost as much as the copy."""
    return pc.call_function("array_take", [array, rows], _UNCHECKED)


def gatherable(schema: pa.Schema) -> pa.Schema:
    """Return the schema with types that Arrow can gather."""
    return pa.schema([field.with_type(VIEWS.get(field.type, field.type)) for field in schema])


def contiguous(column: pa.ChunkedArray) -> pa.Array:
    """Return the column as one array; its type may get wider offsets, which the output casts back."""
    if column.type in VIEWS:
        column = column.cast(VIEWS[column.type])
    if column.num_chunks == 1:
        return column.chunk(0)
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    if column.nbytes > INT32_BYTES and column.type in WIDER:
        column = column.cast(WIDER[column.type])
    combined = column.combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined


def plain(array: pa.Array) -> pa.Array:
    """Return the values without dictionary encoding or extension type, which many Arrow functions do not accept."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array


def nulls(array: pa.Array) -> Bool | None:
    """Return a mask of the null values; None if there are none."""
    return truths(pc.is_null(array)) if array.null_count else None


def truths(array: pa.Array) -> Bool:
    """Return a boolean array without nulls as a NumPy mask, faster than Arrow's conversion."""
    bits = array.buffers()[1]
    if bits is None or len(array) == 0:
        return np.zeros(len(array), np.bool_)
    skipped, start = array.offset // 8, array.offset % 8
    unpacked = np.unpackbits(np.frombuffer(bits, np.uint8)[skipped:], count=start + len(array), bitorder="little")
    return unpacked[start:].view(np.bool_)


def fixed_width(array: pa.Array, dtype: np.dtype) -> np.ndarray:
    """Return the values of a fixed-width array without a copy; arbitrary where null."""
    buffer = array.buffers()[1]
    if buffer is None or len(array) == 0:
        return np.zeros(len(array), dtype)
    return np.frombuffer(buffer, dtype, count=len(array), offset=array.offset * dtype.itemsize)


def integers(array: pa.Array) -> Int64 | None:
    """Return int64 values that sort as the array's values do; arbitrary where null.

    uint64 is shifted, decimals become their unscaled integers. Return None unless the type is integer, boolean,
    decimal or temporal, and for decimals that do not fit in 64 bits.
    """
    kind = array.type
    if pa.types.is_boolean(kind):
        return truths(pc.fill_null(array, False)).astype(np.int64)
    if pa.types.is_uint64(kind):
        return (fixed_width(array, np.dtype(np.uint64)) ^ np.uint64(1 << 63)).view(np.int64)
    if pa.types.is_integer(kind):
        return fixed_width(array, np.dtype(kind.to_pandas_dtype())).astype(np.int64, copy=False)
    if pa.types.is_temporal(kind) and kind.bit_width <= 64:
        return fixed_width(array, np.dtype(f"i{kind.bit_width // 8}")).astype(np.int64, copy=False)
    return _unscaled(array) if pa.types.is_decimal(kind) else None


def _unscaled(array: pa.Array) -> Int64 | None:
    if not (pa.types.is_decimal128(array.type) or pa.types.is_decimal256(array.type)):
        array = array.cast(pa.decimal128(array.type.precision, array.type.scale))
    words = fixed_width(array, np.dtype((np.int64, array.type.bit_width // 64)))
    low = np.ascontiguousarray(words[:, 0])
    if array.type.precision > 18:
        # A value fits if every higher word only repeats the sign of the lowest.
        fits = (words[:, 1:] == (low >> 63)[:, None]).all(axis=1)
        if (missing := nulls(array)) is not None:
            fits |= missing
        if not fits.all():
            return None
    return low
