"""DataFrame to DataFrame: the only package that imports pyspark."""

from streamsift.spark.batch import placement, run_batch, run_sliced
from streamsift.spark.many import SharedFrames, run_batch_many
from streamsift.spark.schemas import arrow_schema, session_settings
from streamsift.spark.slices import SLICE_FIELD, is_sliced

__all__ = [
    "SLICE_FIELD",
    "SharedFrames",
    "arrow_schema",
    "is_sliced",
    "placement",
    "run_batch",
    "run_batch_many",
    "run_sliced",
    "session_settings",
]
