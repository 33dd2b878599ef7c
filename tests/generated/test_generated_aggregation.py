"""Check that every strategy that supports a generated aggregation returns the oracle's rows."""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa
from hypothesis import event, given, note, settings

import naive
import streamsift as ss
from strategies import COLUMNS, aggregations, bindings, neighbour_aggregations, streams
from streamsift.language import Script, print_script
from streamsift.physical.plan.plan import Strategy
from supported import may_be_refused
from test_generated import SCHEMA, assert_equal

EXAMPLES = int(os.environ.get("STREAMSIFT_EXAMPLES", "0"))
LARGE = os.environ.get("STREAMSIFT_HYPOTHESIS") == "large"

DETECTED = {"kleene": False, "ranking": False, "definitions": False}
FLAT = {**DETECTED, "max_depth": 1, "conjunction": False, "disjunction": False}

Rows = list[dict[str, Any]]


def check_aggregation(script: Script, rows: Rows, binding: dict[str, str]) -> None:
    """Check every strategy that supports the query; detection always does."""
    note(print_script(script))
    query, table = ss.query(print_script(script)), pa.Table.from_pylist(rows, SCHEMA)
    expected = naive.run(script, rows, **binding, columns=COLUMNS)
    for strategy in Strategy:
        note(strategy.value)
        try:
            actual = query.run_local(table, **binding, strategy=strategy.value).to_pylist()
        except ss.UnsupportedQuery as refusal:
            assert strategy is not Strategy.DETECT or may_be_refused(script), refusal
            continue
        event(f"{strategy.value}: {'rows' if actual else 'no row'}")
        assert_equal(expected, actual)


@settings(max_examples=EXAMPLES or (10_000 if LARGE else 90))
@given(aggregations(**FLAT), streams(), bindings())
def test_flat_aggregations(script: Script, rows: Rows, binding: dict[str, str]) -> None:
    check_aggregation(script, rows, binding)


@settings(max_examples=EXAMPLES or (10_000 if LARGE else 40))
@given(aggregations(**DETECTED), streams(), bindings())
def test_nested_aggregations(script: Script, rows: Rows, binding: dict[str, str]) -> None:
    check_aggregation(script, rows, binding)


@settings(max_examples=EXAMPLES or (10_000 if LARGE else 40))
@given(neighbour_aggregations(), streams(), bindings())
def test_aggregations_of_neighbours(script: Script, rows: Rows, binding: dict[str, str]) -> None:
    check_aggregation(script, rows, binding)


@settings(max_examples=EXAMPLES or (3_000 if LARGE else 40))
@given(aggregations(ranking=False, definitions=False), streams(max_size=7), bindings())
def test_aggregations_of_groups(script: Script, rows: Rows, binding: dict[str, str]) -> None:
    check_aggregation(script, rows, binding)
