"""Find the files that an input names: a path, a directory, a glob pattern, a URI, or `-` for standard input."""

from __future__ import annotations

import glob
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs

from streamsift.errors import BadInputError, SetupError
from streamsift.runtime.input.times import TimeNotation
from streamsift.runtime.input.topics import is_topic, topic_of

FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
}
TAB_SUFFIXES = (".tsv", ".tab")
COMPRESSED = (".gz", ".bz2")  # Arrow and Spark both decompress a file by its suffix
EXPANSION = 10  # the size of logs, in multiples of their compressed size
STDIN = "-"
NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"  # Hive's and Spark's name for null
GIVE_FORMAT = "\nHint: add --input-format csv, json or parquet."


@dataclass(frozen=True, slots=True)
class FileInput:
    """An input and how it is written; what is not given follows from the names of its files."""

    location: str  # a path, a glob pattern, a URI, or `-`
    format: str | None = None  # csv, json or parquet
    delimiter: str | None = None  # of CSV
    times: TimeNotation | None = None


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of an input."""

    path: str  # on its file system
    name: str  # in messages
    size_bytes: int
    folders: Mapping[str, str | None] = field(default_factory=dict)  # the values of `key=value` folders


@dataclass(frozen=True, slots=True)
class FileSet:
    """The files of an input in order of their paths, on one file system."""

    filesystem: Any
    files: tuple[DataFile, ...]


def as_input(given: FileInput | Path | str) -> FileInput:
    """Return an input of a path; a URI of a local file becomes its path."""
    source = given if isinstance(given, FileInput) else FileInput(str(given))
    if source.location.startswith("file://"):
        return replace(source, location=unquote(urlsplit(source.location).path))
    return source


def is_uri(location: str) -> bool:
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", location) is not None


def file_format(given: FileInput | Path | str) -> str:
    """Return the format of an input: as given, or else by the suffix of its files."""
    source = as_input(given)
    if is_topic(source.location):
        return _payload_format(source)
    if source.location == STDIN and source.format is None:
        raise SetupError("standard input has no file name to show its format\nHint: add --input-format csv or json.")
    names = [source.location] if is_uri(source.location) else [str(path) for path in local_files(source.location)]
    if source.format is not None:
        return source.format
    by_suffix = [*{FORMATS.get(_suffix(name)) for name in names}]
    if len(by_suffix) != 1 or by_suffix[0] is None:
        raise SetupError(f"the file name does not show the format of {source.location}{GIVE_FORMAT}")
    return by_suffix[0]


def _payload_format(source: FileInput) -> str:
    topic_of(source.location)  # raises if it is invalid
    if source.format not in (None, "json") or source.delimiter is not None:
        raise SetupError("the payloads of a topic are JSON\nHint: remove --input-format and --delimiter.")
    return "json"


def delimiter_of(given: FileInput | Path | str) -> str:
    """Return the delimiter of CSV files: as given, a tab for .tsv files, or else a comma."""
    source = as_input(given)
    if source.delimiter is not None:
        delimiter = {"\\t": "\t", "tab": "\t"}.get(source.delimiter, source.delimiter)
        if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
            raise SetupError(
                f"invalid value for --delimiter: {source.delimiter!r}\n"
                "Hint: use one ASCII character, such as ';' or '\\t'."
            )
        return delimiter
    names = [source.location] if is_uri(source.location) else [str(path) for path in local_files(source.location)]
    delimiters = {"\t" if _suffix(name) in TAB_SUFFIXES else "," for name in names}
    if len(delimiters) > 1:
        raise SetupError(f"{source.location} contains .csv and .tsv files\nHint: read them one by one.")
    return delimiters.pop()


def _suffix(name: str) -> str:
    path = PurePosixPath(name.lower())
    return PurePosixPath(path.stem).suffix if path.suffix in COMPRESSED else path.suffix


def size_bytes(given: FileInput | Path | str) -> int | None:
    """Return the size of the input, estimated if it is compressed; None for a URI, which is not looked up."""
    location = as_input(given).location
    if is_uri(location):
        return None
    files = local_files(location)
    return sum(path.stat().st_size * (EXPANSION if path.suffix.lower() in COMPRESSED else 1) for path in files)


def local_files(location: str) -> list[Path]:
    """Return the files of a path, a directory, a glob pattern or standard input. Raises SetupError if there are none.

    In a directory, hidden files are skipped as Spark skips them: names that start with `_` or `.`.
    """
    if location == STDIN:
        return [_stdin_file()]
    path = Path(location)
    if path.exists():
        paths = [path]
    elif glob.has_magic(location):
        paths = [Path(name) for name in sorted(glob.glob(location, recursive=True))]
        if not paths:
            raise SetupError(f"no file matches {location}")
    else:
        raise SetupError(missing("no such file or directory", path))
    files = [file for each in paths for file in (_visible(each) if each.is_dir() else [each])]
    if not files:
        raise SetupError(f"{location} contains no files")
    return sorted(dict.fromkeys(files))


def _visible(directory: Path) -> list[Path]:
    def is_hidden(name: str) -> bool:
        return name.startswith(".") or (name.startswith("_") and "=" not in name)

    return [
        path for path in directory.rglob("*") if path.is_file() and not any(map(is_hidden, _below(path, directory)))
    ]


def _below(path: Path, directory: Path) -> tuple[str, ...]:
    return path.relative_to(directory).parts


@cache
def _stdin_file() -> Path:
    """Copy standard input to a temporary file, so that it can be read more than once; deleted when Python exits."""
    file = tempfile.NamedTemporaryFile(prefix="streamsift-stdin-")  # noqa: SIM115 (open until Python exits)
    shutil.copyfileobj(sys.stdin.buffer, file)
    file.flush()
    _OPEN_FILES.append(file)
    return Path(file.name)


_OPEN_FILES: list[Any] = []


def name_of(location: str, path: Path | str) -> str:
    """Return the name of a file in messages."""
    return "standard input" if location == STDIN else str(path)


def missing(what: str, path: Path) -> str:
    """Return the message for a missing path, with the most similar name next to it."""
    beside = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
    close = get_close_matches(path.name, beside, n=1, cutoff=0.6)
    hint = f"\nHint: did you mean `{path.parent / close[0]}`?" if close else ""
    return f"{what}: {path}{hint}"


def root_of(location: str) -> str:
    """Return the directory below which `key=value` folders are columns: that of the location before any wildcard."""
    if location == STDIN:
        return ""
    if is_uri(location):
        return location.rstrip("/")
    return str(Path(location if Path(location).exists() else re.split(r"[^/]*[*?\[]", location, maxsplit=1)[0]))


def folder_values(relative: str) -> dict[str, str | None]:
    """Return the values of `key=value` folders in a path below the input.

    >>> folder_values("day=2024-05-01/room=a%20b/part-0.csv")
    {'day': '2024-05-01', 'room': 'a b'}
    """
    values: dict[str, str | None] = {}
    for part in PurePosixPath(relative).parts[:-1]:
        name, equals, value = part.partition("=")
        if equals and name:
            values[unquote(name)] = None if value == NULL_FOLDER else unquote(value)
    return values


def find_files(given: FileInput | Path | str) -> FileSet:
    """Return the files of an input that this process can read."""
    location = as_input(given).location
    if is_uri(location):
        return _files_of_uri(location)
    root = root_of(location)
    data_files = []
    for path in local_files(location):
        relative = "" if str(path) == root else str(path).removeprefix(f"{root}/")
        data_files.append(DataFile(str(path), name_of(location, path), path.stat().st_size, folder_values(relative)))
    return FileSet(pyarrow.fs.LocalFileSystem(use_mmap=True), tuple(data_files))


def _files_of_uri(uri: str) -> FileSet:
    try:
        filesystem, path = pyarrow.fs.FileSystem.from_uri(uri)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SetupError(
            f"the local engine cannot read {uri.partition('://')[0]}:// URIs\n"
            "Hint: use --engine spark, or copy the data to local files."
        ) from error
    try:
        info = filesystem.get_file_info(path)
        if info.type == pyarrow.fs.FileType.Directory:
            selector = pyarrow.fs.FileSelector(path, recursive=True)
            infos = [each for each in filesystem.get_file_info(selector) if each.is_file]
        else:
            infos = [info]
    except OSError as error:
        raise BadInputError(f"cannot read {uri}: {error}") from error
    if info.type == pyarrow.fs.FileType.NotFound:
        hint = "\nHint: only Spark reads URIs with wildcards: --engine spark." if glob.has_magic(uri) else ""
        raise SetupError(f"no such file or directory: {uri}{hint}")
    root = PurePosixPath(path)
    files = []
    for each in sorted(infos, key=lambda each: each.path):
        relative = str(PurePosixPath(each.path).relative_to(root)) if each is not info else ""
        if not any(part.startswith((".", "_")) and "=" not in part for part in PurePosixPath(relative).parts):
            files.append(DataFile(each.path, f"{uri}/{relative}".rstrip("/"), each.size, folder_values(relative)))
    return FileSet(filesystem, tuple(files))
