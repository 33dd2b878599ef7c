"""Parse JSON lines into columns, with numbers as they are written and strings as strings.

Both engines call this code: the local engine on files, Spark's Python workers on blocks of lines. Arrow alone would
read long numbers as doubles and strings that look like times as timestamps. A file that is one array, or whose objects
span lines, is converted to JSON lines first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.json

from streamsift.errors import BadInputError
from streamsift.runtime.input.csv_text import BLOCK_BYTES, EMPTY, MAX_BLOCK_BYTES, NOT_UTF8, unreadable
from streamsift.runtime.input.text_types import SAFE_DIGITS, TextShape, column_type, merge, shape_of

BOM = b"\xef\xbb\xbf"
LONG_NUMBER = re.compile(rb"[:\[,\s]-?[\d.]{%d,}" % (SAFE_DIGITS + 1))
KINDS = {"object": "objects", "array": "arrays", "number": "numbers", "string": "strings", "boolean": "booleans"}
SHOWN_BYTES = 80  # of a line, in a message
ITEMS = "[]"  # the part of a path that stands for the items of a list

NumberPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JsonShape:
    """The columns of a block of lines: enough to choose their types together with those of other blocks."""

    schema: pa.Schema = field(default_factory=lambda: pa.schema([]))
    has_long_numbers: bool = False  # a number may have more digits than every double holds


def spans_lines(first_line: bytes) -> bool:
    """Return True if a file that starts with this line does not have one object per line."""
    try:
        return not isinstance(json.loads(first_line), dict)
    except ValueError:
        return True


def check_utf8(data: bytes, name: str) -> str:
    """Return data as text. Raises BadInputError if it is not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise unreadable(name, "JSON", NOT_UTF8) from error


def json_lines(data: bytes, name: str) -> bytes:
    """Return the content of a file as JSON lines. Raises BadInputError if it is empty or not UTF-8."""
    data = data.removeprefix(BOM).strip()
    if not data:
        raise unreadable(name, "JSON", EMPTY)
    text = check_utf8(data, name)
    if not spans_lines(data.partition(b"\n")[0]):
        return data
    documents = "\n".join(_documents(text, name)).encode()
    if not documents:
        raise unreadable(name, "JSON", EMPTY)
    return documents


def _documents(text: str, name: str) -> Iterator[str]:
    """Yield the objects of an array, or of a sequence of objects, as they are written, each on one line."""
    decode, skip = json.JSONDecoder().raw_decode, re.compile(r"[\s,]*" if text[0] == "[" else r"\s*")
    is_array = text[0] == "["
    position, end = int(is_array), len(text) - int(is_array)
    try:
        while (position := skip.match(text, position).end()) < end:  # type: ignore[union-attr]  # it matches nothing, too
            value, after = decode(text, position)
            if not isinstance(value, dict):
                raise unreadable(name, "JSON", f"a row is no object: {_shortened(text[position:after])}")
            yield text[position:after].replace("\n", " ").replace("\r", " ")
            position = after
    except json.JSONDecodeError as error:
        raise unreadable(name, "JSON", f"{error.msg} (line {error.lineno}, column {error.colno})") from error
    if is_array and text[-1] != "]":
        raise unreadable(name, "JSON", "the array is not closed")


def infer_json(lines: bytes, name: str) -> JsonShape:
    """Return the shape of JSON lines."""
    schema = _parsed(lines, pa.schema([]), name).schema
    strings = pa.schema([each.with_type(_with_strings(each.type)) for each in schema])
    return JsonShape(strings, LONG_NUMBER.search(lines) is not None)


def merge_json(one: JsonShape, other: JsonShape) -> JsonShape:
    """Return the shape of the lines of both. Raises BadInputError if a column has values of two kinds."""
    merged = _merged_type("", pa.struct(list(one.schema)), pa.struct(list(other.schema)))
    return JsonShape(pa.schema(list(merged)), one.has_long_numbers or other.has_long_numbers)


def _merged_type(name: str, one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if pa.types.is_null(one) or one == other:
        return other
    if pa.types.is_null(other):
        return one
    if _is_number(one) and _is_number(other):
        return pa.float64()
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(_merged_type(name, one.value_type, other.value_type))
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        types = {each.name: each.type for each in one}
        for each in other:
            path = f"{name}.{each.name}" if name else each.name
            types[each.name] = _merged_type(path, types[each.name], each.type) if each.name in types else each.type
        return pa.struct(list(types.items()))
    raise _mixed(name, _kind(one), _kind(other))


def _mixed(name: str, one: str, other: str) -> BadInputError:
    kinds = " and ".join(sorted((one, other)))
    return BadInputError(
        f"the JSON column `{name}` contains {kinds}\nHint: write all values of the column in the same way."
    )


def _kind(kind: pa.DataType) -> str:
    if pa.types.is_nested(kind):
        return "arrays" if pa.types.is_list(kind) else "objects"
    return "booleans" if pa.types.is_boolean(kind) else "numbers" if _is_number(kind) else "strings"


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


def double_paths(shape: JsonShape) -> list[NumberPath]:
    """Return the paths of numbers that would be doubles, if some number may be too long for a double."""
    return list(_double_paths(pa.struct(list(shape.schema)), ())) if shape.has_long_numbers else []


def _double_paths(kind: pa.DataType, path: NumberPath) -> Iterator[NumberPath]:
    if pa.types.is_floating(kind):
        yield path
    elif pa.types.is_list(kind):
        yield from _double_paths(kind.value_type, (*path, ITEMS))
    elif pa.types.is_struct(kind):
        for each in kind:
            yield from _double_paths(each.type, (*path, each.name))


def number_shapes(lines: bytes, paths: Iterable[NumberPath]) -> dict[NumberPath, TextShape]:
    """Return the shape of the numbers at each path, as they are written."""
    loads = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str).decode
    rows = [loads(line.decode()) for line in lines.splitlines() if line.strip()]
    return {path: shape_of(pa.chunked_array([pa.array(_values(rows, path), pa.string())])) for path in paths}


def _values(rows: Iterable[Any], path: NumberPath) -> list[str]:
    values: Iterable[Any] = rows
    for part in path:
        present = (value for value in values if value is not None)
        values = [item for value in present for item in value] if part == ITEMS else [v.get(part) for v in present]
    return [value for value in values if value is not None]


def merge_numbers(
    one: Mapping[NumberPath, TextShape], other: Mapping[NumberPath, TextShape]
) -> dict[NumberPath, TextShape]:
    return {path: merge(one.get(path, TextShape()), other.get(path, TextShape())) for path in {**one, **other}}


def json_schema(shape: JsonShape, numbers: Mapping[NumberPath, TextShape]) -> pa.Schema:
    """Return the schema whose types hold every number. Raises BadInputError if none does."""
    return pa.schema(list(_exact(pa.struct(list(shape.schema)), (), numbers)))


def _exact(kind: pa.DataType, path: NumberPath, numbers: Mapping[NumberPath, TextShape]) -> pa.DataType:
    if path in numbers:
        return _exact_number(".".join(path).replace(f".{ITEMS}", ITEMS), numbers[path])
    if pa.types.is_list(kind):
        return pa.list_(_exact(kind.value_type, (*path, ITEMS), numbers))
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(_exact(each.type, (*path, each.name), numbers)) for each in kind])
    return kind


def _exact_number(name: str, numbers: TextShape) -> pa.DataType:
    kind = column_type(numbers)
    if pa.types.is_string(kind):
        raise BadInputError(
            f"the numbers in `{name}` cannot be read without rounding: an integer beyond 2^53 next to numbers with an "
            "exponent, or more than 38 digits\nHint: write them as strings, or with fewer digits."
        )
    return kind


def parse_json(lines: bytes, schema: pa.Schema, name: str) -> pa.Table:
    """Parse JSON lines into columns of a schema; other columns are dropped."""
    return _parsed(lines, schema, name, unexpected="ignore").select(schema.names)


def _parsed(lines: bytes, schema: pa.Schema, name: str, unexpected: str = "infer") -> pa.Table:
    """Parse JSON lines. Raises BadInputError if Arrow cannot, or if an object spans lines."""
    parse = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unexpected)
    block_bytes = BLOCK_BYTES
    while True:
        read = pyarrow.json.ReadOptions(block_size=block_bytes)
        try:
            table = pyarrow.json.read_json(pa.BufferReader(lines), read, parse)
            break
        except pa.ArrowInvalid as error:
            if "straddling" not in str(error) or block_bytes > len(lines):
                raise _translated(error, lines, name) from error
            block_bytes = min(8 * block_bytes, MAX_BLOCK_BYTES)
    if table.num_rows != sum(1 for line in lines.splitlines() if line.strip()):
        raise unreadable(name, "JSON", "it does not have one object per line")
    return table


def _translated(error: pa.ArrowInvalid, lines: bytes, name: str) -> BadInputError:
    """Return the error of Arrow's JSON reader in terms of the file."""
    for line in filter(bytes.strip, lines.splitlines()):
        try:
            value = json.loads(line)
        except json.JSONDecodeError as reason:
            return unreadable(name, "JSON", f"{reason.msg} (column {reason.colno}) in {_shortened(line.decode())}")
        if not isinstance(value, dict):
            return unreadable(name, "JSON", f"a row is no object: {_shortened(line.decode())}")
    if mixed := re.search(r"Column\(/(.*)\) changed from (\w+) to (\w+)", str(error)):
        column, *kinds = mixed.groups()
        one, other = (KINDS.get(kind, kind) for kind in kinds)
        return _mixed(column.replace("/", "."), one, other)
    if twice := re.search(r"Column\(/(.*)\) was specified twice", str(error)):
        return unreadable(name, "JSON", f"an object has the key `{twice[1]}` twice")
    return unreadable(name, "JSON", str(error).removeprefix("JSON parse error: "))


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN_BYTES else f"{text[:SHOWN_BYTES]}…"


def _with_strings(kind: pa.DataType) -> pa.DataType:
    """Return the type with strings in place of the timestamps that Arrow has made of them."""
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(_with_strings(each.type)) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(_with_strings(kind.value_type))
    return kind
