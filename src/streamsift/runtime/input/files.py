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
    by_suffix = [*{FORMATS.get(file.suffix.lower()) for file in _files(path)}]
    if len(by_suffix) != 1 or by_suffix[0] is None:
        raise SetupError(f"cannot tell the format of {path} by its name; say --input-format csv, json or parquet")
    return by_suffix[0]


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
    """Estimate the number of rows: Parquet has it; of other files the lines at the beginning are counted."""
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
    return read_head(path, 1, given_format).column_names


def read_head(path: Path, rows: int, given_format: str | None = None) -> pa.Table:
    """Read the first rows of a file."""
    return _read(path, given_format, lambda dataset: dataset.head(rows))


def _read(path: Path, given_format: str | None, take: Callable[[ds.Dataset], Any]) -> Any:
    """Read a file with `take`; raise BadInputError if it cannot be read."""
    read_as = file_format(path, given_format)
    try:
        match read_as:
            case "csv":
                table = typed(take(_text_dataset(path)))
                names = [name or unnamed_column(n) for n, name in enumerate(table.column_names)]
                return table.rename_columns(names)
            case "json":
                return take(ds.dataset(read_json(_files(path))))
            case _:
                return take(ds.dataset(path, format=read_as))
    except (pa.ArrowInvalid, OSError) as error:
        reason = _reason(str(error))
        hint = "" if given_format or reason == EMPTY else OTHER_FORMAT
        raise BadInputError(f"{path} cannot be read as {read_as}: {reason}{hint}") from error


def unnamed_column(number: int) -> str:
    """Return the name of a column without one, as Spark names it: pandas writes its index so."""
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
    """Return Arrow's reason why a file cannot be read, without its own source positions."""
    if "Empty CSV" in message:
        return EMPTY
    inner = re.sub(r"^.*Could not open \w+ input source '[^']*': (?:Invalid: )?", "", message, flags=re.DOTALL)
    return inner.removeprefix("CSV parse error: ").removeprefix("Invalid: ")
