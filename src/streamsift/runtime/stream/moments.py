"""Convert times that a program gives to ticks of the watermark, and back.

A tick is a time as a number in the unit of its column. The watermark is kept as the last tick that has passed.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from typing import Any

import numpy as np
import pyarrow as pa

from streamsift.errors import QueryError, with_article
from streamsift.logical.bound import BoundQuery, TimeKind
from streamsift.logical.durations import TEXT_TIME, UNITS_PER_SECOND, in_units, unit_of, zero_of
from streamsift.runtime.stream.watermark import INT64, Tick, is_real

SECONDS_PER_DAY = 86_400
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moved_back(tick: Tick, length: Fraction) -> Fraction | float:
    """Return a time less a length, exactly; infinities stay."""
    return Fraction(tick) - length if math.isfinite(tick) else tick


def last_before(moment: Fraction | float, real: bool) -> Tick | None:
    """Return the last tick before a moment; None if there is none."""
    if not math.isfinite(moment):
        below = math.nextafter(math.inf, 0.0) if real else INT64.max
        return below if moment > 0 else None
    if real:
        nearest = _nearest_double(Fraction(moment))
        before = nearest if Fraction(nearest) < moment else math.nextafter(nearest, -math.inf)
        return None if before == -math.inf else before
    tick = math.ceil(moment) - 1
    return None if tick < INT64.min else min(tick, int(INT64.max))


def later_of(one: Tick | None, other: Tick | None) -> Tick | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)


def _nearest_double(number: Fraction) -> float:
    largest = math.nextafter(math.inf, 0.0)
    try:
        return float(number)
    except OverflowError:
        return largest if number > 0 else -largest


# --- times of a program ----------------------------------------------------------------------------------------------


def moment_of(value: Any, query: BoundQuery) -> Fraction | float:
    """Return a time in ticks: of a calendar column a datetime, a date or ISO text, of a column of numbers a number."""
    unit = unit_of(query)
    if query.binding.time_kind in (TimeKind.TIMESTAMP, TimeKind.DATE, TimeKind.TEXT):
        return in_units(_seconds(value, query), unit)
    number = _number(value)
    if number is None:
        raise _unusable(value, query, "a number")
    if isinstance(number, float):
        return number
    return in_units(number, unit) + zero_of(unit)


def _number(value: Any) -> Fraction | float | None:
    """Return a number exactly; None for other values and NaN."""
    if isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, Decimal):
        return Fraction(value) if value.is_finite() else None
    if isinstance(value, Rational):
        return Fraction(value)
    if isinstance(value, Real):
        number = float(value)
        return None if math.isnan(number) else Fraction(number) if math.isfinite(number) else number
    return None


def _seconds(value: Any, query: BoundQuery) -> Fraction:
    """Return a time as seconds since 1970, exactly."""
    has_zone = query.binding.time_kind is TimeKind.TEXT or getattr(unit_of(query), "tz", None) is not None
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise _unusable(value, query, "ISO-8601 text, a datetime or a date") from None
        value = value if value.tzinfo or not has_zone else value.replace(tzinfo=UTC)
    if isinstance(value, np.datetime64) and not np.isnat(value):
        nanoseconds = value.astype("datetime64[ns]").astype(np.int64).item()
        return Fraction(nanoseconds, UNITS_PER_SECOND["ns"])
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time(), UTC if has_zone else None)
    if not isinstance(value, datetime) or value != value:  # NaT
        raise _unusable(value, query, "a datetime, a date or ISO-8601 text")
    if (value.tzinfo is not None) != has_zone:
        if has_zone:
            raise _unusable(value, query, "a time with a zone, such as datetime.now(UTC)")
        raise _unusable(value, query, "a time without a zone, as the column has none")
    since = (value if has_zone else value.replace(tzinfo=UTC)) - EPOCH
    whole = Fraction(since.days * SECONDS_PER_DAY + since.seconds) + Fraction(since.microseconds, 10**6)
    return whole + Fraction(getattr(value, "nanosecond", 0), 10**9)  # of a pandas Timestamp


def _unusable(value: Any, query: BoundQuery, expected: str) -> QueryError:
    time, kind = query.binding.time, with_article(query.binding.time_kind.value)
    return QueryError(f"advance() got {value!r}, but `{time}` is {kind} column", hint=f"pass {expected}.")


def time_after(tick: Tick, query: BoundQuery) -> Any:
    """Return the first time after a tick, as a Python value of the time column's type; text times as timestamps."""
    unit = unit_of(query)
    if is_real(query):
        return math.nextafter(float(tick), math.inf)
    number = min(int(tick) + 1, int(INT64.max)) - zero_of(unit)
    if pa.types.is_decimal(unit):
        return Decimal(number).scaleb(-unit.scale)
    if pa.types.is_integer(unit):
        return number
    kind = TEXT_TIME if query.binding.time_kind is TimeKind.TEXT else unit
    values = pa.array([number], pa.int32() if pa.types.is_date32(kind) else pa.int64()).cast(kind)
    try:
        return values[0].as_py()
    except (ValueError, OverflowError):  # outside the years of Python's datetime
        return None
