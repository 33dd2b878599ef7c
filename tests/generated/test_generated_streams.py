"""Check that a stream that is split, reordered and saved anywhere returns the rows of a batch run."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, given, note, settings
from hypothesis import strategies as st

import streamsift as ss
from casefile import Case, load_cases
from strategies import (
    aggregations,
    bindings,
    flat_queries,
    negating_queries,
    neighbour_aggregations,
    on_a_stream,
    queries,
    streams,
)
from streamed import counted, engine_of, plan_of, streamed, streamed_many
from streamsift.language import Script, parse, print_script
from streamsift.physical.plan.plan import Plan
from test_generated import EXAMPLES, LARGE, SCHEMA, Rows
from test_generated_kleene import FLAT as ONE_GROUP

SEEDS = st.integers(0, 2**32)
DETECTION = {"aggregates": False, "ranking": False}
WINDOWLESS = {"kleene": False, "ranking": False, "definitions": False, "conjunction": False, "windows": False}
RANKING = {"kleene": False, "aggregates": False, "detection": False}


def check_stream(script: Script, rows: Rows, binding: dict[str, str], seed: int, **choices: Any) -> None:
    text = print_script(script)
    note(text)
    table = pa.Table.from_pylist(rows, SCHEMA)
    try:
        expected = ss.query(text).run_local(table, **binding, **choices).to_pylist()
        found = streamed(plan_of(text, SCHEMA, dict(binding), **choices), table, seed)
    except (ss.UnsupportedQuery, ss.QueryError, ss.BadInputError) as refusal:
        event(f"refused: {type(refusal).__name__}")
        return
    event("rows" if expected else "no row")
    assert counted(found) == counted(expected)


@settings(max_examples=EXAMPLES or (3_000 if LARGE else 30))
@given(flat_queries(), streams(), bindings(), SEEDS)
def test_flat_queries(script: Script, rows: Rows, binding: dict[str, str], seed: int) -> None:
    check_stream(script, rows, binding, seed)


@settings(max_examples=EXAMPLES or (3_000 if LARGE else 40))
@given(queries(**DETECTION), streams(max_size=8), bindings(), SEEDS)
def test_nested_queries(script: Script, rows: Rows, binding: dict[str, str], seed: int) -> None:
    check_stream(script, rows, binding, seed)


@settings(max_examples=EXAMPLES or (3_000 if LARGE else 30))
@given(st.sampled_from(ONE_GROUP), streams(max_size=10), bindings(), SEEDS)
def test_one_group(text: str, rows: Rows, binding: dict[str, str], seed: int) -> None:
    check_stream(parse(text), rows, binding, seed)


@settings(max_examples=EXAMPLES or (3_000 if LARGE else 30))
@given(negating_queries(), streams(max_size=10), bindings(), SEEDS)
def test_negations(script: Script, rows: Rows, binding: dict[str, str], seed: int) -> None:
    check_stream(script, rows, binding, seed)


@settings(max_examples=EXAMPLES or (3_000 if LARGE else 40))
@given(aggregations(ranking=False), streams(max_size=10), bindings(), SEEDS)
def test_aggregations(script: Script, rows: Rows, binding: dict[str, str], seed: int) -> None:
    check_stream(script, rows, binding, seed)


@settings(max_examples=EXAMPLES or (3_000 if LARGE else 30))
@given(neighbour_aggregations(), streams(), bindings(), SEEDS)
def test_neighbour_aggregations(script: Script, rows: Rows, binding: dict[str, str], seed: int) -> None:
    check_stream(script, rows, binding, seed)


@settings(max_examples=EXAMPLES or (3_000 if LARGE else 40))
@given(queries(max_depth=3, **RANKING).map(on_a_stream), streams(), bindings(), SEEDS)
def test_rankings(script: Script, rows: Rows, binding: dict[str, str], seed: int) -> None:
    check_stream(script, rows, binding, seed)


@settings(max_examples=EXAMPLES or (3_000 if LARGE else 30))
@given(aggregations(**WINDOWLESS), streams(), bindings(), SEEDS)
def test_totals_without_a_window(script: Script, rows: Rows, binding: dict[str, str], seed: int) -> None:
    check_stream(script, rows, binding, seed)


@settings(max_examples=EXAMPLES or (3_000 if LARGE else 40))
@given(st.lists(queries(max_depth=2), min_size=2, max_size=3), streams(max_size=7), bindings(), SEEDS)
def test_several_queries_at_once(scripts: list[Script], rows: Rows, binding: dict[str, str], seed: int) -> None:
    table = pa.Table.from_pylist(rows, SCHEMA)
    plans, expected = dict[str, Plan](), dict[str, Rows]()
    for script in scripts:
        text = print_script(script)
        note(text)
        try:
            answer = ss.query(text).run_local(table, **binding).to_pylist()
            plan = plan_of(text, SCHEMA, dict(binding))
            engine_of(plan)
        except (ss.UnsupportedQuery, ss.QueryError, ss.BadInputError):
            continue
        plans[text], expected[text] = plan, answer
    if plans:
        found = streamed_many(plans, table, seed)
        assert {name: counted(each) for name, each in found.items()} == {n: counted(e) for n, e in expected.items()}


ANSWERED = [case for case in load_cases() if case.error is None]


@pytest.mark.parametrize("case", ANSWERED, ids=lambda case: case.id)
def test_case(case: Case) -> None:
    binding = {"time": case.time, "type": case.type, "order": case.order}
    try:
        plan = plan_of(case.query, case.table().schema, binding)
        for seed in range(20 if LARGE else 40):
            found = streamed(plan, case.table(), seed)
            expected = ss.query(case.query).run_local(case.table(), **binding)
            assert counted(found) == counted(expected.to_pylist())
    except (ss.QueryError, ss.UnsupportedQuery) as refusal:
        assert "stream" in str(refusal)
