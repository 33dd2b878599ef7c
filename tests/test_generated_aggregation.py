"""Generated aggregations on generated streams: every strategy that can count a query says what the oracle says."""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa
from hypothesis import event, given, note, settings
from hypothesis import strategies as st

import streamsift as ss
from strategies import aggregations, bindings, streams
from streamsift.language import Script, print_script
from streamsift.physical.plan import Strategy
from test_generated import SCHEMA, assert_same

EXAMPLES = int(os.environ.get("STREAMSIFT_EXAMPLES", "0"))
LARGE = os.environ.get("STREAMSIFT_HYPOTHESIS") == "large"

DETECTED = {"kleene": False, "ranking": False, "definitions": False}
FLAT = {**DETECTED, "max_depth": 1, "conjunction": False, "disjunction": False}
STRATEGIES = ["auto", *(strategy.value for strategy in Strategy)]

Rows = list[dict[str, Any]]


def check_aggregation(script: Script, rows: Rows, binding: dict[str, str], strategy: str) -> None:
    note(print_script(script))
    note(strategy)
    table = pa.Table.from_pylist(rows, SCHEMA)
    try:
        actual = ss.query(print_script(script)).run_local(table, **binding, strategy=strategy).to_pylist()
    except ss.UnsupportedQuery as refusal:
        assert strategy != "auto", refusal
        event(f"{strategy}: refused")
        return
    event(f"{strategy}: {'rows' if actual else 'no row'}")
    assert_same(script, rows, binding, actual)


@settings(max_examples=EXAMPLES or (10_000 if LARGE else 1_500))
@given(aggregations(**FLAT), streams(), bindings(), st.sampled_from(STRATEGIES))
def test_flat_aggregations(script: Script, rows: Rows, binding: dict[str, str], strategy: str) -> None:
    check_aggregation(script, rows, binding, strategy)


@settings(max_examples=EXAMPLES or (10_000 if LARGE else 1_500))
@given(aggregations(**DETECTED), streams(), bindings(), st.sampled_from(["auto", "auto", *STRATEGIES]))
def test_nested_aggregations(script: Script, rows: Rows, binding: dict[str, str], strategy: str) -> None:
    check_aggregation(script, rows, binding, strategy)
