"""Read queries and check output options before anything runs; complete column names in the shell.

A query is a file, standard input, or the text itself.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import typer

from streamsift.api import Query, RowQuery, memory_bytes, query
from streamsift.command.exit_codes import TIME_HINT
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
    if not source.strip() or _is_pattern(source):
        return query(source)
    path = Path(source)
    if not path.is_file():
        if re.search(r"[\s;(]", source):  # the text of a query
            return query(source)
        raise SetupError(missing("no such query file", path))
    try:
        return query(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise QueryError(f"{source} is not UTF-8 text: {error}") from error


def _is_pattern(source: str) -> bool:
    """Return True for a pattern such as `A+` or `A[1..2]`, unless it is a file or looks like the name of one."""
    is_file = Path(source).is_file() or re.search(r"\.[A-Za-z]\w*\Z", source) is not None
    return not is_file and re.match(r"!?\w+[?+*\[{|&]", source) is not None


def read_queries(sources: list[str]) -> dict[str, Query]:
    """Return the queries by the names of their files, without suffix."""
    names = [Path(source).stem if Path(source).is_file() else f"query {n}" for n, source in enumerate(sources, start=1)]
    if len(set(names)) < len(names):
        raise SetupError(
            "two query files have the same name\nHint: rename one; results are named after their query files."
        )
    return {name: read_query(source) for name, source in zip(names, sources, strict=True)}


def check_time(queries: Mapping[str, Query], time: str | None, what: str) -> None:
    """Raise if a query needs the name of the time column. MATCH_RECOGNIZE names it in ORDER BY."""
    if time is None and not all(isinstance(each, RowQuery) for each in queries.values()):
        raise SetupError(f"{what} requires --time\nHint: {TIME_HINT}")


def column_names(context: typer.Context, incomplete: str) -> list[str]:
    """Return the columns that complete a word, if --input is on the line already. A shell shows no errors."""
    given = context.params.get("input")
    try:
        return [] if given is None else [n for n in read_names(given) if n.startswith(incomplete)]
    except StreamsiftError:
        return []


def check_outputs(output: Path | None, plot: Path | None, queries: int) -> None:
    """Raise if a path exists or cannot be written."""
    if plot is not None:
        if queries > 1:
            raise SetupError("--plot takes one query\nHint: run the queries one at a time.")
        from streamsift.view.plots import check_plot_file

        check_plot_file(plot)
    for path in (output, plot):
        if path is not None and path.exists():
            raise SetupError(f"output path already exists: {path}\nHint: remove it or choose another path.")
        if path is not None and not path.parent.is_dir():
            raise SetupError(f"no such directory: {path.parent}")


def output_format(output: Path | None, given: OutputFormat | None, queries: int) -> OutputFormat:
    """Return the given format, or else that of the output's suffix; by default, several queries write JSON lines."""
    if queries > 1 and output is None and given not in (None, OutputFormat.TABLE):
        raise SetupError(f"several queries cannot all write {given} to standard output\nHint: add --output DIRECTORY.")
    if given is None and output is not None:
        suffix = ".json" if queries > 1 else output.suffix.lower()  # several queries write to a directory
        by_suffix = {".json": "json", ".jsonl": "json", ".csv": "csv", ".parquet": "parquet"}.get(suffix)
        if by_suffix is None:
            raise SetupError(f"unknown output format: {output}\nHint: add --format json, csv or parquet.")
        return OutputFormat(by_suffix)
    chosen = given or OutputFormat.TABLE
    if output is None and chosen is OutputFormat.PARQUET:
        raise SetupError("Parquet cannot be written to standard output\nHint: add --output PATH.")
    if output is not None and chosen is OutputFormat.TABLE:
        raise SetupError("a table cannot be written to a file\nHint: use --format json, csv or parquet.")
    return chosen


def check_limits(memory_limit: str | None, engine: str) -> None:
    """Raise if a limit is invalid or does not apply to the engine."""
    if memory_limit is not None and engine == "spark":
        raise SetupError(
            "--memory-limit does not apply to Spark\n"
            "Hint: remove it, or set spark.executor.pyspark.memory; it limits queries that run in process."
        )
    memory_bytes(memory_limit)
