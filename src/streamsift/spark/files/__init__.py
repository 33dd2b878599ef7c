"""TODO"""

from streamsift.spark.files.jobs import task_counter
from streamsift.spark.files.sinks import counted, flat, heads
from streamsift.spark.files.sources import local_session, read_events, stream_events

__all__ = ["counted", "flat", "heads", "local_session", "read_events", "stream_events", "task_counter"]
