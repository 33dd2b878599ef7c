"""Write a result to a file or a stream, batch by batch, so that memory stays bounded."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from streamsift.runtime import tables_of
from streamsift.view.lines import flat_table, json_lines

TABLE_ROWS, TABLE_BYTES = 1 << 17, 1 << 26  # of a row group of Parquet, about


def write_file(batches: Iterable[pa.RecordBatch], schema: pa.Schema, path: Path, output_format: str) -> int:
    """Write the batches to a new file and return how many rows it has; no file is left if something fails."""
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
    """Write a line of JSON for each row and return how many there are."""
    rows = 0
    for batch in batches:
        lines.writelines(f"{line}\n" for line in json_lines(batch))
        rows += batch.num_rows
    return rows


def write_csv(batches: Iterable[pa.RecordBatch], schema: pa.Schema, target: Any) -> int:
    """Write flat columns to a path or a binary stream and return how many rows there are."""
    return _write_tables(batches, schema, target, "csv")


def _write_tables(batches: Iterable[pa.RecordBatch], schema: pa.Schema, target: Any, output_format: str) -> int:
    rows, shape = 0, flat_table if output_format == "csv" else _unchanged
    schema = shape(schema.empty_table()).schema
    make: Callable[..., Any] = pa.csv.CSVWriter if output_format == "csv" else pa.parquet.ParquetWriter
    with make(os.fspath(target) if isinstance(target, Path) else target, schema) as writer:
        for table in tables_of(batches, TABLE_ROWS, TABLE_BYTES):
            writer.write_table(shape(table).cast(schema))
            rows += table.num_rows
    return rows


def _unchanged(table: pa.Table) -> pa.Table:
    return table
