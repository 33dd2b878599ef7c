"""DataFrame to DataFrame: the only package that imports pyspark."""

from streamsift.spark.batch import placement, run_batch
from streamsift.spark.schemas import arrow_schema, session_settings

__all__ = ["arrow_schema", "placement", "run_batch", "session_settings"]
