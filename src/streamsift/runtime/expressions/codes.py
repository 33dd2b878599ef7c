"""Encode values of any type as int64 codes that compare exactly as the values do.

Columns that are compared with each other are encoded together. Null and NaN become UNKNOWN, and every comparison with
UNKNOWN is false.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from streamsift.logical.durations import units_per_second
from streamsift.runtime.arrays.dtypes import LARGEST, UNKNOWN, Float64, Int32, Int64
from streamsift.runtime.arrays.hashing import numbered, short_text_codes
from streamsift.runtime.expressions.columns import fixed_width, integers, nulls, plain
from streamsift.runtime.expressions.values import as_decimal, common_decimal, is_text

Codes = list[Int64]


def codes(arrays: Sequence[pa.Array], *, ordered: bool = True) -> Codes:
    """Return joint codes of several columns. Without `ordered`, codes can only be tested for equality."""
    distinct = {id(array): array for array in arrays}
    if len(distinct) < len(arrays):
        coded = dict(zip(distinct, codes(list(distinct.values()), ordered=ordered), strict=True))
        return [coded[id(array)] for array in arrays]
    arrays = [plain(array) for array in arrays]
    some_type = next((array.type for array in arrays if not pa.types.is_null(array.type)), pa.int64())
    arrays = [pa.nulls(len(array), some_type) if pa.types.is_null(array.type) else array for array in arrays]
    if all(pa.types.is_floating(array.type) for array in arrays):
        return [_float_codes(array) for array in arrays]
    direct = _integer_codes(arrays)
    if direct is not None:
        return direct
    if any(pa.types.is_floating(array.type) for array in arrays):
        return _mixed_codes(arrays)
    return _short_texts(arrays) or _ranks(_one_type(arrays), ordered)


def group_codes(equalities: Sequence[Sequence[pa.Array]]) -> tuple[list[Int32], int]:
    """Return the dense int32 codes of each participant's rows, and the number of codes.

    equalities[i][p] is the column of equality i for participant p. Two rows have the same code exactly if all
    equalities hold between them. The code is -1 if a value is null or NaN.
    """
    combined, count = _dense(codes(equalities[0], ordered=False))
    for equality in equalities[1:]:
        more, more_count = _dense(codes(equality, ordered=False))
        both = []
        for left, right in zip(combined, more, strict=True):
            product = left.astype(np.int64) * more_count + right
            product[(left < 0) | (right < 0)] = UNKNOWN
            both.append(product)
        combined, count = _dense(both)
    return combined, count


def _dense(parts: Codes) -> tuple[list[Int32], int]:
    """Renumber joint codes from 0: by subtraction if their range is small, else by hashing."""
    distinct = {id(part): part for part in parts}
    if len(distinct) < len(parts):
        once, count = _dense(list(distinct.values()))
        by_part = dict(zip(distinct, once, strict=True))
        return [by_part[id(part)] for part in parts], count
    total = sum(part.size for part in parts)
    unknown = [part == UNKNOWN if part.size and part.min() == UNKNOWN else None for part in parts]
    present = [p if u is None else p[~u] for p, u in zip(parts, unknown, strict=True) if p.size]
    present = [part for part in present if part.size]
    if not present:
        return [np.full(part.size, -1, np.int32) for part in parts], 0
    low, high = min(int(p.min()) for p in present), max(int(p.max()) for p in present)
    if high - low < min(2 * total + 1024, 2**31 - 1):
        dense = [(part - low).astype(np.int32) for part in parts]
        count = high - low + 1
    else:
        joint, count = numbered(parts[0] if len(parts) == 1 else np.concatenate(parts))
        dense = _split(joint, parts)
    for part, missing in zip(dense, unknown, strict=True):
        if missing is not None:
            part[missing] = -1
    return dense, count


def _split(joint: np.ndarray, arrays: Sequence[pa.Array] | Codes) -> list[np.ndarray]:
    return np.split(joint, np.cumsum([len(array) for array in arrays])[:-1])


def _hide(values: Int64, array: pa.Array) -> Int64:
    missing = nulls(array)
    return values if missing is None else np.where(missing, UNKNOWN, values)


def _integer_codes(arrays: Sequence[pa.Array]) -> Codes | None:
    """Return the values as integers if all columns have the same unit."""
    if len({_unit(array.type) for array in arrays}) > 1 or _unit(arrays[0].type) is None:
        return None
    coded: Codes = []
    for array in arrays:
        if (values := integers(array)) is None:
            return None
        # If the sentinel occurs as data, ranks are needed.
        missing = nulls(array)
        present = values if missing is None else values[~missing]
        if present.size and present.min() == UNKNOWN:
            return None
        coded.append(_hide(values, array))
    return coded


def _unit(kind: pa.DataType) -> object:
    """Return the unit of integers of this type; types with equal units compare as plain integers."""
    if pa.types.is_uint64(kind):
        return "uint64"
    if pa.types.is_integer(kind):
        return ("decimal", 0)
    if pa.types.is_decimal(kind):
        return ("decimal", kind.scale)
    if pa.types.is_timestamp(kind) or pa.types.is_date64(kind):
        return ("instant", units_per_second(kind))
    if pa.types.is_date32(kind):
        return ("instant", "day")
    if pa.types.is_duration(kind):
        return ("duration", kind.unit)
    return "boolean" if pa.types.is_boolean(kind) else None


def _float_codes(array: pa.Array) -> Int64:
    values = fixed_width(array.cast(pa.float64()), np.dtype(np.float64))
    return _hide(float_codes(values, values.view(np.int64)), array)


@njit(cache=True, nogil=True)
def float_codes(values: Float64, bits: Int64) -> Int64:
    """Return the bits of doubles as integers in numeric order: the bits of negative numbers are inverted."""
    codes = np.empty(values.size, np.int64)
    for i in range(values.size):
        code = bits[i]
        if values[i] == 0.0:
            code = 0  # -0.0 equals 0.0
        elif code < 0:
            code ^= LARGEST
        codes[i] = code if values[i] == values[i] else UNKNOWN
    return codes


def _one_type(arrays: Sequence[pa.Array]) -> list[pa.Array]:
    """Cast the columns, without loss, to one type that Arrow can compare."""
    if all(is_text(array) for array in arrays):
        return [array.cast(pa.large_string()) for array in arrays]
    if all(pa.types.is_integer(array.type) or pa.types.is_decimal(array.type) for array in arrays):
        decimals = [as_decimal(array) for array in arrays]
    elif all(pa.types.is_temporal(array.type) for array in arrays):
        decimals = [nanoseconds(array) for array in arrays]
    else:
        return list(arrays)
    kind = common_decimal(array.type for array in decimals)
    return [array.cast(kind) for array in decimals]


def nanoseconds(array: pa.Array) -> pa.Array:
    """Return instants or durations as decimal nanoseconds, which are exact for every unit and magnitude."""
    kind = array.type
    per_unit = 86_400 * 10**9 if pa.types.is_date32(kind) else 10**9 // (units_per_second(kind) or 1)
    counts = pa.array(integers(array), pa.int64(), mask=nulls(array)).cast(pa.decimal128(19, 0))
    return pc.multiply(counts, pa.scalar(Decimal(per_unit), pa.decimal128(15, 0)))


def _short_texts(arrays: Sequence[pa.Array]) -> Codes | None:
    """Encode strings of at most 7 bytes; return None if one is longer, or if a column does not hold strings."""
    if not all(is_text(array) for array in arrays):
        return None
    coded: Codes = []
    for array in arrays:
        _, offsets, data = array.buffers()
        width = np.dtype(np.int64 if pa.types.is_large_string(array.type) else np.int32)
        starts = np.zeros(1, width)
        if offsets is not None and offsets.size:
            starts = np.frombuffer(offsets, width, len(array) + 1, array.offset * width.itemsize)
        numbers = short_text_codes(starts, np.frombuffer(data or bytes(1), np.uint8))
        if numbers.size < len(array):
            return None
        coded.append(_hide(numbers, array))
    return coded


def _ranks(arrays: Sequence[pa.Array], ordered: bool) -> Codes:
    """Return dense ranks in Arrow's order (strings by their UTF-8 bytes), or dictionary codes without `ordered`."""
    encoded = pc.dictionary_encode(pa.concat_arrays(list(arrays)))
    ranks = pc.fill_null(encoded.indices, -1).to_numpy().astype(np.int64)
    if ordered:
        rank_of = np.full(len(encoded.dictionary) + 1, -1, np.int64)
        rank_of[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(encoded.dictionary))
        ranks = rank_of[ranks]
    ranks[ranks < 0] = UNKNOWN
    return _split(ranks, arrays)


def _mixed_codes(arrays: Sequence[pa.Array]) -> Codes:
    """Return joint dense ranks of floats and integers or decimals, in numeric order."""
    if any(pa.types.is_decimal(array.type) or pa.types.is_uint64(array.type) for array in arrays):
        return _fraction_codes(arrays)
    # Sort by the nearest double, then by how far an integer lies above it. This is exact because rounding is monotone.
    nearest, above = [], []
    for array in arrays:
        doubles: Float64 = fixed_width(array.cast(pa.float64(), safe=False), np.dtype(np.float64))
        rest = np.zeros(len(array), np.int64)
        if (exact := integers(array)) is not None:
            fits = doubles < 2.0**63
            rest = np.where(fits, exact - np.where(fits, doubles, 0).astype(np.int64), exact - LARGEST - 1)
        nearest.append(doubles)
        above.append(rest)
    keys = np.concatenate(above), np.concatenate(nearest)
    order = np.lexsort(keys)
    changed = np.zeros(order.size, np.bool_)
    for key in keys:
        changed[1:] |= key[order][1:] != key[order][:-1]
    ranks = np.empty(order.size, np.int64)
    ranks[order] = np.cumsum(changed)
    ranks[np.isnan(keys[1])] = UNKNOWN
    return [_hide(part, array) for part, array in zip(_split(ranks, arrays), arrays, strict=True)]


def _fraction_codes(arrays: Sequence[pa.Array]) -> Codes:
    """Return joint dense ranks with decimals, by Python fractions, computed once per distinct value."""
    encoded = [pc.dictionary_encode(array) for array in arrays]
    numbers = [[_exact(value) for value in e.dictionary.to_pylist()] for e in encoded]
    distinct = sorted({number for part in numbers for number in part if number is not None})
    rank = {value: number for number, value in enumerate(distinct)}
    coded = []
    for dictionary, part in zip(encoded, numbers, strict=True):
        table = np.array([UNKNOWN if number is None else rank[number] for number in part] + [UNKNOWN], np.int64)
        coded.append(table[pc.fill_null(dictionary.indices, -1).to_numpy()])
    return coded


def _exact(value: int | float | Decimal) -> Fraction | float | None:
    """Return a finite number as a fraction, an infinity unchanged, None for NaN."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else value
    return Fraction(value)
