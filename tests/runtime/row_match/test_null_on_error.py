"""Test that a value that does not fit its type is null, because a match may never test its row."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import streamsift as ss

ROWS = pa.table(
    {
        "t": [1, 2, 3],
        "x": pa.array([2**31 - 1, 0, 5], pa.int32()),
        "y": [1.0, 0.0, 2.0],
        "b": [2**63 - 1, 1, 2],
        "d": pa.array([1, 2, 3], pa.decimal128(5, 2)),
    }
)


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("x + 1", [None, 1, 6]),
        ("LAST(x) + FIRST(y)", [2147483648.0, 1.0, 6.0]),
        ("LAST(x) + FIRST(x)", [None, 2**31 - 1, None]),
        ("b + 1", [None, 2, 3]),
        ("b + LAST(A.b)", [None, 2, 4]),
        ("1 / y", [1.0, None, 0.5]),
        ("x % 0", [None, None, None]),
        ("d * d", [Decimal(1), Decimal(4), Decimal(9)]),
        ("CASE WHEN x > 3 THEN 1 END", [1, None, 1]),
    ],
)
def test_what_would_raise_is_null(measure: str, expected: list[Any]) -> None:
    clause = f"ORDER BY t MEASURES {measure} AS r ALL ROWS PER MATCH PATTERN (A+)"
    assert ss.match_recognize(ROWS, clause).column("r").to_pylist() == expected
