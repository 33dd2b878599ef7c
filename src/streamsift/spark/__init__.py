"""DataFrame to DataFrame: the only package that imports pyspark."""

from streamsift.spark.batch import placement, run_batch
from streamsift.spark.columns import arrow_schema, session_settings
from streamsift.spark.share import SharedFrames, SharedStream, many_batch_placement, run_batch_many, run_stream_many
from streamsift.spark.stream import Metrics, Trigger, many_placement, metrics, run_stream, stream_placement

__all__ = [
    "Metrics",
    "SharedFrames",
    "SharedStream",
    "Trigger",
    "arrow_schema",
    "many_batch_placement",
    "many_placement",
    "metrics",
    "placement",
    "run_batch",
    "run_batch_many",
    "run_stream",
    "run_stream_many",
    "session_settings",
    "stream_placement",
]
