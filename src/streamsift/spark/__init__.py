"""DataFrame to DataFrame: the only package that imports pyspark."""

from streamsift.spark.batch.run import placement, run_batch
from streamsift.spark.columns.schemas import arrow_schema, session_settings
from streamsift.spark.share.batch import SharedFrames, many_batch_placement, run_batch_many
from streamsift.spark.share.stream import SharedStream, run_stream_many
from streamsift.spark.stream.metrics import Metrics, Trigger, metrics
from streamsift.spark.stream.placement import many_placement, stream_placement
from streamsift.spark.stream.run import run_stream

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
