"""Test batch runs on Spark: partitions, pruning, bad rows, types, laziness."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import streamsift as ss

PAIR = ss.query("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5")


def events(
    spark: SparkSession, rows: list[tuple[object, ...]], schema: str = "t INT, kind STRING, id BIGINT"
) -> DataFrame:
    return spark.createDataFrame(rows, schema).repartition(3)


def pairs(result: DataFrame, *columns: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in result.select(*columns).collect())


def test_keys_are_found_wherever_their_rows_are(spark: SparkSession) -> None:
    rows = [(t, kind, key) for key in range(50) for t, kind in ((key, "A"), (key + 2, "B"), (key + 9, "B"))]
    result = PAIR.run(events(spark, rows), time="t", type="kind")
    assert pairs(result, "a.id", "b.id", "a.t", "b.t") == [(k, k, k, k + 2) for k in range(50)]


def test_null_keys_match_nothing(spark: SparkSession) -> None:
    rows = [(1, "A", None), (2, "B", None), (1, "A", 7), (2, "B", 7)]
    assert pairs(PAIR.run(events(spark, rows), time="t", type="kind"), "a.id") == [(7,)]


def test_negative_zero_is_zero_across_partitions(spark: SparkSession) -> None:
    rows = [(t, kind, value) for t, kind, value in ((1, "A", 0.0), (2, "B", -0.0), (3, "A", -0.0), (4, "B", 0.0))]
    result = PAIR.run(events(spark, rows, "t INT, kind STRING, id DOUBLE"), time="t", type="kind")
    assert pairs(result, "a.t", "b.t") == [(1, 2), (1, 4), (3, 4)]


@pytest.mark.parametrize(
    ("predicate", "found"),
    [("a.name != 'abc'", 1), ("a.name = 'abc'", 0), ("NOT a.name LIKE 'a%'", 1), ("a.name NOT IN ('abc')", 1)],
)
def test_a_collation_does_not_decide_which_strings_are_equal(spark: SparkSession, predicate: str, found: int) -> None:
    df = events(spark, [(1, "A", "ABC"), (2, "B", "x")], "t INT, kind STRING, name STRING COLLATE UTF8_LCASE")
    query = ss.query(f"PATTERN SEQ(A a, B b) WHERE {predicate} WITHIN 5")
    assert query.run(df, time="t", type="kind").count() == found


@pytest.mark.parametrize("predicate", ["b.x < 3.0000000001", "a.x > 2.5", "a.x > 2", "b.y < -1", f"a.n < {10**19}"])
def test_literals_next_to_the_longest_decimals(spark: SparkSession, predicate: str) -> None:
    rows = [(1, "A", Decimal(10) ** 37, Decimal(0), 5), (2, "B", Decimal(3), Decimal(f"-1.{1:037}"), 5)]
    df = events(spark, rows, "t INT, kind STRING, x DECIMAL(38,0), y DECIMAL(38,37), n BIGINT")
    query = ss.query(f"PATTERN SEQ(A a, B b) WHERE {predicate} WITHIN 5")
    assert query.run(df, time="t", type="kind").count() == 1


def test_rows_of_other_classes_do_not_reach_python(spark: SparkSession) -> None:
    df = events(spark, [(t, kind, 1) for t in range(10) for kind in "ABCDE"])
    plan = _physical_plan(PAIR.run(df, time="t", type="kind"))
    assert "Filter" in plan
    assert "kind" in plan.split("Filter")[1].split("\n")[0]


def _physical_plan(df: DataFrame) -> str:
    import contextlib
    import io

    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        df.explain()
    return text.getvalue()


def test_only_named_columns_are_read(spark: SparkSession) -> None:
    df = events(spark, [(1, "A", 1, "x")], "t INT, kind STRING, id BIGINT, extra STRING")
    query = ss.query("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5 RETURN a.id, b.t AS t")
    result = query.run(df, time="t", type="kind")
    assert result.columns == ["a_id", "t"]
    assert "extra" not in _physical_plan(result.select("t")).split("Exchange")[0]


def test_running_is_lazy(spark: SparkSession) -> None:
    df = events(spark, [(1, "A", 1)]).withColumn("t", F.raise_error(F.lit("read!")).cast("int"))
    PAIR.run(df, time="t", type="kind")
    PAIR.explain(df, time="t", type="kind")


@pytest.mark.parametrize("schema", ["t INT, kind STRING, id BIGINT", "t DOUBLE, kind STRING, id BIGINT"])
def test_bad_rows_fail_with_their_count_over_all_partitions(spark: SparkSession, schema: str) -> None:
    good = [(float(t) if "DOUBLE" in schema else t, "A", t) for t in range(20)]
    bad = [(None, "Z", key) for key in range(7)]  # of a class that is not in the query
    with pytest.raises(PythonException, match="7 rows"):
        PAIR.run(events(spark, good + bad, schema), time="t", type="kind").collect()


def test_bad_rows_are_dropped_and_counted(spark: SparkSession) -> None:
    rows = [(1, "A", 1), (None, "A", 1), (2, "B", 1), (None, "B", 2)]
    observation = Observation()
    result = PAIR.run(events(spark, rows), time="t", type="kind", bad_rows="drop", observation=observation)
    assert pairs(result, "a.t", "b.t") == [(1, 2)]
    assert observation.get == {"rows": 4, "bad_rows": 2}


def test_text_times_are_parsed_and_bad_ones_reported(spark: SparkSession) -> None:
    rows = [("2024-05-01 10:00:00", "A", 1), ("2024-05-01T10:00:03Z", "B", 1), ("soon", "B", 1)]
    df = events(spark, rows, "t STRING, kind STRING, id BIGINT")
    with pytest.raises(PythonException, match="soon"):
        PAIR.run(df, time="t", type="kind").collect()
    (row,) = PAIR.run(df, time="t", type="kind", bad_rows="drop").select("match_end", "b.t").collect()
    assert row.t == "2024-05-01T10:00:03Z"
    assert row.match_end.astimezone(UTC) == datetime(2024, 5, 1, 10, 0, 3, tzinfo=UTC)


def test_order_column(spark: SparkSession) -> None:
    rows = [(1, "B", 1, 2), (1, "A", 1, 1), (1, "B", 1, 0)]
    df = events(spark, rows, "t INT, kind STRING, id BIGINT, seq INT")
    assert PAIR.run(df, time="t", type="kind").count() == 0
    assert pairs(PAIR.run(df, time="t", type="kind", order="seq"), "b.seq") == [(2,)]


def test_count_windows_count_rows_of_all_keys_unless_partitioned(spark: SparkSession) -> None:
    rows = [(1, "A", 1), (2, "X", 2), (3, "X", 2), (4, "B", 1)]
    by_rows = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 3 EVENTS"
    assert ss.query(by_rows).run(events(spark, rows), time="t", type="kind").count() == 0
    partitioned = ss.query("PATTERN SEQ(A a, B b) PARTITION BY id WITHIN 3 EVENTS")
    assert partitioned.run(events(spark, rows), time="t", type="kind").count() == 1


def test_result_keeps_spark_types_and_composes(spark: SparkSession) -> None:
    schema = "t TIMESTAMP, kind STRING, id BIGINT, price DECIMAL(12,3), tags ARRAY<STRING>, "
    schema += "m MAP<STRING,INT>, d DATE, n TIMESTAMP_NTZ"
    at = datetime(2024, 5, 1, 12, tzinfo=UTC)
    rows = [
        (at, "A", 1, Decimal("1.250"), ["x"], {"k": 1}, at.date(), at.replace(tzinfo=None)),
        (at.replace(second=2), "B", 1, None, None, None, None, None),
    ]
    df = events(spark, rows, schema)
    result = PAIR.run(df, time="t", type="kind")
    assert result.schema["a"].dataType.simpleString() == df.schema.simpleString()
    assert result.schema["match_start"].dataType == df.schema["t"].dataType
    (row,) = result.where("a.price > 1").select("a.*", "match_end").collect()
    assert (row.price, row.tags, row.m, row.d, row.n) == (
        Decimal("1.250"),
        ["x"],
        {"k": 1},
        at.date(),
        at.replace(tzinfo=None),
    )
    assert row.match_end.astimezone(UTC) == at.replace(second=2)


def test_empty_input_has_the_full_schema(spark: SparkSession) -> None:
    result = PAIR.run(events(spark, []), time="t", type="kind")
    assert result.columns == ["a", "b", "match_start", "match_end"]
    assert result.count() == 0


def test_column_names_with_dots_and_backticks(spark: SparkSession) -> None:
    df = events(spark, [(1, "A", 5, 0), (2, "B", 5, 0)], "`t.s` INT, `ki``nd` STRING, `order` BIGINT, `$bad` INT")
    query = ss.query("PATTERN SEQ(A a, B b) WHERE a.order = b.order AND a.`t.s` < b.`t.s` WITHIN 5")
    assert query.run(df, time="t.s", type="ki`nd").count() == 1


@pytest.mark.parametrize(
    "value",
    ["named_struct('p', 1)", "array(if(t > 1, null, named_struct('p', 1)))", "parse_json('{\"p\": [1, null]}')"],
)
def test_nested_values_may_be_null(spark: SparkSession, value: str) -> None:
    df = events(spark, [(1, "A", 5), (2, "B", 5)]).selectExpr("*", f"if(t > 1, null, {value}) AS x")
    (row,) = PAIR.run(df, time="t", type="kind").select("a.x", "b.x").collect()
    assert list(map(str, row)) == [str(x) for (x,) in df.orderBy("t").select("x").collect()]


def test_names_that_differ_by_case_only(spark: SparkSession) -> None:
    df = events(spark, [(1, "A", 5), (2, "B", 5)]).selectExpr("*", "1 AS x", "2 AS X")
    with pytest.raises(ss.QueryError, match="`x`, `X`"):
        PAIR.run(df, time="t", type="kind")
    assert ss.query("PATTERN SEQ(A a, B b) WHERE [id] RETURN a.t AS t").run(df, time="t", type="kind").count() == 1


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("PATTERN SEQ(A a, B b) RETURN a.t AS x, b.t AS X", "`x` and `X`"),
        ("PATTERN SEQ(A a, B A)", "`a` and `A`"),
        ("PATTERN SEQ(A a, B Match_Start)", "`match_start` and `Match_Start`"),
    ],
)
def test_output_names_that_differ_by_case_only(spark: SparkSession, query: str, names: str) -> None:
    df = events(spark, [(1, "A", 5), (2, "B", 5)])
    with pytest.raises(ss.QueryError, match=rf"(?s)Spark cannot distinguish the output columns {names}.*\^"):
        ss.query(query).run(df, time="t", type="kind")
    assert ss.query(query).run_local(df.toArrow(), time="t", type="kind").num_rows == 1
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        assert ss.query(query).run(df, time="t", type="kind").count() == 1
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


@pytest.mark.parametrize("zone", ["Z", "+05:30", "UTC+2", "Asia/Kolkata"])
def test_time_zones_of_sessions(spark: SparkSession, zone: str) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        df = spark.sql("SELECT TIMESTAMP '2024-05-01 10:00:00' AS t, 1 AS id")
        query = ss.query("PATTERN SEQ(ANY a) WHERE a.t = TIMESTAMP '2024-05-01 10:00:00'")
        assert query.run(df, time="t").count() == 1
    finally:
        spark.conf.set("spark.sql.session.timeZone", before or "UTC")


def test_case_sensitivity_follows_the_session(spark: SparkSession) -> None:
    df = events(spark, [(1, "A", 5), (2, "B", 5)])
    query = ss.query("PATTERN SEQ(A a, B b) WHERE [ID] WITHIN 5")
    assert query.run(df, time="T", type="KIND").count() == 1
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(ss.QueryError, match="ID"):
            query.run(df, time="t", type="kind")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_explain_says_where_it_runs(spark: SparkSession) -> None:
    df = events(spark, [])
    assert "time slices per id" in PAIR.explain(df, time="t", type="kind")
    assert "time slices" in ss.query("PATTERN SEQ(A a, B b) WITHIN 5").explain(df, time="t", type="kind")


def test_other_frames_are_refused(spark: SparkSession) -> None:
    with pytest.raises(TypeError, match="run_local"):
        PAIR.run(pa.table({"t": [1]}), time="t")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"run\(\)"):
        PAIR.run_local(events(spark, []), time="t")
    with pytest.raises(TypeError, match=r"`time` must be the name of a column, not .*Column"):
        PAIR.run(events(spark, []), time=F.col("t"))  # type: ignore[arg-type]


def test_many_queries_share_one_shuffle(spark: SparkSession) -> None:
    table = pa.table({"t": range(60), "kind": list("ABC") * 20, "id": [i % 4 for i in range(60)]})
    queries = {
        "two": "PATTERN SEQ(A, B) GROUP BY id AGG COUNT WITHIN 9",
        "three": "PATTERN SEQ(A, B, C) GROUP BY id AGG COUNT WITHIN 9",
        "inner": "PATTERN SEQ(B b, A, C) GROUP BY id AGG COUNT WITHIN 19",
        "other": "PATTERN SEQ(C c, A, C d) GROUP BY id AGG COUNT WITHIN 19",
        "sum": "PATTERN SEQ(A, B b) GROUP BY id AGG SUM(b.t) WITHIN 9",
        "all": "PATTERN SEQ(A, B) AGG COUNT",
        "matches": "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 9 RETURN a.t, b.t",
    }
    df = spark.createDataFrame(table).repartition(2)
    with ss.run_many(queries, df, time="t", type="kind", share="always") as results:
        for name, text in queries.items():
            expected = ss.query(text).run_local(table, time="t", type="kind").to_pylist()
            found = results[name].toArrow().to_pylist()
            assert sorted(map(repr, found)) == sorted(map(repr, expected)), name
    assert results["two"].count() == len(ss.query(queries["two"]).run_local(table, time="t", type="kind"))
