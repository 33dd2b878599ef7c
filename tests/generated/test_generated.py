"""Check that the engine returns the oracle's rows for generated queries on generated streams, or rejects them."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, given, note, settings
from hypothesis import strategies as st

import naive
import streamsift as ss
from casefile import frozen
from strategies import COLUMNS, bindings, defining_queries, flat_queries, negating_queries, queries, streams
from streamsift.language import Script, print_script
from supported import may_be_refused, pattern_depth

EXAMPLES = int(os.environ.get("STREAMSIFT_EXAMPLES", "0"))
LARGE = os.environ.get("STREAMSIFT_HYPOTHESIS") == "large"
SCHEMA = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in COLUMNS.items()])

DETECTION = {"kleene": False, "aggregates": False, "ranking": False}

Rows = list[dict[str, Any]]


def assert_same(script: Script, rows: Rows, binding: dict[str, str], actual: Rows) -> None:
    assert_equal(naive.run(script, rows, **binding, columns=COLUMNS), actual)


def assert_equal(expected: Rows, actual: Rows) -> None:
    wanted, found = (Counter((tuple(row), frozen(row)) for row in rows) for rows in (expected, actual))
    missing, unexpected = wanted - found, found - wanted
    assert not missing, "rows that only the oracle returns"
    assert not unexpected, "rows that the oracle does not return"


def run_local(script: Script, rows: Rows, binding: dict[str, str], **options: Any) -> Rows:
    table = pa.Table.from_pylist(rows, SCHEMA)
    return ss.query(print_script(script)).run_local(table, **binding, **options).to_pylist()


def check_answer(script: Script, rows: Rows, binding: dict[str, str], **options: Any) -> None:
    note(print_script(script))
    try:
        actual = run_local(script, rows, binding, **options)
    except ss.BadInputError as refusal:
        assert "64 bits" in str(refusal) or "64-bit" in str(refusal), "only an overflow may raise BadInputError"
        return
    except ss.UnsupportedQuery as refusal:
        assert "^" in str(refusal)
        assert may_be_refused(script), "this query must be supported"
        return
    event(f"depth {pattern_depth(script.statement.pattern)}, {'matches' if actual else 'no match'}")
    assert_same(script, rows, binding, actual)


@settings(max_examples=EXAMPLES or (20_000 if LARGE else 180))
@given(flat_queries(), streams(), bindings())
def test_flat_queries(script: Script, rows: Rows, binding: dict[str, str]) -> None:
    check_answer(script, rows, binding)


@settings(max_examples=EXAMPLES or (10_000 if LARGE else 90))
@given(queries(max_depth=4, **DETECTION), streams(), bindings(), st.sampled_from(["on", "off"]))
def test_nested_queries(script: Script, rows: Rows, binding: dict[str, str], cache: str) -> None:
    check_answer(script, rows, binding, cache=cache)


@settings(max_examples=EXAMPLES or (10_000 if LARGE else 90))
@given(negating_queries(), streams(), bindings(), st.sampled_from(["on", "off"]))
def test_negations_in_negations(script: Script, rows: Rows, binding: dict[str, str], cache: str) -> None:
    check_answer(script, rows, binding, cache=cache)


@settings(max_examples=EXAMPLES or (10_000 if LARGE else 70))
@given(
    defining_queries(max_variables=6, max_depth=4, **DETECTION),
    streams(),
    bindings(),
    st.sampled_from(["auto", "left", "right", "bushy", "inner"]),
    st.sampled_from(["auto", "on"]),
)
def test_windows_of_definitions(script: Script, rows: Rows, binding: dict[str, str], plan: str, condense: str) -> None:
    check_answer(script, rows, binding, plan=plan, condense=condense)


@settings(max_examples=EXAMPLES or (5_000 if LARGE else 40))
@given(defining_queries(kleene=False, detection=False), streams(), bindings())
def test_totals_and_rankings_of_definitions(script: Script, rows: Rows, binding: dict[str, str]) -> None:
    check_answer(script, rows, binding)


@settings(max_examples=5_000 if LARGE else 50)
@given(queries(), streams(max_size=7), bindings())
def test_any_query_is_answered_or_refused(script: Script, rows: Rows, binding: dict[str, str]) -> None:
    check_answer(script, rows, binding)


def test_the_comparison_can_fail() -> None:
    """Check that the comparison detects missing and unexpected rows."""
    script = ss.query("PATTERN SEQ(A a, B b)").script
    rows = [{"t": t, "kind": kind, "id": 1, "x": 0.0, "n": 0, "s": "", "seq": t} for t, kind in ((1, "A"), (2, "B"))]
    right = run_local(script, rows, {"time": "t", "type": "kind"})
    assert_same(script, rows, {"time": "t", "type": "kind"}, right)
    for wrong in ([], right * 2):
        with pytest.raises(AssertionError, match="oracle"):
            assert_same(script, rows, {"time": "t", "type": "kind"}, wrong)
