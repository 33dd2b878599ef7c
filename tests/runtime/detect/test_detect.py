"""Detection returns the same rows as the oracle for any mix of windows, predicates, ties, nulls and input orders."""

from __future__ import annotations

import os
import subprocess
import sys
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import streamsift as ss
from streamsift.runtime import execute, match_places, prepare
from streamsift.runtime.detect import run
from streamsift.runtime.matches import output

SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "t": pa.int64(),
        "kind": pa.string(),
        "k": pa.int64(),
        "x": pa.float64(),
        "n": pa.int64(),
        "s": pa.string(),
        "d": pa.decimal128(20, 3),
        "seq": pa.int32(),
    }
)
INTEGERS = st.sampled_from([0, 1, 2, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), None])
FLOATS = st.sampled_from([0.0, -0.0, 1.0, 1.5, -2.5, float(2**53), 2.0**63, float("nan"), float("inf"), None])
DECIMALS = st.sampled_from(
    [Decimal("0.000"), Decimal("1.500"), Decimal("9007199254740993.000"), Decimal("-1.001"), None]
)
EVENTS = st.lists(
    st.fixed_dictionaries(
        {
            "t": st.integers(0, 12),
            "kind": st.sampled_from(["A", "B", "C", "Ä", "", None]),
            "k": st.sampled_from([1, 2, 2**62 + 1, None]),
            "x": FLOATS,
            "n": INTEGERS,
            "s": st.sampled_from(["", "a", "ab", "b", "é", None]),
            "d": DECIMALS,
            "seq": st.integers(0, 2),
        }
    ),
    max_size=14,
).map(lambda rows: [{"id": number, **row} for number, row in enumerate(rows)])
PREDICATES = st.lists(
    st.sampled_from(
        [
            "a.k = b.k",
            "b.k = c.k",
            "a.k = c.k",
            "[k]",
            "[s]",
            "a.x < b.x",
            "a.x >= c.x",
            "a.n <= b.n",
            "a.n != c.n",
            "b.n = c.n",
            "a.x = b.n",
            "a.n < c.x",
            "a.d = b.n",
            "a.d < c.x",
            "b.s < c.s",
            "a.s = b.s",
            "a.s = c.kind",
            "b.x > 0",
            "a.x IS NOT NULL",
            "NOT c.x > 1",
            "a.k + 1 = c.k + 1",
            "a.x + b.x < c.x",
            "a.t + b.t < 2 * c.t",
            "a.s = b.s OR b.s = c.s",
            "b.seq = a.seq",
        ]
    ),
    max_size=4,
    unique=True,
)
WINDOWS = st.sampled_from(
    ["", "WITHIN 4", "WITHIN 4 EXCLUSIVE", "WITHIN 0.5", "WITHIN 100", "WITHIN 5 EVENTS", "WITHIN 1 EVENT"]
)


def table_of(events: list[dict[str, object]]) -> pa.Table:
    return pa.Table.from_pylist(events, SCHEMA)


def ids(table: pa.Table) -> list[tuple[object, ...]]:
    return [tuple(event["id"] for event in row.values() if isinstance(event, dict)) for row in table.to_pylist()]


def expected(text: str, events: list[dict[str, object]], order: str | None) -> list[tuple[object, ...]]:
    """Return the oracle's matches, sorted by the places of their events."""
    rows = naive.run(text, events, time="t", type="kind", order=order, columns=SCHEMA.names)
    stream = sorted(events, key=lambda event: (event["t"], event[order] if order else 0, event["id"]))
    place = {event["id"]: number for number, event in enumerate(stream)}
    found = [tuple(event["id"] for event in row.values() if isinstance(event, dict)) for row in rows]
    return sorted(found, key=lambda match: [place[number] for number in match])


@settings(max_examples=int(os.environ.get("STREAMSIFT_EXAMPLES", "300")), deadline=None)
@given(EVENTS, PREDICATES, WINDOWS, st.booleans(), st.sampled_from([None, "seq"]))
def test_same_matches_in_the_same_order_as_the_oracle(
    events: list[dict[str, object]], predicates: list[str], window: str, partitioned: bool, order: str | None
) -> None:
    where = f"WHERE {' AND '.join(f'({p})' if ' OR ' in p else p for p in predicates)}" if predicates else ""
    text = f"SEQ(A a, B b, ANY c) {where} {'PARTITION BY k' if partitioned else ''} {window}"
    table = table_of(events)
    result = ss.query(text).run_local(table, time="t", type="kind", order=order)
    assert ids(result) == expected(text, events, order)


@pytest.mark.parametrize("length", [1, 2, 12])
def test_any_length(length: int) -> None:
    events = [
        {"id": i, "t": i, "kind": "AB"[i % 2], "k": 1, "x": 0.0, "n": i, "s": "", "d": None, "seq": 0}
        for i in range(15)
    ]
    text = f"SEQ({', '.join(f'ANY v{i}' for i in range(length))}) WITHIN 13"
    assert ids(ss.query(text).run_local(table_of(events), time="t", type="kind")) == expected(text, events, None)


def test_two_hundred_classes_of_like_marks() -> None:
    names = [f"Type{i:03}" for i in range(200)]
    table = pa.table({"t": range(400), "kind": names * 2})
    for classes in (("Type011", "Type101"), ("Type199", "Type000")):
        rows = ss.query(f"SEQ({classes[0]} a, {classes[1]} b)").run_local(table, time="t", type="kind").to_pylist()
        assert [(row["a"]["kind"], row["b"]["kind"]) for row in rows] == [classes] * len(rows)
        assert len(rows) == (3 if classes[0] < classes[1] else 1)


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())])
def test_type_columns_of_every_encoding(kind: pa.DataType) -> None:
    names = pa.array(["B", "A", None, "B", "AB", "B"])
    encoded = names.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else names.cast(kind)
    table = pa.table({"t": range(6), "kind": encoded})
    rows = ss.query("SEQ(A a, B b)").run_local(table, time="t", type="kind")
    assert [(row["a"]["t"], row["b"]["t"]) for row in rows.to_pylist()] == [(1, 3), (1, 5)]
    assert rows.schema.field("a").type.field("kind").type == kind


def test_chunks_are_resumed_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [
        {"id": i, "t": i // 3, "kind": "ABC"[i % 3], "k": i % 2, "x": 1.0, "n": i, "s": "", "d": None, "seq": 0}
        for i in range(60)
    ]
    table = table_of(events)
    for where in ("WHERE [k]", "WHERE a.n < b.n", "WHERE a.n + b.n < c.n", "WHERE [k] AND a.n + b.n > 7 AND b.n < c.n"):
        query = ss.query(f"SEQ(A a, B b, C c) {where} WITHIN 9")
        plan = query.plan(table.schema, "t", "kind", None).alternatives[0]
        prepared = prepare(plan.query, table)
        whole = [tuple(column) for chunk in match_places(plan, prepared) for column in chunk.T.tolist()]
        for size in (1, 2, 7):
            with monkeypatch.context() as patched:
                patched.setattr(run, "CHUNK_MATCHES", size)
                chunks = list(match_places(plan, prepared))
            assert [tuple(column) for chunk in chunks for column in chunk.T.tolist()] == whole
            assert all(chunk.shape[1] <= 2 * size for chunk in chunks)
        assert whole == sorted(whole)
        assert len(whole) > 10


def test_wide_events_come_in_smaller_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"t": range(400), "kind": ["A", "B"] * 200, "text": ["x" * 100] * 400})
    plan = ss.query("PATTERN SEQ(A a, B b) WITHIN 20").plan(table.schema, "t", "kind", None)
    (whole,) = execute(plan, table)
    monkeypatch.setattr(output, "BATCH_BYTES", 4_096)
    batches = list(execute(plan, table))
    assert max(batch.nbytes for batch in batches) < 5_000
    assert pa.Table.from_batches(batches).to_pylist() == whole.to_pylist()


def test_an_unsorted_stream_of_many_chunks_is_put_in_order() -> None:
    batches = [pa.table({"t": [5, 1], "kind": ["B", "A"]}), pa.table({"t": [3, 2], "kind": ["A", "B"]})]
    rows = ss.query("SEQ(A a, B b)").run_local(pa.concat_tables(batches), time="t", type="kind").to_pylist()
    assert [(row["a"]["t"], row["b"]["t"]) for row in rows] == [(1, 2), (1, 5), (3, 5)]


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="this is the run without JIT")
def test_the_same_without_jit() -> None:
    """The kernels also run as plain Python, and pass the same tests."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", __file__]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "STREAMSIFT_EXAMPLES": "60"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.parametrize("clauses", ["", "WITHIN 60", "WITHIN 61 EVENTS", "WHERE [id]"])
def test_a_search_tries_no_beginning_that_cannot_end(clauses: str) -> None:
    """A plain left-to-right search would try about 2^61 partial matches."""
    table = pa.table({"t": range(61), "id": [7] * 61})
    pattern = "; ".join(f"x v{number}" for number in range(60))
    assert ss.query(f"{pattern} {clauses} RETURN v0.t").run_local(table, time="t").num_rows == 61
