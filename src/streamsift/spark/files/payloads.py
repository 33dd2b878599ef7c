"""Convert JSON payloads, one object in each record, to typed columns.

Spark's parser converts the payloads in the JVM. By itself it would accept more than it should: it would read the first
of two objects, replace invalid UTF-8, and return null for a value of another type. Therefore the payload is parsed as
the member of an object, and everything that Spark marks as corrupt is a bad payload.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)
from pyspark.sql.types import StringType, StructField, StructType

from streamsift.errors import BadInputError, SetupError
from streamsift.runtime.input import check_utf8, double_paths, infer_json, json_schema, number_shapes
from streamsift.spark.columns import column, to_spark

VALUE = "value"  # the column of payloads in Spark's Kafka source
PARSED, CORRUPT, EVENT = "_streamsift_parsed", "_streamsift_corrupt", "_streamsift_event"
SHOWN_CHARACTERS = 80
SAMPLE_RECORDS = 1_000
PLACE = ("topic", "partition", "offset")


def json_columns(records: DataFrame, schema: StructType, *, keep: Iterable[str] = (), bad_rows: str) -> DataFrame:
    """Return the columns of a schema from the JSON payloads, and the columns of the records to keep.

    If a payload is no JSON object or does not fit the schema, the query fails with its place and its text. With
    `bad_rows="drop"`, all its columns are null, so it has no usable time: the engine drops and counts it.
    """
    text = column(VALUE).cast("string")
    wrapped = StructType([StructField(EVENT, schema), StructField(CORRUPT, StringType())])
    # An option is given always: without options, the optimizer may remove unused fields, and no longer check them.
    options = {"columnNameOfCorruptRecord": CORRUPT, "mode": "PERMISSIVE"}
    parsed = F.from_json(F.concat(F.lit(f'{{"{EVENT}":'), text, F.lit("}")), wrapped, options)
    parsed = F.when(F.is_valid_utf8(text), parsed)
    parsed_records = records.withColumn(PARSED, parsed)
    event, corrupt = column(PARSED).getField(EVENT), column(PARSED).getField(CORRUPT)
    is_good = event.isNotNull() & corrupt.isNull()
    good = F.when(is_good, event)
    if bad_rows == "fail":
        good = good.otherwise(F.raise_error(_complaint(records, text)).cast(schema))
    names = [name for name in dict.fromkeys(keep) if name not in schema.names]
    kept = [F.when(is_good, column(name)).alias(name) for name in names]
    events = parsed_records.select(good.alias(EVENT), *kept)
    return events.select(*(column(EVENT).getField(name).alias(name) for name in schema.names), *map(column, names))


def _complaint(records: DataFrame, text: Column) -> Column:
    """Return the error for a bad payload. It is raised in the JVM, so its class is part of the text."""
    place = [F.concat(F.lit(f"{name} "), column(name).cast("string")) for name in PLACE if name in records.columns]
    shown = F.coalesce(F.substring(text, 1, SHOWN_CHARACTERS), F.lit("null"))
    return F.concat(
        F.lit(f"streamsift.errors.{BadInputError.__name__}: a payload is not a JSON object of the schema: "),
        shown,
        F.lit(" ("),
        F.concat_ws(", ", *place),
        F.lit(')\nHint: correct the producer or the schema, or drop such records with bad_rows="drop".\n\n'),
    )


def given_schema(text: str) -> StructType:
    """Return the schema that a text such as "t bigint, kind string" describes."""
    try:
        schema = StructType.fromDDL(text)
    except PySparkException as error:
        raise SetupError(
            f"invalid schema: {text}\nHint: write names and Spark SQL types, such as 't bigint, kind string'."
        ) from error
    if not isinstance(schema, StructType):
        raise SetupError(f"the schema has no names: {text}\nHint: write 'value {text}' for a column `value`.")
    return schema


def sampled_schema(records: DataFrame, name: str, *, bad_rows: str) -> StructType:
    """Choose the types of the columns from the first records, as for a JSON file.

    With `bad_rows="drop"`, records that are no JSON objects are skipped. A column of nulls is a string.
    """
    rows = records.select(VALUE).where(column(VALUE).isNotNull()).limit(SAMPLE_RECORDS).collect()
    values = [bytes(row[0]).replace(b"\n", b" ") for row in rows]
    lines = b"\n".join(value for value in values if bad_rows == "fail" or _is_object(value))
    if not lines.strip():
        raise SetupError(
            f"{name} has no records that show the columns of its payloads\n"
            "Hint: describe them, such as --schema 't bigint, kind string'."
        )
    check_utf8(lines, name)
    try:
        shape = infer_json(lines, name)
    except BadInputError as error:
        if "\nHint: " in str(error):
            raise
        raise BadInputError(f'{error}\nHint: correct the payload, or drop it with bad_rows="drop".') from error
    schema = json_schema(shape, number_shapes(lines, double_paths(shape)))
    types = {each.name: pa.string() if pa.types.is_null(each.type) else each.type for each in schema}
    return StructType([StructField(each, to_spark(kind)) for each, kind in types.items()])


def _is_object(value: bytes) -> bool:
    try:
        return isinstance(json.loads(value), dict)
    except ValueError:  # also of text that is not UTF-8
        return False
