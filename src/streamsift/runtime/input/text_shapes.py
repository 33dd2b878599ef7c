"""Describe what the fields of a text column look like, and choose the type that holds all of them as written."""

from __future__ import annotations

from dataclasses import astuple, dataclass
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
class TextShape:
    """What the fields of a column have in common: enough to choose a type, and to merge with that of other rows.

    Every attribute but the family is the greatest of its rows.
    """

    family: Family = Family.EMPTY
    fractions: bool = False  # a number is not written as an integer
    beyond_longs: bool = False  # an integer does not fit 64 bits
    floating: bool = False  # a number has an exponent, or is NaN or infinite
    rounded: bool = False  # writing the nearest double of a number gives other digits
    rounded_integers: bool = False  # of one that is written as an integer
    whole_digits: int = 0  # before the point
    fraction_digits: int = 0  # after the point
    nanoseconds: bool = False  # a time is finer than microseconds
    beyond_nanoseconds: bool = False  # a year is outside NANOSECOND_YEARS


def merge(one: TextShape, other: TextShape) -> TextShape:
    """Return the shape of the rows of both."""
    families = {one.family, other.family} - {Family.EMPTY}
    if families == {Family.DATE, Family.LOCAL_TIME}:
        families = {Family.LOCAL_TIME}
    if len(families) > 1:
        return TextShape(Family.TEXT)
    family = families.pop() if families else Family.EMPTY
    return TextShape(family, *map(max, astuple(one)[1:], astuple(other)[1:]))


def column_type(shape: TextShape) -> pa.DataType:
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
        case Family.LOCAL_TIME | Family.INSTANT if not (shape.nanoseconds and shape.beyond_nanoseconds):
            zone = "UTC" if shape.family is Family.INSTANT else None
            return pa.timestamp("ns" if shape.nanoseconds else "us", zone)
        case _:
            return pa.string()


def _number_type(shape: TextShape) -> pa.DataType:
    if not shape.fractions and not shape.beyond_longs:
        return pa.int64()
    if shape.floating:
        return pa.string() if shape.rounded_integers else pa.float64()
    if shape.fractions and not shape.rounded:
        return pa.float64()
    if shape.whole_digits + shape.fraction_digits <= MAX_DIGITS:
        return pa.decimal128(MAX_DIGITS, shape.fraction_digits)
    return pa.string()
