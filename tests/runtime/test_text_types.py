"""Columns that are written as text get the type that holds them, and nothing is rounded on the way."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsift.errors import BadInputError
from streamsift.runtime.text_types import column_type, converted, converted_block, merge, shape_of

# The fields of a column, and the type that it gets.
COLUMNS: dict[str, tuple[list[str | None], pa.DataType]] = {
    "integers": (["1", "-2", "+3"], pa.int64()),
    "bounds of 64 bits": (["-9223372036854775808", "9223372036854775807"], pa.int64()),
    "leading zeros": (["007", "7"], pa.int64()),  # they are the same number, on Spark too
    "beyond 64 bits": (["18446744073709551614", "18446744073709551615"], pa.decimal128(38, 0)),
    "38 digits": (["9" * 38, "1"], pa.decimal128(38, 0)),
    "39 digits": (["1" + "0" * 38, "1" + "0" * 37 + "1"], pa.string()),
    "fractions": (["0.1", "2.50", "3", ".5", "1."], pa.float64()),
    "doubles in full": (["0.8444218515250481", "1"], pa.float64()),
    "an integer beyond 2^53 and a fraction": (["9007199254740993", "0.5"], pa.decimal128(38, 1)),
    "seconds with nanoseconds": (["1700000000.123456789", "1700000000.123456788"], pa.decimal128(38, 9)),
    "too long for decimals": (["0." + "1" * 39, "0." + "1" * 38 + "2"], pa.string()),
    "exponents": (["1e5", "2E-3", "1"], pa.float64()),
    "long with exponents": (["1.700000000123456717e+09"], pa.float64()),
    "an exponent and an integer beyond 2^53": (["1e5", "9007199254740993"], pa.string()),
    "not numbers": (["NaN", "inf", "-Infinity", "1"], pa.float64()),
    "spaces": ([" 5", "6 "], pa.int64()),
    "hexadecimal": (["0x10", "0x11"], pa.string()),
    "suffixes": (["1.5d", "2f"], pa.string()),
    "booleans": (["true", "FALSE", None], pa.bool_()),
    "booleans and numbers": (["true", "1"], pa.string()),
    "dates": (["2024-01-02", None], pa.date32()),
    "no such day": (["2024-02-30", "2024-01-01"], pa.string()),
    "year 0": (["0000-01-01"], pa.string()),
    "dates and times": (["2024-01-02", "2024-02-03 10:00:00"], pa.timestamp("us")),
    "times": (["2024-01-02T10:00:00.123456", "2024-01-02 10:00"], pa.timestamp("us")),
    "zeros after microseconds": (["2024-01-02T10:00:00.123456000"], pa.timestamp("us")),
    "nanoseconds": (["2024-01-02T10:00:00.000000001", "2024-01-02T10:00:00.000000002"], pa.timestamp("ns")),
    "nanoseconds far away": (["2024-01-02T10:00:00.000000001", "3024-01-02"], pa.string()),
    "zones": (["2024-01-02T10:00:00Z", "2024-01-02T11:00:00+01:00"], pa.timestamp("us", "UTC")),
    "some with zones": (["2024-01-02T10:00:00Z", "2024-01-02T11:00:00"], pa.string()),
    "months": (["2024-01"], pa.string()),
    "clock times": (["12:30:00"], pa.string()),
    "words": (["NULL", "1"], pa.string()),
    "late word": (["1"] * 5000 + ["abc"], pa.string()),
    "empty": ([None, None], pa.null()),
}


def column(texts: list[str | None]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(texts, pa.string())])


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_has_the_type_that_holds_it(name: str) -> None:
    texts, expected = COLUMNS[name]
    found = column_type(shape_of(column(texts)))
    assert found == expected
    assert converted("x", column(texts), found).type == expected


def test_values_are_as_written() -> None:
    for texts, expected in (
        (["18446744073709551614", "18446744073709551615"], [Decimal(2**64 - 2), Decimal(2**64 - 1)]),
        (["9007199254740993", "0.5", None], [Decimal("9007199254740993.0"), Decimal("0.5"), None]),
        ([" +5", "007", "-3"], [5, 7, -3]),
        (["0.1", "1e5"], [0.1, 100000.0]),
    ):
        texts_column = column(texts)
        assert converted("x", texts_column, column_type(shape_of(texts_column))).to_pylist() == expected


DIGITS = st.text("0123456789", max_size=25)
NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.sampled_from([2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 10**38 - 1, 10**38]).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.tuples(DIGITS, DIGITS).map(".".join).filter(lambda text: text != "."),
)
FIELDS = st.one_of(NUMBERS, st.none(), st.sampled_from(["true", "abc", "2024-01-02", "2024-01-02 10:00:00", "NaN", " 7"]))


@given(st.lists(NUMBERS, min_size=1, max_size=5))
def test_different_numbers_stay_different(texts: list[str]) -> None:
    found = column_type(shape_of(column(texts)))
    values = converted("x", column(texts), found).to_pylist()
    if pa.types.is_floating(found) and any("e" in text for text in texts):
        texts = [text for text in texts if text.lstrip("+-").isdigit()]  # integers are exact beside exponents, too
        values = [value for value in values if float(value).is_integer()]
    assert len(set(values)) >= len({_number(text) for text in texts})
    if pa.types.is_decimal(found) or pa.types.is_integer(found):
        assert [Decimal(value) for value in values] == [_number(text) for text in texts]


def _number(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        pytest.fail(f"the strategy makes numbers only, not {text!r}")


@given(st.lists(FIELDS, min_size=1, max_size=5), st.lists(FIELDS, min_size=1, max_size=5))
def test_parts_of_a_column_tell_what_the_whole_tells(one: list[str | None], other: list[str | None]) -> None:
    parts = merge(shape_of(column(one)), shape_of(column(other)))
    assert column_type(parts) == column_type(shape_of(column(one + other)))


def test_rows_that_would_change_a_type_later_are_an_error() -> None:
    known = shape_of(column(["1", "2.5"]))
    assert converted_block("x", column(["3"]), known).to_pylist() == [3.0]
    with pytest.raises(BadInputError, match=r"`x` has been read as double so far; new rows make it decimal128\(38, 1\)"):
        converted_block("x", column(["9007199254740993"]), known)
    with pytest.raises(BadInputError, match="new rows make it string"):
        converted_block("x", column(["abc"]), known)
