"""TODO"""

from streamsift.spark.columns.class_codes import CODE, class_code, class_names, with_class_names
from streamsift.spark.columns.event_time import EventTime, event_time, lateness_of
from streamsift.spark.columns.filters import can_be_bound, can_matter, column, counted_keys, is_bad
from streamsift.spark.columns.schemas import arrow_schema, result_schema, session_settings

__all__ = [
    "CODE",
    "EventTime",
    "arrow_schema",
    "can_be_bound",
    "can_matter",
    "class_code",
    "class_names",
    "column",
    "counted_keys",
    "event_time",
    "is_bad",
    "lateness_of",
    "result_schema",
    "session_settings",
    "with_class_names",
]
