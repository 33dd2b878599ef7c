"""Read files into a Spark DataFrame of events, and start the Spark session of the command line."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # it has no types
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StructField, StructType

from streamsift.errors import BadInputError, SetupError
from streamsift.runtime.input import (
    NULL_FOLDER,
    FileInput,
    TextShape,
    TimeNotation,
    as_input,
    check_folders,
    check_unique,
    column_type,
    csv_names,
    delimiter_of,
    file_format,
    find_files,
    folder_values,
    is_uri,
    local_files,
    read_names,
    root_of,
    shape_of,
    unreadable,
    with_times,
)
from streamsift.spark.columns import to_spark
from streamsift.spark.files.text_files import SpansLines, TextFiles, check_fine, csv_converter, json_converter

LOCAL_SETTINGS = {
    "spark.ui.enabled": "false",  # a command that ends by itself opens no port
    "spark.sql.session.timeZone": "UTC",  # the same text for the same instant on every machine
    "spark.sql.timestampType": "TIMESTAMP_NTZ",  # times without a time zone stay so, as in the local engine
    "spark.ui.showConsoleProgress": "false",  # the command line draws its own
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",  # fewer, larger batches to and from Python
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{Path(__file__).with_name('log4j2.properties')}",
}


def local_session(master: str | None = None, name: str = "streamsift", packages: str | None = None) -> SparkSession:
    """Return a Spark session for the command line; by default, on all cores of this machine.

    `packages` are Maven coordinates, separated by commas.
    """
    # Workers must run the Python in which streamsift is installed.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    cores = os.cpu_count() or 1
    builder = SparkSession.builder.master(master or f"local[{cores}]").appName(name)
    settings = {**LOCAL_SETTINGS, "spark.sql.shuffle.partitions": str(4 * cores)}
    if packages:
        settings["spark.jars.packages"] = packages
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except (RuntimeError, OSError, PySparkException) as error:
        where = f", check that there is a cluster at `--master {master}`" if master else ""
        raise SetupError(
            f"Spark does not start: {error}\n"
            f"Hint: install Java 17 or newer{where}, or run without Spark: --engine local."
        ) from error


def task_counter(spark: SparkSession) -> Callable[[], tuple[int, int]]:
    """Return a function that counts the finished tasks and all tasks of active stages. Classic sessions only."""
    tracker = spark.sparkContext.statusTracker()

    def count() -> tuple[int, int]:
        stages = list(filter(None, map(tracker.getStageInfo, tracker.getActiveStageIds())))
        return sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)

    return count


Batches = Iterator[pa.RecordBatch]


def read_events(spark: SparkSession, given: FileInput | Path | str) -> DataFrame:
    """Read an input as a DataFrame. Raises BadInputError if its files do not fit their format."""
    return _events(spark, spark.read, as_input(given))


def stream_events(spark: SparkSession, given: FileInput | Path | str) -> DataFrame:
    """Stream the files of a directory in order of modification; the files already there determine the columns."""
    return _events(spark, spark.readStream, as_input(given))


def _events(spark: SparkSession, reader: DataFrameReader | DataStreamReader, source: FileInput) -> DataFrame:
    file_type = file_format(source)
    try:
        if file_type == "parquet":
            return _parquet(spark, reader, source)
        return _text_events(spark, reader, source, is_json=file_type == "json")
    except PySparkException as error:
        raise BadInputError(f"cannot read {source.location}: {error}") from error
    except Py4JJavaError as error:
        raise BadInputError(f"cannot read {source.location}: {error.java_exception.getMessage()}") from error


def _text_events(
    spark: SparkSession, reader: DataFrameReader | DataStreamReader, source: FileInput, *, is_json: bool
) -> DataFrame:
    is_stream, make = isinstance(reader, DataStreamReader), json_converter if is_json else csv_converter
    files = TextFiles(source, _spark_root(source.location), "" if is_json else delimiter_of(source))
    try:
        converter = make(_lines(spark.read, files), _with_names(spark, files, is_json), is_stream=is_stream)
    except SpansLines:
        files = replace(files, whole=True)
        converter = make(_lines(spark.read, files), _with_names(spark, files, is_json), is_stream=is_stream)
    types = converter.types | _time_type(source.times)
    if not converter.types:
        raise BadInputError(f"{source.location} has no columns")
    schema = pa.schema([(name, types[name]) for name in converter.types])
    check_fine(schema)
    return _lines(reader, converter.files).mapInArrow(converter.__call__, _spark_schema(schema))


def _lines(reader: DataFrameReader | DataStreamReader, files: TextFiles) -> DataFrame:
    """Return lines or whole files as bytes, each with its file and the offset of the part that Spark reads."""
    texts = _load(reader.options(wholetext=files.whole), "text", files.source.location)
    return texts.select(
        F.col("value").cast("binary"), F.col("_metadata.file_path"), F.col("_metadata.file_block_start")
    )


def _load(reader: DataFrameReader | DataStreamReader, file_type: str, location: str) -> DataFrame:
    # Subdirectories are read as the local engine reads them; `key=value` folders become columns in our code.
    reader = reader.options(recursiveFileLookup=True).format(file_type)
    return reader.load(_spark_paths(location, is_stream=isinstance(reader, DataStreamReader)))


def _spark_paths(location: str, *, is_stream: bool) -> Any:
    if is_uri(location):
        return location
    if is_stream or Path(location).is_dir():
        return _escaped(str(Path(location)))
    return [_escaped(str(path)) for path in local_files(location)]


def _escaped(path: str) -> str:
    """Escape characters that Hadoop takes for wildcards."""
    return re.sub(r"([*?\[\]{}\\])", r"\\\1", path)


def _spark_root(location: str) -> str:
    """Return the part of file paths above `key=value` folders, as Spark reports paths."""
    root = root_of(location)
    return root if is_uri(location) or not root else os.path.abspath(root)


def _with_names(spark: SparkSession, files: TextFiles, is_json: bool) -> TextFiles:
    """Add the header and the folders of the first CSV file."""
    if is_json:
        return files
    if not is_uri(files.source.location):
        names = read_names(replace(files.source, times=None))
        folders = list(find_files(files.source).files[0].folders)
        return replace(files, names=names[: len(names) - len(folders)], folders=folders)
    is_header = (F.col("file_block_start") == 0) & (F.length("value") > 0)
    rows = _lines(spark.read, files).where(is_header).limit(1).collect()
    if not rows:
        raise unreadable(files.source.location, "CSV", "it is empty")
    value, path, _ = rows[0]
    folders = list(folder_values(files.relative(path)))
    names = csv_names(pa.py_buffer(bytes(value)), files.source.location, files.delimiter)
    return replace(files, names=names, folders=folders)


def _time_type(times: TimeNotation | None) -> dict[str, pa.DataType]:
    """Return the type of the time column if its format or unit is given."""
    if times is None or not times.is_given:
        return {}
    has_zone = times.unit is not None or "%z" in (times.format or "")
    return {times.column: pa.timestamp("us", "UTC" if has_zone else None)}


def _parquet(spark: SparkSession, reader: DataFrameReader | DataStreamReader, source: FileInput) -> DataFrame:
    events = _load(spark.read, "parquet", source.location)
    shapes = _folder_shapes(events, source)
    check_unique([*events.columns, *shapes], source.location)
    if isinstance(reader, DataStreamReader):
        events = _load(reader.schema(events.schema), "parquet", source.location)
    for name, shape in shapes.items():
        events = events.withColumn(name, _folder_column(name, shape))
    return with_time_type(events, source.times)


def with_time_type(events: DataFrame, times: TimeNotation | None) -> DataFrame:
    """Convert the time column if its format or unit is given."""
    types = {name: kind for name, kind in _time_type(times).items() if name in events.columns}
    if not types:
        return events

    def convert(batches: Batches) -> Batches:
        for batch in batches:
            table = with_times(pa.Table.from_batches([batch]), times).combine_chunks()
            check_fine(table.schema)
            yield from table.to_batches()

    fields = [StructField(f.name, to_spark(types[f.name])) if f.name in types else f for f in events.schema]
    return events.mapInArrow(convert, StructType(fields))


def _folder_shapes(events: DataFrame, source: FileInput) -> dict[str, TextShape]:
    """Return the shapes of the values of `key=value` folders, from the paths of all files."""
    files = TextFiles(source, _spark_root(source.location), "")
    paths = sorted(events.inputFiles())
    values = [folder_values(files.relative(path)) for path in paths]
    for path, each in zip(paths, values, strict=True):
        check_folders(list(each), list(values[0]), path)
    names = list(values[0]) if values else []
    return {name: shape_of(pa.chunked_array([pa.array([v[name] for v in values], pa.string())])) for name in names}


def _folder_column(name: str, shape: TextShape) -> Column:
    """Return the value of a `key=value` folder, which Spark's path has encoded once and the folder's name once more."""
    text = F.regexp_extract(F.col("_metadata.file_path"), f"/{re.escape(name)}=([^/]*)/", 1)
    text = F.url_decode(F.replace(F.url_decode(F.replace(text, F.lit("+"), F.lit("%2B"))), F.lit("+"), F.lit("%2B")))
    value = F.when(text != NULL_FOLDER, text)
    return value.cast(to_spark(column_type(shape))).alias(name)


def _spark_schema(schema: pa.Schema) -> StructType:
    return StructType([StructField(each.name, to_spark(each.type)) for each in schema])
