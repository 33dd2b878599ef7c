"""Run a row pattern on a batch DataFrame: one shuffle by PARTITION BY, one sort, one Python call per task.

Contract: all rows of a partition are in one task and arrive in order (tests/spark/row_match).
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)
from pyspark.sql.types import DoubleType, FloatType, StructField, StructType

from streamsift.logical.row_match import BoundRows, columns_read
from streamsift.logical.row_match.bound import RowValue
from streamsift.physical.row_match import RowPlan
from streamsift.runtime.row_match import execute
from streamsift.spark.columns import by_position, column, to_spark
from streamsift.spark.row_match.partitions import Partitions
from streamsift.spark.workers import for_workers

Batches = Iterator[pa.RecordBatch]


def run_rows(df: DataFrame, plan: RowPlan, max_partition_bytes: int | None = None) -> DataFrame:
    """Run a plan, bound with the types of the DataFrame, and return a lazy DataFrame."""
    rows = plan.bound
    computed = [F.expr(each.sql).alias(each.name) for each in rows.computed]
    events = df.select(*map(column, columns_read(rows)), *computed)
    keys = [_key(events, name) for name in rows.partition_by]
    shuffled = events.repartition(*keys) if keys else events.repartition(1)
    order = [*keys, *(_ordered(key.column, key.descending, key.nulls_first) for key in rows.order_by)]
    arriving = shuffled.sortWithinPartitions(*order) if order else shuffled

    names = arriving.columns
    types = {field.name: field.type for field in rows.schema} | {each.name: each.data_type for each in rows.computed}
    schema = pa.schema([pa.field(name, types[name]) for name in names])

    def run(batches: Batches) -> Batches:
        named = (pa.RecordBatch.from_arrays(batch.columns, names) for batch in batches)
        for table in Partitions(rows.partition_by, max_partition_bytes).tables(named):
            # Spark sends timestamps in the session's time zone.
            yield from execute(plan, table.cast(schema))

    matched = by_position(arriving).mapInArrow(for_workers(run), _matched_schema(df.schema, rows))
    return matched.select(*_output(rows))


def _key(df: DataFrame, name: str) -> Column:
    """Return a key such that equal values hash equally: Spark hashes -0.0 and 0.0 differently."""
    data_type = df.schema[name].dataType
    return column(name) + F.lit(0.0).cast(data_type) if isinstance(data_type, DoubleType | FloatType) else column(name)


def _ordered(name: str, descending: bool, nulls_first: bool) -> Column:
    key = column(name)
    if descending:
        return key.desc_nulls_first() if nulls_first else key.desc_nulls_last()
    return key.asc_nulls_first() if nulls_first else key.asc_nulls_last()


def _matched_schema(events: StructType, rows: BoundRows) -> StructType:
    """Return the schema of what the matcher returns. Columns of the input keep their types."""
    types = {field.name: field.dataType for field in events.fields}
    of_measures = {
        measure.name: types[measure.expression.column]
        for measure in rows.measures
        if isinstance(measure.expression, RowValue) and measure.expression.column in types
    }
    measures = {measure.name for measure in rows.measures}
    return StructType(
        [
            StructField(
                field.name,
                (of_measures if field.name in measures else types).get(field.name) or to_spark(field.type),
                True,
            )
            for field in rows.output
        ]
    )


def _output(rows: BoundRows) -> list[Column]:
    """Return the columns of the result: the measures, computed from what was matched, between those of the input."""
    measures = {measure.name for measure in rows.measures}
    names = [name for name in rows.output.names if name not in measures]
    leading = len(dict.fromkeys([*rows.partition_by, *_order_columns(rows)])) if rows.passed_columns else len(names)
    projected = [F.expr(sql).alias(name) for name, sql in rows.projections]
    return [*map(column, names[:leading]), *projected, *map(column, names[leading:])]


def _order_columns(rows: BoundRows) -> list[str]:
    return [key.column for key in rows.order_by if key.column in rows.passed_columns]


def describe_run(rows: BoundRows) -> list[str]:
    """Return the lines of explain on how the work is distributed over Spark tasks."""
    read = columns_read(rows)
    lines = []
    if rows.partition_by:
        lines.append(f"shuffle: by {', '.join(rows.partition_by)}; rows with null keys form one partition")
    else:
        lines.append("shuffle: all rows go to one task, because there is no PARTITION BY")
    if rows.order_by:
        lines.append("sort: by Spark, before rows are sent to Python")
        lines.append("ties: rows that are equal under ORDER BY have no defined order; add columns to order them")
    else:
        lines.append("sort: none, because there is no ORDER BY; the order of rows is Spark's choice")
    lines.append(f"columns: {len(read)} of {len(rows.schema)} sent to Python")
    lines += [f"computed by Spark: {each.sql}" for each in rows.computed]
    lines.append("memory: a task holds whole partitions, about a million rows at a time")
    return lines
