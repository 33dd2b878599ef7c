"""TODO"""

from streamsift.spark.batch.rank import merged
from streamsift.spark.batch.run import (
    BAD,
    arc_of,
    asked_of_rows,
    can_matter_with_keys,
    key_number,
    normal_key,
    placement,
    run_batch,
    tasks_of,
)
from streamsift.spark.batch.spill import tables
from streamsift.spark.batch.task import Task

__all__ = [
    "BAD",
    "Task",
    "arc_of",
    "asked_of_rows",
    "can_matter_with_keys",
    "key_number",
    "merged",
    "normal_key",
    "placement",
    "run_batch",
    "tables",
    "tasks_of",
]
