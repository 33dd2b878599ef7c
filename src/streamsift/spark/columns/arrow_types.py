"""Convert data types between Spark and Arrow.

PySpark's own conversion is internal, and its arguments differ between versions.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import types as t

from streamsift.errors import UnsupportedQuery

# Types without parameters. `time`, `geometry` and `geography` below are missing in PySpark 4.0.
_PAIRS: tuple[tuple[type[t.DataType], pa.DataType], ...] = (
    (t.BooleanType, pa.bool_()),
    (t.ByteType, pa.int8()),
    (t.ShortType, pa.int16()),
    (t.IntegerType, pa.int32()),
    (t.LongType, pa.int64()),
    (t.FloatType, pa.float32()),
    (t.DoubleType, pa.float64()),
    (t.StringType, pa.string()),
    (t.BinaryType, pa.binary()),
    (t.DateType, pa.date32()),
    (t.TimestampType, pa.timestamp("us", "UTC")),
    (t.TimestampNTZType, pa.timestamp("us")),
    (t.DayTimeIntervalType, pa.duration("us")),
    (t.NullType, pa.null()),
)
_PLAIN = {spark for spark, _ in _PAIRS} - {t.DayTimeIntervalType, t.NullType}
_TO_SPARK = {arrow: spark for spark, arrow in _PAIRS}


def arrow_schema(events: t.StructType) -> pa.Schema:
    """Return the schema as Python workers will see it, timestamps in UTC."""
    return pa.schema([pa.field(field.name, _column_type(field)) for field in events.fields])


def _column_type(field: t.StructField) -> pa.DataType:
    try:
        return to_arrow(field.dataType)
    except NotImplementedError as error:
        raise UnsupportedQuery(
            f"Spark cannot send column `{field.name}` to Python: type {error} has no Arrow type",
            hint=f'drop it with df.drop("{field.name}"), or cast it to another type.',
        ) from error


def to_arrow(spark: t.DataType) -> pa.DataType:
    """Return the Arrow type that Spark sends to Python. Nested fields allow nulls: a null struct has null fields."""
    match spark:
        case t.DecimalType():
            return pa.decimal128(spark.precision, spark.scale)
        case t.ArrayType():
            return pa.list_(pa.field("element", to_arrow(spark.elementType)))
        case t.MapType():
            return pa.map_(
                pa.field("key", to_arrow(spark.keyType), False), pa.field("value", to_arrow(spark.valueType))
            )
        case t.StructType():
            return pa.struct([pa.field(field.name, to_arrow(field.dataType)) for field in spark.fields])
        case t.UserDefinedType():
            return to_arrow(spark.sqlType())
        case t.VariantType():
            return pa.struct([pa.field("value", pa.binary()), _marked("metadata", {"variant": "true"})])
    for spark_class, arrow in _PAIRS:
        if isinstance(spark, spark_class):
            return arrow
    match spark.typeName():
        case "time":
            return pa.time64("ns")
        case "geometry" | "geography" as shape:
            srid = str(spark.srid)  # type: ignore[attr-defined] # a type of PySpark 4.1
            return pa.struct([pa.field("srid", pa.int32()), _marked("wkb", {shape: "true", "srid": srid})])
    raise NotImplementedError(spark.simpleString())


def is_plain(spark: t.DataType) -> bool:
    """Return True if every version of PySpark converts values of this type to exactly the type of `to_arrow`."""
    match spark:
        case t.DecimalType():
            return True
        case t.StringType():
            return spark == t.StringType()  # without a collation
        case t.ArrayType():
            return spark.containsNull and is_plain(spark.elementType)
        case t.StructType():
            return all(field.nullable and is_plain(field.dataType) for field in spark.fields)
    return type(spark) in _PLAIN


def _marked(name: str, metadata: dict[str, str]) -> pa.Field:
    """Return a binary field with metadata, by which Spark recognizes the type of the struct that contains it."""
    return pa.field(name, pa.binary(), metadata=metadata)


def to_spark(arrow: pa.DataType) -> t.DataType:
    """Return the Spark type of a result column. Columns that come from the input keep their own types instead."""
    if arrow in _TO_SPARK:
        return _TO_SPARK[arrow]()
    if pa.types.is_timestamp(arrow):
        return t.TimestampNTZType() if arrow.tz is None else t.TimestampType()
    if pa.types.is_duration(arrow):
        return t.DayTimeIntervalType()
    if pa.types.is_decimal(arrow):
        return t.DecimalType(arrow.precision, arrow.scale)
    if pa.types.is_list(arrow):
        return t.ArrayType(to_spark(arrow.value_type))
    if pa.types.is_struct(arrow):
        return t.StructType([t.StructField(field.name, to_spark(field.type)) for field in arrow])
    raise UnsupportedQuery(f"Spark has no type for a result column of type {arrow}", hint="use run_local.")
