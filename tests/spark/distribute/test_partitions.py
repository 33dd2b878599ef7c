"""Compare generated queries of every kind on several Spark partitions with the local engine.

Streams have several keys and span several time slices, and adaptive execution is off: it would put such small
partitions together into one task, where a wrong key or a slice that reads too little changes nothing.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, event, given, note, settings
from hypothesis import strategies as st
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

import streamsift as ss
from spark_check import BINDING
from strategies import any_queries, sparse_streams, tying_queries
from streamed import counted
from streamsift.language import Script, print_script
from streamsift.spark.distribute import slices
from test_generated import EXAMPLES, LARGE, SCHEMA, Rows

ADAPTIVE, PARTITIONS = "spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions"
SAVED = [
    "PATTERN SEQ(A[2] v, !B z) WHERE v.id = z.id WITHIN 5",
    "PATTERN SEQ(!B z, A[2] v) WHERE v.id = z.id WITHIN 5",
    "PATTERN AND(A[2] v, !B z) WHERE v.id = z.id WITHIN 5",
    "PATTERN SEQ(A[2] v, !B z) WHERE v.id = z.id PREF MAX[SUM(v.x)] WITHIN 5 RETURN 60",
    "PATTERN OR(A a, B[2] b) WHERE a.id = b.id WITHIN 4",
    "PATTERN OR(A a, B+ b) WHERE a.id = b.id WITHIN 4",
    "PATTERN SEQ(AND(A* a, B* b, [id]), !C c) WHERE a.id = c.id WITHIN 5",
    "PATTERN SEQ(!B b, A a) AGG COUNT WITHIN 3",
    "SEQ S = (B b; !C c) WITHIN 9 PATTERN A a; S WHERE S.c.x = 8 WITHIN 3",
    "PATTERN C+ c WITHIN 4",
]


@pytest.fixture(params=[5, 8] if LARGE else [8])
def partitioned(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    before = spark.conf.get(PARTITIONS)
    spark.conf.set(ADAPTIVE, "false")
    spark.conf.set(PARTITIONS, request.param)
    yield spark
    spark.conf.unset(ADAPTIVE)
    spark.conf.set(PARTITIONS, before)


@pytest.fixture
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE_REACHES", 1)


def check(spark: SparkSession, text: str, rows: Rows) -> None:
    note(text)
    table = pa.Table.from_pylist(rows, SCHEMA)
    query = ss.query(text)
    try:
        expected = query.run_local(table, **BINDING).to_pylist()
    except (ss.UnsupportedQuery, ss.QueryError, ss.BadInputError) as refusal:
        event(f"refused: {type(refusal).__name__}")
        return
    df = spark.createDataFrame(table).repartition(3)
    event("rows" if expected else "no row")
    event(query.explain(df, **BINDING).partition("Spark: ")[2].partition(" ")[0])
    assert counted(query.run(df, **BINDING).toArrow().to_pylist()) == counted(expected)


# Not shrunk: each attempt is a Spark job.
@settings(
    max_examples=EXAMPLES or (500 if LARGE else 15),
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
@given(script=st.one_of(any_queries(), tying_queries()), rows=sparse_streams(max_size=20))
def test_any_query(partitioned: SparkSession, short_slices: None, script: Script, rows: Rows) -> None:
    check(partitioned, print_script(script), rows)


@settings(
    max_examples=EXAMPLES or (50 if LARGE else 4), suppress_health_check=list(HealthCheck), phases=[Phase.generate]
)
@given(scripts=st.lists(any_queries(), min_size=3, max_size=5), rows=sparse_streams(max_size=20))
def test_several_queries(partitioned: SparkSession, short_slices: None, scripts: list[Script], rows: Rows) -> None:
    """Queries with any keys share a shuffle."""
    table, expected = pa.Table.from_pylist(rows, SCHEMA), dict[str, Rows]()
    for text in map(print_script, scripts):
        try:
            expected[text] = ss.query(text).run_local(table, **BINDING).to_pylist()
        except (ss.UnsupportedQuery, ss.QueryError, ss.BadInputError):
            continue
    note("\n".join(expected))
    if expected:
        df = partitioned.createDataFrame(table).repartition(3)
        with ss.run_many({text: ss.query(text) for text in expected}, df, **BINDING) as results:
            actual = {text: counted(results[text].toArrow().to_pylist()) for text in expected}
        assert actual == {text: counted(rows) for text, rows in expected.items()}


@settings(max_examples=10 if LARGE else 1, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(seed=st.integers(0, 2**32))
@pytest.mark.parametrize("text", SAVED)
def test_saved_query(partitioned: SparkSession, short_slices: None, text: str, seed: int) -> None:
    """Queries that once lost rows, on more rows than generated streams have."""
    check(partitioned, text, dense_rows(seed))


def dense_rows(seed: int) -> Rows:
    """Return 300 rows of three classes and seven keys."""
    chance = random.Random(seed)
    rows = []
    for place in range(300):
        row = {"t": place // 2, "kind": chance.choice("ABC"), "id": chance.randrange(7), "n": place % 3, "seq": place}
        rows.append({**row, "x": float(chance.randrange(9)), "s": chance.choice("ab")})
    return rows


def test_an_error_of_a_worker_is_not_an_answer(partitioned: SparkSession) -> None:
    """A query that fails on Spark fails the test."""
    df = partitioned.createDataFrame([(None, "A")], "t BIGINT, kind STRING")
    with pytest.raises(PythonException, match="no usable time"):
        ss.query("PATTERN A a").run(df, time="t", type="kind").collect()
