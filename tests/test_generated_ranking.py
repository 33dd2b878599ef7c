"""Generated ranking queries on generated streams: the engine ranks as the oracle does."""

from __future__ import annotations

from hypothesis import given, settings

from strategies import bindings, queries, streams
from streamsift.language import Script
from test_generated import EXAMPLES, LARGE, Rows, check_answer

RANKING = {"kleene": False, "aggregates": False, "detection": False}


FLAT = {**RANKING, "negation": False, "conjunction": False, "disjunction": False, "linear": True}


@settings(max_examples=EXAMPLES or (10_000 if LARGE else 2_000))
@given(queries(max_depth=2, **FLAT), streams(), bindings())
def test_linear_sequences(script: Script, rows: Rows, binding: dict[str, str]) -> None:
    check_answer(script, rows, binding)


@settings(max_examples=EXAMPLES or (10_000 if LARGE else 2_000))
@given(queries(max_depth=3, **RANKING), streams(), bindings())
def test_ranking_queries(script: Script, rows: Rows, binding: dict[str, str]) -> None:
    check_answer(script, rows, binding)
