"""Place times on the axes of charts: times as Vega reads them, axis titles with their range, elapsed time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from math import inf
from typing import Any

import pyarrow as pa
from pyarrow import types as t

from streamsift.logical import bound as b
from streamsift.logical.durations import nearest_double

WIDTH_PX = 720
# Okabe and Ito's palette for color blindness, without yellow and red.
COLORS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#444444", "#8c6d31", "#7b68c4"]
UNITS_S = {"days": 86_400.0, "hours": 3_600.0, "minutes": 60.0, "seconds": 1.0, "ms": 1e-3, "µs": 1e-6}


def moment(value: Any) -> Any:
    """Return a time to compute with: a float, or a naive datetime (in UTC if the value has a time zone)."""
    match value:
        case datetime():
            return (value - value.utcoffset()).replace(tzinfo=None) if value.tzinfo else value  # type: ignore[operator]
        case date():
            return datetime(value.year, value.month, value.day)
        case str():
            return moment(datetime.fromisoformat(value))
        case _:
            return float(value)


def vega_time(value: Any) -> Any:
    """Return a moment as Vega reads it: a number, or ISO text in UTC."""
    return value.isoformat(timespec="milliseconds") + "Z" if isinstance(value, datetime) else value


def length_of(window: b.BoundWindow | None, some_moment: Any) -> Any:
    """Return the length of a time window as a difference of moments, or None if no time window applies."""
    if window is None or window.kind is b.WindowKind.COUNT or some_moment is None:
        return None
    is_number = isinstance(some_moment, float)
    length, longest = nearest_double(window.length), inf if is_number else timedelta.max.total_seconds()
    if length >= longest:
        return None  # no two times are that far apart
    return length if is_number else timedelta(seconds=length)


def time_title(name: str, column: pa.DataType) -> str:
    """Return the name of a time column, with `(UTC)` if its values have a time zone."""
    return f"{name} (UTC)" if t.is_timestamp(column) and column.tz is not None else name


def range_text(moments: Sequence[Any]) -> str:
    """Return the first and the last time, with the date once if both are on one day.

    >>> range_text([datetime(2024, 5, 1, 4, 30), datetime(2024, 5, 1, 9)])
    '2024-05-01, 04:30 to 09:00'
    >>> range_text([3.0, 12500.0])
    '3 to 12,500'
    """
    first, last = min(moments), max(moments)
    if not isinstance(first, datetime):
        return f"{_number(first)} to {_number(last)}"
    clock = "%H:%M" if last - first >= timedelta(minutes=10) else "%H:%M:%S"
    if first.date() == last.date():
        return f"{first:%Y-%m-%d}, {first:{clock}} to {last:{clock}}"
    return f"{first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.6g}"


def time_axis(alt: Any, moments: Sequence[Any], title: str) -> Callable[[str], Any]:
    """Return a function that makes the x channel of a field; the axis title gives the range of times."""
    title = f"{title}, {range_text(moments)}" if moments else title
    if not moments or not isinstance(moments[0], datetime):
        return lambda name: alt.X(f"{name}:Q", title=title, scale=alt.Scale(zero=False, nice=False, padding=10))
    axis = alt.Axis(format=_tick_format(max(moments) - min(moments)), labelOverlap=True, labelSeparation=8)
    return lambda name: alt.X(f"{name}:T", title=title, scale=alt.Scale(type="utc", padding=10), axis=axis)


def _tick_format(span: timedelta) -> str:
    """Return how Vega labels the ticks of an axis: as fine as its span needs."""
    limits = {
        timedelta(seconds=5): "%H:%M:%S.%L",
        timedelta(minutes=10): "%H:%M:%S",
        timedelta(days=1): "%H:%M",
        timedelta(days=6): "%b %d %H:%M",
        timedelta(days=300): "%b %d",
    }
    return next((text for limit, text in limits.items() if span < limit), "%Y-%m-%d")


@dataclass(frozen=True, slots=True)
class ElapsedUnit:
    """The unit in which time since the start of a match is drawn."""

    name: str  # empty for numeric times, which keep their own unit
    length: Any  # a difference of moments

    def count(self, start: Any, at: Any) -> float:
        """Return the time from `start` to `at` in this unit."""
        return (at - start) / self.length


def elapsed_unit(longest: Any) -> ElapsedUnit:
    """Return the coarsest unit of which the longest match has at least 2.

    >>> elapsed_unit(timedelta(minutes=3)).name
    'minutes'
    """
    if not isinstance(longest, timedelta):
        return ElapsedUnit("", 1.0)
    seconds = longest.total_seconds()
    name = next((name for name, length_s in UNITS_S.items() if seconds >= 2 * length_s), "seconds")
    return ElapsedUnit(name, timedelta(seconds=UNITS_S[name]))


def subtitle(alt: Any, *notes: str) -> Any:
    """Return a small title that says which part of the result a chart shows."""
    return alt.Title([text for text in notes if text], anchor="start", fontSize=11, fontWeight="normal")
