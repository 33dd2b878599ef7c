"""TODO"""

from streamsift.runtime.input.files import (
    file_format,
    missing,
    read_head,
    read_names,
    read_schema,
    read_table,
    unnamed_column,
)
from streamsift.runtime.input.frames import table_of_frame
from streamsift.runtime.input.json_lines import exact_type
from streamsift.runtime.input.text_shapes import Family, Shape, column_type, merge
from streamsift.runtime.input.text_types import converted, converted_block, shape_of

__all__ = [
    "Family",
    "Shape",
    "column_type",
    "converted",
    "converted_block",
    "exact_type",
    "file_format",
    "merge",
    "missing",
    "read_head",
    "read_names",
    "read_schema",
    "read_table",
    "shape_of",
    "table_of_frame",
    "unnamed_column",
]
