"""Parse CSV into columns of strings.

Both engines call this code: the local engine on files, Spark's Python workers on blocks of lines. An empty field is
null, quoted or not; nothing else is (NaN is a number, NULL a word).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv

from streamsift.errors import BadInputError

EMPTY_IS_NULL = {"null_values": [""], "strings_can_be_null": True, "quoted_strings_can_be_null": True}
NOT_UTF8 = "it is not UTF-8 text\nHint: convert it first, for example with `iconv -f latin1 -t utf-8`."
GIVE_DELIMITER = "\nHint: correct the row, or set the delimiter of the file with --delimiter."
BLOCK_BYTES, MAX_BLOCK_BYTES = 1 << 20, (1 << 31) - 1  # Arrow's default, and its limit
EMPTY = "it is empty"


def unreadable(name: str, file_format: str, reason: str) -> BadInputError:
    """Return the error for a file whose content does not fit its format."""
    return BadInputError(f"cannot read {name} as {file_format}: {reason}")


def csv_names(data: pa.Buffer, name: str, delimiter: str) -> list[str]:
    """Return the column names in the first row of a CSV file. Raises BadInputError if two of them are the same."""
    if data.size < BLOCK_BYTES:  # Arrow finds no header in a file that ends with it, without a newline
        data = pa.py_buffer(data.to_pybytes() + b"\n")
    names = [each or unnamed_column(n) for n, each in enumerate(_header(data, name, delimiter))]
    check_unique(names, name)
    return names


def _header(data: pa.Buffer, name: str, delimiter: str) -> list[str]:
    for block_bytes in _block_sizes(data):
        read = pyarrow.csv.ReadOptions(block_size=block_bytes)
        try:
            reader = pyarrow.csv.open_csv(pa.BufferReader(data), read, _parse_options(delimiter, lambda _: "skip"))
            return list(reader.schema.names)
        except UnicodeDecodeError as error:
            raise unreadable(name, "CSV", NOT_UTF8) from error
        except pa.ArrowInvalid as error:
            if not _is_too_long(error, block_bytes, data):
                raise _translated(error, name, []) from error
    raise AssertionError("the last block holds all data")


def _block_sizes(data: pa.Buffer) -> Iterator[int]:
    """Yield sizes of blocks to try: a row must fit in a block, or in two that follow each other."""
    size = BLOCK_BYTES
    while size < data.size:
        yield size
        size *= 8
    yield min(size, MAX_BLOCK_BYTES)


def _is_too_long(error: pa.ArrowInvalid, block_bytes: int, data: pa.Buffer) -> bool:
    return "straddling" in str(error) and block_bytes < min(data.size, MAX_BLOCK_BYTES)


def check_unique(names: Sequence[str], name: str) -> None:
    """Raise BadInputError if columns have the same name, or names that Spark takes for the same."""
    counts = Counter(each.lower() for each in names)
    same = [each for each in names if counts[each.lower()] > 1]
    if same:
        raise BadInputError(f"{name} has two columns named `{same[0]}`\nHint: rename one of them (case is ignored).")


def unnamed_column(number: int) -> str:
    """Return the name of a column without one, as Spark names it: pandas writes its index so."""
    return f"_c{number}"


def csv_batches(
    data: pa.Buffer, names: Sequence[str], name: str, delimiter: str, *, has_header: bool = True
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of CSV data as strings. Raises BadInputError if a row does not fit the names or is not UTF-8."""
    misfits: list[pyarrow.csv.InvalidRow] = []

    def note(row: pyarrow.csv.InvalidRow) -> str:
        misfits.append(row)
        return "error"

    if has_header and data.size < BLOCK_BYTES:
        data = pa.py_buffer(data.to_pybytes() + b"\n")
    columns = _header(data, name, delimiter) if has_header else list(names)
    convert = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(columns, pa.string()), **EMPTY_IS_NULL)
    done_rows = 0
    for block_bytes in _block_sizes(data):
        read = pyarrow.csv.ReadOptions(column_names=None if has_header else columns, block_size=block_bytes)
        to_skip = done_rows
        try:
            for batch in pyarrow.csv.open_csv(pa.BufferReader(data), read, _parse_options(delimiter, note), convert):
                rows = batch.slice(to_skip)
                to_skip -= min(to_skip, batch.num_rows)
                done_rows += rows.num_rows
                yield rows.rename_columns(list(names))
            return
        except pa.ArrowInvalid as error:
            if not _is_too_long(error, block_bytes, data):
                raise _translated(error, name, misfits) from error


def _parse_options(delimiter: str, note: Any = None) -> pyarrow.csv.ParseOptions:
    return pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=note)


def _translated(error: pa.ArrowInvalid, name: str, misfits: list[Any]) -> BadInputError:
    """Return the error of Arrow's CSV reader in terms of the file."""
    if misfits:
        row = misfits[0]
        fields = f"{row.actual_columns} field" + "s" * (row.actual_columns != 1)
        reason = f"a row has {fields}, but the header has {row.expected_columns}: {row.text}"
        return unreadable(name, "CSV", reason + GIVE_DELIMITER)
    if "Empty CSV" in str(error):
        return unreadable(name, "CSV", EMPTY)
    if "UTF8" in str(error):
        return unreadable(name, "CSV", NOT_UTF8)
    return unreadable(name, "CSV", str(error).removeprefix("CSV parse error: "))


def check_closed(last: pa.RecordBatch | None, tail: bytes, name: str) -> None:
    """Raise BadInputError if the last field has taken in the rest of the file because its quote is not closed."""
    if last is None or last.num_rows == 0:
        return
    field = last.column(last.num_columns - 1)[-1].as_py()
    if field is not None and "\n" in field and not tail.rstrip(b"\r\n").endswith(b'"'):
        start = field.partition("\n")[0]
        raise unreadable(name, "CSV", f'a quoted field is not closed: "{start}\nHint: add the missing quote.')
