"""Check NEXT, LATEST and UNTIL against the oracle, in batch and as streams."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import bindings, nearest_queries, on_a_stream, streams
from streamsift.language import Script
from test_generated import EXAMPLES, LARGE, Rows, check_answer
from test_generated_streams import check_stream


@settings(max_examples=EXAMPLES or (10_000 if LARGE else 120))
@given(nearest_queries(), streams(max_size=8), bindings())
def test_nearest_events(script: Script, rows: Rows, binding: dict[str, str]) -> None:
    check_answer(script, rows, binding)


@settings(max_examples=EXAMPLES or (3_000 if LARGE else 40))
@given(nearest_queries().map(on_a_stream), streams(max_size=8), bindings(), st.integers(0, 2**32))
def test_nearest_events_on_a_stream(script: Script, rows: Rows, binding: dict[str, str], seed: int) -> None:
    check_stream(script, rows, binding, seed)
