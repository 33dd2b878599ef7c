"""Read the events of a Kafka topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from streamsift.api.arguments import check_policy
from streamsift.runtime.input import topic_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_topic(
    spark: SparkSession,
    location: str,
    schema: str | None = None,
    *,
    keep: Sequence[str] = (),
    bad_rows: Literal["fail", "drop"] = "fail",
    streaming: bool = True,
) -> DataFrame:
    """Read a Kafka topic whose payloads are JSON objects, and return their members as typed columns.

    The session needs Spark's Kafka connector. A payload that is no JSON object, or has a value of another type than its
    column, is bad. Members that the schema does not name are ignored; missing members are null.

    Args:
        spark: The session.
        location: `kafka://HOST:PORT[,HOST:PORT…]/TOPIC[?OPTION=VALUE&…]`. The options are those of Spark's connector,
            such as `maxOffsetsPerTrigger` or `kafka.security.protocol`. A topic is read from its first record, unless
            `startingOffsets` is given.
        schema: Names and Spark SQL types, such as `"t bigint, kind string"`. By default, they are chosen from the first
            1,000 records, as for a JSON file.
        keep: Columns of the records to add: `key`, `partition`, `offset` or `timestamp`.
        bad_rows: Whether a bad payload ends the query (`"fail"`), or becomes a row of nulls, which `Query.run` with the
            same `bad_rows` drops and counts (`"drop"`).
        streaming: Whether to return a streaming DataFrame, or one of the records that the topic has now.

    Returns:
        A DataFrame of events.

    Raises:
        SetupError: The location, the schema or the connector is wrong or missing.
        BadInputError: The topic cannot be read, or its first records show no types.
    """
    check_policy(bad_rows)
    from streamsift.spark.files import Payloads, open_topic

    return open_topic(spark, topic_of(location), Payloads(schema, tuple(keep), bad_rows), streaming=streaming)
