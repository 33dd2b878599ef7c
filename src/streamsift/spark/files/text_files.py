"""Parse the text of CSV and JSON files in Spark's Python workers, with the parsers of the local engine.

Spark splits files into lines and sends them to its workers. The first pass chooses the types of the columns, as the
local engine does, and reports bad files; the second pass converts the rows. If a record of a file spans lines, Spark
sends whole files instead, and each file is read by one task.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from streamsift.errors import BadInputError
from streamsift.runtime.input import (
    Family,
    FileInput,
    JsonShape,
    TextShape,
    check_closed,
    check_folders,
    check_header,
    check_unique,
    check_utf8,
    column_type,
    converted,
    converted_block,
    csv_batches,
    csv_names,
    double_paths,
    folder_values,
    infer_json,
    json_lines,
    json_schema,
    merge,
    merge_json,
    merge_numbers,
    name_of,
    number_shapes,
    parse_json,
    shape_of,
    spans_lines,
    text_columns,
    unreadable,
    with_times,
)

BOM = b"\xef\xbb\xbf"
Batches = Iterator[pa.RecordBatch]


class SpansLines(Exception):
    """A record of a file spans lines, so the file must be read as a whole."""


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Lines of a file that follow each other, or a whole file."""

    path: str
    start: int  # the offset in the file of the part that Spark has read
    data: bytes
    is_first: bool  # the block contains the first line of its file


@dataclass(frozen=True, slots=True)
class TextFiles:
    """How to read the files of an input; sent to workers."""

    source: FileInput
    root: str  # the part of the path above `key=value` folders
    delimiter: str
    whole: bool = False  # each row is a file, not a line
    names: list[str] = field(default_factory=list)  # in the header of CSV files
    folders: list[str] = field(default_factory=list)

    def name_of(self, block: TextBlock) -> str:
        return name_of(self.source.location, self.relative(block.path) or self.source.location)

    def relative(self, path: str) -> str:
        """Return the path of a file below the input; empty if the input is this file."""
        return unquote(path).partition(f"{self.root}/")[2] if self.root else ""

    def folder_values(self, block: TextBlock) -> dict[str, str | None]:
        values = folder_values(self.relative(block.path))
        check_folders(list(values), self.folders, self.name_of(block))
        return values

    def json_lines(self, block: TextBlock) -> bytes:
        if self.whole:
            return json_lines(block.data, self.name_of(block))
        check_utf8(block.data, self.name_of(block))
        return block.data

    def csv_table(self, block: TextBlock) -> pa.Table:
        """Parse CSV as columns of strings, with those of `key=value` folders."""
        name, data = self.name_of(block), pa.py_buffer(block.data)
        header = self.whole or block.is_first
        if header:
            first = data if self.whole else pa.py_buffer(block.data.partition(b"\n")[0])
            check_header(csv_names(first, name, self.delimiter), self.names, name, "the first file")
        batches = list(csv_batches(data, self.names, name, self.delimiter, has_header=header)) if block.data else []
        if self.whole:
            check_closed(batches[-1] if batches else None, block.data[-1024:], name)
        table = pa.Table.from_batches(batches, pa.schema([(each, pa.string()) for each in self.names]))
        for folder, value in self.folder_values(block).items():
            table = table.append_column(folder, pa.repeat(pa.scalar(value, pa.string()), table.num_rows))
        return table


def text_blocks(batches: Batches, files: TextFiles, is_json: bool) -> Iterator[TextBlock]:
    """Yield blocks of lines, or of whole files, that are not empty. Raises SpansLines if lines are not enough."""
    current, at_start = ("", -1), False
    for batch in batches:
        values, paths, starts = batch.columns
        ends = sorted({*_run_ends(paths), *_run_ends(starts)})
        for begin, end in zip([0, *ends], ends, strict=False):
            key = paths[begin].as_py(), starts[begin].as_py()
            if files.whole:
                if (data := values[begin].as_py().removeprefix(BOM)).strip():
                    yield TextBlock(*key, data, is_first=True)
                continue
            if key != current:
                current, at_start = key, key[1] == 0
            data = _joined(values.slice(begin, end - begin), is_json)
            if at_start:
                data = data.removeprefix(BOM).lstrip(b"\r\n")
            if data.strip(b"\r\n"):
                if is_json and at_start and spans_lines(data.partition(b"\n")[0]):
                    raise SpansLines
                yield TextBlock(*key, data, is_first=at_start)
                at_start = False


def _run_ends(values: pa.Array) -> list[int]:
    return pc.run_end_encode(values).run_ends.to_pylist()


def _joined(lines: pa.Array, is_json: bool) -> bytes:
    """Join lines. In CSV, a line with an odd number of quotes may have a field that goes on in the next line."""
    if not is_json and pc.any(pc.equal(pc.bit_wise_and(pc.count_substring(lines, '"'), 1), 1), min_count=0).as_py():
        raise SpansLines
    listed = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    return pc.binary_join(listed, b"\n")[0].as_py()


@dataclass(frozen=True, slots=True)
class CsvSummary:
    """The shapes of the columns of CSV files."""

    shapes: tuple[TextShape, ...]

    def merged(self, other: CsvSummary) -> CsvSummary:
        return CsvSummary(tuple(map(merge, self.shapes, other.shapes)))


@dataclass(frozen=True, slots=True)
class JsonSummary:
    """The shapes of the columns of JSON files, and of their `key=value` folders."""

    shape: JsonShape
    folders: dict[str, TextShape]
    name: str

    def merged(self, other: JsonSummary) -> JsonSummary:
        check_folders(list(other.folders), list(self.folders), other.name)
        folders = {name: merge(shape, other.folders[name]) for name, shape in self.folders.items()}
        return JsonSummary(merge_json(self.shape, other.shape), folders, self.name)


def summarize_csv(block: TextBlock, files: TextFiles) -> CsvSummary:
    return CsvSummary(tuple(shape_of(column) for column in files.csv_table(block).columns))


def summarize_json(block: TextBlock, files: TextFiles) -> JsonSummary:
    name = files.name_of(block)
    values = folder_values(files.relative(block.path))
    folders = {key: shape_of(_constant(value, 1)) for key, value in values.items()}
    return JsonSummary(infer_json(files.json_lines(block), name), folders, name)


def summaries(texts: DataFrame, files: TextFiles, summarize: Any, *, is_json: bool) -> list[Any]:
    """Summarize each part of each file that Spark reads, in their order. Raises BadInputError or SpansLines.

    Errors are returned as values: an exception in a worker would reach the user as Spark's, with its stack.
    """

    def partition(batches: Batches) -> Batches:
        parts: dict[tuple[str, int], Any] = {}
        error: Exception | None = None
        try:
            for block in text_blocks(batches, files, is_json):
                summary, key = summarize(block, files), (block.path, block.start)
                parts[key] = parts[key].merged(summary) if key in parts else summary
        except (BadInputError, SpansLines) as raised:
            error = raised
        yield pa.RecordBatch.from_pydict({"payload": [pickle.dumps((parts, error))]})

    rows = texts.mapInArrow(partition, "payload binary").collect()
    results = [pickle.loads(row.payload) for row in rows]
    errors = [error for _, error in results if error is not None]
    for error in sorted(errors, key=lambda error: not isinstance(error, SpansLines)):
        raise error
    parts = {key: summary for summaries_of_task, _ in results for key, summary in summaries_of_task.items()}
    return [parts[key] for key in sorted(parts)]


@dataclass(frozen=True, slots=True)
class CsvConverter:
    """Convert blocks of CSV files to the types of their columns."""

    files: TextFiles
    shapes: tuple[TextShape, ...]
    is_stream: bool

    @property
    def types(self) -> dict[str, pa.DataType]:
        names, texts = [*self.files.names, *self.files.folders], text_columns(self.files.source)
        pairs = zip(names, self.shapes, strict=True)
        return {name: pa.string() if name in texts else column_type(shape) for name, shape in pairs}

    def __call__(self, batches: Batches) -> Batches:
        types, texts = self.types, text_columns(self.files.source)
        for block in text_blocks(batches, self.files, is_json=False):
            table = self.files.csv_table(block)
            columns = []
            for name, shape in zip(types, self.shapes, strict=True):
                if self.is_stream and name not in texts:
                    columns.append(converted_block(name, table[name], shape))
                else:
                    columns.append(converted(name, table[name], types[name]))
            yield from _batches(pa.table(columns, names=list(types)), self.files.source)


@dataclass(frozen=True, slots=True)
class JsonConverter:
    """Convert blocks of JSON files to the types of their columns."""

    files: TextFiles
    schema: pa.Schema
    folders: dict[str, TextShape]

    @property
    def types(self) -> dict[str, pa.DataType]:
        own = {each.name: each.type for each in self.schema}
        return own | {name: column_type(shape) for name, shape in self.folders.items()}

    def __call__(self, batches: Batches) -> Batches:
        for block in text_blocks(batches, self.files, is_json=True):
            name = self.files.name_of(block)
            table = parse_json(self.files.json_lines(block), self.schema, name)
            for key, value in self.files.folder_values(block).items():
                column = converted(key, _constant(value, table.num_rows), column_type(self.folders[key]))
                table = table.append_column(key, column)
            yield from _batches(table, self.files.source)


def csv_converter(texts: DataFrame, files: TextFiles, *, is_stream: bool) -> CsvConverter:
    """Choose the types of the columns of CSV files. Raises BadInputError or SpansLines."""
    parts = summaries(texts, files, summarize_csv, is_json=False)
    width = len(files.names) + len(files.folders)
    shapes = reduce(CsvSummary.merged, parts, CsvSummary((TextShape(),) * width)).shapes
    if is_stream:  # a column that is empty so far may hold anything later
        shapes = tuple(TextShape(Family.TEXT) if shape.family is Family.EMPTY else shape for shape in shapes)
    return CsvConverter(files, shapes, is_stream)


def json_converter(texts: DataFrame, files: TextFiles, *, is_stream: bool) -> JsonConverter:
    """Choose the types of the columns of JSON files. Raises BadInputError or SpansLines."""
    parts = summaries(texts, files, summarize_json, is_json=True)
    if not parts:
        raise unreadable(files.source.location, "JSON", "it is empty")
    summary = reduce(JsonSummary.merged, parts)
    check_unique([*summary.shape.schema.names, *summary.folders], files.source.location)
    schema = json_schema(summary.shape, _numbers(texts, files, double_paths(summary.shape)))
    if is_stream:
        nulls = {each.name for each in schema if pa.types.is_null(each.type)}
        schema = pa.schema([each.with_type(pa.string()) if each.name in nulls else each for each in schema])
    return JsonConverter(replace(files, folders=list(summary.folders)), schema, summary.folders)


@dataclass(frozen=True, slots=True)
class NumberSummary:
    """The shapes of JSON numbers that a double may round."""

    shapes: dict[tuple[str, ...], TextShape]

    def merged(self, other: NumberSummary) -> NumberSummary:
        return NumberSummary(merge_numbers(self.shapes, other.shapes))


def _numbers(texts: DataFrame, files: TextFiles, paths: list[tuple[str, ...]]) -> dict[tuple[str, ...], TextShape]:
    if not paths:
        return {}

    def summarize(block: TextBlock, files: TextFiles) -> NumberSummary:
        return NumberSummary(number_shapes(files.json_lines(block), paths))

    return reduce(NumberSummary.merged, summaries(texts, files, summarize, is_json=True)).shapes


def _constant(value: str | None, rows: int) -> pa.ChunkedArray:
    return pa.chunked_array([pa.repeat(pa.scalar(value, pa.string()), rows)])


def _batches(table: pa.Table, source: FileInput) -> Batches:
    for batch in with_times(table, source.times).combine_chunks().to_batches():
        check_fine(batch.schema)
        yield batch


def check_fine(schema: pa.Schema) -> None:
    """Raise BadInputError if a time is finer than Spark's microseconds."""
    for each in schema:
        if pa.types.is_timestamp(each.type) and each.type.unit == "ns":
            raise BadInputError(
                f"column `{each.name}` has times finer than microseconds, which Spark does not support\n"
                "Hint: use --engine local, or write at most six digits after the second."
            )
