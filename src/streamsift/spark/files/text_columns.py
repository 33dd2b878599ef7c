"""Give columns of text on Spark the types that the local engine gives them, by the same code in Python workers."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from streamsift.errors import BadInputError
from streamsift.runtime.input import Family, Shape, column_type, converted, converted_block, merge, shape_of

Batches = Iterator[pa.RecordBatch]


def shapes_of(texts: DataFrame) -> list[Shape]:
    """Yield the shape of each column of a DataFrame of strings, from one pass over it."""
    width = len(texts.columns)

    def summarized(batches: Batches) -> Batches:
        shapes = [Shape()] * width
        for batch in batches:
            shapes = [merge(shape, shape_of(_chunked(batch, n))) for n, shape in enumerate(shapes)]
        yield pa.RecordBatch.from_pydict({"shapes": [pickle.dumps(shapes)]})

    parts = [pickle.loads(row.shapes) for row in texts.mapInArrow(summarized, "shapes binary").collect()]
    return [reduce(merge, shapes) for shapes in zip(*parts, strict=True)] if parts else [Shape()] * width


def with_types(texts: DataFrame, shapes: list[Shape]) -> DataFrame:
    """Convert the columns of a DataFrame of strings. On a stream, rows that do not fit the types fail."""
    if texts.isStreaming:  # a column that is empty so far may hold anything later
        shapes = [Shape(Family.TEXT) if shape.family is Family.EMPTY else shape for shape in shapes]
    streaming, names = texts.isStreaming, texts.columns
    types = [_spark_holds(name, column_type(shape)) for name, shape in zip(names, shapes, strict=True)]

    def read(batches: Batches) -> Batches:
        for batch in batches:
            columns: list[Any] = []
            for n, name in enumerate(names):
                texts = _chunked(batch, n)
                found = converted_block(name, texts, shapes[n]) if streaming else converted(name, texts, types[n])
                columns.append(found.combine_chunks())
            yield pa.RecordBatch.from_arrays(columns, names)

    schema = [StructField(name, from_arrow_type(kind)) for name, kind in zip(names, types, strict=True)]
    return texts.mapInArrow(read, StructType(schema))


def _chunked(batch: pa.RecordBatch, column: int) -> pa.ChunkedArray:
    return pa.chunked_array([batch.column(column)])


def _spark_holds(name: str, kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        raise BadInputError(
            f"column `{name}` has times that are finer than microseconds, which Spark does not hold\n"
            "Hint: run the query without Spark (--engine local), or write the times with six digits after the second."
        )
    return kind
