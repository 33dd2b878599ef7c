"""Choose the type of a column that is written as text, and convert the text to it.

A type is chosen only if it holds every value of the column as it is written; otherwise the column stays text. Both
engines call this code, so that a file has the same columns on Spark and in this process.

Contract: two fields that are written as different numbers or times stay different, unless they have an exponent
(tests/runtime/input/test_text_types.py, tests/spark/files/test_sources.py).
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from streamsift.errors import BadInputError
from streamsift.runtime.input.text_shapes import Family, Shape, column_type, merge

SAFE_DIGITS = 15  # so many digits always survive in a double
EXACT_INTEGERS = 2**53
FLOATING = r"^([+-]?(\d+\.?\d*|\.\d+)[eE][+-]?\d+|(?i:[+-]?inf(inity)?|nan))$"


def shape_of(texts: pa.ChunkedArray) -> Shape:
    """Return the shape of a column of strings."""
    first = next((chunk.drop_null()[:1] for chunk in texts.chunks if chunk.null_count < len(chunk)), None)
    if first is None:
        return Shape()
    # Most columns of text are told by their first value alone.
    readers = [read for read in (_number_shape, _boolean_shape, _time_shape) if read(_trimmed(first)) is not None]
    if not readers:
        return Shape(Family.TEXT)
    present = _trimmed(texts.drop_null())
    return next((shape for read in readers if (shape := read(present)) is not None), Shape(Family.TEXT))


def _boolean_shape(texts: pa.ChunkedArray) -> Shape | None:
    words = pc.is_in(pc.utf8_lower(texts), value_set=pa.array(["true", "false"]))
    return Shape(Family.BOOLEAN) if _all(words) else None


def _time_shape(texts: pa.ChunkedArray) -> Shape | None:
    for family, zone in ((Family.DATE, None), (Family.LOCAL_TIME, None), (Family.INSTANT, "UTC")):
        for unit in ("us",) if family is Family.DATE else ("us", "ns"):
            target = pa.date32() if family is Family.DATE else pa.timestamp(unit, zone)
            if (times := _casts(texts, target)) is None:
                continue
            bounds = pc.min_max(times)
            first, last = pc.year(bounds["min"]).as_py(), pc.year(bounds["max"]).as_py()
            return Shape(family, nanoseconds=unit == "ns", years=(first, last)) if first > 0 else None
    return None


def _number_shape(texts: pa.ChunkedArray) -> Shape | None:
    if _any(_has(texts, "x")):
        return None  # Arrow reads hexadecimal integers, Spark does not
    if (numbers := _casts(texts, pa.int64())) is not None:
        bounds = pc.min_max(numbers).as_py()
        greatest = max(-bounds["min"], bounds["max"])
        exact = greatest <= EXACT_INTEGERS
        return Shape(Family.NUMBER, exact=exact, exact_integers=exact, whole_digits=len(str(greatest).lstrip("0")))
    doubles = _casts(texts, pa.float64())
    if doubles is None:
        return None
    is_floating = pc.or_(_has(texts, "e"), _has(texts, "n"))  # an exponent; NaN or Infinity
    if not _all(pc.match_substring_regex(texts.filter(is_floating), FLOATING)):
        return None
    is_plain = pc.invert(is_floating)
    return _plain_shape(texts.filter(is_plain), doubles.filter(is_plain), _any(is_floating))


def _plain_shape(texts: pa.ChunkedArray, doubles: pa.ChunkedArray, floating: bool) -> Shape:
    """Return the shape of a column of these numbers, which have no exponent, and of others if `floating`."""
    digits = pc.ascii_ltrim(pc.ascii_ltrim(texts, "+-"), "0")
    point = pc.find_substring(digits, ".")
    is_integer = pc.less(point, 0)
    is_fraction = pc.invert(is_integer)
    integers, fractions = digits.filter(is_integer), pc.ascii_rtrim(digits.filter(is_fraction), "0")
    points = point.filter(is_fraction)
    exact_integers = not _any(_is_beyond_doubles(integers))
    return Shape(
        Family.NUMBER,
        integers=not floating and len(fractions) == 0,
        longs=_casts(texts.filter(is_integer), pa.int64()) is not None,
        floating=floating,
        exact=exact_integers and not _are_rounded(fractions, doubles.filter(is_fraction)),
        exact_integers=exact_integers,
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
    has_exponent = pc.match_substring(written, "e")
    small = pc.replace_substring_regex(written.filter(has_exponent), "e.*", "")
    plain = pc.invert(has_exponent)
    return _any(pc.not_equal(_digits(texts.filter(has_exponent)), _digits(small))) or _any(
        pc.not_equal(_digits(texts.filter(plain)), _digits(written.filter(plain)))
    )


def _digits(numbers: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the digits that tell numbers of one magnitude apart."""
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
    """Convert trimmed texts to a type, or return None if one of them is no value of it."""
    try:
        for start in {0, len(texts) // 2, max(0, len(texts) - 1)}:
            _cast(texts.slice(start, 1), target)  # Arrow takes long to fail: it makes a message for each value
        return _cast(texts, target)
    except pa.ArrowInvalid:
        return None


def _cast(texts: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    """Convert trimmed texts to a type. Raises ArrowInvalid if one of them is no value of it."""
    if pa.types.is_integer(target) and _any(pc.starts_with(texts, "+")):
        texts = pc.replace_substring_regex(texts, r"^\+(\d)", r"\1")  # Arrow reads no sign but minus
    try:
        return texts.cast(target)
    except pa.ArrowInvalid:
        if not pa.types.is_timestamp(target) or target.unit == "ns":
            raise
        # Of zeros after the sixth digit of a second nothing is lost.
        return pc.replace_substring_regex(texts, r"(\.\d{6})0+(\D|$)", r"\1\2").cast(target)


def converted(name: str, texts: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    """Convert a column of strings to the type that was chosen for it."""
    if pa.types.is_string(target):
        return texts
    if pa.types.is_null(target) and texts.null_count == len(texts):
        return pa.chunked_array([pa.nulls(len(texts))])
    try:
        return _cast(_trimmed(texts), target)
    except pa.ArrowInvalid as error:
        raise BadInputError(f"column `{name}` cannot be read as {target}: {error}") from error


def converted_block(name: str, texts: pa.ChunkedArray, known: Shape) -> pa.ChunkedArray:
    """Convert rows that came after the type was chosen. Raises BadInputError if they would have changed the type."""
    target = column_type(known)
    wanted = column_type(merge(known, shape_of(texts)))
    if wanted != target:
        raise BadInputError(
            f"column `{name}` has been read as {target} so far; new rows make it {wanted}\n"
            "Hint: write the new file with the types of the earlier files, or start a new stream."
        )
    return converted(name, texts, target)


def typed(table: pa.Table) -> pa.Table:
    """Convert a table of strings, column by column, to the types that hold them."""
    for number, name in enumerate(table.column_names):
        column = table.column(number)
        found = converted(name, column, column_type(shape_of(column)))
        table = table.set_column(number, name, found)
    return table
