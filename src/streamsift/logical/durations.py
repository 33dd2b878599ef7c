"""Convert the lengths of WITHIN and UPDATE to the units of a time column.

Times are compared as 64-bit integers in a unit (timestamps, dates, integers, decimals of a scale) or as doubles.
Lengths are exact until `width_in_units` rounds them once, to the type in which differences of times are compared.
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
    """Return the number of a type's units per second; None for date32, whose unit is a day, and for other types."""
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return UNITS_PER_SECOND[kind.unit]
    return UNITS_PER_SECOND["ms"] if pa.types.is_date64(kind) else None


def unit_of(query: BoundQuery) -> pa.DataType:
    """Return the Arrow type whose units the query's times are in."""
    if query.binding.time_kind is TimeKind.TEXT:
        return TEXT_TIME
    kind = query.schema.field(query.binding.time).type
    kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def zero_of(unit: pa.DataType) -> int:
    """Return the integer that represents time 0; for uint64, integers start at the smallest signed value."""
    return -(2**63) if pa.types.is_uint64(unit) else 0


def in_units(length: Fraction, unit: pa.DataType) -> Fraction:
    """Convert a length, in seconds or in the column's own units, to a number of units."""
    if pa.types.is_date32(unit):
        return length / 86_400
    if (per_second := units_per_second(unit)) is not None:
        return length * per_second
    return length * 10**unit.scale if pa.types.is_decimal(unit) else length


def nearest_double(number: Fraction) -> float:
    """Round a number to the nearest double, ties to even; beyond the range of doubles, return an infinity."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def width_in_units(window: BoundWindow, unit: pa.DataType) -> int | float:
    """Return the largest difference of two times in a time window; negative if no difference is allowed.

    Differences of doubles are rounded, so they are compared with the double nearest to the length.
    """
    if pa.types.is_floating(unit):
        width = nearest_double(window.length)
        return math.nextafter(width, -math.inf) if window.exclusive and width < math.inf else width
    length = in_units(window.length, unit)
    return min(math.ceil(length) - 1 if window.exclusive else math.floor(length), LARGEST_DIFFERENCE)


def limits_nothing(window: BoundWindow, unit: pa.DataType) -> bool:
    """Return True if a time window exceeds the range of its column, so that it excludes no match.

    Differences of signed 64-bit times may need 65 bits; a window of 2^63 units or more counts as unlimited.
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
