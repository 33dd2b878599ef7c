"""Test how explain describes a query on a stream, with goldens."""

from __future__ import annotations

import pyarrow as pa
import pytest

from golden import check_golden
from streamed import plan_of
from streamsift.physical.explain.stream import describe_stream

SCHEMA = pa.schema(
    [("t", pa.int64()), ("kind", pa.string()), ("id", pa.int64()), ("x", pa.float64()), ("s", pa.string())]
)

QUERIES = {
    "sequence": "PATTERN SEQ(A a, B b, C c) WHERE [id] WITHIN 10",
    "keyless": "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 10",
    "trailing_negation": "PATTERN SEQ(!D d, A a, B b, !C c) WHERE [id] WITHIN 10",
    "leading_group": "PATTERN SEQ(C+ c, A a, !B b) WITHIN 10",
    "leading_group_totals": "PATTERN SEQ(C+ c, A a) AGG COUNT WITHIN 10",
    "alternatives": "PATTERN (A a; B+ b) | (C c & D d) WITHIN 10",
    "definition": "SEQ S = (A a; !C c) WITHIN 10 PATTERN S; B b WITHIN 5",
    "rows": "PATTERN SEQ(A a, B b) PARTITION BY id WITHIN 10 EVENTS",
    "rows_of_all": "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10 EVENTS",
    "totals": "PATTERN SEQ(A a, B b) AGG COUNT, MAX(b.x)",
    "totals_that_keep_events": "PATTERN SEQ(A a, B b) AGG COUNT, MAX(b.s)",
    "windows_of_groups": "PATTERN SEQ(A a, B b) GROUP BY id AGG COUNT WITHIN 10",
    "changes": "PATTERN SEQ(A a, B b) AGG COUNT WITHIN 10 EMIT CHANGES",
    "ticks": "PATTERN SEQ(A a, B b, !C c) AGG COUNT WITHIN 10 UPDATE 5",
    "ranking": "PATTERN SEQ(A a, B b) PREF MAX[a.x + b.x] WITHIN 10 UPDATE 5 RETURN 3",
}


@pytest.mark.parametrize("name", QUERIES)
def test_golden(name: str) -> None:
    lines = describe_stream(plan_of(QUERIES[name], SCHEMA, {"time": "t", "type": "kind"}))
    check_golden(f"explain_stream/{name}.txt", "\n".join([QUERIES[name], *(f"  {line}" for line in lines)]))
