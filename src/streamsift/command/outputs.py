"""Choose the format of an output, and raise what would keep it from being written before anything runs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from streamsift.api import memory_bytes
from streamsift.errors import SetupError


class OutputFormat(StrEnum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


def check_outputs(output: Path | None, plot: Path | None, queries: int) -> None:
    """Raise if something would be overwritten or cannot be written, before anything runs."""
    if plot is not None and queries > 1:
        raise SetupError("--plot draws the result of one query: run them one by one")
    if plot is not None:
        from streamsift.view.pictures import check_picture_file

        check_picture_file(plot)
    for path in (output, plot):
        if path is not None and path.exists():
            raise SetupError(f"{path} is there already; remove it or choose another name")
        if path is not None and not path.parent.is_dir():
            raise SetupError(f"no such directory: {path.parent}")


def output_format(output: Path | None, given: OutputFormat | None) -> OutputFormat:
    if given is None and output is not None:
        by_suffix = {".json": "json", ".jsonl": "json", ".csv": "csv", ".parquet": "parquet"}.get(output.suffix.lower())
        if by_suffix is None:
            raise SetupError(f"cannot tell the format of {output} by its name; say --format json, csv or parquet")
        return OutputFormat(by_suffix)
    chosen = given or OutputFormat.TABLE
    if output is None and chosen is OutputFormat.PARQUET:
        raise SetupError("Parquet goes to a file: add --output PATH")
    if output is not None and chosen is OutputFormat.TABLE:
        raise SetupError("a table is for the terminal; write json, csv or parquet")
    return chosen


def format_of_many(output: Path | None, given: OutputFormat | None) -> OutputFormat:
    """Return the format of files, JSON lines unless another is given: a directory's name tells none."""
    if output is None:
        if given not in (None, OutputFormat.TABLE):
            raise SetupError("the results of several queries go to files: add --output DIRECTORY")
        return OutputFormat.TABLE
    return OutputFormat.JSON if given is None else output_format(output, given)


def check_limits(memory_limit: str | None, is_local: bool) -> None:
    """Raise if a limit cannot be kept."""
    if memory_limit is not None and not is_local:
        raise SetupError("--memory-limit is for --engine local; on Spark, set spark.executor.pyspark.memory")
    memory_bytes(memory_limit)


def check_stream(
    stream: bool, queries: int, is_local: bool, output: Path | None, format: OutputFormat, limit: int | None
) -> None:
    """Raise if what was asked for cannot be streamed."""
    if not stream:
        raise SetupError("--once, --lateness and --checkpoint are for streams: add --stream")
    if queries > 1:
        raise SetupError("--stream takes one query; streamsift.run_many streams several")
    if limit is not None:
        raise SetupError("--limit is not for streams: they have no end")
    if is_local:
        raise SetupError("--stream runs on Spark: leave --engine out")
    if output is None and format is OutputFormat.CSV:
        raise SetupError("a stream's CSV goes to files: add --output DIRECTORY, or use --format json")
