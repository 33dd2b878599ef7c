"""Streams too long for the oracle: the strategies agree, also on windows of thousands of events and on large counts."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import streamsift as ss

EVENTS = 6_000
BINDING: dict[str, Any] = {"time": "t", "type": "kind"}


def make_events(classes: int, *, ties: int = 1, seed: int = 0) -> pa.Table:
    random = np.random.default_rng(seed)
    names = pa.array(["A", "B", "C", "D", "E"][:classes])
    return pa.table(
        {
            "t": np.arange(EVENTS) // ties,
            "kind": names.take(pa.array(random.integers(0, classes, EVENTS))),
            "id": random.integers(0, 3, EVENTS),
            "n": pa.array(random.integers(-9, 9, EVENTS), mask=random.random(EVENTS) < 0.1),
            "x": random.integers(-50, 50, EVENTS) / 4,
        }
    )


QUERIES = {
    "count": "PATTERN SEQ(A a, B b, C c) AGG COUNT",
    "all": "PATTERN SEQ(A a, B b, C c) AGG COUNT, SUM(b.n), AVG(a.x), MIN(c.x), MAX(a.n)",
    "negation": "PATTERN SEQ(A a, B b, !D d, C c) AGG COUNT, SUM(a.x)",
    "grouped": "PATTERN SEQ(A a, B b) GROUP BY id AGG COUNT, MIN(a.x)",
    "keyed": "PATTERN SEQ(A a, B b) WHERE [id] AGG COUNT, SUM(b.n)",
    "same class": "PATTERN SEQ(ANY a, ANY b, A c) AGG COUNT, MAX(b.x)",
}


@pytest.mark.parametrize("window", [7, 300, 5_000])
@pytest.mark.parametrize("name", QUERIES)
def test_two_stacks_agree_with_start_marking(name: str, window: int) -> None:
    table = make_events(4, ties=3 if name == "same class" else 1, seed=window)
    for emission in ("", " EMIT CHANGES", f" UPDATE {window // 3 + 1}"):
        query = ss.query(f"{QUERIES[name]} WITHIN {window}{emission}")
        stacks, starts = (query.run_local(table, **BINDING, strategy=s) for s in ("two-stack", "sem"))
        assert stacks.num_rows > 0
        assert stacks.equals(starts), emission


@pytest.mark.parametrize("name", ["all", "negation", "keyed"])
def test_counting_agrees_with_detection(name: str) -> None:
    table = make_events(4).slice(0, 600)
    query = ss.query(f"{QUERIES[name]} WITHIN 40")
    assert query.run_local(table, **BINDING).equals(query.run_local(table, **BINDING, strategy="detect"))


def test_pairs_agree_with_detection() -> None:
    table = make_events(3).slice(0, 900)
    text = "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.n != c.n AND b.id = c.id AGG COUNT, SUM(a.n), MAX(c.x)"
    for window in ("", " WITHIN 60"):
        query = ss.query(text + window)
        assert "by pairs" in query.explain(table, **BINDING)
        pairs, detected = (query.run_local(table, **BINDING, strategy=s) for s in ("auto", "detect"))
        assert pairs.num_rows > 0
        assert pairs.equals(detected)


def test_a_shared_tree_with_large_windows() -> None:
    table = make_events(5)
    queries = {
        tail: f"PATTERN SEQ(A a, B b, {tail}) GROUP BY id AGG COUNT WITHIN 4000" for tail in ("C c", "D d", "!C c, E e")
    }
    assert "tree 1: 3 queries" in ss.explain_many(queries, table, **BINDING, share="always")
    results = ss.run_many(queries, table, **BINDING, share="always")
    for name, text in queries.items():
        assert results[name].equals(ss.query(text).run_local(table, **BINDING))


# --- large numbers ---------------------------------------------------------------------------------------------------


def chain(length: int) -> str:
    return "PATTERN SEQ(" + ", ".join(f"A a{i}" for i in range(length)) + ")"


@pytest.mark.parametrize("window", ["", " WITHIN 1000"])
def test_the_largest_count_that_fits(window: str) -> None:
    # 66 over 33 is below 2^63, 67 over 33 is above.
    table = pa.table({"t": range(66), "kind": ["A"] * 66})
    counts = ss.query(f"{chain(33)} AGG COUNT{window}").run_local(table, **BINDING)["count"]
    assert counts[-1].as_py() == 7219428434016265740
    table = pa.table({"t": range(67), "kind": ["A"] * 67})
    with pytest.raises(ss.BadInputError, match="COUNT exceeds the 64-bit integer range"):
        ss.query(f"{chain(33)} AGG COUNT{window}").run_local(table, **BINDING)


@pytest.mark.parametrize("window", ["", " WITHIN 1000"])
def test_counts_inside_may_pass_64_bits(window: str) -> None:
    """Prefixes of 40 events have more matches than 64 bits can count; the whole pattern has few."""
    table = pa.table({"t": range(85), "kind": [*["A"] * 80, *["B"] * 5]})
    text = chain(40).replace(")", ", B b, B c, B d, B e, B f, B g)")
    assert ss.query(f"{text} AGG COUNT{window}").run_local(table, **BINDING).num_rows == 0
    few = chain(79).replace(")", ", B b)")
    assert ss.query(f"{few} AGG COUNT{window}").run_local(table, **BINDING)["count"].to_pylist() == [
        80,
        160,
        240,
        320,
        400,
    ]


def test_sums_of_decimals_and_unsigned_integers_are_exact() -> None:
    table = pa.table(
        {
            "t": range(4),
            "kind": ["A", "A", "A", "B"],
            "d": pa.array(
                [Decimal("99999999999999999999.99"), Decimal("-0.01"), None, Decimal(1)], pa.decimal128(30, 2)
            ),
            "u": pa.array([2**64 - 1, 1, 2**64 - 1, 0], pa.uint64()),
        }
    )
    query = ss.query("PATTERN SEQ(A a, B b) AGG SUM(a.d), AVG(a.d), SUM(a.u), MAX(a.u) WITHIN 9")
    (row,) = query.run_local(table, **BINDING).to_pylist()
    assert row["sum_a_d"] == Decimal("99999999999999999999.98")
    assert row["avg_a_d"] == float(Decimal("99999999999999999999.98")) / 2
    assert row["sum_a_u"] == 2**65 - 1
    assert row["max_a_u"] == 2**64 - 1


def test_a_sum_of_integers_past_64_bits() -> None:
    table = pa.table({"t": range(3), "kind": ["A", "A", "B"], "n": [2**62, 2**62, 0]})
    with pytest.raises(ss.BadInputError, match="exceeds the 64-bit integer range"):
        ss.query("PATTERN SEQ(A a, B b) AGG SUM(a.n)").run_local(table, **BINDING)


def test_a_count_that_wraps_to_nothing_is_told() -> None:
    """2^64 matches are 0 in 64 bits: pairs of events at 64 times, one of each pair."""
    query = ss.query("PATTERN SEQ(" + ", ".join(f"A{i} a{i}" for i in range(64)) + ") AGG COUNT WITHIN 100")
    table = pa.table({"t": [i // 2 for i in range(128)], "kind": [f"A{i // 2}" for i in range(128)]})
    with pytest.raises(ss.BadInputError, match="COUNT exceeds the 64-bit integer range"):
        query.run_local(table, **BINDING, strategy="two-stack")
