"""TODO"""

from streamsift.spark.stream.metrics import Metrics, Trigger, metrics
from streamsift.spark.stream.packing import message_of, unpack
from streamsift.spark.stream.placement import many_placement, stream_placement
from streamsift.spark.stream.run import run_stream, run_together

__all__ = [
    "Metrics",
    "Trigger",
    "many_placement",
    "message_of",
    "metrics",
    "run_stream",
    "run_together",
    "stream_placement",
    "unpack",
]
