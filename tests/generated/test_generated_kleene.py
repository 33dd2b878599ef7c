"""Check generated queries with `+`, `*` and `[n]`, nesting and negation against the oracle."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import bindings, defining_queries, queries, streams
from streamsift.language import Script, parse
from test_generated import check_answer

EXAMPLES = int(os.environ.get("STREAMSIFT_EXAMPLES", "0"))
LARGE = os.environ.get("STREAMSIFT_HYPOTHESIS") == "large"

DETECTION = {"aggregates": False, "ranking": False, "definitions": False}

FLAT = [
    f"PATTERN {pattern} {where} {window} {emit}"
    for pattern in (
        "A a; B+ b; C c",
        "A a; B* b",
        "B+ b; C c",
        "A a; B[2] b; C c",
        "A a & B+ b",
        "A a; B+ b; !D d; C c",
    )
    for where in ("", "WHERE b.x > 1", "WHERE COUNT(b) != 2", "WHERE [id]")
    for window in ("WITHIN 5", "WITHIN 6 EVENTS")
    for emit in ("", "EMIT EACH")
]

Rows = list[dict[str, Any]]


@settings(max_examples=EXAMPLES or (10_000 if LARGE else 70), deadline=None)
@given(queries(**DETECTION), streams(max_size=7), bindings())
def test_kleene_queries(script: Script, rows: Rows, binding: dict[str, str]) -> None:
    check_answer(script, rows, binding)


@settings(max_examples=EXAMPLES or (3_000 if LARGE else 40), deadline=None)
@given(queries(kleene_pairs=True, **DETECTION), streams(max_size=6), bindings())
def test_kleene_queries_that_may_be_refused(script: Script, rows: Rows, binding: dict[str, str]) -> None:
    check_answer(script, rows, binding)


@settings(max_examples=EXAMPLES or (3_000 if LARGE else 40), deadline=None)
@given(queries(aggregates=False, ranking=False), streams(max_size=7), bindings())
def test_kleene_queries_with_definitions(script: Script, rows: Rows, binding: dict[str, str]) -> None:
    check_answer(script, rows, binding)


@settings(max_examples=EXAMPLES or (3_000 if LARGE else 30), deadline=None)
@given(defining_queries(aggregates=False, ranking=False), streams(max_size=7), bindings())
def test_groups_in_definitions_with_windows(script: Script, rows: Rows, binding: dict[str, str]) -> None:
    check_answer(script, rows, binding)


@settings(max_examples=EXAMPLES or (2_000 if LARGE else 30), deadline=None)
@given(st.sampled_from(FLAT), streams(), bindings())
def test_one_group_on_longer_streams(text: str, rows: Rows, binding: dict[str, str]) -> None:
    """Use longer streams, because the oracle is fast if a group has single events next to it."""
    check_answer(parse(text), rows, binding)
