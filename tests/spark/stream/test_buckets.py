"""Test the number of buckets: default, given, kept by a restart, independent of shuffle partitions, warned about."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkAttributeError
from pyspark.sql import DataFrame, SparkSession

import streamsift as ss
from streamsift.spark.stream import buckets
from streamsift.spark.stream.buckets import SHUFFLE_PARTITIONS, STATE_PARTITIONS, default_buckets, set_buckets

BINDING = {"time": "t", "type": "kind"}
COLUMNS = "t bigint, kind string, id int"
PAIRS = ss.query("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5")


@pytest.fixture(autouse=True)
def settings(spark: SparkSession) -> Iterator[None]:
    """Skip old versions of Spark, and restore the settings that a test changes."""
    if not buckets.has_setting(spark):
        pytest.skip("this version of Spark has no setting for the number of state partitions")
    before = spark.conf.get(SHUFFLE_PARTITIONS)
    yield
    spark.conf.set(SHUFFLE_PARTITIONS, str(before))
    spark.conf.unset(STATE_PARTITIONS)


def drop(directory: Path, number: int) -> None:
    """Add a file with one pair of events for each of ten keys, and a heartbeat."""
    directory.mkdir(exist_ok=True)
    start = 100 * number
    rows = [{"t": start + step, "kind": kind, "id": key} for step, kind in enumerate("AB") for key in range(10)]
    hidden = directory / f".{number}"
    hidden.write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"t": start + 50, "kind": "-", "id": 0}]))
    hidden.rename(directory / f"{number}.json")


def stream(spark: SparkSession, directory: Path) -> DataFrame:
    return spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).json(str(directory))


def run_once(result: DataFrame, path: Path) -> Any:
    writer = result.writeStream.format("json").option("path", str(path / "out"))
    query = writer.option("checkpointLocation", str(path / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    return query


def partitions(query: Any) -> int:
    return int(query.lastProgress["stateOperators"][0]["numShufflePartitions"])


def test_a_restart_keeps_its_number_with_other_cores_and_200_shuffle_partitions(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.conf.set(SHUFFLE_PARTITIONS, "200")
    drop(tmp_path / "in", 0)
    query = run_once(PAIRS.run(stream(spark, tmp_path / "in"), **BINDING), tmp_path)
    assert partitions(query) == default_buckets(spark) == 2 * spark.sparkContext.defaultParallelism
    monkeypatch.setattr(buckets, "default_buckets", lambda _: 7)
    for number, more in enumerate(({}, {"buckets": 3}), start=1):
        drop(tmp_path / "in", number)
        query = run_once(PAIRS.run(stream(spark, tmp_path / "in"), **more, **BINDING), tmp_path)
        assert partitions(query) == default_buckets(spark)
    expected = PAIRS.run(spark.read.schema(COLUMNS).json(str(tmp_path / "in")), **BINDING)
    found = spark.read.schema(expected.schema).json(str(tmp_path / "out"))
    assert found.count() == expected.count() == 30
    assert ss.metrics(query).state_rows == 0, "all buckets have reported"


def test_a_given_number_for_several_queries_in_one_pass(spark: SparkSession, tmp_path: Path) -> None:
    drop(tmp_path / "in", 0)
    queries = {"pairs": PAIRS, "counts": "PATTERN SEQ(A a, B b) WHERE [id] GROUP BY id AGG COUNT WITHIN 5"}
    shared = ss.run_many(queries, stream(spark, tmp_path / "in"), buckets=3, **BINDING)
    found: dict[str, int] = dict.fromkeys(queries, 0)

    def write(results: dict[str, DataFrame], _: int) -> None:
        for name, rows in results.items():
            found[name] += rows.count()

    writer = shared.together.writeStream.foreachBatch(shared.each(write))
    query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
    query.awaitTermination()
    assert partitions(query) == 3
    assert found == {"pairs": 10, "counts": 10}


def test_only_on_streams(spark: SparkSession) -> None:
    batch = spark.createDataFrame([(1, "A", 1)], COLUMNS)
    for run in (
        lambda: PAIRS.run(batch, buckets=3, **BINDING),
        lambda: ss.run_many({"q": PAIRS}, batch, buckets=3, **BINDING),
    ):
        with pytest.raises(ss.QueryError, match="buckets applies only to a streaming DataFrame"):
            run()


def test_the_table_function_accepts_it(spark: SparkSession) -> None:
    ss.register(spark)
    spark.createDataFrame([(1, "A", 1), (2, "B", 1)], COLUMNS).createOrReplaceTempView("few")
    call = "SELECT * FROM streamsift(TABLE(few) WITH SINGLE PARTITION, '{}', 't', 'kind', buckets => {})"
    assert spark.sql(call.format(PAIRS.text, 4)).count() == 1
    with pytest.raises(Exception, match="invalid value for buckets: 0"):
        spark.sql(call.format(PAIRS.text, 0))


class OldSession:
    """A session of Spark Connect 4.0: it knows neither its cores nor the setting."""

    version = "4.0.1"

    def __init__(self, shuffle_partitions: int) -> None:
        self.conf = SimpleNamespace(get=lambda _: str(shuffle_partitions), isModifiable=lambda _: False)

    @property
    def sparkContext(self) -> Any:  # noqa: N802 (Spark's name)
        raise PySparkAttributeError("not supported")


@pytest.mark.parametrize(("given", "shuffle_partitions"), [(None, 200), (4, 8)])
def test_without_the_setting_a_warning_says_what_to_set(given: int | None, shuffle_partitions: int) -> None:
    expected = f"which is {shuffle_partitions}, not {given or buckets.UNKNOWN_CORES}"
    with pytest.warns(ss.StreamsiftWarning, match=expected):
        set_buckets(OldSession(shuffle_partitions), given)  # type: ignore[arg-type]


@pytest.mark.parametrize(("given", "shuffle_partitions"), [(None, 16), (4, 4)])
def test_without_the_setting_a_good_number_is_accepted(given: int | None, shuffle_partitions: int) -> None:
    set_buckets(OldSession(shuffle_partitions), given)  # type: ignore[arg-type]
