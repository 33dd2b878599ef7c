"""Columns that are written as text get the type that holds them, and nothing is rounded on the way."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsift.errors import BadInputError
from streamsift.runtime.input.text_types import column_type, converted, converted_block, merge, shape_of
from text_columns import COLUMNS


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
FIELDS = st.one_of(
    NUMBERS, st.none(), st.sampled_from(["true", "abc", "2024-01-02", "2024-01-02 10:00:00", "NaN", " 7"])
)


NEIGHBOURS = st.sampled_from(
    ["9007199254740992", "9007199254740993", "1700000000.1234567", "1700000000.1234568", "0.5", "1e5"]
)


@given(st.lists(NUMBERS, min_size=1, max_size=5) | st.lists(NEIGHBOURS, min_size=1, max_size=5))
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
    with pytest.raises(BadInputError, match=r"`x` was read as double; new rows would change it to decimal128\(38, 1\)"):
        converted_block("x", column(["9007199254740993"]), known)
    with pytest.raises(BadInputError, match="would change it to string"):
        converted_block("x", column(["abc"]), known)
