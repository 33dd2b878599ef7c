"""Read CSV, JSON lines or Parquet, one file or a directory of them, into an Arrow table of events."""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds

from streamsift.errors import BadInputError, SetupError
from streamsift.runtime.input.json_lines import read_json
from streamsift.runtime.input.text_types import typed
from streamsift.runtime.resources import current_progress

FORMATS = {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet", ".pq": "parquet"}

SAMPLE_BYTES = 1 << 20  # of a file, to estimate how long its lines are
EMPTY = "it is empty"
OTHER_FORMAT = "\nHint: repair it, or, if it is of another format, say which: --input-format csv, json or parquet."

# As Spark reads it: an empty field is null, quoted or not, and nothing else is (NaN is a number, NULL a word).
EMPTY_IS_NULL = {"null_values": [""], "strings_can_be_null": True, "quoted_strings_can_be_null": True}


def file_format(path: Path, given: str | None = None) -> str:
    """Return the format of a file, or of the files in a directory: as given, else by suffix."""
    if not path.exists():
        raise SetupError(missing("no such file or directory", path))
    if given is not None:
        return given
    found = {FORMATS.get(p.suffix.lower()) for p in _files(path)}
    if len(found) != 1 or None in found:
        raise SetupError(f"cannot tell the format of {path} by its name; say --input-format csv, json or parquet")
    return found.pop() or ""


def _files(path: Path) -> list[Path]:
    """Return the path itself, or the files in a directory but those that Spark ignores."""
    if not path.is_dir():
        return [path]
    return sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith(("_", ".")))


def missing(what: str, path: Path) -> str:
    """Return the message for a path that is not there, with the file beside it whose name is nearest."""
    beside = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
    close = get_close_matches(path.name, beside, n=1, cutoff=0.6)
    hint = f"\nHint: did you mean `{path.parent / close[0]}`?" if close else ""
    return f"{what}: {path}{hint}"


def read_table(path: Path, given_format: str | None = None) -> pa.Table:
    """Read all of a file, and track how many rows are read."""
    return _read(path, given_format, _all_rows)


def _all_rows(dataset: ds.Dataset) -> pa.Table:
    tracker = current_progress()
    if tracker is None:
        return dataset.to_table()
    total = _rows_about(dataset) if isinstance(dataset, ds.FileSystemDataset) else dataset.count_rows()
    done, batches = 0, []
    for batch in dataset.to_batches():
        batches.append(batch)
        done += batch.num_rows
        tracker.update(done, max(done, total))
    return pa.Table.from_batches(batches, dataset.schema)


def _rows_about(dataset: ds.FileSystemDataset) -> int:
    """Estimate the number of rows: Parquet has it, of lines the first of a file are counted."""
    if isinstance(dataset.format, ds.ParquetFileFormat):
        return dataset.count_rows()
    rows = 0.0
    for name in dataset.files:
        with Path(name).open("rb") as file:
            head = file.read(SAMPLE_BYTES)
        rows += head.count(b"\n") * Path(name).stat().st_size / max(1, len(head))
    return int(rows)


def read_schema(path: Path, given_format: str | None = None) -> pa.Schema:
    """Return the columns of a file. Only Parquet says what they are: the types of the others depend on every row."""
    if file_format(path, given_format) != "parquet":
        return read_table(path, given_format).schema
    return _read(path, given_format, lambda dataset: dataset.schema)


def read_names(path: Path, given_format: str | None = None) -> list[str]:
    """Return the names of the columns from the beginning of a file."""
    names: list[str] = _read(path, given_format, lambda dataset: dataset.head(1)).column_names
    return names


def read_head(path: Path, rows: int, given_format: str | None = None) -> pa.Table:
    """Read the first rows of a file."""
    return _read(path, given_format, lambda dataset: dataset.head(rows))


def _read(path: Path, given_format: str | None, take: Callable[[ds.Dataset], Any]) -> Any:
    found = file_format(path, given_format)
    try:
        match found:
            case "csv":
                table = typed(take(_text_dataset(path)))
                names = [name or unnamed_column(n) for n, name in enumerate(table.column_names)]
                return table.rename_columns(names)
            case "json":
                return take(ds.dataset(read_json(_files(path))))
            case _:
                return take(ds.dataset(path, format=found))
    except (pa.ArrowInvalid, OSError) as error:
        reason = _reason(str(error))
        hint = "" if given_format or reason == EMPTY else OTHER_FORMAT
        raise BadInputError(f"{path} cannot be read as {found}: {reason}{hint}") from error


def unnamed_column(number: int) -> str:
    """Return what a column without a name is called, as on Spark: pandas writes its index so."""
    return f"_c{number}"


def _text_dataset(path: Path) -> ds.Dataset:
    """Return the files of a path, every column as text. Raises BadInputError if their headers differ."""
    dataset = ds.dataset(path, format="csv")
    names = dataset.schema.names
    for fragment in dataset.get_fragments():
        if (others := fragment.physical_schema.names) != names:
            raise BadInputError(
                f"{fragment.path} has the columns {', '.join(others)}; the first file has {', '.join(names)}\n"
                "Hint: give all files the same header."
            )
    options = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), **EMPTY_IS_NULL)
    text = pa.schema([(name, pa.string()) for name in names])
    return ds.dataset(path, schema=text, format=ds.CsvFileFormat(convert_options=options))


def _reason(message: str) -> str:
    """Return what is wrong with the file, without the places that Arrow names on its way there."""
    if "Empty CSV" in message:
        return EMPTY
    inner = re.sub(r"^.*Could not open \w+ input source '[^']*': (?:Invalid: )?", "", message, flags=re.DOTALL)
    return inner.removeprefix("CSV parse error: ").removeprefix("Invalid: ")
