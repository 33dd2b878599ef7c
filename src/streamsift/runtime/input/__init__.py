"""Read events into Arrow tables without changing a value.

- `locations`: find the files of a path, a glob pattern, a URI or standard input, and their format
- `files`: read CSV, JSON or Parquet files in this process
- `csv_text`, `json_text`: parse CSV and JSON, for both engines
- `text_types`: choose the type of a column of text and convert it, for both engines
- `times`: convert a time column of a given format or unit
- `frames`: convert a pandas DataFrame
- `topics`: parse the location of a Kafka topic

Only Parquet stores types. The types of CSV columns, and of JSON numbers that a double may round, are chosen from all
values. Spark's Python workers call the same code, so a file has the same rows on both engines.
"""

from streamsift.runtime.input.csv_text import check_closed, check_unique, csv_batches, csv_names, unreadable
from streamsift.runtime.input.files import (
    check_folders,
    check_header,
    read_head,
    read_names,
    read_schema,
    read_table,
    text_columns,
)
from streamsift.runtime.input.frames import table_of_frame
from streamsift.runtime.input.json_text import (
    JsonShape,
    check_utf8,
    double_paths,
    infer_json,
    json_lines,
    json_schema,
    merge_json,
    merge_numbers,
    number_shapes,
    parse_json,
    spans_lines,
)
from streamsift.runtime.input.locations import (
    NULL_FOLDER,
    STDIN,
    FileInput,
    as_input,
    delimiter_of,
    file_format,
    find_files,
    folder_values,
    is_uri,
    local_files,
    missing,
    name_of,
    root_of,
    size_bytes,
)
from streamsift.runtime.input.text_types import (
    Family,
    TextShape,
    column_type,
    converted,
    converted_block,
    merge,
    shape_of,
)
from streamsift.runtime.input.times import UNITS, TimeNotation, times_of, with_times
from streamsift.runtime.input.topics import Topic, is_topic, topic_of
