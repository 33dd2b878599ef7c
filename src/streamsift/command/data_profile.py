"""Profile the columns of a data file, and guess which are the time, the event class and the key."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from streamsift.logical.bound import NUMERIC, Kind
from streamsift.logical.columns import kind_of
from streamsift.view.match_columns import TextColumn
from streamsift.view.tables import cell_text

MAX_CLASSES = 60  # a column with more values is hardly an event class
MAX_KEY_SHARE = 0.7  # a column with more distinct values per row is hardly a key
EXAMPLES, MAX_EXAMPLE = 3, 30  # values of a column, and their length in all
SUGGESTED_PAIRS = 3

TIME_WORDS = frozenset("ts time timestamp datetime date at when t".split())
CLASS_WORDS = frozenset("kind type event class action activity concept state status step symbol category".split())
CASE_WORDS = frozenset("case trace session".split())  # what a process or a visit is called
KEY_WORDS = CASE_WORDS | frozenset(
    "id key who user account card client customer device sensor machine vehicle patient host ip symbol order".split()
)
ID_SUFFIX = re.compile(r"[a-z]id$")
NO_IDS = frozenset("bid mid paid unpaid valid invalid grid solid liquid void".split())
MEASURE_WORDS = frozenset("amount price value temperature volume size total cost duration speed level".split())
SECONDS = ((86_400, "days"), (3_600, "hours"), (60, "min"), (1, "s"), (0.001, "ms"))


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """What is in one column."""

    name: str
    kind: Kind
    nulls: int
    distinct: int | None  # None for nested values
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Guess:
    """The columns that seem to be the time, the event class and the key, and what a first query needs of them."""

    time: str | None
    type: str | None
    key: str | None
    classes: tuple[tuple[str, int], ...]  # with the number of their events, the most frequent first
    pairs: tuple[tuple[str, str], ...]  # consecutive classes (of one key), the most frequent first
    window: str
    longer_window: str
    number: str | None  # a numeric column, for conditions

    def role(self, name: str) -> str:
        return {self.time: "time", self.type: "class", self.key: "key"}.get(name, "")


def profile(sample: pa.Table) -> list[ColumnProfile]:
    """Return the profile of each column."""
    return [_column_profile(field.name, sample.column(n)) for n, field in enumerate(sample.schema)]


def _column_profile(name: str, values: pa.ChunkedArray) -> ColumnProfile:
    kind = kind_of(values.type)
    if kind in (Kind.OTHER, Kind.NULL):
        return ColumnProfile(name, kind, values.null_count, None, ())
    distinct = pc.unique(values.drop_null())
    examples = tuple(_shortened(cell_text(value)) for value in distinct.slice(0, EXAMPLES).to_pylist())
    return ColumnProfile(name, kind, values.null_count, len(distinct), examples)


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MAX_EXAMPLE else f"{text[: MAX_EXAMPLE - 1]}…"


def profile_columns(columns: Iterable[ColumnProfile], guessed: Guess) -> list[TextColumn]:
    """Return the profile as the columns of a text table."""
    columns = list(columns)
    cells = {
        "column": [each.name for each in columns],
        "role": [guessed.role(each.name) for each in columns],
        "type": ["other" if each.kind is Kind.OTHER else each.kind.value for each in columns],
        "nulls": [f"{each.nulls:,}" for each in columns],
        "distinct": ["-" if each.distinct is None else f"{each.distinct:,}" for each in columns],
        "examples": [_listed(each) for each in columns],
    }
    return [TextColumn(name, texts) for name, texts in cells.items()]


def _listed(column: ColumnProfile) -> str:
    """Return as many examples as fit in one cell."""
    texts = [", ".join(column.examples[: count + 1]) for count in range(len(column.examples))]
    return next((text for text in reversed(texts) if len(text) <= MAX_EXAMPLE), "-")


def guess(sample: pa.Table, columns: list[ColumnProfile] | None = None) -> Guess:
    """Guess the roles of columns by their names and values."""
    by_name = {each.name: each for each in columns or profile(sample)}
    time = _time(sample, by_name)
    type_column = _type(sample, by_name, time)
    key = _key(sample, by_name, {time, type_column})
    used = [name for name in (time, type_column, key) if name is not None]
    frame = sample.select(used).to_pandas() if used else pd.DataFrame()
    occurrences = frame[type_column].value_counts().items() if type_column else ()
    classes = tuple((str(name), int(count)) for name, count in occurrences)
    pairs = _pairs(frame, time, type_column, key)
    window, longer = _windows(frame, time, key)
    return Guess(time, type_column, key, classes, pairs, window, longer, _number(by_name, {time, key}))


def _words(name: str) -> set[str]:
    """Return the words of a column name: of `caseId`, `case_id` and `case:id`, "case" and "id"."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[a-z]+", name)}


def _first(candidates: list[str], words: frozenset[str]) -> str | None:
    """Return the first candidate with one of the words in its name, else the first."""
    return next((name for name in candidates if _words(name) & words), next(iter(candidates), None))


def _has_time_name(name: str) -> bool:
    return bool(_words(name) & TIME_WORDS) or "time" in name.lower()


def _time(sample: pa.Table, columns: dict[str, ColumnProfile]) -> str | None:
    moments = [n for n, c in columns.items() if c.kind in (Kind.TIMESTAMP, Kind.DATE)]
    texts = [n for n, c in columns.items() if c.kind is Kind.STRING and _is_time(sample.column(n))]
    numbers = [n for n, c in columns.items() if c.kind in NUMERIC]
    named = [n for n in numbers if _has_time_name(n)]
    rising = [n for n in numbers if sample.num_rows > 1 and sample.column(n).to_pandas().is_monotonic_increasing]
    candidates = moments or texts or named or rising
    return next(filter(_has_time_name, candidates), next(iter(candidates), None))


def _is_time(values: pa.ChunkedArray) -> bool:
    some = values.drop_null().slice(0, 100)
    try:
        return len(some) > 0 and some.cast(pa.timestamp("us")) is not None
    except pa.ArrowInvalid:
        return False


def _type(sample: pa.Table, columns: dict[str, ColumnProfile], time: str | None) -> str | None:
    few = min(MAX_CLASSES, max(2, sample.num_rows // 2))
    texts = [n for n, c in columns.items() if c.kind is Kind.STRING and n != time and 2 <= (c.distinct or 0) <= few]
    texts = [n for n in texts if not _words(n) & CASE_WORDS] or texts
    return _first(texts, CLASS_WORDS)


def _key(sample: pa.Table, columns: dict[str, ColumnProfile], taken: set[str | None]) -> str | None:
    """Return a column with the name of a key whose values repeat; a case or session before any other."""
    kinds = (Kind.STRING, Kind.INTEGER, Kind.DECIMAL)
    repeating = [
        name
        for name, column in columns.items()
        if name not in taken and column.kind in kinds and 2 <= (column.distinct or 0) <= sample.num_rows * MAX_KEY_SHARE
    ]
    named = [name for name in repeating if _has_key_name(name)]
    return _first(named, CASE_WORDS)


def _has_key_name(name: str) -> bool:
    words = _words(name)
    return bool(words & KEY_WORDS) or any(ID_SUFFIX.search(word) and word not in NO_IDS for word in words)


def _number(columns: dict[str, ColumnProfile], taken: set[str | None]) -> str | None:
    """Return a numeric column that is not an identifier: one with the name of a measure, else a fractional one."""
    numbers = [n for n, c in columns.items() if c.kind in NUMERIC and n not in taken and not _has_key_name(n)]
    fractional = [name for name in numbers if columns[name].kind is not Kind.INTEGER]
    return next((name for name in numbers if _words(name) & MEASURE_WORDS), next(iter(fractional or numbers), None))


def _pairs(
    frame: pd.DataFrame, time: str | None, type_column: str | None, key: str | None
) -> tuple[tuple[str, str], ...]:
    """Return the most frequent pairs of different classes that follow each other."""
    if time is None or type_column is None:
        return ()
    ordered = frame.sort_values(time, kind="stable")
    classes = ordered[type_column]
    following = classes.groupby(ordered[key]).shift(-1) if key else classes.shift(-1)
    changes = pd.DataFrame({"first": classes, "then": following}).dropna()
    changes = changes[changes["first"] != changes["then"]]
    return tuple((str(first), str(then)) for first, then in changes.value_counts().index[:SUGGESTED_PAIRS])


def _windows(frame: pd.DataFrame, time: str | None, key: str | None) -> tuple[str, str]:
    """Return about 5 and 100 times the median gap between events (of one key), as round numbers of a fitting unit."""
    if time is None or len(frame) < 2:
        return "1 hour", "1 day"
    column = frame[time]
    is_number = pd.api.types.is_numeric_dtype(column)
    moments = column if is_number else pd.to_datetime(column, errors="coerce", utc=True, format="ISO8601")
    ordered = pd.DataFrame({"at": moments, "key": frame[key] if key else 0}).sort_values("at")
    gaps = ordered.groupby("key")["at"].diff().dropna()
    gap = float(gaps.median()) if is_number else gaps.dt.total_seconds().median()
    length = 5 * gap if gap == gap and gap > 0 else 1.0
    return _length_text(length, is_number), _length_text(20 * length, is_number)


def _length_text(length: float, is_number: bool) -> str:
    rounded = float(f"{length:.0e}")  # one significant digit
    if is_number:
        return f"{rounded:g}"
    size, unit = next(((s, u) for s, u in SECONDS if length >= s), SECONDS[-1])
    count = max(1, round(float(f"{length / size:.0e}")))
    return f"{count} {unit.removesuffix('s') if count == 1 and len(unit) > 3 else unit}"
