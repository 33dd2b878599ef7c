"""Drive packer and processor as Spark does, on generated queries: split, retried, lost; and test the state."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import event, given, note, settings
from hypothesis import strategies as st

import streamsift as ss
from casefile import Case, load_cases
from micro_batches import Stream, Workers
from strategies import (
    aggregations,
    any_queries,
    bindings,
    flat_queries,
    group_queries,
    on_a_stream,
    queries,
    sparse_streams,
    streams,
    tying_queries,
)
from streamsift.language import Script, print_script
from streamsift.physical.plan.plan import Plan
from test_generated import EXAMPLES, LARGE, SCHEMA, Rows, frozen

SEEDS = st.integers(0, 2**32)
STREAMED = st.one_of(any_queries(), group_queries(), tying_queries()).map(on_a_stream)


def plan_of(text: str, schema: pa.Schema, time: str, type: str | None = None, order: str | None = None) -> Plan:
    return ss.query(text).plan(schema, time, type, order)


def streamed(plans: dict[str, Plan], table: pa.Table, seed: int) -> dict[str, list[Any]]:
    """Return the rows of all micro-batches, and those that did not become final.

    Events come in order of time, in disorder inside a micro-batch; now and then earlier ones come again, and are late.
    """
    chance = random.Random(seed)
    time = next(iter(plans.values())).query.binding.time
    places = sorted(range(table.num_rows), key=lambda i: table[time][i].as_py())
    table = table.take(pa.array(places, pa.int64()))
    stream, workers = Stream(plans, buckets=chance.randint(1, 4)), Workers(chance)
    found: dict[str, list[Any]] = {name: [] for name in plans}
    place = late = 0
    while place < table.num_rows:
        count = chance.randint(1, 4)
        rows = table.slice(place, count)
        if place and chance.random() < 0.15:
            last = table[time][place - 1]
            repeated = table.slice(0, place).filter(pc.less(table[time].slice(0, place), last))
            late += repeated.num_rows
            rows = pa.concat_tables([rows, repeated])
        if chance.random() < 0.2:
            stream.attempt(rows)
            workers.swap()
        if chance.random() < 0.1:
            stream.restart()
        _add(found, stream.batch(rows.take(pa.array(chance.sample(range(rows.num_rows), rows.num_rows)))))
        place += count
        workers.swap()
        if chance.random() < 0.4:
            _add(found, stream.batch(None))
    _add(found, stream.batch(None))
    assert stream.counts["late"] == late
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
    binding = {**binding, "order": "seq"}  # rows of equal time have no order on Spark
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


@settings(max_examples=EXAMPLES or (3_000 if LARGE else 60))
@given(flat_queries(), streams(), bindings(), SEEDS)
def test_flat_queries(script: Script, rows: Rows, binding: dict[str, str], seed: int) -> None:
    check_stream(script, rows, binding, seed)


@settings(max_examples=EXAMPLES or (3_000 if LARGE else 60))
@given(queries(aggregates=False, ranking=False), streams(max_size=8), bindings(), SEEDS)
def test_nested_queries(script: Script, rows: Rows, binding: dict[str, str], seed: int) -> None:
    check_stream(script, rows, binding, seed)


@settings(max_examples=EXAMPLES or (3_000 if LARGE else 60))
@given(aggregations(ranking=False), streams(max_size=10), bindings(), SEEDS)
def test_aggregations(script: Script, rows: Rows, binding: dict[str, str], seed: int) -> None:
    check_stream(script, rows, binding, seed)


@settings(max_examples=EXAMPLES or (3_000 if LARGE else 60))
@given(queries(max_depth=3, kleene=False, aggregates=False, detection=False), streams(), bindings(), SEEDS)
def test_rankings(script: Script, rows: Rows, binding: dict[str, str], seed: int) -> None:
    check_stream(script, rows, binding, seed)


@settings(max_examples=EXAMPLES or (5_000 if LARGE else 60))
@given(STREAMED, sparse_streams(), bindings(), SEEDS)
def test_any_query_over_several_windows(script: Script, rows: Rows, binding: dict[str, str], seed: int) -> None:
    check_stream(script, rows, binding, seed)


ANSWERED = [case for case in load_cases() if case.error is None]


@pytest.mark.parametrize("case", ANSWERED, ids=lambda case: case.id)
def test_case(case: Case) -> None:
    binding = {"time": case.time, "type": case.type, "order": case.order}
    try:
        plan = plan_of(case.query, case.table().schema, **binding)
        expected = ss.query(case.query).run_local(case.table(), **binding)
        for seed in range(5 if LARGE else 40):
            assert as_sorted(streamed({"": plan}, case.table(), seed)[""]) == as_sorted(expected.to_pylist())
    except (ss.QueryError, ss.UnsupportedQuery) as refusal:
        assert "stream" in str(refusal)


# --- examples -----------------------------------------------------------------------------------------------------

PAIRS = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 10"
EVENTS = pa.schema([("t", pa.int64()), ("kind", pa.string()), ("id", pa.int64())])


def table_of(*rows: tuple[int | None, str, int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(EVENTS.names, row, strict=True)) for row in rows], EVENTS)


def pairs_stream(text: str = PAIRS, **options: Any) -> Stream:
    return Stream({"": plan_of(text, EVENTS, "t", "kind")}, **options)


def test_what_is_late_does_not_depend_on_the_bucket() -> None:
    stream = pairs_stream(buckets=4)
    stream.batch(table_of((100, "A", 1)))
    stream.batch(table_of(*((99, "A", key) for key in range(20)), *((100, "A", key) for key in range(20))))
    assert stream.counts["late"] == 20, "an event at the very time of the watermark is not late"


def test_lateness_delays_only_what_an_event_can_still_change() -> None:
    stream = pairs_stream(lateness=5)
    assert stream.batch(table_of((2, "B", 1)))[""] == []
    assert len(stream.batch(table_of((1, "A", 1)))[""]) == 1, "in whatever order its events arrive"
    stream = pairs_stream("PATTERN SEQ(A a, !C c, B b) WHERE [id] WITHIN 10", lateness=5)
    assert stream.batch(table_of((1, "A", 1), (2, "B", 1)))[""] == []
    assert stream.batch(table_of((6, "C", 2)))[""] == []
    assert stream.batch(None)[""] == [], "a `C` at 1 is not late at 6 - 5"
    stream.batch(table_of((7, "C", 2)))
    assert len(stream.batch(None)[""]) == 1, "the watermark has reached `b`, but not passed it"
    stream.batch(table_of((1, "A", 1), (2, "A", 1)))
    assert stream.counts["late"] == 1


def test_silent_keys_are_released_and_forgotten_by_timers() -> None:
    stream = pairs_stream("PATTERN SEQ(A a, B b, !C c) WHERE [id] WITHIN 10")
    stream.batch(table_of((1, "A", 1), (2, "B", 1)))
    stream.batch(table_of((50, "X", 9)))
    assert len(stream.batch(None)[""]) == 1
    assert all(not store["timers"] and not store["chunks"] for store in stream.stores.values())


def test_a_micro_batch_writes_its_own_events_only() -> None:
    stream = pairs_stream("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 100000", buckets=1)
    sizes = []
    for start in range(0, 4000, 200):
        before = dict(next(iter(stream.stores.values()), {}).get("chunks", {}))
        stream.batch(table_of(*((start + i, "A", i % 7) for i in range(200))))
        (store,) = stream.stores.values()
        assert before.items() <= store["chunks"].items(), "a chunk is written once"
        added = [value[0] for key, value in store["chunks"].items() if key not in before]
        sizes.append(sum(map(len, added)) + len(store["head"][-1]))
    assert max(sizes[5:]) <= 1.1 * min(sizes[5:])


def test_a_bad_row_fails_the_stream_or_is_counted() -> None:
    with pytest.raises(ss.BadInputError, match="2 rows have no usable time or order"):
        pairs_stream().batch(table_of((1, "A", 1), (None, "A", 2), (None, "B", 3)))
    stream = pairs_stream(bad_rows="drop")
    stream.batch(table_of((1, "A", 1), (None, "A", 2), (2, "B", 1)))
    assert stream.counts["bad_rows"] == 1


def test_the_checkpoint_of_another_query_is_rejected() -> None:
    stream = pairs_stream()
    stream.batch(table_of((1, "A", 1)))
    other = pairs_stream("PATTERN SEQ(A a, B b) WHERE [id] AND b.t > 5 WITHIN 20")
    other.stores = stream.stores
    with pytest.raises(
        ss.QueryError, match=r"(?s)by a different query.*WHERE: .*WITHIN: 10 time in the checkpoint, 20 time in this"
    ):
        other.batch(table_of((2, "B", 1)))


def test_a_longer_name_is_no_other_query() -> None:
    stream = pairs_stream()
    stream.batch(table_of((1, "A", 1)))
    renamed = pairs_stream("PATTERN SEQ(A first, B second) WHERE first.id = second.id WITHIN 10")
    renamed.stores = stream.stores
    found = renamed.batch(table_of((2, "B", 1)))[""]
    assert [list(row) for row in found] == [["first", "second", "match_start", "match_end"]]


def test_several_queries_share_their_events() -> None:
    texts = {"pairs": PAIRS, "counts": "PATTERN SEQ(A a, B b) WHERE [id] GROUP BY id AGG COUNT WITHIN 5 UPDATE 5"}
    plans = {name: plan_of(text, EVENTS, "t", "kind") for name, text in texts.items()}
    table = table_of(*((i, "AB"[i % 2], i % 3) for i in range(40)))
    found = streamed(plans, table, seed=1)
    for name, text in texts.items():
        assert as_sorted(found[name]) == as_sorted(ss.query(text).run_local(table, time="t", type="kind").to_pylist())
