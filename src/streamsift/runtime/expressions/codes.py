"""Code values as int64 such that comparing codes is comparing values, exactly, for every type.

Several columns are coded jointly. Null and NaN become UNKNOWN, for which no comparison holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsift.logical.durations import units_per_second
from streamsift.runtime.arrays.dtypes import UNKNOWN, Float64, Int32, Int64
from streamsift.runtime.arrays.numbering import numbered, short_text_codes
from streamsift.runtime.expressions.columns import fixed_width, integers, nulls, plain
from streamsift.runtime.expressions.real_kernels import float_codes
from streamsift.runtime.expressions.values import as_decimal, common_decimal, is_text

Codes = list[Int64]


def codes(arrays: Sequence[pa.Array], *, ordered: bool = True) -> Codes:
    """Joint codes of several columns. Without `ordered`, only equality of codes means anything."""
    distinct = {id(array): array for array in arrays}
    if len(distinct) < len(arrays):
        coded = dict(zip(distinct, codes(list(distinct.values()), ordered=ordered), strict=True))
        return [coded[id(array)] for array in arrays]
    arrays = [plain(array) for array in arrays]
    known = [array for array in arrays if not pa.types.is_null(array.type)]
    if len(known) < len(arrays):
        of_known = iter(codes(known, ordered=ordered)) if known else iter(())
        return [
            np.full(len(array), UNKNOWN, np.int64) if pa.types.is_null(array.type) else next(of_known)
            for array in arrays
        ]
    if all(pa.types.is_floating(array.type) for array in arrays):
        return [_float_codes(array) for array in arrays]
    direct = _integer_codes(arrays)
    if direct is not None:
        return direct
    if any(pa.types.is_floating(array.type) for array in arrays):
        return _mixed_codes(arrays)
    return _short_texts(arrays) or _ranks(_one_type(arrays), ordered)


def group_codes(equalities: Sequence[Sequence[pa.Array]]) -> tuple[list[Int32], int]:
    """One dense int32 code per row, equal exactly when all equalities hold; -1 where a value is unknown.

    equalities[i][p] is the column of equality i for participant p. Also returns the number of groups.
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
    """Codes from 0 for jointly coded columns: by subtraction where the range is small, else by hashing."""
    distinct = {id(part): part for part in parts}
    if len(distinct) < len(parts):
        once, count = _dense(list(distinct.values()))
        by_part = dict(zip(distinct, once, strict=True))
        return [by_part[id(part)] for part in parts], count
    total = sum(part.size for part in parts)
    unknown = [part == UNKNOWN if part.size and part.min() == UNKNOWN else None for part in parts]
    present = [p if u is None else p[~u] for p, u in zip(parts, unknown, strict=True)]
    present = [part for part in present if part.size]
    if not present:
        return [np.full(part.size, -1, np.int32) for part in parts], 0
    low, high = min(int(p.min()) for p in present), max(int(p.max()) for p in present)
    if high - low < min(2 * total + 1024, 2**31 - 1):
        dense = [(part - low).astype(np.int32) for part in parts]
        count = high - low + 1
    else:
        joint, count = numbered(parts[0] if len(parts) == 1 else np.concatenate(parts))
        dense = np.split(joint, np.cumsum([part.size for part in parts])[:-1])
    for part, missing in zip(dense, unknown, strict=True):
        if missing is not None:
            part[missing] = -1
    return dense, count


def _split(joint: np.ndarray, sizes: Sequence[int]) -> list[np.ndarray]:
    # Copies, because the parts may be written to and Arrow's memory may not.
    return [part.copy() for part in np.split(joint, np.cumsum(sizes)[:-1])]


def _hide(values: Int64, array: pa.Array) -> Int64:
    missing = nulls(array)
    return values if missing is None else np.where(missing, UNKNOWN, values)


def _integer_codes(arrays: Sequence[pa.Array]) -> Codes | None:
    """The values themselves, where all columns count the same thing in the same unit."""
    if len({_unit(array.type) for array in arrays}) > 1 or _unit(arrays[0].type) is None:
        return None
    values = [integers(array) for array in arrays]
    found: Codes = []
    for value, array in zip(values, arrays, strict=True):
        if value is None:
            return None
        # The sentinel itself may occur as data; then ranks are needed.
        missing = nulls(array)
        known = value if missing is None else value[~missing]
        if known.size and known.min() == UNKNOWN:
            return None
        found.append(_hide(value, array))
    return found


def _unit(kind: pa.DataType) -> object:
    """What an integer of this type counts; types with equal answers compare as plain integers."""
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
    """Order-preserving bits."""
    values = fixed_width(array.cast(pa.float64()), np.dtype(np.float64))
    return _hide(float_codes(values, values.view(np.int64)), array)


def _one_type(arrays: Sequence[pa.Array]) -> list[pa.Array]:
    """The columns cast, without loss, to one type in which Arrow compares them."""
    kinds = [array.type for array in arrays]
    if all(is_text(array) for array in arrays):
        return [array.cast(pa.large_string()) for array in arrays]
    if all(pa.types.is_integer(k) or pa.types.is_decimal(k) for k in kinds):
        return _one_decimal([as_decimal(array) for array in arrays])
    if all(pa.types.is_temporal(k) for k in kinds):
        return _one_decimal([ticks(array) for array in arrays])
    return list(arrays)


def _one_decimal(arrays: Sequence[pa.Array]) -> list[pa.Array]:
    kind = common_decimal(array.type for array in arrays)
    return [array.cast(kind) for array in arrays]


def ticks(array: pa.Array) -> pa.Array:
    """Instants or durations as decimal nanoseconds: exact whatever their units and however large."""
    kind = array.type
    per_unit = 86_400 * 10**9 if pa.types.is_date32(kind) else 10**9 // (units_per_second(kind) or 1)
    values = integers(array)
    counts = pa.array(values, pa.int64(), mask=nulls(array)).cast(pa.decimal128(19, 0))
    return pc.multiply(counts, pa.scalar(Decimal(per_unit), pa.decimal128(15, 0)))


def _short_texts(arrays: Sequence[pa.Array]) -> Codes | None:
    """Texts of a few bytes are numbers; None where one is longer, or something else."""
    found: Codes = []
    for array in arrays:
        if not is_text(array):
            return None
        _, offsets, data = array.buffers()
        width = np.dtype(np.int64 if pa.types.is_large_string(array.type) else np.int32)
        count = len(array) + 1 if offsets is not None and offsets.size else 1
        places = np.zeros(1, width)
        if count > 1:
            places = np.frombuffer(offsets, width, count, array.offset * width.itemsize)
        letters = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
        coded = short_text_codes(places, letters)
        if coded.size < len(array):
            return None
        found.append(_hide(coded, array))
    return found


def _ranks(arrays: Sequence[pa.Array], ordered: bool) -> Codes:
    """Dense ranks by Arrow's own order (strings by their UTF-8 bytes), or dictionary codes if order means nothing."""
    encoded = pc.dictionary_encode(pa.concat_arrays(list(arrays)))
    found = pc.fill_null(encoded.indices, -1).to_numpy().astype(np.int64)
    if ordered:
        rank = np.empty(len(encoded.dictionary) + 1, np.int64)
        rank[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(encoded.dictionary))
        rank[-1] = -1
        found = rank[found]
    found[found < 0] = UNKNOWN
    return _split(found, [len(array) for array in arrays])


def _mixed_codes(arrays: Sequence[pa.Array]) -> Codes:
    """Joint dense ranks of floats with integers or decimals, by the numbers they stand for."""
    if any(pa.types.is_decimal(array.type) or pa.types.is_uint64(array.type) for array in arrays):
        return _fraction_codes(arrays)
    # Sorted by (below, within or above int64; floor; the float itself if it is no integer).
    side, floor, rest, unknown = [], [], [], []
    for array in arrays:
        missing = nulls(array)
        gone = np.zeros(len(array), np.bool_) if missing is None else missing
        if pa.types.is_floating(array.type):
            values: Float64 = fixed_width(array.cast(pa.float64()), np.dtype(np.float64))
            gone = gone | np.isnan(values)
            values = np.where(gone, 0.0, values)
            whole = np.floor(values)
            above = np.where(whole >= 2.0**63, 1, np.where(whole < -(2.0**63), -1, 0))
            side.append(above)
            floor.append(np.where(above == 0, whole, 0).astype(np.int64))
            rest.append(np.where((whole == values) & (above == 0), -np.inf, values))
        else:
            found = integers(array)
            assert found is not None
            side.append(np.zeros(len(array), np.int64))
            floor.append(found)
            rest.append(np.full(len(array), -np.inf))
        unknown.append(gone)
    keys = np.concatenate(rest), np.concatenate(floor), np.concatenate(side)
    order = np.lexsort(keys)
    changed = np.zeros(order.size, np.bool_)
    for key in keys:
        changed[1:] |= key[order][1:] != key[order][:-1]
    ranks = np.empty(order.size, np.int64)
    ranks[order] = np.cumsum(changed)
    ranks[np.concatenate(unknown)] = UNKNOWN
    return _split(ranks, [len(array) for array in arrays])


def _fraction_codes(arrays: Sequence[pa.Array]) -> Codes:
    """The same for decimals: Python's exact fractions, once per distinct value."""
    encoded = [pc.dictionary_encode(array) for array in arrays]
    numbers = [[_exact(value) for value in e.dictionary.to_pylist()] for e in encoded]
    distinct = sorted({number for part in numbers for number in part if number is not None})
    rank = {number: place for place, number in enumerate(distinct)}
    found = []
    for dictionary, part in zip(encoded, numbers, strict=True):
        table = np.array([UNKNOWN if number is None else rank[number] for number in part] + [UNKNOWN], np.int64)
        found.append(table[pc.fill_null(dictionary.indices, -1).to_numpy()])
    return found


def _exact(value: int | float | Decimal) -> Fraction | float | None:
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None if value != value else value
    return Fraction(value)
