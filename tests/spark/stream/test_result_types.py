"""Test that a stream returns values of every type unchanged, as lists of rows or, for some types, as messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

import streamsift as ss
from streamsift.spark.columns import is_plain

BINDING = {"time": "t", "type": "kind"}
PLAIN = """
    t % 2 = 0 AS flag, CAST(t AS TINYINT) AS tiny, CAST(t AS SMALLINT) AS small, CAST(t AS FLOAT) AS single,
    CAST('NaN' AS DOUBLE) AS nan, CAST(t AS DECIMAL(30, 10)) / 7 AS decimal, CAST(kind AS BINARY) AS bytes,
    DATE '1969-12-31' AS day, TIMESTAMP '2024-03-10 03:00:00.123456' AS at,
    TIMESTAMP_NTZ '0001-01-01 00:00:00' AS local,
    IF(t = 1, NULL, array(struct(t AS a, array(kind, NULL) AS b), NULL)) AS nested, CAST(NULL AS STRING) AS nothing
"""


@pytest.mark.parametrize("more", ["", ", map(kind, t) AS pairs, INTERVAL '1' DAY AS length"], ids=["lists", "messages"])
def test_values_are_those_of_the_batch(spark: SparkSession, tmp_path: Path, more: str) -> None:
    rows = [(1, "A"), (2, "B"), (3, "B"), (9, "-")]
    spark.createDataFrame(rows, "t bigint, kind string").createOrReplaceTempView("typed")
    events = spark.sql(f"SELECT *, {PLAIN}{more} FROM typed")
    events.coalesce(1).write.parquet(str(tmp_path / "in"))
    batch = spark.read.parquet(str(tmp_path / "in"))
    query = ss.query("PATTERN SEQ(A a, B b) WITHIN 5")
    result = query.run(spark.readStream.schema(batch.schema).parquet(str(tmp_path / "in")), **BINDING)
    expected = query.run(batch, **BINDING)
    assert result.schema == expected.schema
    assert is_plain(result.schema) is not bool(more)
    writer = result.writeStream.format("memory").queryName("types").trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    assert texts(spark.table("types")) == texts(expected)
    assert expected.count() == 2


def texts(df: DataFrame) -> list[str]:
    return sorted(row.text for row in df.select(F.to_json(F.struct("*")).alias("text")).collect())
