"""Describe what the fields of a text column look like, and choose the type that holds all of them as written."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

import pyarrow as pa

MAX_DIGITS = 38  # of a decimal, on Spark too
NANOSECOND_YEARS = (1678, 2261)  # the whole years that 64 bits of nanoseconds reach


class Family(Enum):
    """What the fields of a column look like."""

    EMPTY = auto()  # all of them are null
    NUMBER = auto()
    BOOLEAN = auto()
    DATE = auto()
    LOCAL_TIME = auto()  # without a zone; dates among them are midnights
    INSTANT = auto()  # with a zone
    TEXT = auto()


@dataclass(frozen=True, slots=True)
class Shape:
    """What the fields of a column have in common: enough to choose a type, and to merge with that of other rows."""

    family: Family = Family.EMPTY
    integers: bool = True  # every number is written as an integer
    longs: bool = True  # and fits 64 bits
    floating: bool = False  # a number has an exponent, or is NaN or infinite
    exact: bool = True  # writing the nearest doubles gives the same digits
    exact_integers: bool = True  # at least for those that are written as integers
    whole_digits: int = 0  # at most, before the point
    fraction_digits: int = 0  # at most, after the point
    nanoseconds: bool = False  # a time is finer than microseconds
    years: tuple[int, int] = (9999, 1)  # the first and the last


def merge(one: Shape, other: Shape) -> Shape:
    """Return the shape of the rows of both."""
    families = {one.family, other.family} - {Family.EMPTY}
    if families == {Family.DATE, Family.LOCAL_TIME}:
        families = {Family.LOCAL_TIME}
    if len(families) > 1:
        return Shape(Family.TEXT)
    return Shape(
        families.pop() if families else Family.EMPTY,
        one.integers and other.integers,
        one.longs and other.longs,
        one.floating or other.floating,
        one.exact and other.exact,
        one.exact_integers and other.exact_integers,
        max(one.whole_digits, other.whole_digits),
        max(one.fraction_digits, other.fraction_digits),
        one.nanoseconds or other.nanoseconds,
        (min(one.years[0], other.years[0]), max(one.years[1], other.years[1])),
    )


def column_type(shape: Shape) -> pa.DataType:
    """Return the type that holds every value of a column exactly: text if no other does."""
    match shape.family:
        case Family.EMPTY:
            return pa.null()
        case Family.NUMBER:
            return _number_type(shape)
        case Family.BOOLEAN:
            return pa.bool_()
        case Family.DATE:
            return pa.date32()
        case Family.LOCAL_TIME | Family.INSTANT if not shape.nanoseconds or _in_nanoseconds(shape):
            zone = "UTC" if shape.family is Family.INSTANT else None
            return pa.timestamp("ns" if shape.nanoseconds else "us", zone)
        case _:
            return pa.string()


def _in_nanoseconds(shape: Shape) -> bool:
    return NANOSECOND_YEARS[0] <= shape.years[0] and shape.years[1] <= NANOSECOND_YEARS[1]


def _number_type(shape: Shape) -> pa.DataType:
    if shape.integers and shape.longs:
        return pa.int64()
    if shape.floating:
        return pa.float64() if shape.exact_integers else pa.string()
    if shape.exact and not shape.integers:
        return pa.float64()
    if shape.whole_digits + shape.fraction_digits <= MAX_DIGITS:
        return pa.decimal128(MAX_DIGITS, shape.fraction_digits)
    return pa.string()
