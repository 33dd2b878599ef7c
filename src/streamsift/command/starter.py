"""Write a commented query file to start from, by a guess at a data file's columns.

The guess names the columns that are the time, the class and the key, and a pair of classes, for a person to change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from streamsift.language.printer import print_name
from streamsift.logical.bound import Kind
from streamsift.logical.columns import kind_of
from streamsift.view.tables import cell_text

SHOWN_CLASSES = 20
MAX_CLASSES = 60  # a column with more different values than this is hardly the class of an event
TIME_NAME = re.compile(r"(^|_)(ts|time|timestamp|datetime|date|at|when|t)$|time", re.IGNORECASE)
TYPE_NAME = re.compile(r"(^|_)(kind|type|event|class|action|state|status|step|symbol|category)($|_)", re.IGNORECASE)
KEY_NAME = re.compile(
    r"(^|_)(id|key|who|user|account|card|client|customer|device|sensor|machine|vehicle|patient|host|ip|session|symbol)$"
    r"|id$",
    re.IGNORECASE,
)
SECONDS = ((86_400, "days"), (3_600, "hours"), (60, "min"), (1, "s"), (0.001, "ms"))


@dataclass(frozen=True, slots=True)
class Starter:
    """A query file's text, and the options that fit it to the data."""

    text: str
    options: tuple[str, ...]  # --time, --type as they are typed after `streamsift run`
    guess: Guess


def starter(sample: pa.Table, data: Path, query_file: Path) -> Starter:
    """Return a query file for a `sample`, the first rows of the data; the files are named in comments, not read."""
    guessed = guess(sample)
    options = tuple(
        word
        for name, column in (("--time", guessed.time or "TIME_COLUMN"), ("--type", guessed.type))
        if column is not None
        for word in (name, column)
    )
    lines = [
        f"-- A query on {data.name}. What follows `--` is a comment: change the query below, then run it with",
        f"--   {command('run', data, query_file, options)} --engine local",
        "-- and leave out `--engine local` to run it on Spark.",
        "--",
        *_columns(sample, guessed),
        "--",
        *_class_lines(guessed),
        *_query(sample, guessed),
        "",
        *_variations(guessed),
    ]
    return Starter("\n".join(lines) + "\n", options, guessed)


def command(verb: str, data: Path, query_file: Path, options: tuple[str, ...]) -> str:
    words = ["streamsift", verb, str(query_file), "--input", str(data), *options]
    return " ".join(f"'{word}'" if " " in word else word for word in words)


def quoted(name: str) -> str:
    """Return a name as it is written in a query: in backticks where it must be."""
    return print_name((name,))


def _columns(sample: pa.Table, guessed: Guess) -> Iterator[str]:
    parts = {guessed.time: "the time", guessed.type: "the class", guessed.key: "a key"}
    yield "-- Columns, with their types and a value each:"
    width = max(map(len, sample.column_names), default=0)
    type_width = max((len(str(field.type)) for field in sample.schema), default=0)
    for field in sample.schema:
        values = sample.column(field.name).drop_null()
        example = cell_text(values[0].as_py()) if len(values) else "no value"
        part = f"  <- {parts[field.name]}, it seems" if field.name in parts else ""
        yield f"--   {field.name:<{width}}  {field.type!s:<{type_width}}  {example[:40]}{part}"


def _class_lines(guessed: Guess) -> Iterator[str]:
    if guessed.type is None:
        yield "-- No column looks like the class of an event: classes are made by WITH, or ANY stands for every row."
        return
    shown = ", ".join(f"{quoted(name)} ({count:,})" for name, count in guessed.classes[:SHOWN_CLASSES])
    more = len(guessed.classes) - SHOWN_CLASSES
    yield f"-- Classes in `{guessed.type}` and how often each occurs: {shown}{f' and {more} more' if more > 0 else ''}."


def _query(sample: pa.Table, guessed: Guess) -> Iterator[str]:
    where = "-- `[x]` means: all events of a match have the same x."
    if guessed.pair is not None:
        first, then = guessed.pair
        yield "-- One event, then the other; whatever happens between them does not matter."
        yield ""
        yield f"PATTERN SEQ({quoted(first)} a, {quoted(then)} b)"
    else:
        yield "-- One event, then another; whatever happens between them does not matter."
        yield ""
        yield "PATTERN SEQ(ANY a, Large b)" if guessed.number else "PATTERN SEQ(ANY a, ANY b)"
        if guessed.number:
            threshold = sample.column(guessed.number).to_pandas().astype(float).quantile(0.9)
            condition = f"{quoted(guessed.number)} >= {threshold:.6g}"
            yield f"WITH Large = ({condition})   -- a class by its values: the highest tenth"
    if guessed.key is not None:
        yield f"WHERE [{quoted(guessed.key)}]   {where}"
    yield f"WITHIN {guessed.window}"


def _variations(guessed: Guess) -> Iterator[str]:
    number = quoted(guessed.number) if guessed.number else "x"
    others = [name for name, _ in guessed.classes if guessed.pair is None or name not in guessed.pair]
    inner = f"!{quoted(others[0])} n" if others else "!ANY n"
    first, then = (quoted(name) for name in guessed.pair or ("ANY", "ANY"))
    key = f"GROUP BY {quoted(guessed.key)} " if guessed.key else ""
    yield "-- Other things to try:"
    yield f"--   PATTERN SEQ({first} a, {inner}, {then} b) …   nothing of that class in between"
    yield f"--   PATTERN SEQ({first} a, {then}+ b) …   one or more of the second, as a group"
    yield f"--   … WHERE a.{number} < b.{number}   a condition between two events"
    yield f"--   … {key}AGG COUNT   how many matches, instead of the matches"
    yield f"--   … PREF MAX[b.{number} - a.{number}] RETURN 10   the ten best matches"
    yield "--   … RETURN a, b   which columns come out"


# --- the guess -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Guess:
    """What the columns seem to be. `pair` is the commonest change of class, of one key where there is one."""

    time: str | None
    type: str | None
    key: str | None
    classes: tuple[tuple[str, int], ...]  # with how often each occurs, the commonest first
    pair: tuple[str, str] | None
    window: str
    number: str | None  # a column of numbers, for examples of conditions


def guess(sample: pa.Table) -> Guess:
    kinds = {field.name: kind_of(field.type) for field in sample.schema}
    time = _time(sample, kinds)
    countable = [n for n, k in kinds.items() if k in (Kind.STRING, Kind.INTEGER, Kind.DECIMAL, Kind.BOOLEAN)]
    counts = {name: pc.count_distinct(sample.column(name)).as_py() for name in countable}
    type_column = _type(sample, kinds, counts, {time})
    key = _key(sample, kinds, counts, {time, type_column})
    numbers = [n for n, k in kinds.items() if k in (Kind.FLOAT, Kind.DECIMAL, Kind.INTEGER) and n not in (time, key)]
    used = [name for name in (time, type_column, key) if name is not None]
    frame = sample.select(used).to_pandas() if used else pd.DataFrame()
    occurrences = frame[type_column].value_counts().items() if type_column else ()
    classes = tuple((str(name), int(count)) for name, count in occurrences)
    pair = _pair(frame, time, type_column, key)
    return Guess(time, type_column, key, classes, pair, _window(frame, time, key), next(iter(numbers), None))


def _first(candidates: list[str], wanted: re.Pattern[str]) -> str | None:
    """Return the candidate with a telling name, else the first."""
    return next((name for name in candidates if wanted.search(name)), next(iter(candidates), None))


def _time(sample: pa.Table, kinds: dict[str, Kind]) -> str | None:
    moments = [n for n, k in kinds.items() if k in (Kind.TIMESTAMP, Kind.DATE)]
    texts = [n for n, k in kinds.items() if k is Kind.STRING and _is_time(sample.column(n))]
    numbers = [n for n, k in kinds.items() if k in (Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL)]
    named = [n for n in numbers if TIME_NAME.search(n)]
    rising = [n for n in numbers if sample.num_rows > 1 and sample.column(n).to_pandas().is_monotonic_increasing]
    return _first(moments or texts or named or rising, TIME_NAME)


def _is_time(values: pa.ChunkedArray) -> bool:
    some = values.drop_null().slice(0, 100)
    try:
        return len(some) > 0 and some.cast(pa.timestamp("us")) is not None
    except pa.ArrowInvalid:
        return False


def _type(sample: pa.Table, kinds: dict[str, Kind], counts: dict[str, int], taken: set[str | None]) -> str | None:
    few = min(MAX_CLASSES, max(2, sample.num_rows // 2))
    texts = [n for n, k in kinds.items() if k is Kind.STRING and n not in taken and 2 <= counts[n] <= few]
    return _first(texts, TYPE_NAME)


def _key(sample: pa.Table, kinds: dict[str, Kind], counts: dict[str, int], taken: set[str | None]) -> str | None:
    several = [n for n in counts if n not in taken and 2 <= counts[n] <= sample.num_rows * 0.7]
    return next((n for n in several if KEY_NAME.search(n) and kinds[n] is not Kind.BOOLEAN), None)


def _pair(frame: pd.DataFrame, time: str | None, type_column: str | None, key: str | None) -> tuple[str, str] | None:
    if time is None or type_column is None:
        return None
    ordered = frame.sort_values(time, kind="stable")
    classes = ordered[type_column]
    following = classes.groupby(ordered[key]).shift(-1) if key else classes.shift(-1)
    changes = pd.DataFrame({"first": classes, "then": following}).dropna()
    changes = changes[changes["first"] != changes["then"]]
    if changes.empty:
        return None
    first, then = changes.value_counts().index[0]
    return str(first), str(then)


def _window(frame: pd.DataFrame, time: str | None, key: str | None) -> str:
    """Return about five times the usual gap between events (of one key), in a round number of a fitting unit."""
    if time is None or len(frame) < 2:
        return "1 hour"
    column = frame[time]
    is_number = pd.api.types.is_numeric_dtype(column)
    moments = column if is_number else pd.to_datetime(column, errors="coerce", utc=True, format="ISO8601")
    ordered = pd.DataFrame({"at": moments, "key": frame[key] if key else 0}).sort_values("at")
    gaps = ordered.groupby("key")["at"].diff().dropna()
    gap = float(gaps.median()) if is_number else gaps.dt.total_seconds().median()
    length = 5 * gap if gap == gap and gap > 0 else 1.0
    if is_number:
        return f"{_round(length):g}"
    size, unit = next(((s, u) for s, u in SECONDS if length >= s), SECONDS[-1])
    return f"{max(1, int(_round(length / size)))} {unit}"


def _round(value: float) -> float:
    """Return one significant digit, at least 1 of it: 37 is 40."""
    return float(f"{value:.0e}")
