"""Codes: comparing them is comparing the values, for every pair of types."""

from __future__ import annotations

import operator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsift.logical.bound import Column, Kind, Operation
from streamsift.runtime.arrays.dtypes import UNKNOWN
from streamsift.runtime.expressions.codes import codes, group_codes
from streamsift.runtime.expressions.evaluate import Rows, evaluate

COMPARE = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
INT64 = st.one_of(st.integers(-3, 3), st.sampled_from([2**53, 2**53 + 1, 2**63 - 1, -(2**63), -(2**53) - 1]))
NUMBERS = {
    pa.int64(): INT64,
    pa.int16(): st.integers(-3, 3),
    pa.uint64(): st.sampled_from([0, 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1]),
    pa.float64(): st.one_of(
        st.sampled_from([0.0, -0.0, 1.5, -1e-300, 2.0**53, 2.0**63, -(2.0**63), 1e300, -1e300]),
        st.floats(allow_nan=True, width=16),
    ),
    pa.float32(): st.floats(allow_nan=True, width=16),
    pa.decimal128(22, 3): st.decimals(-3, 3, places=3) | st.sampled_from([Decimal(2**53 + 1), Decimal("0.100")]),
    pa.decimal128(38, 0): st.sampled_from([Decimal(10**38 - 1), Decimal(0), Decimal(2**63), Decimal(-(2**63))]),
}
INSTANTS = {
    pa.timestamp("s"): st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)).map(lambda d: d.replace(microsecond=0)),
    pa.timestamp("us", "Europe/Paris"): st.datetimes(datetime(1970, 1, 1), datetime(1970, 1, 3)).map(
        lambda d: d.replace(tzinfo=UTC)
    ),
    pa.timestamp("ns"): st.datetimes(datetime(1970, 1, 1), datetime(1970, 1, 3)),
    pa.date32(): st.dates(date(1969, 12, 31), date(1970, 1, 4)),
}
TEXTS = {
    pa.string(): st.text("aé\U0001f600z", max_size=3),
    pa.large_string(): st.text("aé\U0001f600z", max_size=3),
}
DURATIONS = {
    pa.duration("s"): st.integers(-3, 3).map(lambda s: timedelta(seconds=s)),
    pa.duration("us"): st.integers(-3_000_000, 3_000_000).map(lambda u: timedelta(microseconds=u)),
}
FAMILIES = [NUMBERS, INSTANTS, TEXTS, DURATIONS, {pa.bool_(): st.booleans()}]


def exact(value: object) -> object:
    """A Python value that compares as it should."""
    match value:
        case None:
            return None
        case float() if value != value:
            return None
        case float() if value in (float("inf"), float("-inf")):
            return value
        case bool() | timedelta():
            return value
        case int() | float() | Decimal():
            return Fraction(value)
        case str():
            return value.encode()
        case datetime():
            return value.replace(tzinfo=UTC) if value.tzinfo is None else value
        case date():
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
    raise AssertionError(value)


@st.composite
def two_columns(draw: st.DrawFn) -> tuple[pa.Array, pa.Array]:
    family = draw(st.sampled_from(FAMILIES))
    columns = []
    for _ in range(2):
        kind = draw(st.sampled_from(list(family)))
        columns.append(pa.array(draw(st.lists(st.none() | family[kind], max_size=6)), kind))
    return columns[0], columns[1]


@settings(max_examples=500, deadline=None)
@given(two_columns())
def test_codes_compare_as_values(columns: tuple[pa.Array, pa.Array]) -> None:
    left, right = codes(columns)
    some, other = codes(columns, ordered=False)
    (left_groups, right_groups), count = group_codes([columns])
    for i, a in enumerate(map(exact, columns[0].to_pylist())):
        for j, b in enumerate(map(exact, columns[1].to_pylist())):
            known = a is not None and b is not None
            assert (left[i] != UNKNOWN and right[j] != UNKNOWN) == known
            assert (left_groups[i] == right_groups[j] and left_groups[i] >= 0) == (known and a == b)
            if known:
                assert [compare(left[i], right[j]) for compare in COMPARE.values()] == [
                    compare(a, b) for compare in COMPARE.values()
                ]
                assert (some[i] == other[j]) == (a == b)
    assert all(-1 <= code < count for part in (left_groups, right_groups) for code in part)


@settings(max_examples=500, deadline=None)
@given(two_columns(), st.sampled_from(list(COMPARE)))
def test_expressions_compare_as_values(columns: tuple[pa.Array, pa.Array], op: str) -> None:
    length = min(map(len, columns))
    rows = Rows(lambda variable, _: columns[variable].slice(0, length), length, "")
    expression = Operation(op, (Column(0, "x", Kind.FLOAT), Column(1, "x", Kind.FLOAT)), Kind.BOOLEAN)
    pairs = zip(*(map(exact, column.to_pylist()[:length]) for column in columns), strict=True)
    wanted = [None if a is None or b is None else COMPARE[op](a, b) for a, b in pairs]
    assert evaluate(expression, rows).to_pylist() == wanted


def test_several_equalities_are_one_code() -> None:
    names, numbers = pa.array(["a", "a", "b", None]), pa.array([1, 2**62, 1, 1])
    (left, right), _ = group_codes([[names, names], [numbers, numbers]])
    assert left.tolist() == right.tolist()
    assert len(set(left[:3].tolist())) == 3
    assert left[3] == -1


def test_the_sentinel_may_occur_as_data() -> None:
    (found,) = codes([pa.array([-(2**63), None, 5, -(2**63)])])
    assert found[0] == found[3] != UNKNOWN
    assert found[1] == UNKNOWN
    assert found[0] < found[2]


def test_a_column_of_nulls_is_unknown() -> None:
    left, right = codes([pa.nulls(2), pa.array([1, 2])])
    assert left.tolist() == [UNKNOWN, UNKNOWN]
    assert right.tolist() == [1, 2]


@pytest.mark.parametrize("keys", [[0, 10**12, -5], [1, 2, 3]])
def test_groups_of_wide_and_narrow_ranges(keys: list[int]) -> None:
    (left, right), count = group_codes([[pa.array(keys), pa.array([*keys, 7])]])
    assert left.tolist() == right.tolist()[:3]
    assert right[3] not in left
    assert count >= 4
