"""DataFrame to DataFrame: the only package that imports pyspark."""

from streamsift.spark.batch import placement, run_batch
from streamsift.spark.many import SharedFrames, many_batch_placement, run_batch_many
from streamsift.spark.metrics import Metrics, Trigger, metrics
from streamsift.spark.schemas import arrow_schema, session_settings
from streamsift.spark.stream_placement import many_placement, stream_placement
from streamsift.spark.streaming import run_stream
from streamsift.spark.streaming_many import SharedStream, run_stream_many

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
