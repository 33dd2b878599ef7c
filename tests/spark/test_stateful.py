"""Packer and processor as Spark drives them, on generated queries: cut, late, retried, lost; and what is kept in state."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, given, note, settings
from hypothesis import strategies as st

import streamsift as ss
from casefile import Case, load_cases
from micro_batches import Stream, lose_workers
from strategies import aggregations, bindings, flat_queries, queries, streams
from streamsift.language import Script, print_script
from streamsift.physical.plan import Plan
from supported import is_evaluated
from test_generated import EXAMPLES, LARGE, SCHEMA, Rows, frozen

SEEDS = st.integers(0, 2**32)


def plan_of(text: str, schema: pa.Schema, time: str, type: str | None = None, order: str | None = None) -> Plan:
    return ss.query(text).plan(schema, time, type, order)


def streamed(plans: dict[str, Plan], table: pa.Table, seed: int) -> dict[str, list[Any]]:
    """The rows of all micro-batches and of what stays undecided. Events come in order of time, some a batch later."""
    chance = random.Random(seed)
    time = next(iter(plans.values())).query.binding.time
    table = table.take(pa.array(sorted(range(table.num_rows), key=lambda i: table[time][i].as_py())))
    stream = Stream(plans, buckets=chance.randint(1, 4))
    found: dict[str, list[Any]] = {name: [] for name in plans}
    place = 0
    while place < table.num_rows:
        count = chance.randint(1, 4)
        rows = table.slice(place, count)
        if chance.random() < 0.2:
            stream.attempt(rows)
        if chance.random() < 0.2:
            stream.restart()
        _add(found, stream.batch(rows.take(pa.array(chance.sample(range(rows.num_rows), rows.num_rows)))))
        place += count
        lose_workers(chance)
        if chance.random() < 0.4:
            _add(found, stream.batch(None))
    _add(found, stream.batch(None))
    assert stream.counts["late"] == 0
    _add(found, stream.finish())
    return found


def _add(found: dict[str, list[Any]], more: dict[str, list[Any]]) -> None:
    for name, rows in more.items():
        found[name] += rows


def as_sorted(rows: list[Any]) -> list[str]:
    return sorted(str(frozen(row)) for row in rows)


def check_stream(script: Script, rows: Rows, binding: dict[str, str], seed: int) -> None:
    text = print_script(script)
    note(text)
    for place, row in enumerate(rows):
        row["seq"] = place
    binding = {**binding, "order": "seq"}  # rows of equal time have no order of their own on Spark
    table = pa.Table.from_pylist(rows, SCHEMA)
    try:
        expected = ss.query(text).run_local(table, **binding).to_pylist()
        plan = plan_of(text, SCHEMA, **binding)
        found = streamed({"": plan}, table, seed)[""]
    except (ss.QueryError, ss.UnsupportedQuery, ss.BadInputError) as refusal:
        event(f"refused: {type(refusal).__name__}")
        return
    event("rows" if expected else "no row")
    assert as_sorted(found) == as_sorted(expected)


@settings(max_examples=EXAMPLES or (3_000 if LARGE else 150))
@given(flat_queries(), streams(), bindings(), SEEDS)
def test_flat_queries(script: Script, rows: Rows, binding: dict[str, str], seed: int) -> None:
    check_stream(script, rows, binding, seed)


@settings(max_examples=EXAMPLES or (3_000 if LARGE else 100))
@given(queries(aggregates=False, ranking=False), streams(max_size=8), bindings(), SEEDS)
def test_nested_queries(script: Script, rows: Rows, binding: dict[str, str], seed: int) -> None:
    check_stream(script, rows, binding, seed)


@settings(max_examples=EXAMPLES or (3_000 if LARGE else 100))
@given(aggregations(ranking=False), streams(max_size=10), bindings(), SEEDS)
def test_aggregations(script: Script, rows: Rows, binding: dict[str, str], seed: int) -> None:
    check_stream(script, rows, binding, seed)


@settings(max_examples=EXAMPLES or (3_000 if LARGE else 100))
@given(queries(max_depth=3, kleene=False, aggregates=False, detection=False), streams(), bindings(), SEEDS)
def test_rankings(script: Script, rows: Rows, binding: dict[str, str], seed: int) -> None:
    check_stream(script, rows, binding, seed)


ANSWERED = [case for case in load_cases() if case.error is None and is_evaluated(case.query)]


@pytest.mark.parametrize("case", ANSWERED, ids=lambda case: case.id)
def test_case(case: Case) -> None:
    binding = {"time": case.time, "type": case.type, "order": case.order}
    try:
        plan = plan_of(case.query, case.table().schema, **binding)
        expected = ss.query(case.query).run_local(case.table(), **binding)
        for seed in range(5 if LARGE else 1):
            assert as_sorted(streamed({"": plan}, case.table(), seed)[""]) == as_sorted(expected.to_pylist())
    except (ss.QueryError, ss.UnsupportedQuery) as refusal:
        assert "stream" in str(refusal)
