"""Translate columns between Spark and the engine: types, times and conditions.

- `schemas`: schemas of DataFrames and results, and how a session reads names and zones.
- `filters`: Catalyst conditions for the rows that can affect a result, evaluated in the JVM.
- `event_time`: times as Spark's watermark counts them, and back.

Calendar times are watermarks as they are; numbers become codes in the same order.
"""

from streamsift.spark.columns.event_time import CALENDAR, EventTime, event_time, lateness_of
from streamsift.spark.columns.filters import (
    all_or_none,
    by_position,
    can_be_bound,
    can_matter,
    column,
    counted_keys,
    describe_filter,
    is_bad,
    text,
)
from streamsift.spark.columns.schemas import arrow_schema, query_of_all, result_schema, session_settings
