"""Events: every type of time, bad rows, order, and windows at the limits of their types."""

from __future__ import annotations

import warnings
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

import streamsift as ss
from streamsift.errors import BadInputError, BadRowsWarning
from streamsift.runtime import BadRows, execute

INT_MAX, INT_MIN = 2**63 - 1, -(2**63)
SPARK_DECIMAL = pa.decimal128(38, 18)


def pairs(times: pa.Array, window: str, **columns: object) -> list[tuple[object, object]]:
    """The pairs of rows (by number) that `x; y WITHIN window` finds."""
    table = pa.table({"ts": times, "id": pa.array(range(len(times))), **columns})
    order = "order" if "order" in columns else None
    result = ss.query(f"x; y {window} RETURN x.id AS x, y.id AS y").run_local(table, time="ts", order=order)
    return [(row["x"], row["y"]) for row in result.to_pylist()]


@pytest.mark.parametrize(
    ("times", "window", "wanted"),
    [
        (pa.array([0, 5, 10]), "WITHIN 5", [(0, 1), (1, 2)]),
        (pa.array([0, 5, 10]), "WITHIN 5 EXCLUSIVE", []),
        (pa.array([0, 5, 10]), "WITHIN 5.5 EXCLUSIVE", [(0, 1), (1, 2)]),
        (pa.array([INT_MIN, 0, INT_MAX]), f"WITHIN {2**63 - 1}", [(1, 2)]),
        (pa.array([INT_MIN, 0, INT_MAX]), f"WITHIN {2**64 - 1}", [(0, 1), (0, 2), (1, 2)]),
        (pa.array([0, 2**63, 2**64 - 1], pa.uint64()), f"WITHIN {2**63}", [(0, 1), (1, 2)]),
        (pa.array([0.0, 0.1, 0.30000000000000004]), "WITHIN 0.2", [(0, 1)]),
        (pa.array([-0.0, 0.0, 1.0]), "WITHIN 1", [(0, 2), (1, 2)]),
        (pa.array([Decimal("0.1"), Decimal("0.3")]), "WITHIN 0.2", [(0, 1)]),
        (pa.array([Decimal("0.1"), Decimal("0.3")]), "WITHIN 0.19", []),
        (pa.array([Decimal("1700000000.1"), Decimal("1700000000.3")], SPARK_DECIMAL), "WITHIN 0.2", [(0, 1)]),
        (pa.array([Decimal("1700000000.1"), Decimal("1700000000.3")], SPARK_DECIMAL), "WITHIN 0.2 EXCLUSIVE", []),
        (pa.array([date(2024, 1, 1), date(2024, 1, 2)]), "WITHIN 1 day", [(0, 1)]),
        (pa.array([date(2024, 1, 1), date(2024, 1, 2)]), "WITHIN 1 day EXCLUSIVE", []),
        (pa.array([date(2024, 1, 1), date(2024, 1, 2)], pa.date64()), "WITHIN 86400 s", [(0, 1)]),
        (pa.array([datetime(2024, 1, 1), datetime(2024, 1, 1, 0, 1)], pa.timestamp("s")), "WITHIN 1 min", [(0, 1)]),
        (pa.array([0, 1], pa.timestamp("ns", "Europe/Paris")), "WITHIN 1 ms EXCLUSIVE", [(0, 1)]),
        (pa.array(["2024-01-01T00:00:00Z", "2024-01-01 01:00:30+01:00", "2024-01-02"]), "WITHIN 30 s", [(0, 1)]),
        (pa.array(["2024-01-01T01:00:00+01:00", "2024-01-01T00:00:30", "2024-01-01"]), "WITHIN 30 s", [(0, 1), (2, 1)]),
        (pa.array(["9999-12-31T23:59:59Z", "0001-01-01", "9999-12-31T23:59:58"]), "WITHIN 1 s", [(2, 0)]),
        (pa.array([3, 1, 2]), "WITHIN 2 EVENTS", [(1, 2), (2, 0)]),
        (pa.array([1, 1, 2, 2]), "", [(0, 2), (0, 3), (1, 2), (1, 3)]),
        (pa.array([1, 2], pa.int8()), "WITHIN 1", [(0, 1)]),
        (pa.array([], pa.int64()), "WITHIN 1", []),
    ],
)
def test_windows_on_every_type_of_time(times: pa.Array, window: str, wanted: list[tuple[int, int]]) -> None:
    assert pairs(times, window) == wanted


@pytest.mark.parametrize("order", [[2, 1], ["b", "a"], [2.5, -1.0], [Decimal("2"), Decimal("1")]])
def test_order_decides_among_equal_times(order: list[object]) -> None:
    assert pairs(pa.array([1, 1]), "", order=pa.array(order)) == [(1, 0)]


def bad_table() -> pa.Table:
    return pa.table({"t": [1, None, 2, None, None, None, None, None], "id": range(8)})


def test_bad_rows_fail_with_their_numbers() -> None:
    with pytest.raises(BadInputError, match=r"(?s)6 rows have no usable time.*\n  t = None.*1 more.*drop"):
        ss.query("x; y").run_local(bad_table(), time="t")


def test_bad_rows_are_dropped_and_reported() -> None:
    query = ss.query("x; y WITHIN 2 EVENTS RETURN x.id AS x, y.id AS y")
    with pytest.warns(BadRowsWarning, match="6 rows"):
        result = query.run_local(bad_table(), time="t", bad_rows="drop")
    assert result.to_pylist() == [{"x": 0, "y": 2}]
    seen: list[BadRows] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = query.plan(bad_table().schema, "t", None, None)
        list(execute(plan, bad_table(), bad_rows="drop", report=seen.append))
    assert [(bad.count, len(bad.examples)) for bad in seen] == [(6, 5)]


@pytest.mark.parametrize(
    ("times", "order"),
    [
        ([1.0, float("nan")], [1, 2]),
        (["2024-01-01", "now"], [1, 2]),
        ([1, 2], [1, None]),
        ([1, 2], [1.0, float("nan")]),
    ],
)
def test_what_is_a_bad_row(times: list[object], order: list[object]) -> None:
    table = pa.table({"t": times, "o": order})
    with pytest.raises(BadInputError, match="1 row has no usable time or order:\n  t = "):
        ss.query("x; y").run_local(table, time="t", order="o")


def test_a_time_with_too_many_digits_is_rejected() -> None:
    table = pa.table({"t": pa.array([Decimal("1" * 30)], pa.decimal128(38, 0))})
    with pytest.raises(BadInputError, match="does not fit in 64 bits"):
        ss.query("x; y").run_local(table, time="t")


def test_rows_without_a_partition_take_no_position() -> None:
    times, keys = pa.array(range(5)), pa.array([1, None, 1, 2, 1])
    assert pairs(times, "PARTITION BY k WITHIN 2 EVENTS", k=keys) == [(0, 2), (2, 4)]
    assert pairs(times, "WHERE [k] WITHIN 2 EVENTS", k=keys) == []


def test_the_bound_time_of_text_is_a_timestamp() -> None:
    table = pa.table({"at": ["2024-01-01T00:00:00+02:00", "2024-01-01T00:00:01Z"]})
    result = ss.query("x; y WHERE y.t - x.t > 2 h RETURN y.t AS t").run_local(table, time="at")
    assert result.schema.field("t").type == pa.timestamp("us", "UTC")
    assert result.num_rows == 1
