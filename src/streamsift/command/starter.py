"""Write a first query for a data file: comments with a profile of its columns, and a query that has matches.

The query is tried on the sample before it is suggested.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

import pyarrow as pa

from streamsift.api import query
from streamsift.command.data_profile import ColumnProfile, Guess, guess, profile, profile_columns
from streamsift.errors import StreamsiftError
from streamsift.language.printer import print_name
from streamsift.view.match_columns import TextColumn
from streamsift.view.tables import table_lines

SHOWN_CLASSES = 20
COMMENT_WIDTH = 80
MAX_TRIED_MATCHES = 1_000


@dataclass(frozen=True, slots=True)
class Sample:
    """The rows of a data file that are profiled: all of them, or the first ones."""

    table: pa.Table
    is_whole: bool

    @property
    def rows_text(self) -> str:
        rows = "1 row" if self.table.num_rows == 1 else f"{self.table.num_rows:,} rows"
        return rows if self.is_whole else f"the first {rows}"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A query and how many matches it has in the sample; None if it could not be run."""

    lines: tuple[str, ...]
    matches: int | None
    error: str = ""

    @property
    def outcome(self) -> str:
        if self.matches is None:
            return f"it could not be run: {self.error}"
        if self.matches >= MAX_TRIED_MATCHES:
            return f"{MAX_TRIED_MATCHES:,} matches or more"
        return {0: "no matches", 1: "1 match"}.get(self.matches, f"{self.matches:,} matches")


@dataclass(frozen=True, slots=True)
class Starter:
    """A query file's text, the options that fit it to the data, and what they were derived from."""

    text: str
    options: tuple[str, ...]  # --time and --type, as typed after `streamsift run`
    guess: Guess
    columns: tuple[ColumnProfile, ...]
    suggestion: Suggestion
    title: str  # the file and its number of rows

    @property
    def profile(self) -> list[TextColumn]:
        return profile_columns(self.columns, self.guess)

    def report(self, query_file: Path) -> dict[str, Any]:
        """Return what `--json` prints."""
        roles = {"time": self.guess.time, "type": self.guess.type, "key": self.guess.key}
        columns = [{**asdict(column), "kind": column.kind.value} for column in self.columns]
        return {"query_file": str(query_file), **roles, "matches": self.suggestion.matches, "columns": columns}


def starter(sample: Sample, data: str | Path, query_file: Path, reading: tuple[str, ...] = ()) -> Starter:
    """Return a query file for a sample of the data; `reading` are the options with which the data was read."""
    columns = profile(sample.table)
    guessed = guess(sample.table, columns)
    suggestion = _suggest(sample.table, guessed)
    options = reading + tuple(
        word
        for name, column in (("--time", guessed.time or "TIME_COLUMN"), ("--type", guessed.type))
        if column is not None
        for word in (name, column)
    )
    title = f"{Path(data).name}: {sample.rows_text}, {len(columns)} columns"
    lines = [
        f"-- {title}",
        "--",
        *(f"--   {line}" for line in table_lines(profile_columns(columns, guessed))),
        "--",
        *_class_lines(guessed, sample),
        "-- To run this query:",
        f"--   {command('run', data, query_file, options)}",
        "",
        *suggestion.lines,
        "",
        *_variations(guessed),
    ]
    return Starter("\n".join(lines) + "\n", options, guessed, tuple(columns), suggestion, title)


def command(verb: str, data: str | Path, query_file: Path, options: tuple[str, ...]) -> str:
    words = ["streamsift", verb, str(query_file), "--input", str(data), *options]
    return shlex.join(words)


def quoted(name: str) -> str:
    """Return a name as a query spells it, in backticks where necessary."""
    return print_name((name,))


def _class_lines(guessed: Guess, sample: Sample) -> Iterator[str]:
    if guessed.type is None:
        text = "No column looks like an event class: define classes with WITH, or use ANY for every row."
    else:
        shown = ", ".join(f"{quoted(name)} ({count:,})" for name, count in guessed.classes[:SHOWN_CLASSES])
        more = len(guessed.classes) - SHOWN_CLASSES
        of = "" if sample.is_whole else f" in {sample.rows_text}"
        text = f"Event classes in `{guessed.type}` and their frequencies{of}: {shown}"
        text += f" and {more} more" if more > 0 else ""
    yield from (f"-- {line}" for line in wrap(text, COMMENT_WIDTH - 3, break_long_words=False))
    yield "--"


def _suggest(sample: pa.Table, guessed: Guess) -> Suggestion:
    """Return the first candidate that has matches, else the first candidate."""
    tried: list[Suggestion] = []
    for lines in _candidates(sample, guessed):
        tried.append(_try(lines, sample, guessed))
        if tried[-1].matches != 0:
            return tried[-1]
    return tried[0]


def _try(lines: tuple[str, ...], sample: pa.Table, guessed: Guess) -> Suggestion:
    if guessed.time is None:
        return Suggestion(lines, None, "no column looks like a time")
    parsed = query("\n".join(lines))
    try:
        matches = parsed.run_local(
            sample, time=guessed.time, type=guessed.type, bad_rows="drop", limit=MAX_TRIED_MATCHES
        )
    except StreamsiftError as error:
        return Suggestion(lines, None, str(error).partition("\n")[0])
    return Suggestion(lines, matches.num_rows)


def _candidates(sample: pa.Table, guessed: Guess) -> Iterator[tuple[str, ...]]:
    """Yield queries, the most telling first: with the key and a short window, then with less and less."""
    for key in dict.fromkeys((guessed.key, None)):
        for window in (guessed.window, guessed.longer_window):
            where = (f"WHERE [{quoted(key)}]   -- all events of a match have the same {key}",) if key else ()
            within = (f"WITHIN {window}",)
            for first, then in guessed.pairs:
                yield f"PATTERN SEQ({quoted(first)} a, {quoted(then)} b)", *where, *within
            if not guessed.pairs:
                yield *_by_values(sample, guessed), *where, *within


def _by_values(sample: pa.Table, guessed: Guess) -> tuple[str, ...]:
    """Return a pattern without event classes: any event, then one with a high value."""
    if guessed.number is None:
        return ("PATTERN SEQ(ANY a, ANY b)",)
    threshold = sample.column(guessed.number).to_pandas().astype(float).quantile(0.9)
    if threshold != threshold:  # there are no values
        return ("PATTERN SEQ(ANY a, ANY b)",)
    condition = f"{quoted(guessed.number)} >= {threshold:.6g}"
    return "PATTERN SEQ(ANY a, High b)", f"WITH High = ({condition})   -- the highest 10 %"


def _variations(guessed: Guess) -> Iterator[str]:
    """Yield what else a query can do, for the columns and classes at hand."""
    number = quoted(guessed.number) if guessed.number else "x"
    first, then = map(quoted, guessed.pairs[0]) if guessed.pairs else ("ANY", "ANY")
    others = [quoted(name) for name, _ in guessed.classes if quoted(name) not in (first, then)]
    key = f"GROUP BY {quoted(guessed.key)} " if guessed.key else ""
    variations = {
        "none in between": f"PATTERN SEQ({first} a, !{others[0] if others else 'ANY'} n, {then} b)",
        "one or more events": f"PATTERN SEQ({first} a, {then}+ b)",
        "compare two events": f"WHERE a.{number} < b.{number}",
        "output columns": "RETURN a, b",
        "count the matches": f"{key}AGG COUNT",
        "the 10 best": f"PREF MAX[b.{number} - a.{number}] RETURN 10",
    }
    yield "-- Variations:"
    width = max(map(len, variations))
    yield from (f"--   {meaning:<{width}}  {text}" for meaning, text in variations.items())
