"""Read the time column of a table as numbers, and name the types of times in results."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsift.errors import BadInputError
from streamsift.logical.bound import TIME, Binding, BoundQuery, BoundWindow, TimeKind, WindowKind
from streamsift.logical.durations import LARGEST_COUNT, LARGEST_DIFFERENCE, TEXT_TIME, width_in_units
from streamsift.runtime.arrays.dtypes import NO_LIMIT, Int64, Times
from streamsift.runtime.expressions.codes import codes
from streamsift.runtime.expressions.columns import Columns, fixed_width, integers, plain
from streamsift.runtime.expressions.values import decimal_type


def time_type(query: BoundQuery) -> pa.DataType:
    """Return the type of `match_start`: that of the time column, or timestamps for texts."""
    if query.binding.time_kind is TimeKind.TEXT:
        return TEXT_TIME
    return query.schema.field(query.binding.time).type


def time_column(query: BoundQuery) -> str:
    """Return the column that results show as times: the time column, or the timestamps that its texts stand for."""
    return TIME if query.binding.time_kind is TimeKind.TEXT else query.binding.time


def time_and_order(columns: Columns, binding: Binding) -> tuple[pa.Array, Int64]:
    """Return the times of all rows, those of texts read, and the codes of `order`; no codes without it."""
    time = columns.whole(binding.time)
    time = parse_text_times(time) if binding.time_kind is TimeKind.TEXT else time
    return time, codes([columns.whole(binding.order)])[0] if binding.order else np.empty(0, np.int64)


def parse_text_times(array: pa.Array) -> pa.Array:
    """Return ISO-8601 texts as timestamps in UTC; without a zone they are UTC already; null where a text is no time."""
    texts = plain(array)
    if texts.null_count == len(texts):
        return pa.nulls(len(texts), TEXT_TIME)
    # pandas would also read "now" and "today", and cut off what is finer than microseconds.
    texts = _only(texts, pc.match_substring_regex(texts, r"^\s*\d"))
    texts = _only(texts, pc.invert(pc.match_substring_regex(texts, r"[.,]\d{6}\d*[1-9]")))
    # pandas reads a text without a zone in the zone of the text before it: those with one are read apart.
    zoned = pc.match_substring_regex(texts, r"(?i)\d[T ].*(Z|[+-][\d:]+)\s*$")
    parsed = pc.coalesce(_parsed(_only(texts, zoned)), _parsed(_only(texts, pc.invert(zoned))))
    if parsed.null_count == texts.null_count:
        return parsed
    # pandas reads the years 1678 to 2261 only: Python reads the other texts, each distinct one once.
    encoded = _only(texts, pc.is_null(parsed)).dictionary_encode()
    others = pa.array([_instant(text) for text in encoded.dictionary.to_pylist()], TEXT_TIME)
    return pc.coalesce(parsed, others.take(encoded.indices))


def _only(texts: pa.Array, where: pa.Array) -> pa.Array:
    return pc.if_else(where, texts, pa.scalar(None, texts.type))


def _parsed(texts: pa.Array) -> pa.Array:
    """Return the texts that pandas reads; null elsewhere."""
    import pandas as pd  # only text times need it, and it is slow to import

    if texts.null_count == len(texts):
        return pa.nulls(len(texts), TEXT_TIME)
    read = pd.to_datetime(texts.to_pandas(), format="ISO8601", utc=True, errors="coerce")
    return pa.array(read.dt.as_unit("us"), TEXT_TIME)


def _instant(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text.strip())
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def ticks_of(times: pa.Array, binding: Binding) -> Times:
    """Return times as numbers that compare and subtract as those of any other call do."""
    if binding.time_kind is TimeKind.TEXT and not pa.types.is_timestamp(times.type):
        times = parse_text_times(times)
    if times.null_count:
        raise BadInputError(f"{times.null_count:,} rows have no usable time in `{binding.time}`")
    ticks, kind = time_numbers(plain(times), binding)
    if kind != plain(times).type:
        raise BadInputError(f"`{binding.time}` is a {times.type}: cast it to fewer digits to take events bit by bit")
    return ticks


def time_numbers(time: pa.Array, binding: Binding) -> tuple[Times, pa.DataType]:
    """Return times as numbers, and the type whose units they count."""
    if pa.types.is_floating(time.type):
        return fixed_width(time.cast(pa.float64()), np.dtype(np.float64)), time.type
    ticks, kind = integers(time), time.type
    # Decimals of many digits, such as Spark's decimal(38,18): most have fewer places than their type.
    for scale in range(kind.scale if ticks is None else 0):
        kind = decimal_type(time.type.precision, scale)
        try:
            ticks = integers(time.cast(kind))
        except pa.ArrowInvalid:
            continue  # a time has more places than that
        break
    if ticks is None:
        digits = f"{time.type} column `{binding.time}` holds a time that does not fit 64 bits"
        raise BadInputError(f"The {digits} (as a count of its last decimal). Cast it to fewer digits.")
    return ticks, kind


def window_width(window: BoundWindow, unit: pa.DataType) -> int | float:
    """Return the largest difference of times, in their unit, or number of rows that is inside the window."""
    if window.kind is WindowKind.COUNT:
        return min(int(window.length), NO_LIMIT)
    return width_in_units(window, unit)


def saturating_sum(values: Int64, width: int) -> Int64:
    """Return values + width, or the largest int64 where the sum is larger. The width may be larger itself."""
    if width >= LARGEST_DIFFERENCE:
        return np.full(values.size, LARGEST_COUNT, np.int64)
    if width <= LARGEST_COUNT and values.size and int(values.max()) <= LARGEST_COUNT - width:
        return values + width
    # As unsigned numbers LARGEST_COUNT - value is exact for every value.
    headroom = np.uint64(LARGEST_COUNT) - values.view(np.uint64)
    total = (values.view(np.uint64) + np.uint64(width)).view(np.int64)
    return np.where(headroom <= np.uint64(width), LARGEST_COUNT, total)
