"""Read events into Arrow tables, from files and from pandas frames, with every value as it is written.

- `files`: read CSV, JSON lines or Parquet, one file or a directory
- `json_lines`: read JSON lines
- `frames`: convert a pandas frame
- `text_types`: describe what the fields of a text column look like, choose its type, convert it

The format is the one given, else that of the suffix. Only Parquet stores types. The type of a CSV column, and of a JSON
number that a double may round, is chosen from all its fields; Spark runs the same code.
"""

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
from streamsift.runtime.input.text_types import (
    Family,
    TextShape,
    column_type,
    converted,
    converted_block,
    merge,
    shape_of,
)
