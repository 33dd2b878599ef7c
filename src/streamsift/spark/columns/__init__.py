"""Translate columns between Spark and the engine: types, times and conditions.

- `arrow_types`: convert data types between Spark and Arrow.
- `schemas`: derive the schemas of results, and read session settings (case sensitivity, time zone).
- `filters`: build Catalyst conditions for the rows that can affect a result.
- `event_time`: convert event times to and from the times of Spark's watermark.

Calendar times are used as watermarks unchanged; numbers become codes in the same order.
"""

from streamsift.logical import lateness_of
from streamsift.spark.columns.arrow_types import arrow_schema, is_plain, to_arrow, to_spark
from streamsift.spark.columns.event_time import CALENDAR, EventTime, event_time
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
from streamsift.spark.columns.schemas import query_of_all, result_schema, session_settings
