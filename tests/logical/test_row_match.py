"""Test the binder of MATCH_RECOGNIZE: mistakes, output columns, types, and which row an expression reads."""

from __future__ import annotations

import pyarrow as pa
import pytest

from streamsift.errors import QueryError, UnsupportedQuery
from streamsift.logical.row_match import bind_rows, columns_read
from streamsift.logical.row_match.bound import Anchor, RowOperation, RowReach, RowValue

SCHEMA = pa.schema(
    {
        "symbol": pa.string(),
        "ts": pa.timestamp("us", "UTC"),
        "price": pa.int32(),
        "amount": pa.decimal128(10, 2),
        "volume": pa.int64(),
        "x": pa.float64(),
    }
)


def bound(text: str, **options: str):
    return bind_rows(text, SCHEMA, **options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("PATTERN (A) DEFINE A AS prize > 1", "unknown column `prize`.*did you mean `price`"),
        ("PATTERN (A) DEFINE A AS C.x > 1", "`C` is neither a variable of the pattern nor a column"),
        ("PATTERN (A) DEFINE C AS x > 1", "`C` is not a variable of the pattern"),
        ("PATTERN (A) DEFINE A AS x > 1, a AS x > 2", "`A` is defined twice"),
        ("PATTERN (A) DEFINE A AS price", "expected a predicate"),
        ("PATTERN (A) DEFINE A AS A > 1", "the variable `A` is not a value"),
        ("PATTERN (A) DEFINE A AS FIRST(PREV(x)) > 1", r"PREV is not allowed inside FIRST.*PREV\(FIRST"),
        ("PATTERN (A) DEFINE A AS SUM(PREV(x)) > 1", "the navigation PREV is not allowed inside the aggregate SUM"),
        ("PATTERN (A) DEFINE A AS LAST(SUM(x)) > 1", "SUM is not allowed inside LAST"),
        ("PATTERN (A B) DEFINE B AS PREV(A.x + B.x) > 1", "PREV reads columns of `A` and `B`"),
        ("PATTERN (A B) DEFINE B AS SUM(A.x + x) > 1", "SUM reads columns of the current row and `A`"),
        ("PATTERN (A) DEFINE A AS FINAL LAST(x) > 1", "FINAL is not allowed in DEFINE"),
        ("MEASURES FINAL PREV(A.x) AS p PATTERN (A)", "FINAL cannot be applied to PREV"),
        ("PATTERN (A) DEFINE A AS PREV(x, -1) > 1", "must be an integer, 0 or more"),
        ("ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A {- B -})", "cannot have an exclusion"),
        ("AFTER MATCH SKIP TO FIRST A PATTERN (A B)", "always fails: `A` is the first row of every match"),
        ("AFTER MATCH SKIP TO A PATTERN (A B+)", "always fails"),
        ("AFTER MATCH SKIP TO C PATTERN (A B)", "`C` is not a variable of the pattern"),
        ("PATTERN (A) SUBSET A = (A)", "`A` is a variable of the pattern"),
        ("PATTERN (A) SUBSET U = (A, C)", "`C` is not a variable of the pattern"),
        ("PATTERN (A) SUBSET U = (A) DEFINE U AS x > 1", "`U` is a subset, which has no condition"),
        ("MEASURES A.x AS s, A.x AS S PATTERN (A)", "two columns of the result are called `S`"),
        ("PARTITION BY symbol MEASURES A.x AS symbol PATTERN (A)", "two columns of the result are called `symbol`"),
        ("ALL ROWS PER MATCH MEASURES A.x AS price PATTERN (A)", "two columns of the result are called `price`"),
        ("ORDER BY ts DESC PATTERN (A) WITHIN INTERVAL '1' HOUR", "WITHIN requires ORDER BY a time, ascending"),
        ("ORDER BY symbol PATTERN (A) WITHIN 1 h", "WITHIN cannot be applied to a string"),
        ("MATCH_RECOGNIZE (PATTERN (A) MEASURES A.x AS y) AS m (a, b)", "m names 2 columns, but the result has 1"),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=f"(?s){message}"):
        bound(text)


def test_aggregates_of_arrays_are_for_measures() -> None:
    with pytest.raises(UnsupportedQuery, match="ARRAY_AGG is supported in MEASURES only"):
        bound("PATTERN (A) DEFINE A AS ARRAY_AGG(x) IS NULL")


def test_a_skip_that_always_fails_is_allowed_if_it_goes_on() -> None:
    assert bound("AFTER MATCH SKIP TO FIRST A PATTERN (A B)", on_skip_error="next").skip_labels == (0,)
    assert bound("AFTER MATCH SKIP TO LAST A PATTERN (A+ B)").skip_labels == (0,)
    assert bound("AFTER MATCH SKIP TO FIRST A PATTERN (A*)").skip_labels == (0,)  # every match may be empty


def test_types_are_those_of_spark() -> None:
    rows = bound(
        """PARTITION BY symbol MEASURES SUM(price) AS a, SUM(amount) AS b, AVG(amount) AS c, AVG(price) AS d,
        A.price - B.price AS e, A.price / B.price AS f,
        A.amount * 2 AS g, A.price * 1.5 AS h, COUNT(*) AS i, CLASSIFIER() AS j, MATCH_NUMBER() AS k,
        A.ts - B.ts AS l, ARRAY_AGG(A.price) AS m, CASE WHEN A.x > 1 THEN 1 ELSE A.volume END AS n, MIN(x) AS o
        PATTERN (A B)"""
    )
    expected = {
        "symbol": pa.string(), "a": pa.int64(), "b": pa.decimal128(20, 2), "c": pa.decimal128(14, 6), "d": pa.float64(),
        "e": pa.int32(), "f": pa.float64(), "g": pa.decimal128(12, 2), "h": pa.decimal128(13, 1), "i": pa.int64(),
        "j": pa.string(), "k": pa.int64(), "l": pa.duration("us"), "m": pa.list_(pa.field("element", pa.int32())),
        "n": pa.int64(), "o": pa.float64(),
    }  # fmt: skip
    assert dict(zip(rows.output.names, rows.output.types, strict=True)) == expected


def test_columns_of_all_rows() -> None:
    rows = bound("PARTITION BY symbol ORDER BY ts MEASURES A.x AS y ALL ROWS PER MATCH PATTERN (A)")
    assert rows.output.names == ["symbol", "ts", "y", "price", "amount", "volume", "x"]
    one = bound("PARTITION BY symbol ORDER BY ts MEASURES A.x AS y PATTERN (A)")
    assert one.output.names == ["symbol", "y"]
    assert columns_read(one) == ("symbol", "ts", "x")


def test_the_row_under_test_is_bound() -> None:
    rows = bound("PATTERN (A B) SUBSET U = (A, B) DEFINE B AS B.x > A.x AND U.x > LAST(B.x) AND PREV(B.x) > PREV(A.x)")
    current, last = RowReach(Anchor.CURRENT), RowReach(Anchor.LAST, (0,))
    assert isinstance(rows.conditions[1], RowOperation)
    compared = [each for each in rows.conditions[1].operands if isinstance(each, RowOperation)]
    reaches = [tuple(value.reach for value in each.operands if isinstance(value, RowValue)) for each in compared]
    assert (current, last) in reaches
    assert (RowReach(Anchor.CURRENT, shift=-1), RowReach(Anchor.LAST, (0,), shift=-1)) in reaches
    assert [column.sql for column in rows.computed] == ["(`x` > `x`)"]  # U.x and LAST(B.x) are the row under test


def test_a_null_is_not_replaced_where_a_row_is_missing() -> None:
    rows = bound("MEASURES COALESCE(A.x, 0) AS c, UPPER(A.symbol) AS u PATTERN (A? B)")
    coalesced, upper = (measure.expression for measure in rows.measures)
    assert isinstance(coalesced, RowOperation)  # not a column of its own, which would be null without a row A
    assert isinstance(upper, RowValue)
