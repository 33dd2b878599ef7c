"""Convert schemas: of a DataFrame to Arrow for the engine, of a result back to Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, StructField, StructType, TimestampNTZType, TimestampType

from streamsift.errors import UnsupportedQuery
from streamsift.logical import BoundQuery
from streamsift.logical.bound import Column, Computed, TimeKind, WholeEvent
from streamsift.physical import Plan
from streamsift.runtime import output_schema
from streamsift.runtime.events.times import time_type as time_type_of
from streamsift.runtime.rank import tie_names


def arrow_schema(events: StructType) -> pa.Schema:
    """Return the schema as Python workers will see it, timestamps in UTC."""
    try:
        schema = to_arrow_schema(events, timezone="UTC")
    except (PySparkException, ValueError) as error:
        raise UnsupportedQuery(
            f"a column of this DataFrame cannot be sent to Python: {error}",
            hint="drop it with df.drop(…) or cast it first.",
        ) from error
    return pa.schema([pa.field(field.name, _nullable(field.type)) for field in schema])


def _nullable(data_type: pa.DataType) -> pa.DataType:
    """Allow nulls inside a type: where a struct is null its fields are too, even those that are NOT NULL."""

    def relaxed(field: pa.Field) -> pa.Field:
        return field.with_type(_nullable(field.type)).with_nullable(True)

    if pa.types.is_struct(data_type):
        return pa.struct([relaxed(data_type.field(i)) for i in range(data_type.num_fields)])
    if pa.types.is_list(data_type):
        return pa.list_(relaxed(data_type.value_field))
    if pa.types.is_map(data_type):
        return pa.map_(data_type.key_field, relaxed(data_type.item_field))
    return data_type


def query_of_all(plans: Mapping[str, Plan]) -> BoundQuery:
    """Return a query with the columns of all; they treat the time of a row alike."""
    fields = {field.name: field for plan in plans.values() for field in plan.query.schema}
    return replace(next(iter(plans.values())).query, schema=pa.schema(fields.values()))


def session_settings(session: SparkSession) -> dict[str, Any]:
    """Return how this session reads names and timestamps, as `bind` takes it."""
    conf = session.conf
    case_sensitive = conf.get("spark.sql.caseSensitive") == "true"
    return {
        "case_sensitive": case_sensitive,
        "distinct_case": case_sensitive,
        "zone": _zone(conf.get("spark.sql.session.timeZone") or "UTC"),
    }


def _zone(name: str) -> tzinfo:
    """Return the zone of one of Spark's names: a region, or an offset such as Z, +02:00, UTC+2 or GMT-01:30."""
    if name == "Z":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        offset = re.fullmatch(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?", name)
        if offset is None:
            raise UnsupportedQuery(
                f"the session's time zone `{name}` is not known here",
                hint="set spark.sql.session.timeZone to a region such as America/Los_Angeles, or to UTC.",
            ) from None
        sign = -1 if offset[1] == "-" else 1
        return timezone(sign * timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0)))


def result_schema(events: StructType, query: BoundQuery, *, ties: bool = False) -> StructType:
    """Return the schema of the result: whole events keep the Spark types of the input.

    With `ties`, also the columns by which the rankings of partitions are merged.
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
    types = [leading.get(field.name) or from_arrow_type(field.type) for field in list(arrow)[:first_output]]
    for number, item in enumerate(outputs, first_output):
        match item:
            case WholeEvent(variable=variable):
                is_group = query.variables[variable].quantifier is not None
                types.append(ArrayType(event_type) if is_group else event_type)
            case Computed(expression=Column(name=name)) if name in spark_types:
                types.append(spark_types[name])
            case _:
                types.append(from_arrow_type(arrow.field(number).type))
    names, types = arrow.names, types + [time_type] * bounds
    if ties:
        kinds = [time_type, *([spark_types[query.binding.order]] if query.binding.order else [])]
        positive = [variable for variable in query.variables if variable.positive]
        # Arrays compare element by element, as groups do.
        types += [ArrayType(kind) if v.quantifier is not None else kind for kind in kinds for v in positive]
        names = [*names, *tie_names(query)]
    return StructType([StructField(name, data_type, True) for name, data_type in zip(names, types, strict=True)])


def _row_time(query: BoundQuery, kind: pa.DataType, time_type: DataType) -> DataType:
    """Return the Spark type of a row's time, or of its tick."""
    if kind == time_type_of(query):
        return time_type
    if not pa.types.is_timestamp(kind):
        return from_arrow_type(kind)
    if kind.unit == "ns":
        assert query.update is not None
        raise UnsupportedQuery(
            f"UPDATE {query.update.text} on Spark, whose timestamps have microseconds",
            query.text,
            query.update.span,
            "update less often, or use run_local.",
        )
    return TimestampNTZType() if kind.tz is None else TimestampType()
