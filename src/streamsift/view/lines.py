"""Format results as lines of JSON, or as flat columns for CSV."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def json_lines(batch: pa.RecordBatch) -> Iterator[str]:
    """Yield a line per row, variables as keys. Decimals keep their digits as text; NaN and infinities are null."""
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
    """Spread structs into columns `a.x`; durations become seconds, and what CSV cannot hold JSON text."""
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    for index, field in enumerate(table.schema):
        if pa.types.is_duration(field.type):
            seconds = pc.divide(table.column(index).cast(pa.duration("us")).cast(pa.int64()).cast(pa.float64()), 1e6)
            table = table.set_column(index, field.name, seconds)
        if pa.types.is_nested(field.type):
            texts = [
                None if v is None else json.dumps(_plain(v), ensure_ascii=False)
                for v in table.column(index).to_pylist()
            ]
            table = table.set_column(index, field.name, pa.array(texts, pa.string()))
    return table
