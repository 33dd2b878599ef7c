"""Test MATCH_RECOGNIZE on Spark: the rows of `run_local`, expressions of Spark, SQL statements, and memory."""

from __future__ import annotations

import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

import streamsift as ss

TICKS = [
    *(("a", n, price, n) for n, price in enumerate([9.0, 5.0, 7.0, 3.0, 8.0, 2.0, 6.0], 1)),
    *((None, n, price, None) for n, price in enumerate([2.0, 1.0, 9.0], 1)),
    *((f"k{n % 7}", n, float(n * 37 % 11), n % 3) for n in range(200)),
]
V = """PARTITION BY sym ORDER BY ts {measures} {rows} AFTER MATCH SKIP {skip} PATTERN {pattern}
    DEFINE D AS price < PREV(price), U AS U.price > PREV(U.price) AND D.price < U.price"""
MEASURES = """MEASURES CLASSIFIER() AS label, MATCH_NUMBER() AS number, S.ts AS first, LAST(D.ts) AS bottom,
    U.price - S.price AS rise, SUM(x) AS total, AVG(x) AS mean, FINAL COUNT(D.*) AS downs, PREV(LAST(U.ts), 2) AS far"""


@pytest.fixture(scope="module")
def ticks(spark: SparkSession) -> DataFrame:
    df = spark.createDataFrame(TICKS, "sym STRING, ts INT, price DOUBLE, x INT").repartition(4).persist()
    df.createOrReplaceTempView("row_ticks")
    return df


def rows(result: object) -> list[str]:
    table = result.toArrow() if isinstance(result, DataFrame) else result
    return sorted(map(str, table.to_pylist()))


@pytest.mark.parametrize("skip", ["PAST LAST ROW", "TO NEXT ROW"])
@pytest.mark.parametrize(
    ("output", "pattern"),
    [
        ("ONE ROW PER MATCH", "(S D+ U+)"),
        ("ALL ROWS PER MATCH", "(S {- D+ -} U+?)"),
        ("ALL ROWS PER MATCH WITH UNMATCHED ROWS", "(S (D | U)* U)"),
    ],
)
def test_gives_the_rows_of_run_local(ticks: DataFrame, output: str, pattern: str, skip: str) -> None:
    clause = V.format(measures=MEASURES, rows=output, skip=skip, pattern=pattern)
    result = ss.match_recognize(ticks, clause)
    local = ss.match_recognize(ticks.toArrow(), clause)
    assert rows(result) == rows(local)
    assert rows(local)
    assert result.toArrow().schema.types == local.schema.types


def test_evaluates_expressions_of_spark(ticks: DataFrame) -> None:
    clause = """PARTITION BY sym ORDER BY ts
        MEASURES md5(S.sym) AS hash, CAST(U.price AS INT) + 1 AS n, 1 / (U.price - U.price) AS nothing,
            transform(array(S.ts, U.ts), t -> t + 1) AS times, COALESCE(E.ts, -1) AS absent
        PATTERN (S D+ U E?)
        DEFINE D AS price < PREV(price) AND 1 / (price - price) IS NULL AND CAST('a' AS INT) IS NULL,
            U AS md5(PREV(sym)) = md5(sym) AND price > PREV(price), E AS FALSE"""
    result = {str(row) for row in ss.match_recognize(ticks.where("sym = 'a'"), clause).drop("hash", "sym").collect()}
    assert result == {
        "Row(n=8, nothing=None, times=[2, 4], absent=-1)",
        "Row(n=7, nothing=None, times=[6, 8], absent=-1)",
    }


def test_runs_several_clauses_in_a_statement(spark: SparkSession, ticks: DataFrame) -> None:
    statement = """
        WITH c AS (SELECT * FROM row_ticks WHERE sym = 'a'), -- MATCH_RECOGNIZE (
        d AS (SELECT m.* FROM c MATCH_RECOGNIZE (
            PARTITION BY sym ORDER BY ts MEASURES COUNT(*) AS n PATTERN (D U)
            DEFINE D AS price < PREV(price), U AS price > PREV(price)) AS m)
        SELECT d.sym, count(*) AS matches, first(e.z) AS z, first(x.total) AS total
        FROM d JOIN t MATCH_RECOGNIZE (
                PARTITION BY sym ORDER BY ts MEASURES FIRST(ts) AS z PATTERN (^ A{3})) AS e(sym2, z) ON d.sym = e.sym2
            CROSS JOIN (SELECT ts FROM {t}) k MATCH_RECOGNIZE (MEASURES COUNT(*) AS total PATTERN (A+)) x
        WHERE d.n > 1 GROUP BY d.sym"""
    assert [tuple(row) for row in ss.sql(statement, spark, t=ticks).collect()] == [("a", 3, 1, len(TICKS))]
    assert [each.name for each in spark.catalog.listTables() if each.name.startswith("streamsift_")] == []


def test_reports_mistakes_at_their_place_in_the_statement(spark: SparkSession, ticks: DataFrame) -> None:
    with pytest.raises(ss.QueryError, match=r"(?s)unknown column `prize` \(line 2, .*did you mean `price`"):
        ss.sql("SELECT *\nFROM row_ticks MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS prize > 1)", spark)
    with pytest.raises(ss.QueryError, match="Spark cannot evaluate it"):
        ss.match_recognize(ticks, "PATTERN (A) DEFINE A AS no_such_function(price) > 1")


def test_names_a_partition_that_is_too_large(ticks: DataFrame) -> None:
    clause = "PARTITION BY sym ORDER BY ts MEASURES COUNT(*) AS n PATTERN (A+)"
    with pytest.raises(PythonException, match=r"the partition sym = 'a' is too large"):
        ss.match_recognize(ticks.where("sym = 'a'"), clause, max_partition_bytes=40).collect()


def test_explains_the_shuffle(ticks: DataFrame) -> None:
    plan = ss.query("MATCH_RECOGNIZE (PATTERN (A B) DEFINE B AS price > 3)").explain(ticks)
    assert "all rows go to one task, because there is no PARTITION BY" in plan
    assert "computed by Spark: (`price` > 3)" in plan
