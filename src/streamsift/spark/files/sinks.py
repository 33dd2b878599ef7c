"""Prepare a result for output: flatten it for files, count its rows, or take its first rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)
from pyspark.sql.types import ArrayType, DayTimeIntervalType, MapType, StructField, StructType

from streamsift.runtime import first_rows
from streamsift.spark.columns import by_position, column


def counted(df: DataFrame) -> tuple[DataFrame, Callable[[], int]]:
    """Return the same rows, and a function that returns their number after an action has read them all."""
    observation = Observation()
    return df.observe(observation, F.count(F.lit(1)).alias("rows")), lambda: int(observation.get["rows"])


def heads(df: DataFrame, limit: int) -> DataFrame:
    """Return the first rows of each partition. Every partition is started, so that bad rows are reported."""
    names = df.columns

    def first(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in first_rows(batches, limit):
            yield batch.rename_columns(names)

    return by_position(df).mapInArrow(first, df.schema)


def flat(df: DataFrame) -> DataFrame:
    """Flatten structs into columns such as `a.x`; convert durations to seconds, and arrays and maps to JSON text."""
    return df.select(*(c for field in df.schema.fields for c in _columns(column(field.name), field, field.name)))


def _columns(value: Column, field: StructField, name: str) -> list[Column]:
    match field.dataType:
        case StructType() as struct:
            return [c for f in struct.fields for c in _columns(value.getField(f.name), f, f"{name}.{f.name}")]
        case ArrayType() | MapType():
            return [F.to_json(value).alias(name)]
        case DayTimeIntervalType():
            # The interval in seconds: the epoch plus the interval, in microseconds since the epoch.
            return [(F.unix_micros(F.timestamp_seconds(F.lit(0)) + value) / F.lit(1e6)).alias(name)]
        case _:
            return [value.alias(name)]
