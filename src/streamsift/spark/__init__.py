"""DataFrame to DataFrame: the only package that imports pyspark."""

from streamsift.spark.batch import placement, run_batch
from streamsift.spark.many import SharedFrames, run_batch_many
from streamsift.spark.schemas import arrow_schema, session_settings
from streamsift.spark.streaming import run_stream

__all__ = ["SharedFrames", "arrow_schema", "placement", "run_batch", "run_batch_many", "run_stream", "session_settings"]
