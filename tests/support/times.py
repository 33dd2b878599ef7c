"""Generate time columns of every type, with windows that fit them.

A stream of `strategies.streams` has integer times `t` from 0 to 9, a stream of `sparse_streams` any integers. This
module adds a column `at`, whose values a list or a function maps from `t`. Queries bind `at` and keep their predicates
on `t`; their WITHIN and UPDATE are rescaled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from strategies import COLUMNS
from streamsift.language import Script, parse
from streamsift.language import syntax as s

Rows = list[dict[str, Any]]
Length = int | Decimal
AT = "at"


@dataclass(frozen=True)
class Times:
    """A type of time column, with the mappings of integer times to its values and of window lengths."""

    name: str
    type: pa.DataType
    values: tuple[Any, ...] | Callable[[int], Any]
    length: Callable[[Length], Length]
    unit: s.Unit = s.Unit.NONE

    def __repr__(self) -> str:
        return self.name

    @property
    def schema(self) -> pa.Schema:
        columns = [(name, pa.type_for_alias(kind)) for name, kind in COLUMNS.items()]
        return pa.schema([*columns, (AT, self.type)])

    def rows(self, rows: Rows) -> Rows:
        value = self.values if callable(self.values) else self.values.__getitem__
        return [{**row, AT: value(row["t"])} for row in rows]

    def table(self, rows: Rows) -> pa.Table:
        return pa.Table.from_pylist(rows, self.schema)

    def script(self, script: Script) -> Script:
        definitions = [replace(each, statement=self._scaled(each.statement)) for each in script.definitions]
        return replace(script, definitions=tuple(definitions), statement=self._scaled(script.statement))

    def _scaled(self, statement: s.Statement) -> s.Statement:
        window, update = statement.window, statement.update
        if window is not None:
            length = self._length(window.length)
            window = s.Window(length, window.exclusive and length.value != 0)
        return replace(statement, window=window, update=update and self._length(update))

    def _length(self, duration: s.Duration) -> s.Duration:
        if duration.unit is s.Unit.EVENT:
            return duration
        return s.Duration(self.length(duration.value), self.unit)


def by(factor: str) -> Callable[[Length], Length]:
    return lambda length: length * Decimal(factor)


def few_tenths(length: Length) -> Length:
    """Map a length to 0.1, 0.2 or 0.3, so that window bounds often coincide with events."""
    return Decimal(1 + int(length) % 3) / 10


def same(length: Length) -> Length:
    return length


def _running(step: float) -> tuple[float, ...]:
    """Return running sums, which differ from the multiples by rounding, such as 0.30000000000000004."""
    found = [0.0]
    while len(found) < 10:
        found.append(found[-1] + step)
    return tuple(found)


NOON = datetime(2024, 2, 29, 12)
SPREAD = (-2.0, -1.0, -1.0, -1e-17, 5e-324, 1e-17, 1.2e-16, 0.7, 1.0, 1.0000000000000002)
FAR = (-math.inf, -math.inf, -1.0, 0.0, 0.1, 0.30000000000000004, 1.0, 2.0, math.inf, math.inf)
ENDS = (-math.inf, -1.7e308, -1.0, 0.0, 0.1, 0.30000000000000004, 1.0, 2.0, 1.7e308, math.inf)

DOUBLES = [
    Times("tenths", pa.float64(), tuple(t / 10 for t in range(10)), few_tenths),
    Times("negative tenths", pa.float64(), tuple((t - 6) / 10 for t in range(10)), few_tenths),
    Times("running tenths", pa.float64(), _running(0.1), few_tenths),
    *[Times("spread", pa.float64(), SPREAD, lambda length: max(1, int(length) % 3))] * 3,
    Times("large", pa.float64(), tuple(1e16 + 2 * t for t in range(10)), same),
    Times("float", pa.float32(), tuple(float(np.float32(t / 10)) for t in range(10)), by("0.1")),
]
INFINITE = Times("infinite", pa.float64(), FAR, lambda length: max(1, int(length) % 3))
WIDEST = Times("widest", pa.float64(), ENDS, lambda length: 10**308 * (1 + int(length) % 2))  # 2e308 is not a double
ENDLESS = Times("endless", pa.int64(), tuple(range(-10, 0)), lambda length: 2**63 + int(length) % 2)
EXACT = [
    Times("decimal", pa.decimal128(10, 1), tuple(Decimal(t - 4) / 10 for t in range(10)), by("0.1")),
    Times("whole decimal", pa.decimal128(10, 0), tuple(Decimal(t - 4) for t in range(10)), by("0.5")),
    Times("negative", pa.int32(), tuple(t - 7 for t in range(10)), same),
    Times("halves", pa.int64(), tuple(t - 4 for t in range(10)), by("0.5")),
    Times("seconds", pa.timestamp("s"), tuple(NOON + timedelta(seconds=t) for t in range(10)), by("0.5")),
    Times("milliseconds", pa.timestamp("ms"), tuple(NOON + timedelta(milliseconds=t) for t in range(10)), by("0.001")),
    Times(
        "zoned",
        pa.timestamp("us", "UTC"),
        tuple(datetime(1969, 12, 31, 23, 59, 57, tzinfo=UTC) + timedelta(seconds=t) for t in range(10)),
        by("0.25"),
    ),
    Times(
        "dates", pa.date32(), tuple(date(1970, 1, 1) + timedelta(days=t - 4) for t in range(10)), by("12"), s.Unit.HOUR
    ),
]


SPACED = [
    Times("integers", pa.int64(), lambda t: t, same),
    Times("spaced tenths", pa.float64(), lambda t: t / 10, by("0.1")),
    Times("spaced thirds", pa.float64(), lambda t: t / 3 - 2, by("0.3")),
    Times("spaced decimal", pa.decimal128(10, 1), lambda t: Decimal(t) / 10, by("0.1")),
    Times("spaced dates", pa.date32(), lambda t: date(1970, 1, 1) + timedelta(days=t), by("24"), s.Unit.HOUR),
    Times("spaced seconds", pa.timestamp("s"), lambda t: NOON + timedelta(seconds=t), same),
    Times(
        "spaced quarters",
        pa.timestamp("us", "UTC"),
        lambda t: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=t / 4),
        by("0.25"),
    ),
]


def spaced_times() -> st.SearchStrategy[Times]:
    """Draw a type of time column for streams of any length."""
    return st.sampled_from([SPACED[0], *SPACED])


def times(*, ticking: bool = True) -> st.SearchStrategy[Times]:
    """Draw a type of time column, mostly doubles; with `ticking`, only types whose ticks fit in 64 bits."""
    return st.sampled_from([*DOUBLES * 3, *EXACT, INFINITE, *([] if ticking else [WIDEST, ENDLESS])])


PATTERNS = (
    "SEQ(ANY a, ANY b)",
    "SEQ(A a, B b, ANY c)",
    "ANY a",
    "AND(A a, B b)",
    "SEQ(A a, !B b)",
    "SEQ(!B b, A a)",
    "SEQ(A a, !B b, ANY c)",
    "AND(A a, B b, !C c)",
    "SEQ(A a, B+ b)",
)
RESULTS = ("", "", "AGG COUNT", "AGG COUNT EMIT CHANGES", "PREF MAX[a.x] RETURN 2")
UPDATES = ("AGG COUNT UPDATE {}", "PREF MAX[a.x] UPDATE {} RETURN 2")


@st.composite
def windows(draw: st.DrawFn, *, ticking: bool) -> Script:
    """Draw short patterns of common classes, most of which have matches as long as the window."""
    pattern, length = draw(st.sampled_from(PATTERNS)), draw(st.integers(1, 5))
    exclusive = draw(st.sampled_from(["", "", " EXCLUSIVE"]))
    result = draw(st.sampled_from(UPDATES if ticking else RESULTS)).format(draw(st.integers(1, 3)))
    if draw(st.sampled_from([True, False, False])) and "+" not in pattern:
        result, own = result.replace("a.x", "S.a.x"), draw(st.integers(1, 5))
        return parse(f"SEQ S = {pattern} WITHIN {own}{exclusive} PATTERN S WITHIN {length} {result}")
    return parse(f"PATTERN {pattern} WITHIN {length}{exclusive} {result}")


def around(ticks: Iterable[float]) -> set[float]:
    """Return doubles just before, just after and between the given ones."""
    ordered = sorted(ticks)
    beside = {math.nextafter(tick, toward) for tick in ordered for toward in (-math.inf, math.inf)}
    between = {low / 2 + high / 2 for low, high in pairwise(ordered)}
    return {moment for moment in beside | between if not math.isnan(moment)}
