"""Check generated queries on times of every type: batch runs against the oracle, streams against batch runs."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import event, given, note, settings
from hypothesis import strategies as st

import naive
import streamsift as ss
from strategies import (
    aggregations,
    any_queries,
    bindings,
    flat_queries,
    group_queries,
    negating_queries,
    neighbour_aggregations,
    on_a_stream,
    queries,
    sparse_streams,
    streams,
    tying_queries,
)
from streamed import engine_of, plan_of, streamed
from streamsift.language import Script, print_script
from streamsift.physical.plan.plan import Plan, Strategy
from streamsift.runtime.events.times import ticks_of
from supported import may_be_refused
from test_generated import EXAMPLES, LARGE, Rows, frozen
from times import AT, Times, spaced_times, times, windows

SEEDS = st.integers(0, 2**32)
DETECTION = {"aggregates": False, "ranking": False}
RANKING = {"kleene": False, "aggregates": False, "detection": False}
TIMES = ("time", "window_end", "match_start", "match_end")  # these columns are compared exactly
BATCH = settings(max_examples=EXAMPLES or (10_000 if LARGE else 30), deadline=None)
STREAM = settings(max_examples=EXAMPLES or (3_000 if LARGE else 30), deadline=None)


def counted(rows: Rows) -> Counter[Any]:
    return Counter((tuple(row), frozen(row), tuple(row[name] for name in TIMES if name in row)) for row in rows)


def assert_equal(expected: Rows, actual: Rows) -> None:
    wanted, found = counted(expected), counted(actual)
    assert not wanted - found, "missing rows"
    assert not found - wanted, "unexpected rows"


def check_batch(script: Script, rows: Rows, binding: dict[str, str], of: Times, **choices: Any) -> None:
    """Check every strategy that supports an aggregation; check other queries with the planner's strategy."""
    script, rows, binding = of.script(script), of.rows(rows), {**binding, "time": AT}
    text = print_script(script)
    note(text)
    strategies = [each.value for each in Strategy] if script.statement.aggregates else [None]
    expected = None
    for strategy in strategies:
        chosen = {**choices, **({"strategy": strategy} if strategy else {})}
        try:
            actual = ss.query(text).run_local(of.table(rows), **binding, **chosen).to_pylist()
        except ss.BadInputError as refusal:
            assert "64 bits" in str(refusal) or "64-bit" in str(refusal), "only an overflow may raise BadInputError"
            continue
        except ss.UnsupportedQuery as refusal:
            assert strategy not in (None, "detect") or may_be_refused(script), refusal
            continue
        except ss.QueryError as refusal:
            # A query that compares `time` with a number is not valid on timestamps.
            assert AT in str(refusal) or "timestamp" in str(refusal) or "date" in str(refusal), refusal
            event("no meaning")
            return
        event(f"{of.name}: {'rows' if actual else 'no row'}")
        expected = (
            naive.run(script, rows, **binding, columns=dict(zip(of.schema.names, of.schema.types, strict=True)))
            if expected is None
            else expected
        )
        assert_equal(expected, actual)


def eager(plan: Plan, table: pa.Table) -> Rows:
    """Return the rows of a stream whose watermark advances to the last value before each event."""
    engine, found = engine_of(plan), Rows()
    ticks = ticks_of(table.column(AT).combine_chunks(), plan.query.binding)
    for time in np.unique(ticks):
        before = math.nextafter(time, -math.inf) if ticks.dtype == np.float64 else int(time) - 1
        if before < time:
            found += engine.advance(before).to_pylist()
        engine.push(table.filter(pa.array(ticks == time)))
    return [*found, *engine.finish().to_pylist()]


def check_stream(script: Script, rows: Rows, binding: dict[str, str], of: Times, seed: int) -> None:
    script, table, binding = of.script(script), of.table(of.rows(rows)), {**binding, "time": AT}
    text = print_script(script)
    note(text)
    try:
        expected = ss.query(text).run_local(table, **binding).to_pylist()
        plan = plan_of(text, of.schema, dict(binding))
        engine_of(plan)
    except (ss.UnsupportedQuery, ss.QueryError, ss.BadInputError) as refusal:
        event(f"refused: {type(refusal).__name__}")
        return
    event(f"{of.name}: {'rows' if expected else 'no row'}")
    assert_equal(expected, streamed(plan, table, seed))
    assert_equal(expected, eager(plan, table))


# --- batches ---------------------------------------------------------------------------------------------------------


@BATCH
@given(windows(ticking=False), streams(), bindings(), times(ticking=False))
def test_windows(script: Script, rows: Rows, binding: dict[str, str], of: Times) -> None:
    check_batch(script, rows, binding, of)


@BATCH
@given(windows(ticking=True), streams(), bindings(), times())
def test_ticks(script: Script, rows: Rows, binding: dict[str, str], of: Times) -> None:
    check_batch(script, rows, binding, of)


@BATCH
@given(flat_queries(), streams(), bindings(), times(ticking=False))
def test_flat_queries(script: Script, rows: Rows, binding: dict[str, str], of: Times) -> None:
    check_batch(script, rows, binding, of)


@BATCH
@given(negating_queries(), streams(), bindings(), times(ticking=False))
def test_negations(script: Script, rows: Rows, binding: dict[str, str], of: Times) -> None:
    check_batch(script, rows, binding, of)


@BATCH
@given(queries(**DETECTION), streams(max_size=7), bindings(), times(ticking=False))
def test_groups_and_definitions(script: Script, rows: Rows, binding: dict[str, str], of: Times) -> None:
    check_batch(script, rows, binding, of)


@BATCH
@given(aggregations(kleene=False, ranking=False), streams(), bindings(), times())
def test_aggregations(script: Script, rows: Rows, binding: dict[str, str], of: Times) -> None:
    check_batch(script, rows, binding, of)


@BATCH
@given(neighbour_aggregations(), streams(), bindings(), times())
def test_neighbour_aggregations(script: Script, rows: Rows, binding: dict[str, str], of: Times) -> None:
    check_batch(script, rows, binding, of)


@BATCH
@given(queries(max_depth=3, **RANKING), streams(), bindings(), times(), st.sampled_from(["auto", "enumerate"]))
def test_rankings(script: Script, rows: Rows, binding: dict[str, str], of: Times, rank: str) -> None:
    check_batch(script, rows, binding, of, rank=rank)


# --- streams ---------------------------------------------------------------------------------------------------------


@STREAM
@given(windows(ticking=False), streams(), bindings(), times(ticking=False), SEEDS)
def test_streams_of_windows(script: Script, rows: Rows, binding: dict[str, str], of: Times, seed: int) -> None:
    check_stream(script, rows, binding, of, seed)


@STREAM
@given(windows(ticking=True), streams(), bindings(), times(), SEEDS)
def test_streams_of_ticks(script: Script, rows: Rows, binding: dict[str, str], of: Times, seed: int) -> None:
    check_stream(script, rows, binding, of, seed)


@STREAM
@given(flat_queries(), streams(), bindings(), times(ticking=False), SEEDS)
def test_streams_of_flat_queries(script: Script, rows: Rows, binding: dict[str, str], of: Times, seed: int) -> None:
    check_stream(script, rows, binding, of, seed)


@STREAM
@given(negating_queries(), streams(max_size=10), bindings(), times(ticking=False), SEEDS)
def test_streams_of_negations(script: Script, rows: Rows, binding: dict[str, str], of: Times, seed: int) -> None:
    check_stream(script, rows, binding, of, seed)


@STREAM
@given(queries(kleene=False, **DETECTION), streams(max_size=10), bindings(), times(ticking=False), SEEDS)
def test_streams_of_nested_queries(script: Script, rows: Rows, binding: dict[str, str], of: Times, seed: int) -> None:
    check_stream(script, rows, binding, of, seed)


@STREAM
@given(aggregations(kleene=False, ranking=False), streams(max_size=10), bindings(), times(), SEEDS)
def test_streams_of_totals(script: Script, rows: Rows, binding: dict[str, str], of: Times, seed: int) -> None:
    check_stream(script, rows, binding, of, seed)


@STREAM
@given(neighbour_aggregations(), streams(), bindings(), times(), SEEDS)
def test_streams_of_neighbours(script: Script, rows: Rows, binding: dict[str, str], of: Times, seed: int) -> None:
    check_stream(script, rows, binding, of, seed)


@STREAM
@given(queries(max_depth=3, **RANKING).map(on_a_stream), streams(), bindings(), times(), SEEDS)
def test_streams_of_rankings(script: Script, rows: Rows, binding: dict[str, str], of: Times, seed: int) -> None:
    check_stream(script, rows, binding, of, seed)


@settings(max_examples=EXAMPLES or (8_000 if LARGE else 40), deadline=None)
@given(
    st.one_of(group_queries(), tying_queries()).map(on_a_stream), sparse_streams(), bindings(), spaced_times(), SEEDS
)
def test_groups_over_several_windows(script: Script, rows: Rows, binding: dict[str, str], of: Times, seed: int) -> None:
    check_stream(script, rows, binding, of, seed)


@settings(max_examples=EXAMPLES or (12_000 if LARGE else 30), deadline=None)
@given(any_queries().map(on_a_stream), sparse_streams(), bindings(), spaced_times(), SEEDS)
def test_any_query_over_several_windows(
    script: Script, rows: Rows, binding: dict[str, str], of: Times, seed: int
) -> None:
    check_stream(script, rows, binding, of, seed)
