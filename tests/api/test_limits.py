"""A limit of rows, batches and a limit of memory: parts of the same answer, or an error that says what would help."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, given, note, settings
from hypothesis import strategies as st

import streamsift as ss
from strategies import aggregations, bindings, flat_queries, queries, streams
from streamsift.errors import PlanTooLargeError
from streamsift.language import Script, print_script
from streamsift.runtime.detect import run
from streamsift.runtime.detect.adaptive import AdaptiveSearch
from streamsift.runtime.events import update_ticks
from streamsift.runtime.groups import search
from streamsift.runtime.matches import output
from streamsift.runtime.resources import budget
from test_generated import EXAMPLES, LARGE, SCHEMA, Rows, assert_equal, check_answer, frozen

SMALL = {
    run: "CHUNK_MATCHES",
    search: "CHUNK_ELEMENTS",
    update_ticks: "CHUNK_PAIRS",
    output: "BATCH_BYTES",
}
SCRIPTS = st.one_of(flat_queries(), queries(), queries(aggregates=False, ranking=False), aggregations(ranking=False))


def small_chunks(size: int) -> ExitStack:
    """As if a few matches were many."""
    stack = ExitStack()
    for module, name in SMALL.items():
        stack.enter_context(mock.patch.object(module, name, size))
    return stack


def counted(rows: Rows) -> Counter[Any]:
    return Counter(map(frozen, rows))


@settings(max_examples=EXAMPLES or (10_000 if LARGE else 50), deadline=None)
@given(SCRIPTS, streams(max_size=7), bindings(), st.integers(1, 5), st.integers(1, 4))
def test_limits_and_batches_give_parts_of_the_answer(
    script: Script, rows: Rows, binding: dict[str, str], limit: int, chunk: int
) -> None:
    note(print_script(script))
    query, table = ss.query(print_script(script)), pa.Table.from_pylist(rows, SCHEMA)
    try:
        whole = query.run_local(table, **binding)
    except (ss.BadInputError, ss.UnsupportedQuery):
        return
    event("more than the limit" if whole.num_rows > limit else "less" if whole.num_rows else "none")
    with small_chunks(chunk):
        some = query.run_local(table, **binding, limit=limit).to_pylist()
        batches = query.batches(table, **binding)
        found = list(batches)
    assert len(some) == min(limit, whole.num_rows)
    assert not counted(some) - counted(whole.to_pylist())
    assert batches.schema == whole.schema
    assert_equal(whole.to_pylist(), pa.Table.from_batches(found, batches.schema).to_pylist())
    together = ss.run_many({"one": query, "two": query}, table, **binding, limit=limit)
    assert [len(part) for part in together.values()] == [len(some)] * 2


@settings(max_examples=EXAMPLES or (10_000 if LARGE else 50), deadline=None)
@given(queries(aggregates=False, ranking=False), streams(max_size=7), bindings(), st.integers(1, 3))
def test_chunks_of_a_few_matches(script: Script, rows: Rows, binding: dict[str, str], chunk: int) -> None:
    """Streams that the oracle can answer fill no chunk: without this, no search and no group is ever resumed."""
    with small_chunks(chunk):
        check_answer(script, rows, binding)


@settings(max_examples=EXAMPLES or (10_000 if LARGE else 50), deadline=None)
@given(SCRIPTS, streams(max_size=7), bindings(), st.integers(1, 10_000))
def test_a_little_memory_gives_the_answer_or_an_error(
    script: Script, rows: Rows, binding: dict[str, str], limit: int
) -> None:
    with mock.patch("streamsift.runtime.default_limit", return_value=limit):
        try:
            check_answer(script, rows, binding)
            event("an answer")
        except ss.MemoryLimitExceeded as told:
            assert "Hint: " in str(told)
            event("an error")


def trades(rows: int = 20_000) -> pa.Table:
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "t": np.sort(rng.integers(0, 30 * rows, rows)),
            "kind": rng.choice(["A", "B", "C"], rows),
            "price": rng.integers(0, 100, rows).astype(float),
        }
    )


def test_a_limit_ends_the_search() -> None:
    """10^16 matches and more: without an end, this one takes years."""
    pattern = "SEQ(ANY a, ANY b, ANY c, ANY d)"
    for text in (
        f"{pattern} WHERE a.price < b.price AND b.price < c.price",
        f"{pattern} WHERE a.price + b.price < c.price + d.price",
        "AND(ANY a, ANY b, ANY c, ANY d)",
        "SEQ(ANY a, !X x, ANY b, ANY c, ANY d)",
        "OR(SEQ(ANY a, ANY b, ANY c), AND(ANY d, ANY e, ANY f))",
        "SEQ(ANY a, ANY b, A[2] c)",
        "SEQ(ANY a, A+ b, ANY c) WITHIN 100",
    ):
        assert ss.query(text).run_local(trades(), time="t", type="kind", limit=3).num_rows == 3


@pytest.mark.parametrize("plan", ["left", "right", "bushy", "inner"])
def test_every_plan_stops_at_a_limit(plan: Any) -> None:
    query = ss.query("SEQ(A a, B b, C c, A d) WHERE a.price = b.price WITHIN 2000")
    table = trades(2_000)
    whole = query.run_local(table, time="t", type="kind", plan=plan)
    some = query.run_local(table, time="t", type="kind", plan=plan, limit=10)
    assert (some.num_rows, whole.num_rows > 10) == (10, True)
    assert not counted(some.to_pylist()) - counted(whole.to_pylist())


@pytest.mark.parametrize("limit", [0, -1, 2.5, "3", True])
def test_limits_that_are_none(limit: Any) -> None:
    query = ss.query("SEQ(A a, B b)")
    with pytest.raises(ss.QueryError, match="invalid value for limit"):
        query.run_local(trades(10), time="t", type="kind", limit=limit)
    with pytest.raises(ss.QueryError, match="invalid value for limit"):
        query.batches(trades(10), time="t", type="kind", limit=limit)  # at once, not when the first batch is asked for
    with pytest.raises(ss.QueryError, match="invalid value for limit"):
        ss.run_many({"q": query}, trades(10), time="t", type="kind", limit=limit)


@pytest.mark.parametrize("limit", [0, -5, "2 lightyears", "", "GB", 1.5, True])
def test_memory_limits_that_are_none(limit: Any) -> None:
    with pytest.raises(ss.QueryError, match=r'invalid value for memory_limit[^$]*such as "2 GB"'):
        ss.query("SEQ(A a, B b)").run_local(trades(10), time="t", type="kind", memory_limit=limit)


def test_a_result_that_is_too_large_says_what_would_help() -> None:
    query = ss.query("SEQ(ANY a, ANY b) WITHIN 3000")
    with pytest.raises(ss.MemoryLimitExceeded) as told:
        query.run_local(trades(), time="t", type="kind", memory_limit="10 MB")
    message = str(told.value)
    assert "its limit is 10.0 MB" in message
    assert "matches so far" in message
    for advice in ("limit=n", "batches()", "AGG COUNT", "WITHIN", "RETURN", "memory_limit="):
        assert advice in message
    with pytest.raises(ss.MemoryLimitExceeded, match="its result takes"):
        ss.run_many({"q": query}, trades(), time="t", type="kind", memory_limit="10 MB")
    batches = query.batches(trades(), time="t", type="kind", memory_limit="10 MB")
    assert sum(batch.num_rows for batch in batches) > 1_000_000


def test_columns_that_batches_share_are_counted_once() -> None:
    """All rows have the same two classes: that is one array, however many batches refer to it."""
    table = trades(3_000)
    found = ss.query("SEQ(A a, B b) RETURN a.kind, b.kind AS other")
    rows = found.run_local(table, time="t", type="kind")
    assert rows.nbytes > 4_500_000
    assert found.run_local(table, time="t", type="kind", memory_limit="4 MB").num_rows == rows.num_rows


def test_a_plan_that_keeps_too_much_is_left_unless_it_was_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    table, binding = trades(1_500), {"time": "t", "type": "kind"}
    query = ss.query(
        "SEQ(A a, B b, C c, A d) WHERE a.price < b.price AND c.price < d.price WITHIN 3000 RETURN a.t, d.t"
    )
    for asked in ({"plan": "bushy"}, {"condense": "on"}):
        choices: Any = {**binding, **asked}
        with pytest.raises(PlanTooLargeError):
            list(query.batches(table, memory_limit="10 KB", **choices))
    left: Any = {**binding, "plan": "left", "condense": "off"}
    expected = counted(query.run_local(table, **left).to_pylist())
    for chosen in (
        mock.patch("streamsift.runtime.detect.adaptive.cheapest", return_value=bushy()),
        mock.patch.object(AdaptiveSearch, "_may_pay", return_value=True),
    ):
        with chosen, caplog.at_level("DEBUG", logger="streamsift"):
            found = query.batches(table, memory_limit="10 KB", **binding).read_all()
        assert counted(found.to_pylist()) == expected
        assert "does not fit into the memory limit" in caplog.text
        caplog.clear()


def bushy() -> Any:
    from streamsift.physical.plan.join_trees import forced
    from streamsift.physical.plan.options import PlanShape

    return forced(PlanShape.BUSHY, range(4))


def test_a_reader_can_be_read_by_others() -> None:
    query = ss.query("SEQ(A a, B b) WITHIN 100 RETURN a.t AS first, b.t AS last")
    found = query.batches(trades(200), time="t", type="kind")
    pairs = ss.query("SEQ(ANY x, ANY y) WHERE y.first > x.last RETURN x.first").run_local(found, time="first")
    assert pairs.num_rows > 0
    empty = ss.query("SEQ(A a, X x)").batches(trades(200), time="t", type="kind")
    assert empty.schema.names == ["a", "x", "match_start", "match_end"]
    assert list(empty) == []


def test_bad_rows_are_told_when_batches_are_asked_for() -> None:
    table = pa.table({"t": [1, None, 2], "kind": ["A", "A", "B"]})
    with pytest.raises(ss.BadInputError, match="1 row"):
        ss.query("SEQ(A a, B b)").batches(table, time="t", type="kind")
    with pytest.warns(ss.BadRowsWarning) as told:
        ss.query("SEQ(A a, B b)").batches(table, time="t", type="kind", bad_rows="drop")
    assert told[0].filename == __file__


def test_the_budget_is_that_of_its_query_alone() -> None:
    """A reader that is read in between must not leave its budget behind."""
    query = ss.query("SEQ(ANY a, ANY b) WITHIN 3000")
    reader = query.batches(trades(), time="t", type="kind", memory_limit=1)
    reader.read_next_batch()
    assert budget.room() == budget.UNLIMITED


LARGE_QUERIES = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
sys.path[:0] = {tests!r}
import streamsift as ss
from test_limits import KINDS, trades

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

for text in KINDS:
    query = ss.query(text)
    query.run_local(trades(100), time="t", type="kind")  # compiles
before = peak()
for text in KINDS:
    query = ss.query(text)
    assert query.run_local(trades(), time="t", type="kind", limit=2).num_rows == 2, text
    try:
        query.run_local(trades(), time="t", type="kind", memory_limit="100 MB")
        print("an answer", text)
    except ss.MemoryLimitExceeded as told:
        assert "so far" in str(told), told
        print("an error", text)
print(peak() - before)
"""
KINDS = (
    "SEQ(ANY a, ANY b, ANY c) WHERE a.price < b.price AND b.price < c.price WITHIN 60000",
    "SEQ(ANY a, ANY b, ANY c) WHERE a.price + b.price < c.price",
    "SEQ(ANY a, !C n, ANY b, ANY c) WHERE n.price > a.price + 98 WITHIN 60000",
    "AND(A a, B b, C c)",
    "OR(SEQ(A a, B b), SEQ(ANY c, ANY d, ANY e))",
    "SEQ(A a, B+ b, C c) WITHIN 60000",
    "SEQ(A a, B[3] b)",
    "AND(ANY+ a, ANY+ b) WITHIN 500",
)


def test_no_kind_of_query_takes_the_machine_with_it() -> None:
    code = LARGE_QUERIES.format(tests=[path for path in sys.path if "tests" in path])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    *told, growth = done.stdout.splitlines()
    assert len(told) == len(KINDS), told
    assert all(line.startswith("an error") for line in told), told
    assert int(growth) < 450_000_000, growth
