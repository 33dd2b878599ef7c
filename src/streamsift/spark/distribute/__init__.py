"""TODO"""

from streamsift.spark.distribute.distribution import (
    Spreading,
    describe_spreading,
    needs_merge,
    shuffle_keys,
    spreading,
    why_one_task,
)
from streamsift.spark.distribute.sharding import STOP, WAY, Arc, Part, bucket_numbers, dealt, part_of
from streamsift.spark.distribute.slices import Slices, slices_around
from streamsift.spark.distribute.total_owners import Picked, picks_own

__all__ = [
    "STOP",
    "WAY",
    "Arc",
    "Part",
    "Picked",
    "Slices",
    "Spreading",
    "bucket_numbers",
    "dealt",
    "describe_spreading",
    "needs_merge",
    "part_of",
    "picks_own",
    "shuffle_keys",
    "slices_around",
    "spreading",
    "why_one_task",
]
