"""Write a commented query file to start from, by a guess at a data file's columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from streamsift.command.guess import Guess, guess
from streamsift.language.printer import print_name
from streamsift.view.tables import cell_text

SHOWN_CLASSES = 20


@dataclass(frozen=True, slots=True)
class Starter:
    """A query file's text, and the options that fit it to the data."""

    text: str
    options: tuple[str, ...]  # --time, --type as they are typed after `streamsift run`
    guess: Guess


def starter(sample: pa.Table, data: Path, query_file: Path) -> Starter:
    """Return a query file for a `sample`, the first rows of the data; the files are named in comments, not read."""
    found = guess(sample)
    options = tuple(
        word
        for name, column in (("--time", found.time or "TIME_COLUMN"), ("--type", found.type))
        if column is not None
        for word in (name, column)
    )
    lines = [
        f"-- A query on {data.name}. What follows `--` is a comment: change the query below, then run it with",
        f"--   {command('run', data, query_file, options)} --engine local",
        "-- and leave out `--engine local` to run it on Spark.",
        "--",
        *_columns(sample, found),
        "--",
        *_class_lines(found),
        *_query(sample, found),
        "",
        *_variations(found),
    ]
    return Starter("\n".join(lines) + "\n", options, found)


def command(verb: str, data: Path, query_file: Path, options: tuple[str, ...]) -> str:
    words = ["streamsift", verb, str(query_file), "--input", str(data), *options]
    return " ".join(f"'{word}'" if " " in word else word for word in words)


def quoted(name: str) -> str:
    """Return a name as it is written in a query: in backticks where it must be."""
    return print_name((name,))


def _columns(sample: pa.Table, found: Guess) -> Iterator[str]:
    parts = {found.time: "the time", found.type: "the class", found.key: "a key"}
    yield "-- Columns, with their types and a value each:"
    width = max(map(len, sample.column_names), default=0)
    type_width = max((len(str(field.type)) for field in sample.schema), default=0)
    for field in sample.schema:
        values = sample.column(field.name).drop_null()
        example = cell_text(values[0].as_py()) if len(values) else "no value"
        part = f"  <- {parts[field.name]}, it seems" if field.name in parts else ""
        yield f"--   {field.name:<{width}}  {field.type!s:<{type_width}}  {example[:40]}{part}"


def _class_lines(found: Guess) -> Iterator[str]:
    if found.type is None:
        yield "-- No column looks like the class of an event: classes are made by WITH, or ANY stands for every row."
        return
    shown = ", ".join(f"{quoted(name)} ({count:,})" for name, count in found.classes[:SHOWN_CLASSES])
    more = len(found.classes) - SHOWN_CLASSES
    yield f"-- Classes in `{found.type}` and how often each occurs: {shown}{f' and {more} more' if more > 0 else ''}."


def _query(sample: pa.Table, found: Guess) -> Iterator[str]:
    where = "-- `[x]` means: all events of a match have the same x."
    if found.pair is not None:
        first, then = found.pair
        yield "-- One event, then the other; whatever happens between them does not matter."
        yield ""
        yield f"PATTERN SEQ({quoted(first)} a, {quoted(then)} b)"
    else:
        yield "-- One event, then another; whatever happens between them does not matter."
        yield ""
        yield "PATTERN SEQ(ANY a, Large b)" if found.number else "PATTERN SEQ(ANY a, ANY b)"
        if found.number:
            threshold = sample.column(found.number).to_pandas().astype(float).quantile(0.9)
            condition = f"{quoted(found.number)} >= {threshold:.6g}"
            yield f"WITH Large = ({condition})   -- a class by its values: the highest tenth"
    if found.key is not None:
        yield f"WHERE [{quoted(found.key)}]   {where}"
    yield f"WITHIN {found.window}"


def _variations(found: Guess) -> Iterator[str]:
    number = quoted(found.number) if found.number else "x"
    others = [name for name, _ in found.classes if found.pair is None or name not in found.pair]
    inner = f"!{quoted(others[0])} n" if others else "!ANY n"
    first, then = (quoted(name) for name in found.pair or ("ANY", "ANY"))
    key = f"GROUP BY {quoted(found.key)} " if found.key else ""
    yield "-- Other things to try:"
    yield f"--   PATTERN SEQ({first} a, {inner}, {then} b) …   nothing of that class in between"
    yield f"--   PATTERN SEQ({first} a, {then}+ b) …   one or more of the second, as a group"
    yield f"--   … WHERE a.{number} < b.{number}   a condition between two events"
    yield f"--   … {key}AGG COUNT   how many matches, instead of the matches"
    yield f"--   … PREF MAX[b.{number} - a.{number}] RETURN 10   the ten best matches"
    yield "--   … RETURN a, b   which columns come out"
