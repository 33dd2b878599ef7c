"""Test derived keys: searching each key separately finds all matches."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import assume, event, given, note, settings
from hypothesis import strategies as st

import streamsift as ss
from strategies import group_queries, negating_queries, queries, sparse_streams, tying_queries
from streamed import counted, frozen
from streamsift.language import Script, print_script
from streamsift.physical.stream import counts_rows
from test_generated import EXAMPLES, LARGE, SCHEMA, Rows

BINDING = {"time": "t", "type": "kind", "order": "seq"}
KEYED = {  # the columns that are derived for each query
    "SEQ(A a, B b) WHERE a.id = b.id": ("id",),
    "SEQ(A a, B b) WHERE [id] AND a.n = b.n": ("id", "n"),
    "SEQ(A a, B[2] b, !C c) WHERE a.id = b.id AND b.id = c.id": ("id",),
    "SEQ(A[2] a, B[2] b) WHERE a.id = b.id": ("id",),
    "SEQ(A[1] a, !C c) WHERE a.id = c.id": ("id",),
    "SEQ(A* a, B* b, !C c) WHERE [id]": ("id",),
    "OR(A a, B b) WHERE a.id = b.id": ("id",),
    "OR(A+ a, B+ b) WHERE [id]": ("id",),
    "SEQ(A a, AND(B* b, C+ c, [id])) WHERE a.id = c.id": ("id",),
    "C+ c PARTITION BY id": ("id",),
    # An element of a group is equal to another only through an event that every match has.
    "SEQ(A[2] v, !Z z) WHERE v.id = z.id": (),
    "SEQ(!Z z, A[2] v) WHERE v.id = z.id": (),
    "AND(A[2] v, !Z z) WHERE v.id = z.id": (),
    "OR(A a, B[2] b) WHERE a.id = b.id": (),
    "OR(A a, B+ b) WHERE a.id = b.id": (),
    "SEQ(A a, B* b, C c) WHERE a.id = b.id AND b.id = c.id": (),
    "SEQ(AND(A* a, B* b, [id]), !C c) WHERE a.id = c.id": (),
    "SEQ(A a, AND(B* b, C+ c, [id])) WHERE a.id = b.id": (),
    "SEQ(A a, !AND(B+ b, C+ c, [id])) WHERE a.id = b.id": (),
    "SEQ(A a, !Z z, B b) WHERE a.id = z.id AND z.id = b.id": (),
}


@pytest.mark.parametrize("text", KEYED)
def test_derived_columns(text: str) -> None:
    assert ss.query(f"PATTERN {text} WITHIN 5").plan(SCHEMA, **BINDING).keys == KEYED[text]


DETECTION = {"aggregates": False, "ranking": False}
COMPARING = st.one_of(
    tying_queries(),
    group_queries(forms=("detect",)),
    negating_queries(),
    queries(**DETECTION),
    queries(kleene_pairs=True, **DETECTION),
)


@settings(max_examples=EXAMPLES or (20_000 if LARGE else 40))
@given(COMPARING, sparse_streams(max_size=10))
def test_each_key_on_its_own(script: Script, rows: Rows) -> None:
    text = print_script(script)
    note(text)
    query = ss.query(text)
    try:
        plan = query.plan(SCHEMA, **BINDING)
    except ss.UnsupportedQuery:
        return
    # Count windows count the rows of all keys.
    assume(plan.keys and not script.statement.partition_by and not counts_rows(plan.query))
    parts: dict[object, Rows] = {}
    for row in rows:
        parts.setdefault(tuple(frozen(row[key]) for key in plan.keys), []).append(row)
    whole = query.run_local(pa.Table.from_pylist(rows, SCHEMA), **BINDING).to_pylist()
    apart = [
        match
        for part in parts.values()
        for match in query.run_local(pa.Table.from_pylist(part, SCHEMA), **BINDING).to_pylist()
    ]
    event("matches" if whole else "no match")
    assert counted(apart) == counted(whole)
