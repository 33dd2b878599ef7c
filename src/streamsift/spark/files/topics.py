"""Read events from Kafka topics, and write results to them, with Spark's Kafka connector."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from streamsift.errors import BadInputError, SetupError
from streamsift.runtime.input import TimeNotation, Topic
from streamsift.spark.files.payloads import given_schema, json_columns, sampled_schema
from streamsift.spark.files.sources import with_time_type

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"
SERVERS = "kafka.bootstrap.servers"
# The observed metrics of a stream: when the records of a micro-batch were appended (`spark/stream/metrics`).
ARRIVALS = "streamsift_arrivals"


@dataclass(frozen=True, slots=True)
class Payloads:
    """How to read the payloads of a topic."""

    schema: str | None = None  # names and types; by default, those of the first records
    record_columns: tuple[str, ...] = ()  # such as `offset`: used if the payloads do not have a column of that name
    bad_rows: str = "fail"


RECORD_COLUMNS = ("key", "partition", "offset", "timestamp")


def open_topic(
    spark: SparkSession,
    topic: Topic,
    payloads: Payloads,
    times: TimeNotation | None = None,
    *,
    streaming: bool,
) -> DataFrame:
    """Return the events that a topic holds now, or stream it.

    A stream starts with the first record, unless the options of the topic set other `startingOffsets`. It observes when
    the records were appended, for `ss.metrics`.
    """
    reader = spark.readStream if streaming else spark.read
    with _missing_connector(topic):
        return with_time_type(_events(spark, reader, topic, payloads), times)


def _events(
    spark: SparkSession, reader: DataFrameReader | DataStreamReader, topic: Topic, payloads: Payloads
) -> DataFrame:
    if payloads.schema is None:
        first = _records(spark.read, Topic(topic.servers, topic.name, _connection(topic)))
        schema = sampled_schema(first, str(topic), bad_rows=payloads.bad_rows)
    else:
        schema = given_schema(payloads.schema)
    records = _records(reader, topic)
    if isinstance(reader, DataStreamReader):
        records = records.observe(ARRIVALS, F.min("timestamp").alias("first"), F.max("timestamp").alias("last"))
    keep = [name for name in payloads.record_columns if name in RECORD_COLUMNS]
    return json_columns(records, schema, keep=keep, bad_rows=payloads.bad_rows)


def _records(reader: DataFrameReader | DataStreamReader, topic: Topic) -> DataFrame:
    options = {SERVERS: topic.servers, "subscribe": topic.name, "startingOffsets": "earliest", **topic.options}
    return reader.format("kafka").options(**options).load()


def _connection(topic: Topic) -> dict[str, str]:
    """Return the options that also apply to a first look at the topic."""
    return {name: value for name, value in topic.options.items() if name.startswith("kafka.")}


def topic_writer(lines: DataFrame, topic: Topic) -> DataStreamWriter:
    """Return a writer of lines to a topic, one record each, without keys."""
    writer = lines.selectExpr(f"`{lines.columns[0]}` AS value").writeStream.format("kafka")
    return writer.options(**{SERVERS: topic.servers, "topic": topic.name, **topic.options})


@contextmanager
def _missing_connector(topic: Topic) -> Iterator[None]:
    """Raise SetupError if Spark lacks its Kafka connector, and BadInputError if it cannot read the topic."""
    try:
        yield
    except PySparkException as error:
        check_connector(error)
        raise BadInputError(f"cannot read {topic}: {error}") from error


def check_connector(error: Exception) -> None:
    """Raise SetupError if the error says that Spark lacks its Kafka connector."""
    if "find data source: kafka" in str(error).replace("the data source", "data source"):
        raise SetupError(
            "Spark's Kafka connector is missing\n"
            f"Hint: add --packages {CONNECTOR}:{pyspark.__version__}, or set spark.jars.packages."
        ) from error
