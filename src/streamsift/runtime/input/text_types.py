"""Choose the type of a column of text, and convert the text to it.

A type is chosen only if it holds every value of the column exactly; otherwise the column stays text. Both engines call
this code, so a file has the same columns on Spark and in this process.

Contract: two fields that contain different numbers or times stay different, unless they have an exponent
(tests/runtime/input/test_text_types.py, tests/spark/files/test_sources.py).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import astuple, dataclass, replace
from enum import Enum, auto

import pyarrow as pa
import pyarrow.compute as pc

from streamsift.errors import BadInputError

SAFE_DIGITS = 15  # a double holds every number of so many digits
EXACT_INTEGERS = 2**53
FLOATING = r"^([+-]?(\d+\.?\d*|\.\d+)[eE][+-]?\d+|(?i:[+-]?inf(inity)?|nan))$"
MAX_DIGITS = 38  # of a decimal, on Spark too
NANOSECOND_YEARS = (1678, 2261)  # the whole years that 64 bits of nanoseconds reach


class Family(Enum):
    """The kind of values that the fields of a column contain."""

    EMPTY = auto()  # all fields are null
    NUMBER = auto()
    BOOLEAN = auto()
    DATE = auto()
    LOCAL_TIME = auto()  # without a time zone; dates among them are midnights
    INSTANT = auto()  # with a time zone
    TEXT = auto()


@dataclass(frozen=True, slots=True)
class TextShape:
    """The properties of the fields of a column that determine its type. Shapes of parts of a column can be merged.

    Every attribute but the family is the maximum over the rows.
    """

    family: Family = Family.EMPTY
    fractions: bool = False  # a number is not written as an integer
    beyond_longs: bool = False  # an integer does not fit 64 bits
    floating: bool = False  # a number has an exponent, or is NaN or infinite
    rounded: bool = False  # the nearest double of a number has other digits
    rounded_integers: bool = False  # the nearest double of an integer has other digits
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
    if shape.family is Family.NUMBER:
        return _number_type(shape)
    if shape.family in (Family.LOCAL_TIME, Family.INSTANT) and not (shape.nanoseconds and shape.beyond_nanoseconds):
        zone = "UTC" if shape.family is Family.INSTANT else None
        return pa.timestamp("ns" if shape.nanoseconds else "us", zone)
    return {Family.EMPTY: pa.null(), Family.BOOLEAN: pa.bool_(), Family.DATE: pa.date32()}.get(
        shape.family, pa.string()
    )


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


def shape_of(texts: pa.ChunkedArray) -> TextShape:
    """Return the shape of a column of strings."""
    first = next((chunk.drop_null()[:1] for chunk in texts.chunks if chunk.null_count < len(chunk)), None)
    if first is None:
        return TextShape()
    # The first value alone rules out most types.
    readers = [read for read in (_number_shape, _boolean_shape, _time_shape) if read(_trimmed(first)) is not None]
    if not readers:
        return TextShape(Family.TEXT)
    present = _trimmed(texts.drop_null())
    return next((shape for read in readers if (shape := read(present)) is not None), TextShape(Family.TEXT))


def _boolean_shape(texts: pa.ChunkedArray) -> TextShape | None:
    words = pc.is_in(pc.utf8_lower(texts), value_set=pa.array(["true", "false"]))
    return TextShape(Family.BOOLEAN) if _all(words) else None


def _time_shape(texts: pa.ChunkedArray) -> TextShape | None:
    times = [(family, unit) for family in (Family.LOCAL_TIME, Family.INSTANT) for unit in ("us", "ns")]
    for family, unit in ((Family.DATE, "us"), *times):
        shape = TextShape(family, nanoseconds=unit == "ns")
        if (values := _casts(texts, column_type(shape))) is not None:
            bounds = pc.min_max(values)
            first, last = pc.year(bounds["min"]).as_py(), pc.year(bounds["max"]).as_py()
            beyond = first < NANOSECOND_YEARS[0] or last > NANOSECOND_YEARS[1]
            return replace(shape, beyond_nanoseconds=beyond) if first > 0 else None
    return None


def _number_shape(texts: pa.ChunkedArray) -> TextShape | None:
    if _any(_has(texts, "x")):
        return None  # Arrow reads hexadecimal integers, Spark does not
    if (numbers := _casts(texts, pa.int64())) is not None:
        bounds = pc.min_max(numbers).as_py()
        greatest = max(-bounds["min"], bounds["max"])
        rounded, digits = greatest > EXACT_INTEGERS, len(str(greatest).lstrip("0"))
        return TextShape(Family.NUMBER, rounded=rounded, rounded_integers=rounded, whole_digits=digits)
    doubles = _casts(texts, pa.float64())
    if doubles is None:
        return None
    is_floating = pc.or_(_has(texts, "e"), _has(texts, "n"))  # an exponent; NaN or Infinity
    if not _all(pc.match_substring_regex(texts.filter(is_floating), FLOATING)):
        return None
    is_plain = pc.invert(is_floating)
    return _plain_shape(texts.filter(is_plain), doubles.filter(is_plain), _any(is_floating))


def _plain_shape(texts: pa.ChunkedArray, doubles: pa.ChunkedArray, floating: bool) -> TextShape:
    """Return the shape of a column of these numbers, which have no exponent; `floating` if others have one."""
    digits = pc.ascii_ltrim(texts, "+-0")
    point = pc.find_substring(digits, ".")
    is_integer, is_fraction = pc.less(point, 0), pc.greater_equal(point, 0)
    integers, fractions = digits.filter(is_integer), pc.ascii_rtrim(digits.filter(is_fraction), "0")
    points = point.filter(is_fraction)
    rounded_integers = _any(_is_beyond_doubles(integers))
    return TextShape(
        Family.NUMBER,
        fractions=floating or len(fractions) > 0,
        beyond_longs=_casts(texts.filter(is_integer), pa.int64()) is None,
        floating=floating,
        rounded=rounded_integers or _are_rounded(fractions, doubles.filter(is_fraction)),
        rounded_integers=rounded_integers,
        whole_digits=max(_most(pc.binary_length(integers)), _most(points)),
        fraction_digits=max(0, _most(pc.subtract(pc.binary_length(fractions), points)) - 1),
    )


def _is_beyond_doubles(digits: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return True for integers past 2^53, beyond which not every integer is a double."""
    limit = str(EXACT_INTEGERS)
    length = pc.binary_length(digits)
    same_length = pc.and_(pc.equal(length, len(limit)), pc.greater(digits, limit))
    return pc.or_(pc.greater(length, len(limit)), same_length)


def _are_rounded(fractions: pa.ChunkedArray, doubles: pa.ChunkedArray) -> bool:
    """Return True if a fraction is not what its nearest double is written as."""
    is_long = pc.greater(pc.binary_length(fractions), SAFE_DIGITS)
    texts, written = fractions.filter(is_long), doubles.filter(is_long).cast(pa.string())
    without_exponent = pc.replace_substring_regex(written, "e.*", "")
    return _any(pc.not_equal(_digits(texts), _digits(without_exponent)))


def _digits(numbers: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the digits that distinguish numbers of one magnitude."""
    return pc.ascii_trim(pc.replace_substring(pc.ascii_ltrim(numbers, "-"), ".", ""), "0")


def _has(texts: pa.ChunkedArray, letter: str) -> pa.ChunkedArray:
    return pc.or_(pc.match_substring(texts, letter), pc.match_substring(texts, letter.upper()))


def _any(truths: pa.ChunkedArray) -> bool:
    return bool(pc.any(truths, min_count=0).as_py())


def _all(truths: pa.ChunkedArray) -> bool:
    return bool(pc.all(truths, min_count=0).as_py())


def _most(numbers: pa.ChunkedArray) -> int:
    return pc.max(numbers).as_py() or 0


def _trimmed(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.ascii_trim(texts, " \t")


def _casts(texts: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray | None:
    """Convert trimmed texts to a type, or return None if a text is not a value of the type."""
    try:
        for start in {0, len(texts) // 2, max(0, len(texts) - 1)}:
            _cast(texts.slice(start, 1), target)  # failing is slow: Arrow formats a message for each value
        return _cast(texts, target)
    except pa.ArrowInvalid:
        return None


def _cast(texts: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    """Convert trimmed texts to a type. Raises ArrowInvalid if a text is not a value of the type."""
    if pa.types.is_integer(target) and _any(pc.starts_with(texts, "+")):
        texts = pc.replace_substring_regex(texts, r"^\+(\d)", r"\1")  # Arrow does not accept a plus sign
    try:
        return texts.cast(target)
    except pa.ArrowInvalid:
        if not pa.types.is_timestamp(target) or target.unit == "ns":
            raise
        # Zeros after the sixth digit of a second can be dropped.
        return pc.replace_substring_regex(texts, r"(\.\d{6})0+(\D|$)", r"\1\2").cast(target)


def converted(name: str, texts: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    """Convert a column of strings to the type chosen for it."""
    if pa.types.is_string(target):
        return texts
    if pa.types.is_null(target) and texts.null_count == len(texts):
        return pa.chunked_array([pa.nulls(len(texts))])
    try:
        return _cast(_trimmed(texts), target)
    except pa.ArrowInvalid as error:
        raise BadInputError(f"column `{name}` cannot be read as {target}: {error}") from error


def converted_block(name: str, texts: pa.ChunkedArray, earlier: TextShape) -> pa.ChunkedArray:
    """Convert rows that arrive after the type was chosen. Raises BadInputError if they would change the type."""
    target, wanted = column_type(earlier), column_type(merge(earlier, shape_of(texts)))
    if wanted != target:
        raise BadInputError(
            f"column `{name}` was read as {target}; new rows would change it to {wanted}\n"
            "Hint: write the new file with the types of the earlier files, or start a new stream."
        )
    return converted(name, texts, target)


def typed(table: pa.Table, as_text: Collection[str] = ()) -> pa.Table:
    """Convert a table of strings, column by column, to the types that hold them; some columns may stay text."""
    columns = []
    for name, texts in zip(table.column_names, table.columns, strict=True):
        target = pa.string() if name in as_text else column_type(shape_of(texts))
        columns.append(converted(name, texts, target))
    return pa.table(columns, names=table.column_names)
