"""Translate columns between Spark and the engine: types, times and conditions.

- `schemas`: schemas of DataFrames and results, and how a session reads names and zones.
- `filters`: Catalyst conditions for the rows that can affect a result, evaluated in the JVM.
- `class_codes`: class names that cross to Python as bytes, and become strings again there.
- `event_time`: times as Spark's watermark counts them, and back.

Class names cross as bytes if all variables have classes by the type column and these are at most 100. Calendar times
are watermarks as they are; numbers become codes in the same order.
"""

from streamsift.spark.columns.class_codes import CODE, class_code, class_names, with_class_names
from streamsift.spark.columns.event_time import EventTime, event_time, lateness_of
from streamsift.spark.columns.filters import (
    by_position,
    can_be_bound,
    can_matter,
    column,
    counted_keys,
    describe_filter,
    is_bad,
)
from streamsift.spark.columns.schemas import arrow_schema, query_of_all, result_schema, session_settings
