"""A path in, a Spark DataFrame of events out, and the local session that the command line runs on."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # it has no types
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

from streamsift.errors import BadInputError, SetupError
from streamsift.runtime.sources import file_format

LOCAL_SETTINGS = {
    "spark.ui.enabled": "false",  # no port is opened for a command that ends by itself
    "spark.sql.session.timeZone": "UTC",  # the same text for the same instant on every machine
    "spark.sql.timestampType": "TIMESTAMP_NTZ",  # times without a zone in CSV files stay so, as in this process
    "spark.ui.showConsoleProgress": "false",  # the command line draws its own
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",  # fewer, larger batches to and from Python
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{Path(__file__).with_name('log4j2.properties')}",
}


def local_session(master: str | None = None, name: str = "streamsift") -> SparkSession:
    """A Spark session for the command line: the given master, else all cores of this machine."""
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


def read_events(spark: SparkSession, path: Path, given_format: str | None = None) -> DataFrame:
    found = file_format(path, given_format)
    try:
        match found:
            case "csv":
                events = spark.read.csv(str(path), header=True, inferSchema=True)
            case "json":
                events = spark.read.json(str(path))
            case _:
                events = spark.read.parquet(str(path))
    except PySparkException as error:
        raise BadInputError(f"{path} cannot be read as {found}: {error}") from error
    except Py4JJavaError as error:
        raise BadInputError(f"{path} cannot be read as {found}: {error.java_exception.getMessage()}") from error
    if not events.columns:
        raise BadInputError(f"{path} has no columns: is it empty?")
    if found == "csv" and events.isEmpty():
        # Without rows Spark calls every column a string; null fits whatever the query compares it with.
        return events.select(*(F.lit(None).alias(c) for c in events.columns))
    return events


def stream_events(spark: SparkSession, path: Path, given_format: str | None = None) -> DataFrame:
    """The files of a directory as a stream, in the order of their time; their columns are those of the files there."""
    found = file_format(path, given_format)
    reader = spark.readStream.schema(read_events(spark, path, found).schema)
    options = {"header": "true"} if found == "csv" else {}
    return reader.options(**options).format(found).load(str(path))
