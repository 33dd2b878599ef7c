"""Test the conversion of event times to Spark's watermark: ordered, exact where required, never too early."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamsift as ss
from streamsift.logical import lateness_of
from streamsift.spark.columns.event_time import CalendarTime, NumberTime, code_of, event_time, value_of

DOUBLES = st.floats(allow_nan=False)
INTEGERS = st.integers(-(2**63), 2**63 - 1)


@given(DOUBLES, DOUBLES)
def test_codes_are_in_the_order_of_doubles(one: float, other: float) -> None:
    if one < other:
        assert code_of(one) <= code_of(other)
    assert 1 <= code_of(one) <= 2**53
    assert value_of(code_of(one)) <= one or one == 0
    assert code_of(one) * 1000 < 2**63, "a timestamp in microseconds"


@given(INTEGERS, st.integers(0, 1000))
def test_integers(tick: int, lateness: int) -> None:
    time = NumberTime(1, False, Fraction(lateness))
    watermark = time.seen(tick) // 1000
    passed = time.passed(watermark)
    assert passed is None or passed < tick - lateness or passed == -(2**63)
    if abs(tick) < 2**41:
        assert passed == tick - lateness - 1, "exact: all that is strictly before has passed"
    fired = time.passed(time.timer(tick))
    assert fired is not None
    assert fired >= min(tick, 2**63 - 1)


@given(DOUBLES)
def test_doubles(tick: float) -> None:
    time = NumberTime(1, True, Fraction(0))
    passed = time.passed(time.seen(tick) // 1000)
    assert passed is None or passed < tick
    if math.isfinite(tick):
        fired = time.passed(time.timer(tick))
        assert fired is not None
        assert fired >= tick


@given(st.integers(-(10**17), 10**17))
def test_decimals(tick: int) -> None:
    time = NumberTime(100, False, Fraction(0))
    passed = time.passed(time.seen(tick) // 1000)
    assert passed is None or passed < tick
    assert abs(tick) > 2**34 or passed == tick - 1


@given(st.integers(1, 4 * 10**15))
def test_timestamps(microseconds: int) -> None:
    time = CalendarTime(Fraction(1000), 0)
    watermark = time.seen(microseconds) // 1000
    passed = time.passed(watermark)
    assert (passed is None) == (watermark <= 0)
    assert passed is None or microseconds - 1000 <= passed < microseconds
    assert time.passed(time.timer(microseconds)) >= microseconds  # type: ignore[operator]
    assert (time.passed(time.timer(microseconds) - 1) or 0) < microseconds, "and not a millisecond later"


def test_dates() -> None:
    time = CalendarTime(Fraction(1, 86_400_000), 0)
    assert time.passed(time.seen(19_000) // 1000) == 18_999
    assert time.passed(time.timer(19_000)) == 19_000


def test_before_anything_was_seen() -> None:
    assert CalendarTime(Fraction(1000), 0).passed(0) is None
    assert NumberTime(1, False, Fraction(0)).passed(0) is None


@pytest.mark.parametrize(
    ("kind", "given_lateness", "seconds"),
    [
        (pa.timestamp("us", "UTC"), "10 s", 10),
        (pa.timestamp("us"), "2 min", 120),
        (pa.timestamp("us"), 5, 5),
        (pa.date32(), "1 day", 86_400),
        (pa.int64(), 7, 7),
        (pa.float64(), "0.5", Fraction(1, 2)),
        (pa.decimal128(10, 2), None, 0),
    ],
)
def test_lateness(kind: pa.DataType, given_lateness: object, seconds: object) -> None:
    plan = ss.query("PATTERN SEQ(A a, B b) WITHIN 5").plan(
        pa.schema([("t", kind), ("kind", pa.string())]), "t", "kind", None
    )
    lateness = lateness_of(given_lateness, plan.query.binding)
    assert lateness == seconds
    event_time(plan.query, lateness)


def test_decimal_ticks_have_their_scale() -> None:
    plan = ss.query("PATTERN SEQ(A a, B b) WITHIN 5").plan(pa.schema([("t", pa.decimal128(10, 2))]), "t", None, None)
    time = event_time(plan.query, Fraction(0))
    assert time.passed(time.seen(int(Decimal("12.34") * 100)) // 1000) == 1233
