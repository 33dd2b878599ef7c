"""Test the SQL table function: the rows of `Query.run`; columns and mistakes are reported before any row is read."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import SparkSession

import streamsift as ss

QUERY = "PATTERN SEQ(A a, B b) WHERE a.id = b.id AND a.x < b.x WITHIN 5 s"


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> str:
    rows = [(f"2024-03-10 03:00:{t}", "AB"[t % 2], t % 3, t / 7) for t in range(10, 50)]
    df = spark.createDataFrame(rows, "ts STRING, kind STRING, id INT, x DOUBLE")
    df.selectExpr("CAST(ts AS TIMESTAMP) AS ts", "kind", "id", "x").repartition(4).createOrReplaceTempView("events")
    ss.register(spark)
    return "events"


def rows(spark: SparkSession, statement: str) -> list[str]:
    return sorted(map(str, spark.sql(statement).collect()))


@pytest.mark.parametrize("clause", ["PARTITION BY (id)", "WITH SINGLE PARTITION"])
def test_gives_the_rows_of_run(spark: SparkSession, events: str, clause: str) -> None:
    found = rows(spark, f"SELECT * FROM streamsift(TABLE({events}) {clause}, '{QUERY}', 'ts', type => 'kind')")
    expected = ss.query(QUERY).run(spark.table(events), time="ts", type="kind")
    assert found == sorted(map(str, expected.collect()))
    assert found


def test_knows_its_columns_before_it_runs(spark: SparkSession, events: str) -> None:
    counted = "PATTERN SEQ(A a, B b) WITHIN 5 s GROUP BY id AGG COUNT, SUM(b.x) AS total"
    df = spark.sql(f"SELECT total, id FROM streamsift(TABLE({events}) PARTITION BY (id), '{counted}', 'ts', 'kind')")
    assert df.dtypes == [("total", "double"), ("id", "int")]
    expected = ss.query(counted).run(spark.table(events), time="ts", type="kind").select("total", "id")
    assert sorted(map(str, df.collect())) == sorted(map(str, expected.collect()))


def test_reports_mistakes_when_analyzed(spark: SparkSession, events: str) -> None:
    wrong = "PATTERN SEQ(A a, B b) WHERE a.idd = b.id WITHIN 5 s"
    with pytest.raises(AnalysisException, match=r"(?s)idd.*\^") as caught:
        spark.sql(f"SELECT * FROM streamsift(TABLE({events}) PARTITION BY (id), '{wrong}', 'ts', 'kind')")
    assert "Traceback" not in str(caught.value)
    with pytest.raises(AnalysisException, match="must be a table"):
        spark.sql(f"SELECT * FROM streamsift(1, '{QUERY}', 'ts', 'kind')")
    with pytest.raises(AnalysisException, match="bad_rows"):
        spark.sql(f"SELECT * FROM streamsift(TABLE({events}), '{QUERY}', 'ts', bad_rows => 'keep')")


def test_a_table_without_a_partition_clause_is_rejected(spark: SparkSession, events: str) -> None:
    with pytest.raises(PythonException, match="WITH SINGLE PARTITION"):
        spark.sql(f"SELECT * FROM streamsift(TABLE({events}), '{QUERY}', 'ts', 'kind')").collect()
