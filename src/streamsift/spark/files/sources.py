"""Read files into a Spark DataFrame of events, and start the local session that the command line runs on.

Columns of text have the types that the local engine gives them, by the same code in Python workers.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple
from pathlib import Path

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # it has no types
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import DataType, DecimalType, DoubleType, StringType, StructField, StructType

from streamsift.errors import BadInputError, SetupError
from streamsift.runtime.input import (
    Family,
    TextShape,
    column_type,
    converted,
    converted_block,
    exact_type,
    file_format,
    merge,
    read_names,
    shape_of,
    unnamed_column,
)
from streamsift.spark.columns import column, to_spark

LOCAL_SETTINGS = {
    "spark.ui.enabled": "false",  # no port is opened for a command that ends by itself
    "spark.sql.session.timeZone": "UTC",  # the same text for the same instant on every machine
    "spark.sql.timestampType": "TIMESTAMP_NTZ",  # times without a zone in CSV files stay so, as in this process
    "spark.ui.showConsoleProgress": "false",  # the command line draws its own
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",  # fewer, larger batches to and from Python
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{Path(__file__).with_name('log4j2.properties')}",
}


def local_session(master: str | None = None, name: str = "streamsift") -> SparkSession:
    """Return a Spark session for the command line: the given master, else all cores of this machine."""
    # Workers must be this very Python, where streamsift is installed.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    cores = os.cpu_count() or 1
    builder = SparkSession.builder.master(master or f"local[{cores}]").appName(name)
    settings = {**LOCAL_SETTINGS, "spark.sql.shuffle.partitions": str(4 * cores)}
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except (RuntimeError, OSError, PySparkException) as error:
        where = f", and a cluster behind `--master {master}`" if master else ""
        raise SetupError(
            f"Spark does not start: {error}\n"
            f"Hint: Spark needs Java 17 or newer{where}; or run it without Spark: --engine local."
        ) from error


def task_counter(spark: SparkSession) -> Callable[[], tuple[int, int]]:
    """Return a function that counts tasks of active stages, finished and all. Classic sessions only."""
    tracker = spark.sparkContext.statusTracker()

    def count() -> tuple[int, int]:
        stages = list(filter(None, map(tracker.getStageInfo, tracker.getActiveStageIds())))
        return sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)

    return count


JSON_OPTIONS = {"mode": "FAILFAST"}
ROW_HINT = "\nHint: every row must have the columns of the header; the local engine (--engine local) names the first."

Batches = Iterator[pa.RecordBatch]


def read_events(spark: SparkSession, path: Path, given_format: str | None = None) -> DataFrame:
    file_type = file_format(path, given_format)
    try:
        match file_type:
            case "csv":
                events = _texts(spark.read, path)
            case "json":
                events = spark.read.options(**JSON_OPTIONS).schema(_json_schema(spark, path)).json(str(path))
            case _:
                events = spark.read.parquet(str(path))
        if not events.columns:
            raise BadInputError(f"{path} has no columns: is it empty?")
        return _with_types(events, _shapes_of(events)) if file_type == "csv" else events
    except PySparkException as error:
        hint = ROW_HINT if file_type == "csv" else ""
        raise BadInputError(f"{path} cannot be read as {file_type}: {error}{hint}") from error
    except Py4JJavaError as error:
        raise BadInputError(f"{path} cannot be read as {file_type}: {error.java_exception.getMessage()}") from error


def stream_events(spark: SparkSession, path: Path, given_format: str | None = None) -> DataFrame:
    """Stream the files of a directory in the order of their time; their columns are those of the files there."""
    file_type = file_format(path, given_format)
    if file_type == "csv":
        return _with_types(_texts(spark.readStream, path), _shapes_of(_texts(spark.read, path)))
    reader = spark.readStream.schema(read_events(spark, path, file_type).schema)
    return reader.options(**(JSON_OPTIONS if file_type == "json" else {})).format(file_type).load(str(path))


def _texts(reader: DataFrameReader | DataStreamReader, path: Path) -> DataFrame:
    """Return CSV files as columns of text, as the local engine reads them: a row that does not fit is an error."""
    names = read_names(path, "csv")
    schema = StructType([StructField(name, StringType()) for name in names])
    # Spark compares each file's header with these names, but cannot where it has a column without a name.
    unnamed = any(unnamed_column(n) == name for n, name in enumerate(names))
    reader = reader.schema(schema).options(header=True, escape='"', enforceSchema=unnamed, mode="FAILFAST")
    return reader.csv(str(path))


def _json_schema(spark: SparkSession, path: Path) -> StructType:
    """Return the columns of JSON files, with decimals for the numbers that doubles would round."""
    reader = spark.read.options(**JSON_OPTIONS)
    schema = reader.json(str(path)).schema
    numbers = [field.name for field in schema if isinstance(field.dataType, DoubleType | DecimalType)]
    if not numbers:
        return schema

    def replaced(types: Mapping[str, DataType]) -> StructType:
        return StructType([StructField(f.name, types.get(f.name, f.dataType)) for f in schema])

    texts = reader.schema(replaced(dict.fromkeys(numbers, StringType()))).json(str(path))
    shapes = _shapes_of(texts.select(*map(column, numbers)))
    return replaced({n: to_spark(exact_type(n, shape)) for n, shape in zip(numbers, shapes, strict=True)})


def _shapes_of(texts: DataFrame) -> list[TextShape]:
    """Return the shape of each column of a DataFrame of strings, from one pass over it."""
    width = len(texts.columns)

    def summarized(batches: Batches) -> Batches:
        shapes = [TextShape()] * width
        for batch in batches:
            shapes = [merge(shape, shape_of(_chunked(batch, n))) for n, shape in enumerate(shapes)]
        numbers = [[shape.family.value, *map(int, astuple(shape)[1:])] for shape in shapes]
        yield pa.RecordBatch.from_pydict({"column": range(width), "shape": numbers})

    shapes = [TextShape()] * width
    for n, (family, *rest) in texts.mapInArrow(summarized, "column bigint, shape array<bigint>").collect():
        shapes[n] = merge(shapes[n], TextShape(Family(family), *rest))
    return shapes


def _with_types(texts: DataFrame, shapes: list[TextShape]) -> DataFrame:
    """Convert the columns of a DataFrame of strings. On a stream, rows that do not fit the types fail."""
    streaming, names = texts.isStreaming, texts.columns
    if streaming:  # a column that is empty so far may hold anything later
        shapes = [TextShape(Family.TEXT) if shape.family is Family.EMPTY else shape for shape in shapes]
    types = [_spark_holds(name, column_type(shape)) for name, shape in zip(names, shapes, strict=True)]

    def convert(batches: Batches) -> Batches:
        for batch in batches:
            columns: list[pa.Array] = []
            for n, name in enumerate(names):
                texts = _chunked(batch, n)
                values = converted_block(name, texts, shapes[n]) if streaming else converted(name, texts, types[n])
                columns.append(values.combine_chunks())
            yield pa.RecordBatch.from_arrays(columns, names)

    schema = [StructField(name, to_spark(kind)) for name, kind in zip(names, types, strict=True)]
    return texts.mapInArrow(convert, StructType(schema))


def _chunked(batch: pa.RecordBatch, number: int) -> pa.ChunkedArray:
    return pa.chunked_array([batch.column(number)])


def _spark_holds(name: str, kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        raise BadInputError(
            f"column `{name}` has times that are finer than microseconds, which Spark does not hold\n"
            "Hint: run the query without Spark (--engine local), or write the times with six digits after the second."
        )
    return kind
