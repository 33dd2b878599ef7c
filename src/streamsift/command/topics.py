"""Read events from Kafka topics, and write the results of streams to them, as the options of a command say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamsift.command.options import Options
from streamsift.errors import SetupError
from streamsift.runtime.input import file_format, is_topic, topic_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter


def check_topics(options: Options) -> None:
    """Raise SetupError if an option needs a topic, or does not apply to one."""
    reads, writes = is_topic(options.input or ""), is_topic(options.output or "")
    if options.schema is not None and not reads:
        raise SetupError("--schema describes the payloads of a Kafka topic\nHint: remove --schema.")
    if reads:
        file_format(options.source)  # raises if the location or a format is wrong
    if writes:
        topic_of(options.output)
        if options.format not in (None, "json"):
            raise SetupError(f"a topic cannot be written as {options.format}\nHint: remove --format; rows are JSON.")


def read_dataframe(spark: SparkSession, options: Options, *, streaming: bool) -> DataFrame:
    """Return the events of the input, now or as a stream."""
    from streamsift.spark import files

    if is_topic(options.input):
        named = (options.time, options.type, options.order)
        columns = tuple(name for name in named if name is not None)
        payloads = files.Payloads(options.schema, columns, options.bad_rows.value)
        topic, times = topic_of(options.input), options.source.times
        return files.open_topic(spark, topic, payloads, times, streaming=streaming)
    open_files = files.stream_events if streaming else files.read_events
    return open_files(spark, options.source)


def lines_writer(lines: DataFrame, output: object) -> DataStreamWriter:
    """Return a writer of JSON lines to a topic."""
    from streamsift.spark.files import topic_writer

    return topic_writer(lines, topic_of(output))
