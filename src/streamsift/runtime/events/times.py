"""Read the time column of a table as numbers, and return the types of times in results."""

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
    """Return the type of `match_start`: that of the time column, or timestamps if it holds strings."""
    if query.binding.time_kind is TimeKind.TEXT:
        return TEXT_TIME
    return query.schema.field(query.binding.time).type


def time_column(query: BoundQuery) -> str:
    """Return the name of the column with the times of results: the time column, or its strings parsed to timestamps."""
    return TIME if query.binding.time_kind is TimeKind.TEXT else query.binding.time


def time_and_order(columns: Columns, binding: Binding) -> tuple[pa.Array, Int64]:
    """Return the times of all rows, with strings parsed, and the codes of `order`; an empty array without `order`."""
    time = columns.whole(binding.time)
    time = parse_text_times(time) if binding.time_kind is TimeKind.TEXT else time
    return time, codes([columns.whole(binding.order)])[0] if binding.order else np.empty(0, np.int64)


def parse_text_times(array: pa.Array) -> pa.Array:
    """Parse ISO-8601 strings to UTC timestamps; null where a string is not a time. A string without a zone is UTC."""
    texts = plain(array)
    if texts.null_count == len(texts):
        return pa.nulls(len(texts), TEXT_TIME)
    # Exclude what pandas accepts besides: "now" and "today", and digits beyond microseconds, which it truncates.
    texts = _only(texts, pc.match_substring_regex(texts, r"^\s*\d"))
    texts = _only(texts, pc.invert(pc.match_substring_regex(texts, r"[.,]\d{6}\d*[1-9]")))
    # Parse strings with and without a zone separately: pandas gives a string without one the zone of the previous one.
    zoned = pc.match_substring_regex(texts, r"(?i)\d[T ].*(Z|[+-][\d:]+)\s*$")
    parsed = pc.coalesce(_parsed(_only(texts, zoned)), _parsed(_only(texts, pc.invert(zoned))))
    if parsed.null_count == texts.null_count:
        return parsed
    # pandas only supports the years 1678 to 2261: parse the other strings in Python, each distinct one once.
    encoded = _only(texts, pc.is_null(parsed)).dictionary_encode()
    others = pa.array([_instant(text) for text in encoded.dictionary.to_pylist()], TEXT_TIME)
    return pc.coalesce(parsed, others.take(encoded.indices))


def _only(texts: pa.Array, where: pa.Array) -> pa.Array:
    return pc.if_else(where, texts, pa.scalar(None, texts.type))


def _parsed(texts: pa.Array) -> pa.Array:
    """Parse with pandas; null where it fails."""
    import pandas as pd  # slow to import, and only needed for string times

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
    """Return times as numbers in the unit of their column, so that results of different calls can be compared."""
    if binding.time_kind is TimeKind.TEXT and not pa.types.is_timestamp(times.type):
        times = parse_text_times(times)
    if times.null_count:
        rows = "1 row has" if times.null_count == 1 else f"{times.null_count:,} rows have"
        raise BadInputError(f"{rows} no usable time in `{binding.time}`")
    ticks, kind = time_numbers(plain(times), binding)
    if kind != plain(times).type:
        raise BadInputError(
            f"`{binding.time}` has the type {times.type}, which has too many digits for a stream\n"
            "Hint: cast it to a decimal with fewer digits."
        )
    return ticks


def time_numbers(time: pa.Array, binding: Binding) -> tuple[Times, pa.DataType]:
    """Return times as numbers, and the type that gives their unit."""
    if pa.types.is_floating(time.type):
        return fixed_width(time.cast(pa.float64()), np.dtype(np.float64)), time.type
    ticks, kind = integers(time), time.type
    # Values of wide decimals, such as Spark's decimal(38,18), mostly have fewer decimal places than their type.
    for scale in range(kind.scale if ticks is None else 0):
        kind = decimal_type(time.type.precision, scale)
        try:
            ticks = integers(time.cast(kind))
        except pa.ArrowInvalid:
            continue  # a time has more decimal places
        break
    if ticks is None:
        raise BadInputError(
            f"a time in the {time.type} column `{binding.time}` does not fit in 64 bits\n"
            "Hint: cast the column to a decimal with fewer digits."
        )
    return ticks, kind


def window_width(window: BoundWindow, unit: pa.DataType) -> int | float:
    """Return the largest time difference within the window, in `unit`; for a count window, its number of rows."""
    if window.kind is WindowKind.COUNT:
        return min(int(window.length), NO_LIMIT)
    return width_in_units(window, unit)


def saturating_sum(values: Int64, width: int) -> Int64:
    """Return values + width, clamped to the largest int64; the width itself may be larger than that."""
    if width >= LARGEST_DIFFERENCE:
        return np.full(values.size, LARGEST_COUNT, np.int64)
    if width <= LARGEST_COUNT and values.size and int(values.max()) <= LARGEST_COUNT - width:
        return values + width
    # In unsigned arithmetic, LARGEST_COUNT - value is exact for every value.
    headroom = np.uint64(LARGEST_COUNT) - values.view(np.uint64)
    total = (values.view(np.uint64) + np.uint64(width)).view(np.int64)
    return np.where(headroom <= np.uint64(width), LARGEST_COUNT, total)
