"""The public face: queries from text and from Python calls, the inputs that run_local takes, what is refused."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import streamsift as ss
from streamsift.language import parse

EVENTS = pa.table({"t": [1, 2, 3], "kind": ["A", "B", "C"], "id": [7, 7, 7], "x": [1.0, 2.0, 3.0]})


def built(query: ss.Query, text: str) -> None:
    assert query.script == parse(text)
    assert parse(query.text) == parse(text)


def test_builder_makes_the_same_tree() -> None:
    built(
        ss.seq(ss.event("A", "a"), ~ss.event("B"), ss.event("C", "c")).where("a.x < c.x").within("10 s"),
        "PATTERN SEQ(A a, !B, C c) WHERE a.x < c.x WITHIN 10 s",
    )


def test_builder_operators_and_quantifiers() -> None:
    a, b, c = ss.event("A", "a"), ss.event("B", "b"), ss.event("C", "c")
    built(a >> b.one_or_more(), "A a; B+ b")
    built(ss.seq(a, b.any_number() & c.exactly(3)), "A a; B* b & C[3] c")
    built(ss.any_of(a, ss.seq(b, c, "b.x = c.x")), "OR(A a, SEQ(B b, C c, b.x = c.x))")
    built(ss.all_of(a, b) | c, "OR(AND(A a, B b), C c)")
    built(ss.event("any", "e"), "ANY e")


def test_builder_clauses() -> None:
    ab = ss.event("A", "a") >> ss.event("B", "b")
    built(ab.where("a.x > 1").where("b.x > 2 AND b.x < 9"), "A a; B b WHERE a.x > 1 AND b.x > 2 AND b.x < 9")
    built(ab.within(5, exclusive=True).partition_by("id", "x"), "A a; B b WITHIN 5 EXCLUSIVE PARTITION BY id, x")
    built(
        ab.agg("COUNT", "SUM(b.x) AS s").group_by("id").emit("changes"),
        "A a; B b AGG COUNT, SUM(b.x) AS s GROUP BY id EMIT CHANGES",
    )
    built(
        ab.prefer("MAX[a.x]", "MIN[b.x]", merge="SUM").within("9 events").update("3 events").returns("a", top=4),
        "A a; B b PREF MAX[a.x] AND MIN[b.x] MERGE SUM WITHIN 9 EVENTS UPDATE 3 EVENTS RETURN TOP 4 a",
    )
    built(ab.classes(A="x > 1").classes(B="x > 2"), "A a; B b WITH A = (x > 1), B = (x > 2)")
    sub = (ss.event("A", "a") >> ss.event("B", "b")).within(3)
    built(ss.seq(ss.event("S1"), ss.event("C")).define("S1", sub), "SEQ S1 = A a; B b WITHIN 3 PATTERN S1; C")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (ss.seq, "no pattern"),
        (lambda: ss.seq(ss.event("A").within(3), ss.event("B")), "with clauses cannot become part"),
        ((ss.event("A") >> ss.event("B")).one_or_more, "a quantifier cannot apply"),
        (lambda: ss.event("A").one_or_more().any_number(), "already has a quantifier"),
        (lambda: ss.event("A").exactly(0), "at least 1"),
        (lambda: ss.event("A").within(3).within(4), "already"),
        (lambda: ss.event("A").where("a.x >"), "ends too early"),
        (lambda: ss.event("A").within("3 parsecs"), "unknown unit"),
    ],
)
def test_builder_errors(make: object, message: str) -> None:
    with pytest.raises(ss.QueryError, match=message):
        make()  # type: ignore[operator]


def test_built_queries_run_and_their_errors_point_into_the_printed_text() -> None:
    query = (ss.event("A", "a") >> ss.event("B", "b")).where("a.id = b.id")
    assert query.run_local(EVENTS, time="t", type="kind").num_rows == 1
    with pytest.raises(ss.QueryError) as raised:
        query.where("a.nope = 3").run_local(EVENTS, time="t", type="kind")
    assert "PATTERN SEQ(A a, B b) WHERE a.id = b.id AND a.nope = 3" in str(raised.value)


@pytest.mark.parametrize(
    "data",
    [
        EVENTS,
        EVENTS.to_batches()[0],
        EVENTS.to_pandas(),
        EVENTS.to_pandas().set_index("id", drop=False),
        pa.RecordBatchReader.from_batches(EVENTS.schema, EVENTS.to_batches()),
        pa.concat_tables([EVENTS.slice(2), EVENTS.slice(0, 2)]),
    ],
    ids=["table", "batch", "pandas", "pandas with index", "reader", "chunks out of order"],
)
def test_inputs(data: object) -> None:
    result = ss.query("PATTERN SEQ(A a, B b, C c) WHERE [id] WITHIN 5").run_local(data, time="t", type="kind")
    assert result.select(["match_start", "match_end"]).to_pylist() == [{"match_start": 1, "match_end": 3}]


def test_other_inputs_are_refused() -> None:
    with pytest.raises(TypeError, match="pyarrow or pandas"):
        ss.query("A").run_local([{"t": 1}], time="t")
    with pytest.raises(ss.QueryError, match="bad_rows"):
        ss.query("A").run_local(EVENTS, time="t", bad_rows="ignore")  # type: ignore[arg-type]
    with pytest.raises(ss.QueryError, match="invalid value for cache: 'maybe'"):
        ss.query("A").run_local(EVENTS, time="t", cache="maybe")  # type: ignore[arg-type]


def test_result_of_empty_input_has_the_full_schema() -> None:
    result = ss.query("PATTERN SEQ(A a, B b) RETURN a, b.x + 1 AS y").run_local(
        EVENTS.slice(0, 0), time="t", type="kind"
    )
    assert result.num_rows == 0
    assert result.schema == pa.schema([("a", pa.struct(list(EVENTS.schema))), ("y", pa.float64())])


def test_pandas_nanosecond_timestamps() -> None:
    frame = pd.DataFrame({"at": pd.to_datetime([0, 1, 3], unit="ns", utc=True), "kind": ["A", "B", "B"]})
    result = ss.query("PATTERN SEQ(A a, B b) WITHIN 0.000001 ms").run_local(frame, time="at", type="kind")
    assert result.num_rows == 1


def test_two_hundred_classes() -> None:
    rng = np.random.default_rng(3)
    kinds = [f"class {i}" for i in range(200)]
    table = pa.table({"t": np.arange(4000), "kind": [kinds[i] for i in rng.integers(0, 200, 4000)]})
    classes = " ; ".join(f"`{kind}` v{i}" for i, kind in enumerate(kinds))
    query = ss.query(f"PATTERN {classes} WITHIN 5")  # parses and runs; far too long a pattern to match
    assert query.run_local(table, time="t", type="kind").num_rows == 0
    assert (
        ss.query("PATTERN `class 7` a; `class 7` b WITHIN 4000").run_local(table, time="t", type="kind").num_rows > 10
    )


def test_check() -> None:
    query = ss.query("PATTERN SEQ(A a, B b) WHERE a.x < b.x")
    query.check()
    query.check(EVENTS.schema, time="t", type="kind")
    with pytest.raises(ss.QueryError, match="not in the data"):
        query.check(EVENTS, time="when")
    with pytest.raises(TypeError, match="time"):
        query.check(EVENTS)


def test_bad_rows_fail_or_are_dropped_with_a_warning() -> None:
    table = pa.table({"t": pa.array([1.0, None, float("nan"), 2.0]), "kind": ["A", "A", "B", "B"]})
    query = ss.query("PATTERN SEQ(A a, B b)")
    with pytest.raises(ss.BadInputError, match="2 rows"):
        query.run_local(table, time="t", type="kind")
    with pytest.warns(ss.BadRowsWarning, match="2 rows"):
        assert query.run_local(table, time="t", type="kind", bad_rows="drop").num_rows == 1


def test_timestamps_with_zones_are_instants() -> None:
    at = pa.array(
        [datetime(2024, 3, 31, 0, 30, tzinfo=UTC), datetime(2024, 3, 31, 1, 30, tzinfo=UTC)],
        pa.timestamp("us", "Europe/Berlin"),
    )
    table = pa.table({"at": at, "kind": ["A", "B"]})  # the clock jumps from 2 to 3 in between: still one hour
    query = "PATTERN SEQ(A a, B b) WHERE b.at - a.at = 1 h AND a.at = TIMESTAMP '2024-03-31 01:30:00+01:00' WITHIN 1 h"
    result = ss.query(query).run_local(table, time="at", type="kind")
    assert result.num_rows == 1
    assert result.schema.field("match_end").type == at.type
