"""Ticks of UPDATE have the same type and times in aggregates and rankings, in batches and on streams."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import streamsift as ss
from streamed import engine_of, plan_of

TOTALS, RANKING = "PATTERN ANY v AGG COUNT", "PATTERN ANY v PREF MAX[v.x]"
MIDNIGHT = datetime(1970, 1, 1)
CASES = [
    (pa.array([Decimal(-1)], pa.decimal128(10, 0)), "WITHIN 1 UPDATE 0.5", pa.decimal128(38, 1), ["-0.5", "0.0"]),
    (pa.array([Decimal("0.25")], pa.decimal128(4, 2)), "WITHIN 1 UPDATE 1", pa.decimal128(38, 2), ["1.00"]),
    (pa.array([0], pa.timestamp("s")), "WITHIN 1 UPDATE 0.5 s", pa.timestamp("ms"), [0.5, 1.0]),
    (pa.array([0], pa.timestamp("s")), "WITHIN 1 UPDATE 1", pa.timestamp("s"), [1.0]),
    (pa.array([0], pa.timestamp("ms")), "WITHIN 1 UPDATE 0.5 s", pa.timestamp("ms"), [0.5, 1.0]),
    (pa.array([0], pa.timestamp("s", "UTC")), "WITHIN 2 ms UPDATE 1 ms", pa.timestamp("ms", "UTC"), [0.001, 0.002]),
    (pa.array([date(1970, 1, 1)]), "WITHIN 1 day UPDATE 12 hours", pa.timestamp("us"), [43200.0, 86400.0]),
    (pa.array(["1970-01-01"]), "WITHIN 1 s UPDATE 0.5 s", pa.timestamp("us", "UTC"), [0.5, 1.0]),
    (pa.array([-1]), "WITHIN 1 UPDATE 0.5", pa.float64(), [-0.5, 0.0]),
    (pa.array([-1], pa.int32()), "WITHIN 4 UPDATE 2", pa.int32(), [0, 2]),
    (pa.array([2**63], pa.uint64()), f"WITHIN {2**61} UPDATE {2**61}", pa.uint64(), [2**63 + 2**61]),
    (pa.array([0.3]), "WITHIN 0.2 UPDATE 0.1", pa.float64(), [0.4, 0.5]),
    (pa.array([0.5], pa.float32()), "WITHIN 0.1 UPDATE 0.1", pa.float64(), [0.6]),
    (pa.array([2.0**60]), f"WITHIN {2**61} UPDATE {2**60}", pa.float64(), [2.0**61, 3 * 2.0**60]),
]


def plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return (value - MIDNIGHT.replace(tzinfo=UTC if value.tzinfo else None)).total_seconds()
    return str(value) if isinstance(value, Decimal) else value


@pytest.mark.parametrize(
    ("times", "window", "kind", "wanted"), CASES, ids=lambda each: str(getattr(each, "type", each))
)
def test_totals_and_rankings_agree(times: pa.Array, window: str, kind: pa.DataType, wanted: list[Any]) -> None:
    table = pa.table({"t": times, "x": [1]})
    for query, column in ((f"{TOTALS} {window}", "time"), (f"{RANKING} {window} RETURN 1", "window_end")):
        result = ss.query(query).run_local(table, time="t")
        assert result.schema.field(column).type == kind
        assert [plain(value) for value in result.column(column).to_pylist()] == wanted
        engine = engine_of(plan_of(query, table.schema, {"time": "t"}))
        engine.push(table)
        assert engine.finish().select(result.column_names).equals(result)


@pytest.mark.parametrize(
    ("times", "window", "message"),
    [
        (pa.array([126], pa.int8()), "WITHIN 5 UPDATE 5", "does not fit in int8"),
        (pa.array([2**62]), f"WITHIN {2**62} UPDATE {2**63}", "does not fit in int64"),
        (pa.array([2**62], pa.timestamp("s")), "WITHIN 1 s UPDATE 0.001 s", "64 bits|does not fit in timestamp"),
    ],
)
def test_a_tick_out_of_range_for_its_type(times: pa.Array, window: str, message: str) -> None:
    table = pa.table({"t": times, "x": [1]})
    for query in (f"{TOTALS} {window}", f"{RANKING} {window} RETURN 1"):
        with pytest.raises(ss.BadInputError, match=message):
            ss.query(query).run_local(table, time="t")


def test_ticks_finer_than_the_type() -> None:
    for times in (pa.array([0], pa.timestamp("ns")), pa.array([Decimal(0)])):
        table = pa.table({"t": times, "x": [1]})
        for query in (TOTALS, RANKING):
            text = f"{query} WITHIN 1 UPDATE 0.{'0' * 40}1" + " RETURN 1" * (query is RANKING)
            with pytest.raises(ss.UnsupportedQuery, match="finer than"):
                ss.query(text).run_local(table, time="t")
