"""Merges that keep joined matches across window moves agree with all matches, on generated streams."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given, note, settings
from hypothesis import strategies as st

import streamsift as ss
from test_generated import EXAMPLES, LARGE

PARTS = {
    "A a & B b": ["a.x", "b.x"],
    "A a; B b": ["a.x", "b.x"],
    "(A a; C c) & B b": ["a.x + c.x", "b.x"],
    "(A a; C c); B b": ["SQRT(a.x^2 + c.x^2)", "b.x"],
    "A a & B b & C c": ["a.x", "b.x", "c.x"],
}
ROWS = st.lists(st.tuples(st.sampled_from("AABBC"), st.integers(0, 7)), min_size=14, max_size=40)


@settings(max_examples=EXAMPLES or (10_000 if LARGE else 40))
@given(
    ROWS,
    st.sampled_from(sorted(PARTS)),
    st.sampled_from(["MIN", "MIN", "MAX", "AVG"]),
    st.sampled_from([12, 18]),
    st.sampled_from([1, 2, 3]),
    st.sampled_from(["wabs", "round-robin", "gradient", "statistics"]),
)
def test_a_match_is_joined_once(
    rows: list[tuple[str, int]], pattern: str, merge: str, window: int, limit: int, schedule: Any
) -> None:
    objectives = " AND ".join(f"MAX[{part}]" for part in PARTS[pattern])
    text = f"{pattern} PREF {objectives} MERGE {merge} WITHIN {window} EVENTS UPDATE 1 EVENTS RETURN {limit}"
    note(text)
    query = ss.query(text)
    kinds, values = zip(*rows, strict=True)
    table = pa.table({"t": range(len(rows)), "kind": kinds, "x": [float(value) for value in values]})
    wanted = query.run_local(table, time="t", type="kind", rank="enumerate")
    assert query.run_local(table, time="t", type="kind", rank="nra", schedule=schedule).equals(wanted)
