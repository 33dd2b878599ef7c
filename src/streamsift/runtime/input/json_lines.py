"""Read JSON lines into an Arrow table, with numbers as they are written and strings as strings.

Arrow reads long numbers as doubles and strings that look like times as timestamps without a zone. Spark does neither.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.json

from streamsift.errors import BadInputError
from streamsift.runtime.input.text_types import SAFE_DIGITS, TextShape, column_type, shape_of


def read_json(files: Iterable[Path]) -> pa.Table:
    """Read files as one table. Raises BadInputError for numbers that no type holds."""
    data = b"\n".join(file.read_bytes() for file in files)
    table = _parsed(data, pa.schema([]))
    explicit = []
    for field in table.schema:
        wanted = _with_strings(field.type)
        if pa.types.is_floating(field.type) and _has_long_numbers(data, field.name):
            wanted = exact_type(field.name, shape_of(_texts(data, field.name)))
        if wanted != field.type:
            explicit.append(field.with_type(wanted))
    return _parsed(data, pa.schema(explicit)).select(table.column_names) if explicit else table


def _parsed(data: bytes, explicit: pa.Schema) -> pa.Table:
    options = pyarrow.json.ParseOptions(explicit_schema=explicit)
    return pyarrow.json.read_json(pa.BufferReader(data), parse_options=options)


def _with_strings(kind: pa.DataType) -> pa.DataType:
    """Return the type with strings in place of the timestamps that Arrow has made of them."""
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(_with_strings(f.type)) for f in kind.fields])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_with_strings(kind.value_type)))
    return kind


def _has_long_numbers(data: bytes, name: str) -> bool:
    """Return True if a number of the column may have more digits than every double holds."""
    key = re.escape(json.dumps(name, ensure_ascii=False).encode())
    return re.search(rb"%s\s*:\s*-?[\d.]{%d,}" % (key, SAFE_DIGITS + 1), data) is not None


def _texts(data: bytes, name: str) -> pa.ChunkedArray:
    """Return the numbers of a column as they are written."""
    rows = (json.loads(line, parse_int=str, parse_float=str) for line in data.splitlines() if line.strip())
    return pa.chunked_array([pa.array([None if (v := row.get(name)) is None else str(v) for row in rows], pa.string())])


def exact_type(name: str, numbers: TextShape) -> pa.DataType:
    """Return the type that holds the numbers of a column. Raises BadInputError if none does."""
    kind = column_type(numbers)
    if pa.types.is_string(kind):
        raise BadInputError(
            f"the numbers of `{name}` cannot be read without rounding: an integer beyond 2^53 beside numbers with an "
            "exponent, or more than 38 digits\nHint: write them as strings, or with fewer digits."
        )
    return kind
