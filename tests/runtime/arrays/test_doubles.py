"""The last double within a window, and the ticks that round to a double, agree with exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import streamsift as ss
from streamed import engine_of, plan_of
from streamsift.logical.durations import nearest_double
from streamsift.runtime.arrays.doubles import floor_quotients, last_multiple, last_within
from streamsift.runtime.stream.watermark import after, earlier, first_open, following, next_closing

FINITE = st.floats(allow_nan=False, allow_infinity=False)
WIDTHS = st.floats(min_value=0.0, allow_nan=False, allow_infinity=False)
TENTHS = st.integers(-300, 300).map(lambda number: number / 10)
STEPS = st.sampled_from(
    [Fraction(n) for n in ("0.1", "0.2", "0.3", "0.5", "1", "7", "0.001", "1e-17", "0.12345678901234567")]
)
SHIFTS = st.sampled_from([Fraction(n) for n in ("0", "0.1", "0.3", "1", "2.5", "1000", "5e-324")])


@given(FINITE | TENTHS, WIDTHS | TENTHS.map(abs))
@example(-1.0, 1.0)
@example(1.7976931348623157e308, 1.0)
@example(5e-324, 5e-324)
@example(-0.0, 0.0)
def test_the_last_double_within_a_window(start: float, width: float) -> None:
    with np.errstate(over="ignore"):
        last = last_within(np.array([start]), width)[0].item()
    assert last == start or last - start <= width
    assert math.nextafter(last, math.inf) - start > width


def test_the_last_double_after_a_sum_that_cancels() -> None:
    assert last_within(np.array([-1.0, -np.inf, np.inf]), 1.0).tolist() == [2.0**-53, -np.inf, np.inf]
    assert last_within(np.array([-1.0, -np.inf]), np.inf).tolist() == [np.inf, np.inf]


def test_a_stream_waits_for_the_last_double_within_the_window() -> None:
    schema = pa.schema([("t", pa.float64()), ("kind", pa.string())])
    for when, rows in ((1e-17, 0), (1.2e-16, 1)):
        engine = engine_of(plan_of("PATTERN SEQ(A a, !B b) WITHIN 1", schema, {"time": "t", "type": "kind"}))
        engine.push(pa.table({"t": [-1.0], "kind": ["A"]}, schema))
        assert engine.advance(1e-18).num_rows == 0
        engine.push(pa.table({"t": [when], "kind": ["B"]}, schema))
        assert engine.advance(2.0**-53).num_rows == rows
        assert engine.finish().num_rows == 0


@pytest.mark.parametrize("time", [np.inf, -np.inf, 1e19, 1.7e308, -1e19])
def test_matches_of_one_extreme_time(time: float) -> None:
    table = pa.table({"t": [time, time, time], "kind": ["A", "B", "C"]})
    for plan in ("auto", "left", "bushy"):
        query = ss.query("PATTERN AND(A a, B b, C c) WITHIN 0")
        assert query.run_local(table, time="t", type="kind", plan=plan).num_rows == 1


def test_a_watermark_beyond_all_ticks() -> None:
    schema = pa.schema([("t", pa.float64()), ("x", pa.int64())])
    engine = engine_of(plan_of("PATTERN ANY a AGG COUNT WITHIN 1 UPDATE 0.5", schema, {"time": "t"}))
    engine.push(pa.table({"t": [0.25], "x": [1]}, schema))
    assert engine.advance(1.7e308).column("time").to_pylist() == [0.5, 1.0]


@given(FINITE | TENTHS, st.lists(WIDTHS | TENTHS.map(abs), max_size=3), FINITE | TENTHS)
def test_a_window_is_open_until_it_closes(passed: float, widths: list[float], start: float) -> None:
    closes = after(np.array([start]), *widths)[0].item()
    assert (start >= first_open(passed, *widths)) == (closes > passed)
    assert (start >= earlier(passed, *widths)) == (closes >= passed)
    assert next_closing(np.array([start]), passed, *widths) == (closes if closes > passed else None)


@given(st.integers(-20, 20), st.lists(st.integers(-1, 5), max_size=3), st.integers(-20, 20))
def test_an_integer_window_is_open_until_it_closes(passed: int, widths: list[int], start: int) -> None:
    closes = after(np.array([start]), *widths)[0].item()
    assert closes == start + sum(max(width, 0) for width in widths)
    assert (start >= first_open(passed, *widths)) == (closes > passed)
    assert next_closing(np.array([start]), passed, *widths) == (closes if closes > passed else None)
    assert following(passed) == passed + 1


@given(FINITE | TENTHS, STEPS, SHIFTS)
def test_ticks_compare_as_doubles(time: float, step: Fraction, shift: Fraction) -> None:
    exact = last_multiple(time, step, shift)
    assert nearest_double(exact * step - shift) <= time < nearest_double((exact + 1) * step - shift)
    assume(abs(exact) < 2**62)
    assert floor_quotients(np.array([time]), shift, step).tolist() == [exact]


@pytest.mark.parametrize(("time", "wanted"), [(0.3, 3), (0.7, 7), (0.30000000000000004, 3), (0.29999999999999993, 2)])
def test_multiples_of_a_tenth_round_to_their_tick(time: float, wanted: int) -> None:
    assert floor_quotients(np.array([time]), Fraction(0), Fraction(1, 10)).tolist() == [wanted]
