"""Read the queries that a command names, choose the format of its output, and check both before anything runs.

A query is a file, standard input, or the text itself. For the shell that completes a line, read the data's columns.
"""

from __future__ import annotations

import re
import sys
from enum import StrEnum
from pathlib import Path

import typer

from streamsift.api import Query, memory_bytes, query
from streamsift.errors import QueryError, SetupError, StreamsiftError
from streamsift.runtime.input import missing, read_names


class OutputFormat(StrEnum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


def read_query(source: str) -> Query:
    if source == "-":
        return query(sys.stdin.read())
    path = Path(source)
    if not path.is_file():
        if re.search(r"[\s;(]", source):  # no file's name, but a query
            return query(source)
        raise SetupError(missing("no such query file", path))
    try:
        return query(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise QueryError(f"{source} is not UTF-8 text: {error}") from error


def read_queries(sources: list[str]) -> dict[str, Query]:
    """Return queries by name: that of the file without its ending."""
    names = [Path(source).stem if Path(source).is_file() else f"query {n}" for n, source in enumerate(sources, start=1)]
    if len(set(names)) < len(names):
        raise SetupError("two query files have the same name; results are called by it")
    return {name: read_query(source) for name, source in zip(names, sources, strict=True)}


def column_names(context: typer.Context, incomplete: str) -> list[str]:
    """Return the columns that a word could become, if the data file is on the line already; a shell shows no errors."""
    given = context.params.get("input")
    try:
        return [] if given is None else [n for n in read_names(Path(given)) if n.startswith(incomplete)]
    except StreamsiftError:
        return []


def check_outputs(output: Path | None, plot: Path | None, queries: int) -> None:
    """Raise if something would be overwritten or cannot be written, before anything runs."""
    if plot is not None:
        if queries > 1:
            raise SetupError("--plot draws the result of one query: run them one by one")
        from streamsift.view.plots import check_plot_file

        check_plot_file(plot)
    for path in (output, plot):
        if path is not None and path.exists():
            raise SetupError(f"{path} is there already; remove it or choose another name")
        if path is not None and not path.parent.is_dir():
            raise SetupError(f"no such directory: {path.parent}")


def output_format(output: Path | None, given: OutputFormat | None, queries: int) -> OutputFormat:
    """Return the format that is given, else that of the file's name; the results of several queries are JSON lines."""
    if queries > 1 and output is None and given not in (None, OutputFormat.TABLE):
        raise SetupError("the results of several queries go to files: add --output DIRECTORY")
    if given is None and output is not None:
        suffix = ".json" if queries > 1 else output.suffix.lower()  # the name of a directory has none
        by_suffix = {".json": "json", ".jsonl": "json", ".csv": "csv", ".parquet": "parquet"}.get(suffix)
        if by_suffix is None:
            raise SetupError(f"cannot tell the format of {output} by its name; say --format json, csv or parquet")
        return OutputFormat(by_suffix)
    chosen = given or OutputFormat.TABLE
    if output is None and chosen is OutputFormat.PARQUET:
        raise SetupError("Parquet goes to a file: add --output PATH")
    if output is not None and chosen is OutputFormat.TABLE:
        raise SetupError("a table is for the terminal; write json, csv or parquet")
    return chosen


def check_limits(memory_limit: str | None, is_local: bool) -> None:
    """Raise if a limit cannot be kept."""
    if memory_limit is not None and not is_local:
        raise SetupError("--memory-limit is for --engine local; on Spark, set spark.executor.pyspark.memory")
    memory_bytes(memory_limit)
