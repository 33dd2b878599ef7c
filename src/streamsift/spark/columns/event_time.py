"""Convert event times to the times of Spark's watermark, and a watermark back to event times.

Spark's watermark is in milliseconds since 1970. Calendar times need no change. Numbers become order-preserving codes,
the first 53 bits of a double, so the watermark is exact for integers below 2^41 and to about 12 digits beyond that.

Contract: the engine drops events before `watermark - lateness` and accepts events at exactly that time. So `passed` is
strictly before the watermark, and rounding only makes it earlier (tests/spark/stream/test_event_time.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import BoundQuery, TimeKind
from streamsift.logical.lateness import CALENDAR

MICROSECONDS_PER_MILLISECOND = 1000
MILLISECONDS_PER_DAY = 86_400_000
INT64 = (-(2**63), 2**63 - 1)
_CODE_BITS = 53  # milliseconds of 53 bits, in microseconds, fit in 64 bits
_DROPPED_BITS = 64 - _CODE_BITS
_MIDDLE = 1 << (_CODE_BITS - 1)
_MAGNITUDE = (1 << 63) - 1
_MARGIN = 3  # codes: one for the strict comparison, one for the margin of `passed`, one for rounding to a double

Tick = int | float


@dataclass(frozen=True, slots=True)
class CalendarTime:
    """Timestamps, dates and strings. Spark subtracts the lateness."""

    ticks_per_millisecond: Fraction
    delay_milliseconds: int

    def seen(self, tick: Tick) -> int:
        """Return the event time of a time value, in microseconds."""
        return math.floor(Fraction(tick) / self.ticks_per_millisecond * MICROSECONDS_PER_MILLISECOND)

    def passed(self, watermark: int) -> Tick | None:
        """Return the last time value that has passed; None at Spark's initial watermark, 1970."""
        if watermark <= 0:
            return None
        return _in_64_bits(math.ceil(watermark * self.ticks_per_millisecond) - 1)

    def expired(self, watermark: int) -> Tick | None:
        """Return the last time value such that timers for it and for all before it are before `watermark`."""
        return self.passed(watermark - 1)

    def timer(self, tick: Tick) -> int:
        """Return the first watermark at which the time value has passed."""
        return max(1, math.floor(Fraction(tick) / self.ticks_per_millisecond) + 1)


@dataclass(frozen=True, slots=True)
class NumberTime:
    """Numbers, as codes of doubles. Codes are not evenly spaced, so the lateness is subtracted here, not by Spark."""

    ticks_per_unit: int
    is_real: bool
    lateness: Fraction
    delay_milliseconds: int = 0

    def seen(self, tick: Tick) -> int:
        value = float(tick) if self.is_real else float(Fraction(tick) / self.ticks_per_unit)
        return code_of(value) * MICROSECONDS_PER_MILLISECOND

    def passed(self, watermark: int) -> Tick | None:
        # A decimal may have been rounded up to its double, so the previous code is used.
        value = value_of(watermark - 1)
        if watermark <= 1 or value == -math.inf:
            return None
        if self.is_real:
            return math.nextafter(value - _double_above(self.lateness), -math.inf)
        return _in_64_bits(math.ceil((Fraction(value) - self.lateness) * self.ticks_per_unit) - 1)

    def expired(self, watermark: int) -> Tick | None:
        """Return a time value such that timers for it and for all before it are before `watermark`."""
        return self.passed(watermark - _MARGIN)

    def timer(self, tick: Tick) -> int:
        if self.is_real:
            return code_of(float(tick) + _double_above(self.lateness)) + _MARGIN
        return code_of(float(Fraction(tick) / self.ticks_per_unit + self.lateness)) + _MARGIN


EventTime = CalendarTime | NumberTime


def event_time(query: BoundQuery, lateness: Fraction) -> EventTime:
    """Return the conversion of a query's times. `lateness` is in seconds for calendar times, else in column units."""
    kind = query.binding.time_kind
    if kind in CALENDAR:
        per_millisecond = Fraction(1, MILLISECONDS_PER_DAY) if kind is TimeKind.DATE else Fraction(1000)
        return CalendarTime(per_millisecond, math.ceil(lateness * 1000))
    data_type = query.schema.field(query.binding.time).type
    scale = data_type.scale if pa.types.is_decimal(data_type) else 0
    return NumberTime(10**scale, kind is TimeKind.FLOAT, lateness)


def code_of(value: float) -> int:
    """Return an integer from 1 to 2^53 in the order of doubles: the first bits, inverted if negative."""
    bits = int(np.float64(value).view(np.int64))
    ordered = bits if bits >= 0 else bits ^ _MAGNITUDE
    return (ordered >> _DROPPED_BITS) + _MIDDLE + 1


def value_of(code: int) -> float:
    """Return the smallest double with this code, or if there is none, a double with a smaller code."""
    ordered = (code - 1 - _MIDDLE) << _DROPPED_BITS
    bits = ordered if ordered >= 0 else ordered ^ _MAGNITUDE
    value = float(np.int64(max(INT64[0], min(INT64[1], bits))).view(np.float64))
    if math.isnan(value):
        return math.inf if ordered >= 0 else -math.inf
    return value


def _double_above(length: Fraction) -> float:
    nearest = float(length)
    return nearest if Fraction(nearest) >= length else math.nextafter(nearest, math.inf)


def _in_64_bits(tick: int) -> int:
    return max(INT64[0], min(INT64[1], tick))
