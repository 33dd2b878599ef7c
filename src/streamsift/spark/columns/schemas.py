"""Derive the schema of a result on Spark, and read the session settings that affect a query."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, DataType, StructField, StructType, TimestampNTZType, TimestampType

from streamsift.errors import UnsupportedQuery
from streamsift.logical import BoundQuery
from streamsift.logical.bound import Column, Computed, TimeKind, WholeEvent
from streamsift.physical import Plan
from streamsift.runtime import output_schema
from streamsift.runtime.events.times import time_type as time_type_of
from streamsift.runtime.rank import tie_names
from streamsift.spark.columns.arrow_types import to_spark


def query_of_all(plans: Mapping[str, Plan]) -> BoundQuery:
    """Return one of the queries with the columns of all. All of them bind the same time column."""
    fields = {field.name: field for plan in plans.values() for field in plan.query.schema}
    return replace(next(iter(plans.values())).query, schema=pa.schema(fields.values()))


def session_settings(session: SparkSession) -> dict[str, Any]:
    """Return the session's case sensitivity and time zone, as arguments of `bind`."""
    conf = session.conf
    case_sensitive = conf.get("spark.sql.caseSensitive") == "true"
    return {
        "case_sensitive": case_sensitive,
        "distinct_case": case_sensitive,
        "zone": _zone(conf.get("spark.sql.session.timeZone") or "UTC"),
    }


def _zone(name: str) -> tzinfo:
    """Return the zone for a name of Spark: a region, or an offset such as Z, +02:00, UTC+2 or GMT-01:30."""
    if name == "Z":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        offset = re.fullmatch(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?", name)
        if offset is None:
            raise UnsupportedQuery(
                f"unknown time zone in the Spark session: `{name}`",
                hint="set spark.sql.session.timeZone to a region such as America/Los_Angeles, or to UTC.",
            ) from None
        sign = -1 if offset[1] == "-" else 1
        return timezone(sign * timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0)))


def result_schema(events: StructType, query: BoundQuery, *, ties: bool = False) -> StructType:
    """Return the schema of the result. Whole events keep the Spark types of the input.

    With `ties`, add the columns by which the rankings of partitions are merged.
    """
    arrow = output_schema(query)
    event_type = StructType([StructField(f.name, f.dataType, True) for f in events.fields])
    spark_types = {field.name: field.dataType for field in events.fields}
    time_type: DataType = (
        TimestampType() if query.binding.time_kind is TimeKind.TEXT else spark_types[query.binding.time]
    )
    leading = {name: spark_types[column] for name, column in zip(query.group_names, query.group_by, strict=True)}
    if query.aggregates or query.update:
        leading[arrow.names[0]] = _row_time(query, arrow.field(0).type, time_type)
    outputs, bounds = ((), 0) if query.aggregates else (query.output, 2 * query.show_bounds)
    first_output = len(arrow) - len(outputs) - bounds
    types = [leading.get(field.name) or to_spark(field.type) for field in list(arrow)[:first_output]]
    for number, item in enumerate(outputs, first_output):
        match item:
            case WholeEvent(variable=variable):
                is_group = query.variables[variable].quantifier is not None
                types.append(ArrayType(event_type) if is_group else event_type)
            case Computed(expression=Column(name=name)) if name in spark_types:
                types.append(spark_types[name])
            case _:
                types.append(to_spark(arrow.field(number).type))
    names, types = arrow.names, types + [time_type] * bounds
    if ties:
        kinds = [time_type, *([spark_types[query.binding.order]] if query.binding.order else [])]
        positive = [variable for variable in query.variables if variable.positive]
        # Arrays compare element by element, as Kleene groups do.
        types += [ArrayType(kind) if v.quantifier is not None else kind for kind in kinds for v in positive]
        names = [*names, *tie_names(query)]
    return StructType([StructField(name, data_type, True) for name, data_type in zip(names, types, strict=True)])


def _row_time(query: BoundQuery, kind: pa.DataType, time_type: DataType) -> DataType:
    """Return the Spark type of a row's time or tick."""
    if kind == time_type_of(query):
        return time_type
    if not pa.types.is_timestamp(kind):
        return to_spark(kind)
    if kind.unit == "ns":
        assert query.update is not None
        raise UnsupportedQuery(
            f"UPDATE {query.update.text} is finer than the microseconds of Spark's timestamps",
            query.text,
            query.update.span,
            "use a longer interval, or run_local.",
        )
    return TimestampNTZType() if kind.tz is None else TimestampType()
