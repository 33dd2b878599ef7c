"""Ask the JVM for the types of SQL expressions over a DataFrame, without a job."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame

from streamsift.errors import QueryError, UnsupportedQuery
from streamsift.spark.columns import to_arrow

_CLASS = re.compile(r"^\s*\[[\w.]+\]\s*")


def typing_of(df: DataFrame) -> Callable[[str], pa.DataType]:
    """Return a function that gives the type of an SQL text over the columns of a DataFrame."""

    def typing(sql: str) -> pa.DataType:
        try:
            field = df.selectExpr(f"{sql} AS value").schema.fields[0]
        except (AnalysisException, ParseException) as error:
            raise QueryError(f"Spark cannot evaluate it: {message_of(error)}") from None
        try:
            return to_arrow(field.dataType)
        except NotImplementedError as error:
            hint = "cast it to another type."
            raise UnsupportedQuery(f"Spark cannot send a value of type {error} to Python", hint=hint) from None

    return typing


def message_of(error: AnalysisException) -> str:
    """Return the first sentence of a message of Spark, without its class and its plan."""
    text = _CLASS.sub("", str(error)).partition("\n")[0]
    return re.sub(r"\s*SQLSTATE: \w+.*", "", text)
