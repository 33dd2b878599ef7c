"""Read files into a Spark DataFrame of events, and start the local session that the command line runs on."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # it has no types
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import DataType, DecimalType, DoubleType, StringType, StructField, StructType

from streamsift.errors import BadInputError, SetupError
from streamsift.runtime.input import exact_type, file_format, read_names, unnamed_column
from streamsift.spark.files.text_columns import shapes_of, with_types

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
    """Return what counts the tasks of active stages, those done and all. Classic sessions only, as this one is."""
    tracker = spark.sparkContext.statusTracker()

    def count() -> tuple[int, int]:
        stages = [
            stage for number in tracker.getActiveStageIds() if (stage := tracker.getStageInfo(number)) is not None
        ]
        return sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)

    return count


JSON_OPTIONS = {"mode": "FAILFAST"}
ROW_HINT = "\nHint: every row must have the columns of the header; the local engine (--engine local) names the first."


def read_events(spark: SparkSession, path: Path, given_format: str | None = None) -> DataFrame:
    found = file_format(path, given_format)
    try:
        match found:
            case "csv":
                events = _texts(spark.read, path)
            case "json":
                events = spark.read.options(**JSON_OPTIONS).schema(_json_schema(spark, path)).json(str(path))
            case _:
                events = spark.read.parquet(str(path))
        if not events.columns:
            raise BadInputError(f"{path} has no columns: is it empty?")
        return with_types(events, shapes_of(events)) if found == "csv" else events
    except PySparkException as error:
        hint = ROW_HINT if found == "csv" else ""
        raise BadInputError(f"{path} cannot be read as {found}: {error}{hint}") from error
    except Py4JJavaError as error:
        raise BadInputError(f"{path} cannot be read as {found}: {error.java_exception.getMessage()}") from error


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
    schema = spark.read.options(**JSON_OPTIONS).json(str(path)).schema
    numbers = [field.name for field in schema if isinstance(field.dataType, DoubleType | DecimalType)]
    if not numbers:
        return schema
    texts = spark.read.options(**JSON_OPTIONS).schema(_with(schema, dict.fromkeys(numbers, StringType())))
    shapes = shapes_of(texts.json(str(path)).select(*(f"`{name}`" for name in numbers)))
    types = {name: from_arrow_type(exact_type(name, shape)) for name, shape in zip(numbers, shapes, strict=True)}
    return _with(schema, types)


def _with(schema: StructType, types: Mapping[str, DataType]) -> StructType:
    return StructType([StructField(f.name, types.get(f.name, f.dataType)) for f in schema])


def stream_events(spark: SparkSession, path: Path, given_format: str | None = None) -> DataFrame:
    """Stream the files of a directory in the order of their time; their columns are those of the files there."""
    found = file_format(path, given_format)
    if found == "csv":
        return with_types(_texts(spark.readStream, path), shapes_of(_texts(spark.read, path)))
    reader = spark.readStream.schema(read_events(spark, path, found).schema)
    return reader.options(**(JSON_OPTIONS if found == "json" else {})).format(found).load(str(path))
