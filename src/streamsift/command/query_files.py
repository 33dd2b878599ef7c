"""Read queries from what is typed after a command: files, standard input, or the text itself.

And, for the shell that completes what is typed, the columns of the data file.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import typer

from streamsift.api import Query, query
from streamsift.errors import QueryError, SetupError, StreamsiftError
from streamsift.runtime.input import missing, read_names


def read_query(source: str) -> Query:
    if source == "-":
        return query(sys.stdin.read())
    path = Path(source)
    looks_like_text = bool(re.search(r"[\s;(]", source))
    if not path.is_file():
        if looks_like_text:
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
