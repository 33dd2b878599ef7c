"""Read CSV, JSON lines or Parquet files into an Arrow table of events, in this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from streamsift.errors import BadInputError
from streamsift.runtime.input.csv_text import EMPTY, check_closed, check_unique, csv_batches, csv_names, unreadable
from streamsift.runtime.input.json_text import (
    double_paths,
    infer_json,
    json_lines,
    json_schema,
    merge_json,
    merge_numbers,
    number_shapes,
    parse_json,
)
from streamsift.runtime.input.locations import (
    COMPRESSED,
    DataFile,
    FileInput,
    FileSet,
    as_input,
    delimiter_of,
    file_format,
    find_files,
)
from streamsift.runtime.input.text_types import typed
from streamsift.runtime.input.times import with_times
from streamsift.runtime.resources import current_progress

SAMPLE_BYTES, TAIL_BYTES = 1 << 20, 1 << 10  # of a file: to estimate the length of its lines, and its end
OTHER_FORMAT = "\nHint: write the file again, or set its format with --input-format csv or json."


def read_table(given: FileInput | Path | str) -> pa.Table:
    """Read all rows of an input, and track how many have been read."""
    return _read(as_input(given), None)


def read_schema(given: FileInput | Path | str) -> pa.Schema:
    """Return the columns of an input. Only Parquet files store them: other types depend on every row."""
    source = as_input(given)
    rows = 0 if file_format(source) == "parquet" and source.times is None else None
    return _read(source, rows).schema


def read_names(given: FileInput | Path | str) -> list[str]:
    """Return the column names of an input from its first rows."""
    return list(_read(as_input(given), 1).column_names)


def read_head(given: FileInput | Path | str, rows: int) -> pa.Table:
    """Read the first rows of an input."""
    return _read(as_input(given), rows)


def _read(source: FileInput, limit: int | None) -> pa.Table:
    read_as = file_format(source)
    files = find_files(source)
    match read_as:
        case "csv":
            table = _read_csv(source, files, limit)
        case "json":
            table = _read_json(files, limit)
        case _:
            table = _read_parquet(source, files, limit)
    return with_times(table, source.times)


def _read_csv(source: FileInput, files: FileSet, limit: int | None) -> pa.Table:
    delimiter, folders = delimiter_of(source), _folder_names(files)
    names: list[str] | None = None
    first, batches, done_rows = "", [], 0
    for number, (file, data) in enumerate(_contents(files)):
        own_names = csv_names(data, file.name, delimiter)
        if names is None:
            first, names = file.name, own_names
            check_unique([*names, *folders], source.location)
        check_header(own_names, names, file.name, first)
        total_rows = _rows_about(data, files.files[number:]) + done_rows
        last = None
        for last in csv_batches(data, names, file.name, delimiter):
            batches.append(_with_folders(last, folders, file))
            done_rows += last.num_rows
            _track(done_rows, total_rows)
            if limit is not None and done_rows >= limit:
                break
        else:
            check_closed(last, data.slice(max(0, data.size - TAIL_BYTES)).to_pybytes(), file.name)
        if limit is not None and done_rows >= limit:
            break
    if names is None:
        raise unreadable(source.location, "CSV", EMPTY)
    table = pa.Table.from_batches(batches, pa.schema([(name, pa.string()) for name in [*names, *folders]]))
    return typed(table if limit is None else table.slice(0, limit), text_columns(source))


def text_columns(source: FileInput) -> set[str]:
    """Return the columns of CSV files that stay text: a time column whose format is given."""
    return {source.times.column} if source.times is not None and source.times.format is not None else set()


def check_header(names: list[str], expected: list[str], name: str, first: str) -> None:
    """Raise BadInputError if the header of a CSV file differs from that of the first file."""
    if names != expected:
        raise BadInputError(
            f"the header of {name} is {', '.join(names)}; that of {first} is {', '.join(expected)}\n"
            "Hint: give all files the same header."
        )


def _read_json(files: FileSet, limit: int | None) -> pa.Table:
    folders, blocks = _folder_names(files), []
    for file, data in _contents(files):
        lines = json_lines(data.to_pybytes(), file.name)
        if limit is not None:
            lines = b"\n".join(lines.split(b"\n", limit)[:limit])
        blocks.append((file, lines))
        if limit is not None:
            break
    if not blocks:
        raise unreadable(files.files[0].name, "JSON", EMPTY)
    shape = reduce(merge_json, [infer_json(lines, file.name) for file, lines in blocks])
    check_unique([*shape.schema.names, *folders], files.files[0].name)
    paths = double_paths(shape)
    schema = json_schema(
        shape, reduce(merge_numbers, [number_shapes(lines, paths) for _, lines in blocks if paths], {})
    )
    tables = [_with_folders(parse_json(lines, schema, file.name), folders, file) for file, lines in blocks]
    return _with_typed(pa.concat_tables(tables), folders)


def _read_parquet(source: FileInput, files: FileSet, limit: int | None) -> pa.Table:
    folders = _folder_names(files)
    partitioning = ds.partitioning(pa.schema([(name, pa.string()) for name in folders]), flavor="hive")
    name = source.location
    with _readable(f"{name} as Parquet"):
        paths = [file.path for file in files.files if file.size_bytes > 0]
        if not paths:
            raise unreadable(name, "Parquet", EMPTY)
        dataset = ds.dataset(paths, format="parquet", filesystem=files.filesystem, partitioning=partitioning)
        own_names = next(dataset.get_fragments()).physical_schema.names
        check_unique([*own_names, *folders], name)
        table = _all_rows(dataset) if limit is None else dataset.head(limit)
    return _with_typed(table, folders)


def _all_rows(dataset: ds.Dataset) -> pa.Table:
    if current_progress() is None:
        return dataset.to_table()
    total_rows = dataset.count_rows()
    done_rows, batches = 0, []
    for batch in dataset.to_batches():
        batches.append(batch)
        done_rows += batch.num_rows
        _track(done_rows, total_rows)
    return pa.Table.from_batches(batches, dataset.schema)


def _track(done_rows: int, total_rows: int) -> None:
    if (tracker := current_progress()) is not None:
        tracker.update(done_rows, max(done_rows, total_rows))


def _rows_about(data: pa.Buffer, files: Sequence[DataFile]) -> int:
    """Estimate the rows of the files from the lines at the beginning of the first, which is given."""
    sample = data.slice(0, min(data.size, SAMPLE_BYTES)).to_pybytes()
    rows = sample.count(b"\n") * data.size / max(1, len(sample))
    return int(rows * sum(file.size_bytes for file in files) / max(1, files[0].size_bytes))


def _contents(files: FileSet) -> Iterator[tuple[DataFile, pa.Buffer]]:
    """Yield each file that is not empty with its content, decompressed."""
    for file in files.files:
        with _readable(file.name):
            if file.path.lower().endswith(COMPRESSED):
                data = files.filesystem.open_input_stream(file.path).read_buffer()
            else:
                data = files.filesystem.open_input_file(file.path).read_buffer()
        if data.size > 0:
            yield file, data


@contextmanager
def _readable(what: str) -> Iterator[None]:
    """Raise BadInputError if Arrow or the system cannot read a file."""
    try:
        yield
    except (pa.ArrowInvalid, OSError) as error:
        if "Parquet magic bytes not found" in str(error):
            raise BadInputError(f"cannot read {what}: it has no Parquet footer{OTHER_FORMAT}") from error
        raise BadInputError(f"cannot read {what}: {error}") from error


def _folder_names(files: FileSet) -> list[str]:
    """Return the names of `key=value` folders, which all files must have in common."""
    names = list(files.files[0].folders)
    for file in files.files:
        check_folders(list(file.folders), names, file.name)
    return names


def check_folders(names: list[str], expected: list[str], name: str) -> None:
    """Raise BadInputError if a file is in other `key=value` folders than the first one."""
    if names != expected:
        raise BadInputError(
            f"{name} is in the folders {', '.join(names) or '(none)'}; the first file is in "
            f"{', '.join(expected) or '(none)'}\nHint: use the same `key=value` folders for all files."
        )


def _with_folders(rows: pa.Table | pa.RecordBatch, folders: list[str], file: DataFile) -> pa.Table | pa.RecordBatch:
    """Append the values of `key=value` folders, as text, to the rows of a file."""
    for name in folders:
        value = pa.scalar(file.folders[name], pa.string())
        rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
    return rows


def _with_typed(table: pa.Table, folders: list[str]) -> pa.Table:
    """Convert the columns of `key=value` folders from text."""
    if not folders:
        return table
    values = typed(table.select(folders))
    return pa.table([*table.drop_columns(folders).columns, *values.columns], names=table.column_names)
