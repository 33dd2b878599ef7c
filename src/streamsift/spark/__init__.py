"""DataFrame to DataFrame: the only package that imports pyspark."""

from streamsift.spark.batch import placement, run_batch
from streamsift.spark.schemas import arrow_schema, is_case_sensitive

__all__ = ["arrow_schema", "is_case_sensitive", "placement", "run_batch"]
