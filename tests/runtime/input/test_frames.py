"""Frames of Python objects become tables that hold the same values, or an error names the column."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import streamsift as ss
from streamsift.errors import BadInputError
from streamsift.runtime.input.frames import table_of_frame

NANOSECONDS = [pd.Timestamp("2024-01-01 00:00:00.000000001"), pd.Timestamp("2024-01-01 00:00:00.000000002")]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([2**64 - 1, 2**64 - 2, None], pa.decimal128(38, 0)),
        ([10**40, 10**40 + 1], pa.decimal256(76, 0)),
        ([Decimal("1.1"), Decimal(2**64 - 1)], pa.decimal128(21, 1)),
        (NANOSECONDS, pa.timestamp("ns")),
        ([time.tz_localize("UTC") for time in NANOSECONDS], pa.timestamp("ns", "UTC")),
        ([pd.Timedelta(1, "ns"), pd.Timedelta(2, "ns")], pa.duration("ns")),
        ([datetime(2024, 1, 1, 5), None], pa.timestamp("us")),
        (["a", "b", None], pa.string()),
        ([True, None], pa.bool_()),
    ],
)
def test_objects_keep_their_values(values: list[Any], kind: pa.DataType) -> None:
    found = table_of_frame(pd.DataFrame({"n": 1, "x": pd.Series(values, dtype=object), "m": 2}))
    assert found.column_names == ["n", "x", "m"]
    assert found.column("x").type == kind
    assert found.column("x").to_pylist() == values


@pytest.mark.parametrize(
    "values",
    [
        [2**64, 0.5],
        [2**53 + 1, 0.5],
        [1, "a"],
        [date(2024, 1, 1), datetime(2024, 1, 1, 5)],
        [pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-01", tz="Asia/Tokyo")],
        [10**77],
    ],
)
def test_objects_without_a_type_in_common_are_an_error(values: list[Any]) -> None:
    with pytest.raises(BadInputError, match="column `x`"):
        table_of_frame(pd.DataFrame({"x": pd.Series(values, dtype=object)}))


def test_columns_that_have_types_keep_them() -> None:
    frame = pd.DataFrame(
        {"u": pd.Series([2**64 - 1, None], dtype="UInt64"), "i": pd.Series([2**53 + 1, None], dtype="Int64")}
    )
    found = table_of_frame(frame)
    assert found.to_pydict() == {"u": [2**64 - 1, None], "i": [2**53 + 1, None]}
    with pytest.raises(BadInputError, match="two columns are named `a`"):
        table_of_frame(pd.DataFrame([[1, "x"]], columns=["a", "a"]))


def test_keys_of_objects_are_not_rounded() -> None:
    frame = pd.DataFrame({"t": [1, 2, 3], "x": pd.Series([2**64 - 1, 2**64 - 2, 2**64 - 1], dtype=object)})
    query = ss.query("PATTERN SEQ(ANY a, ANY b) WHERE [x] RETURN a.t AS first, b.t AS then")
    assert query.run_local(frame, time="t").to_pylist() == [{"first": 1, "then": 3}]


def test_text_times_finer_than_microseconds_are_bad_rows() -> None:
    events = pa.table({"t": ["2024-01-01T00:00:00.000000001", "2024-01-01T00:00:00.123456000"]})
    with pytest.raises(BadInputError, match=r"1 row has no usable time|1 rows? ha"):
        ss.query("PATTERN ANY a").run_local(events, time="t")
