"""TODO"""

from streamsift.spark.share.batch import SharedFrames, many_batch_placement, run_batch_many
from streamsift.spark.share.stream import SharedStream, run_stream_many

__all__ = ["SharedFrames", "SharedStream", "many_batch_placement", "run_batch_many", "run_stream_many"]
