"""Guess which columns are the time, the class and the key, and a pair of classes to start from.

Guesses only: what they lead to is written down for a person to change.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from streamsift.logical.bound import Kind
from streamsift.logical.columns import kind_of

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
    counts = {name: pc.count_distinct(sample.column(name)).as_py() for name in kinds if _countable(kinds[name])}
    type_column = _type(sample, kinds, counts, {time})
    key = _key(sample, kinds, counts, {time, type_column})
    numbers = [n for n, k in kinds.items() if k in (Kind.FLOAT, Kind.DECIMAL, Kind.INTEGER) and n not in (time, key)]
    used = [name for name in (time, type_column, key) if name is not None]
    frame = sample.select(used).to_pandas() if used else pd.DataFrame()
    classes = _classes(frame, type_column)
    pair = _pair(frame, time, type_column, key)
    return Guess(time, type_column, key, classes, pair, _window(frame, time, key), next(iter(numbers), None))


def _countable(kind: Kind) -> bool:
    return kind in (Kind.STRING, Kind.INTEGER, Kind.DECIMAL, Kind.BOOLEAN)


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


def _classes(frame: pd.DataFrame, type_column: str | None) -> tuple[tuple[str, int], ...]:
    if type_column is None:
        return ()
    counts = frame[type_column].value_counts()
    return tuple((str(name), int(count)) for name, count in counts.items())


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
