"""Check that every strategy ranks the matches of generated queries like the oracle."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pyarrow as pa
from hypothesis import assume, event, given, note, settings
from hypothesis import strategies as st

import streamsift as ss
from strategies import bindings, queries, streams
from streamsift.language import Script, print_script
from streamsift.runtime.paths import best
from supported import may_be_refused
from test_generated import EXAMPLES, LARGE, SCHEMA, Rows, assert_same

RANKING = {"kleene": False, "aggregates": False, "detection": False}
POSITIVE = {**RANKING, "negation": False, "linear": True}
FLAT = {**POSITIVE, "conjunction": False, "disjunction": False}


def no_boards(*_: object) -> None:
    """Stand in for the top-k buffers per key, to disable them."""


def check_ranking(script: Script, rows: Rows, binding: dict[str, str], strategy: Any, schedule: Any = "wabs") -> None:
    note(print_script(script))
    query, table = ss.query(print_script(script)), pa.Table.from_pylist(rows, SCHEMA)
    try:
        actual = query.run_local(table, **binding, rank=strategy, schedule=schedule).to_pylist()
    except ss.BadInputError as refusal:
        assert "64 bits" in str(refusal) or "64-bit" in str(refusal), "only an overflow may raise BadInputError"
        return
    why = query.explain(table, **binding, rank=strategy, schedule=schedule).split("\nWhy\n")[1].split(":")[0].strip()
    event(f"{why}, {'ranked' if actual else 'no match'}")
    assert_same(script, rows, binding, actual)


@settings(max_examples=EXAMPLES or (10_000 if LARGE else 70))
@given(queries(max_depth=2, **FLAT), streams(), bindings())
def test_linear_sequences(script: Script, rows: Rows, binding: dict[str, str]) -> None:
    check_ranking(script, rows, binding, "auto")


@settings(max_examples=EXAMPLES or (10_000 if LARGE else 40))
@given(queries(max_depth=2, **FLAT), streams(), bindings())
def test_linear_sequences_by_kinds(script: Script, rows: Rows, binding: dict[str, str]) -> None:
    """Force equivalence classes of paths, which otherwise need more equal scores than the oracle can handle."""
    with mock.patch.object(best, "FEW_PATHS", 0), mock.patch.object(best, "_by_buffers", no_boards):
        check_ranking(script, rows, binding, "auto")


@settings(max_examples=EXAMPLES or (10_000 if LARGE else 30))
@given(queries(max_depth=2, **FLAT), streams(), bindings(), st.sampled_from(["k-ssp", "k-dssp"]))
def test_the_algorithms_of_the_thesis(script: Script, rows: Rows, binding: dict[str, str], strategy: Any) -> None:
    check_ranking(script, rows, binding, strategy)


@settings(max_examples=EXAMPLES or (10_000 if LARGE else 40))
@given(
    queries(max_depth=3, **POSITIVE),
    streams(),
    bindings(),
    st.sampled_from(["nra", "ta", "join"]),
    st.sampled_from(["wabs", "round-robin", "gradient", "statistics"]),
)
def test_merges_and_joins(script: Script, rows: Rows, binding: dict[str, str], strategy: Any, schedule: Any) -> None:
    check_ranking(script, rows, binding, strategy, schedule)


@settings(max_examples=EXAMPLES or (10_000 if LARGE else 40))
@given(queries(max_depth=3, **RANKING), streams(), bindings(), st.sampled_from(["auto", "enumerate"]))
def test_ranking_queries(script: Script, rows: Rows, binding: dict[str, str], strategy: Any) -> None:
    check_ranking(script, rows, binding, strategy)


@settings(max_examples=EXAMPLES or (10_000 if LARGE else 30))
@given(queries(max_depth=3, **{**RANKING, "kleene": True}), streams(max_size=7), bindings())
def test_rankings_of_groups(script: Script, rows: Rows, binding: dict[str, str]) -> None:
    assume(not may_be_refused(script))
    check_ranking(script, rows, binding, "auto")
