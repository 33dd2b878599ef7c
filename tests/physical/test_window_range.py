"""Test a WITHIN beyond the range of the time column: no limit in a batch, an error on a stream."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

import streamsift as ss
from streamed import engine_of, plan_of

PAIR = "PATTERN SEQ(ANY a, ANY b)"
HUGE = 10**390


@pytest.mark.parametrize(
    ("times", "longest", "beyond"),
    [
        (pa.array([-5, -3]), 2**63 - 1, 2**63),
        (pa.array([-5, -3]), 2**63 - 1, 2**64),
        (pa.array([-5, -3], pa.int32()), 2**32 - 2, 2**32 - 1),
        (pa.array([5, 7], pa.uint64()), 2**64 - 2, 2**64 - 1),
        (pa.array([-5, -3], pa.int8()), 254, 255),
        (pa.array([Decimal("-0.5"), Decimal("0.5")], pa.decimal128(3, 1)), "199.7", "199.8"),
        (pa.array([Decimal(-5), Decimal(-3)], pa.decimal128(38, 0)), 2**63 - 1, 2**63),
        (pa.array([-5.0, -3.0]), 10**308, HUGE),
        (pa.array([datetime(1960, 1, 1), datetime(1960, 1, 2)]), "9223372036854 s", "9223372036855 s"),
        (pa.array([-5, -3], pa.int32()).cast(pa.date32()), f"{2**32 - 2} days", f"{2**32 - 1} days"),
    ],
    ids=lambda each: str(each.type) if isinstance(each, pa.Array) else str(each)[:20],
)
def test_beyond_the_range(times: pa.Array, longest: object, beyond: object) -> None:
    table = pa.table({"t": times})
    for text in (f"{PAIR} WITHIN {beyond}", f"SEQ S = ANY a; ANY b WITHIN {beyond} PATTERN S WITHIN {longest}"):
        assert ss.query(text).run_local(table, time="t").num_rows == 1
        with pytest.raises(ss.QueryError, match="limits nothing on a stream"):
            engine_of(plan_of(text, table.schema, {"time": "t"}))
    engine = engine_of(plan_of(f"{PAIR} WITHIN {longest}", table.schema, {"time": "t"}))
    engine.push(table)
    assert engine.finish().num_rows == 1


@pytest.mark.parametrize("clause", ["AGG COUNT WITHIN {0}", "AGG COUNT WITHIN {0} UPDATE {0}", "WITHIN {0} EXCLUSIVE"])
def test_every_result_on_a_stream(clause: str) -> None:
    with pytest.raises(ss.QueryError, match="limits nothing on a stream"):
        engine_of(plan_of(f"{PAIR} {clause.format(2**64)}", pa.schema([("t", pa.int64())]), {"time": "t"}))


def test_far_apart_times_stay_exact() -> None:
    """Two 64-bit times can be more than 2^63 apart; a WITHIN between is still a limit."""
    table = pa.table({"t": [-(2**63), 0, 2**63 - 1]})
    found = ss.query(f"{PAIR} WITHIN {2**63} RETURN a.t AS a, b.t AS b").run_local(table, time="t").to_pylist()
    assert sorted((row["a"], row["b"]) for row in found) == [(-(2**63), 0), (0, 2**63 - 1)]
