"""Format results as JSON lines or flat columns, and write them batch by batch in bounded memory."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from streamsift.runtime import tables_of

TABLE_ROWS, TABLE_BYTES = 1 << 17, 1 << 26  # approximate size of a Parquet row group


def write_file(batches: Iterable[pa.RecordBatch], schema: pa.Schema, path: Path, output_format: str) -> int:
    """Write the batches to a new file and return its number of rows; leave no file if anything fails."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    try:
        if output_format == "json":
            with unfinished.open("w", encoding="utf-8") as lines:
                rows = write_lines(batches, lines)
        else:
            rows = _write_tables(batches, schema, unfinished, output_format)
        unfinished.rename(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return rows


def write_lines(batches: Iterable[pa.RecordBatch], lines: TextIO) -> int:
    """Write each row as a line of JSON and return the number of rows."""
    rows = 0
    for batch in batches:
        lines.writelines(f"{line}\n" for line in json_lines(batch))
        rows += batch.num_rows
    return rows


def write_csv(batches: Iterable[pa.RecordBatch], schema: pa.Schema, target: Any) -> int:
    """Write flat columns to a path or a binary stream and return the number of rows."""
    return _write_tables(batches, schema, target, "csv")


def _write_tables(batches: Iterable[pa.RecordBatch], schema: pa.Schema, target: Any, output_format: str) -> int:
    is_csv, rows = output_format == "csv", 0
    shape: Callable[[pa.Table], pa.Table] = flat_table if is_csv else lambda table: table
    schema = shape(schema.empty_table()).schema
    make: Callable[..., Any] = pa.csv.CSVWriter if is_csv else pa.parquet.ParquetWriter
    with make(os.fspath(target) if isinstance(target, Path) else target, schema) as writer:
        for table in tables_of(batches, TABLE_ROWS, TABLE_BYTES):
            writer.write_table(shape(table).cast(schema))
            rows += table.num_rows
    return rows


def json_lines(batch: pa.RecordBatch) -> Iterator[str]:
    """Yield each row as a line of JSON. Decimals become text to keep their digits; NaN and infinities become null."""
    for row in batch.to_pylist():
        yield json.dumps(_plain(row), ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {key: _plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case float():
            return value if value - value == 0 else None
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case Decimal():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode()
        case _:
            return value


def flat_table(table: pa.Table) -> pa.Table:
    """Flatten structs into columns `a.x`. Durations become seconds; other nested values become JSON text."""
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    for index, field in enumerate(table.schema):
        if pa.types.is_duration(field.type):
            seconds = pc.divide(table.column(index).cast(pa.duration("us")).cast(pa.int64()).cast(pa.float64()), 1e6)
            table = table.set_column(index, field.name, seconds)
        if pa.types.is_nested(field.type):
            values = table.column(index).to_pylist()
            texts = [None if v is None else json.dumps(_plain(v), ensure_ascii=False) for v in values]
            table = table.set_column(index, field.name, pa.array(texts, pa.string()))
    return table
