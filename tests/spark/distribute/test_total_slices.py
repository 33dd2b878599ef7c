"""Compare aggregates on Spark, split by time and by group and time, with the oracle."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from pyspark.sql import Observation, SparkSession

import naive
import streamsift as ss
from spark_check import BINDING, scattered
from strategies import COLUMNS, Event
from test_generated import SCHEMA, assert_equal

LARGE = os.environ.get("STREAMSIFT_HYPOTHESIS") == "large"
PATTERNS = [
    "SEQ(A a, B b)",
    "SEQ(A a, !C c, B b)",
    "SEQ(!C c, A a, B b)",
    "SEQ(A a, B b, !C c)",
    "SEQ(A a, !SEQ(C c, A d), B b)",
    "AND(A a, B b)",
    "OR(SEQ(A a, B b), C e)",
    "SEQ(A a, B b, ANY f)",
    "OR(A a, B b)",
]
AGGREGATES = ["COUNT", "COUNT, SUM(a.n), AVG(a.x)", "MIN(a.x), MAX(b.s) AS s", "AVG(a.n)", "SUM(a.x)"]


@st.composite
def totals(draw: st.DrawFn) -> str:
    condition = draw(st.sampled_from(["", "", " WHERE [id]", " WHERE a.n < b.n"]))
    partition = draw(st.sampled_from(["", "", " PARTITION BY id"]))
    window = draw(st.sampled_from(["0", "1", "2", "3", "2.5", "3 EXCLUSIVE"]))
    update = draw(st.sampled_from(["", "", " UPDATE 1", " UPDATE 2", " UPDATE 5"]))
    pattern, aggregates = draw(st.sampled_from(PATTERNS)), draw(st.sampled_from(AGGREGATES))
    group = draw(st.sampled_from(["", "", " GROUP BY id", " GROUP BY id, n", " GROUP BY kind", " GROUP BY s, kind"]))
    return f"PATTERN {pattern}{condition}{partition}{group} AGG {aggregates} WITHIN {window}{update}"


@st.composite
def long_streams(draw: st.DrawFn) -> list[Event]:
    """Generate times over several slices, also negative ones, dense enough for matches."""
    drawn = draw(
        st.lists(
            st.tuples(st.sampled_from([0, 1, 1, 2, 5, 20]), st.sampled_from("AABBC"), st.integers(1, 2)),
            min_size=4,
            max_size=16,
        )
    )
    time = draw(st.sampled_from([-40, -9, 0, 20, 2**62]))
    rows: list[Event] = []
    for place, (gap, kind, identity) in enumerate(drawn):
        time += gap
        own = {"t": time, "kind": kind, "id": identity, "n": place % 3, "x": identity / 4, "s": kind, "seq": place}
        rows.append({**dict.fromkeys(COLUMNS), **own})
    return rows


@settings(max_examples=300 if LARGE else 9, suppress_health_check=list(HealthCheck))
@given(text=totals(), rows=long_streams())
def test_totals(spark: SparkSession, text: str, rows: list[Event]) -> None:
    df = scattered(spark, pa.Table.from_pylist(rows, SCHEMA))
    query = ss.query(text)
    assert "time slices" in query.explain(df, **BINDING)
    actual = query.run(df, **BINDING).toArrow().to_pylist()
    event("rows" if actual else "no rows")
    assert_equal(naive.run(text, rows, **BINDING, columns=COLUMNS), actual)


@pytest.mark.parametrize("update", ["", " UPDATE 15"])
@pytest.mark.parametrize("group", ["kind", "id, kind", "s"])
@pytest.mark.parametrize("pattern", ["A a", "OR(A a, B b)", "SEQ(ANY a, ANY b)"])
def test_groups_of_the_type(spark: SparkSession, pattern: str, group: str, update: str) -> None:
    """Class names are sent to Python as numbers; GROUP BY the type column returns names."""
    rows = [
        {**dict.fromkeys(COLUMNS), "t": 3 * i, "kind": "ABCA"[i % 4], "id": i % 3, "s": "xyz"[i % 3], "seq": i}
        for i in range(40)
    ]
    text = f"PATTERN {pattern} GROUP BY {group} AGG COUNT WITHIN 40{update}"
    df = scattered(spark, pa.Table.from_pylist(rows, SCHEMA))
    assert "time slices" in ss.query(text).explain(df, **BINDING)
    found = ss.query(text).run(df, **BINDING).toArrow().to_pylist()
    assert found
    assert_equal(naive.run(text, rows, **BINDING, columns=COLUMNS), found)


def test_groups_of_many_queries(spark: SparkSession) -> None:
    """The events have the columns of all queries."""
    rows = [
        {**dict.fromkeys(COLUMNS), "t": 3 * i, "kind": "ABCA"[i % 4], "id": i % 3, "n": i % 2, "x": i / 4, "seq": i}
        for i in range(40)
    ]
    texts = {
        "sum": "PATTERN SEQ(A a, B b) WHERE a.x < b.x AGG SUM(a.x) WITHIN 20",
        "by n": "PATTERN SEQ(A a, B b) GROUP BY n AGG COUNT WITHIN 20",
        "by id": "PATTERN SEQ(A a, B b) GROUP BY id AGG COUNT WITHIN 20",
        "by kind": "PATTERN OR(A a, B b) GROUP BY kind, id AGG COUNT WITHIN 20 UPDATE 10",
    }
    df = scattered(spark, pa.Table.from_pylist(rows, SCHEMA))
    with ss.run_many(texts, df, **BINDING, spread="slices") as found:
        for name, text in texts.items():
            actual = found[name].toArrow().to_pylist()
            assert actual
            assert_equal(naive.run(text, rows, **BINDING, columns=COLUMNS), actual)


START = datetime(1969, 12, 31, 23, 59, 50, 500_001)
TIMES: dict[str, tuple[pa.DataType, list[Any], str]] = {
    "timestamp": (
        pa.timestamp("us", "UTC"),
        [START.replace(tzinfo=UTC) + timedelta(seconds=1.7 * i) for i in range(60)],
        "2 s",
    ),
    "timestamp without zone": (pa.timestamp("us"), [START + timedelta(seconds=1.7 * i) for i in range(60)], "3.5 s"),
    "date": (pa.date32(), [date(1969, 12, 1) + timedelta(days=i) for i in range(60)], "2 days"),
    "short": (pa.int16(), [i - 30 for i in range(60)], "2"),
}


@pytest.mark.parametrize("update", ["", " UPDATE"])
@pytest.mark.parametrize("name", TIMES)
def test_kinds_of_times(spark: SparkSession, name: str, update: str) -> None:
    kind, times, window = TIMES[name]
    table = pa.table({"t": pa.array(times, kind), "kind": ["A", "B", "C"] * 20, "n": range(60)})
    tick = f"{update} {window}" if update else ""
    query = ss.query(f"PATTERN SEQ(A a, ANY b) AGG COUNT, SUM(b.n), MAX(a.t) AS last WITHIN {window}{tick}")
    df = spark.createDataFrame(table).repartition(3)
    if name == "timestamp without zone":
        df = df.withColumn("t", df["t"].cast("timestamp_ntz"))
    assert "time slices" in query.explain(df, time="t", type="kind")
    found = query.run(df, time="t", type="kind").toArrow().sort_by("time")
    expected = query.run_local(table, time="t", type="kind")
    assert found.num_rows > 2
    assert found.cast(expected.schema).equals(expected)


def test_bad_rows_are_counted_once(spark: SparkSession) -> None:
    table = pa.table({"t": [None, 1, 2, 16], "seq": [1, 2, None, 4], "kind": ["A", "A", "A", "B"]})
    query, observation = ss.query("PATTERN SEQ(A a, B b) AGG COUNT WITHIN 20"), Observation()
    binding: dict[str, Any] = {"time": "t", "type": "kind", "order": "seq"}
    df = spark.createDataFrame(table)
    found = query.run(df, **binding, bad_rows="drop", observation=observation).toArrow().to_pylist()
    assert found == [{"time": 16, "count": 1}]
    assert observation.get == {"rows": 4, "bad_rows": 2}
    with pytest.raises(Exception, match="2 rows"):
        query.run(df, **binding).collect()
