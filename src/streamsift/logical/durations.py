"""Measure the lengths of WITHIN and UPDATE in the units of a time column.

Times are compared as 64-bit counts of a unit (timestamps, dates, integers, decimals of a scale) or as doubles. The
lengths are exact until `width_in_units` rounds them, once, to what differences of times are compared with.
"""

from __future__ import annotations

import math
from fractions import Fraction

import pyarrow as pa

from streamsift.logical.bound import BoundQuery, BoundWindow, TimeKind, WindowKind

UNITS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
TEXT_TIME = pa.timestamp("us", "UTC")
LARGEST_COUNT = 2**63 - 1
LARGEST_DIFFERENCE = 2**64 - 1  # of two counts


def units_per_second(kind: pa.DataType) -> int | None:
    """Return how many of a type's units make a second; None for a date, whose unit is the day, and for other types."""
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return UNITS_PER_SECOND[kind.unit]
    return UNITS_PER_SECOND["ms"] if pa.types.is_date64(kind) else None


def unit_of(query: BoundQuery) -> pa.DataType:
    """Return the type whose units the query's times count."""
    if query.binding.time_kind is TimeKind.TEXT:
        return TEXT_TIME
    kind = query.schema.field(query.binding.time).type
    kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def zero_of(unit: pa.DataType) -> int:
    """Return the count at which a unit's time 0 lies: counts of uint64 begin at the least 64-bit integer."""
    return -(2**63) if pa.types.is_uint64(unit) else 0


def in_units(length: Fraction, unit: pa.DataType) -> Fraction:
    """Convert seconds, or a number in the column's units, to a number of units."""
    if pa.types.is_date32(unit):
        return length / 86_400
    if (per_second := units_per_second(unit)) is not None:
        return length * per_second
    return length * 10**unit.scale if pa.types.is_decimal(unit) else length


def nearest_double(number: Fraction) -> float:
    """Round a number to the nearest double, ties to the even one; an infinity if it is beyond all of them."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def width_in_units(window: BoundWindow, unit: pa.DataType) -> int | float:
    """Return the largest difference of two times inside a time window; below zero if there is none.

    Differences of doubles are rounded, so they are compared with the double nearest to the length.
    """
    if pa.types.is_floating(unit):
        width = nearest_double(window.length)
        return math.nextafter(width, -math.inf) if window.exclusive and width < math.inf else width
    length = in_units(window.length, unit)
    return min(math.ceil(length) - 1 if window.exclusive else math.floor(length), LARGEST_DIFFERENCE)


def limits_nothing(window: BoundWindow, unit: pa.DataType) -> bool:
    """Return True if a time window is beyond the range of its column, so that no match can outlast it.

    Signed 64-bit times can be farther apart than 64 bits can say; 2^63 units are beyond their range all the same.
    """
    if window.kind is WindowKind.COUNT:
        return False
    width = width_in_units(window, unit)
    if pa.types.is_floating(unit):
        return width >= math.inf
    if pa.types.is_uint64(unit):
        return width >= LARGEST_DIFFERENCE
    largest = 2 * 10**unit.precision - 2 if pa.types.is_decimal(unit) else 2**unit.bit_width - 1
    return width >= min(int(largest), LARGEST_COUNT + 1)
