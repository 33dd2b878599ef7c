"""Generate MATCH_RECOGNIZE clauses and rows from a seed: valid texts that mix everything the clause has.

Rows and constants come from the same few values, so that conditions often hold and patterns often match. A clause is
written as text, because the text is what users write; the oracle parses it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

Row = dict[str, Any]

SCHEMA = pa.schema(
    {
        "k": pa.string(),
        "t": pa.int64(),
        "at": pa.timestamp("us", "UTC"),
        "seq": pa.int64(),
        "n": pa.int64(),
        "x": pa.float64(),
        "d": pa.decimal128(10, 2),
        "s": pa.string(),
    }
)
_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
_LABELS = ("A", "B", "C", "D", '"e"')


@dataclass(frozen=True, slots=True)
class Sample:
    """A clause, its rows in input order, and how SKIP TO an absent row is handled."""

    text: str
    rows: list[Row]
    on_skip_error: str
    is_ordered: bool  # no two rows of a partition are equal under ORDER BY

    def table(self) -> pa.Table:
        return pa.Table.from_pylist(self.rows, SCHEMA)


def sample(seed: int, max_rows: int = 14, *, on_stream: bool = False) -> Sample:
    """Return the clause and the rows of a seed. `on_stream` keeps to what a stream can evaluate."""
    rng = Random(seed)
    return _Writer(rng, on_stream).sample(max_rows)


def rows(rng: Random, max_rows: int) -> list[Row]:
    """Return rows with ties, nulls, duplicates and null keys, usually but not always in time order."""
    size = rng.choice((0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 12, 14))
    keys = rng.choice((("p",), ("p", "q"), ("p", "q", "r", None)))
    has_ties, time, result = rng.random() < 0.3, 0, []
    for number in range(min(size, max_rows)):
        time += rng.choice((0, 1, 1, 2, 5)) if has_ties else rng.choice((1, 1, 2, 5))
        result.append(
            {
                "k": rng.choice(keys),
                "t": time,
                "at": _EPOCH + timedelta(seconds=time),
                "seq": number,
                "n": rng.choice((1, 2, 3, 1, 2, 3, 0, -1, None)),
                "x": rng.choice((1.0, 2.0, 1.5, 3.0, 0.0, None, *((float("nan"),) if rng.random() < 0.1 else ()))),
                "d": rng.choice((Decimal("1.00"), Decimal("2.00"), Decimal("2.50"), None)),
                "s": rng.choice(("a", "b", "a", "b", "ab", "A", "", None)),
            }
        )
    if result and rng.random() < 0.2:
        result.append(dict(rng.choice(result)))
    if rng.random() < 0.2:
        rng.shuffle(result)
    return result


def _used(pattern: str) -> list[str]:
    """Return the variables of a pattern, in order of appearance."""
    return list(dict.fromkeys(re.findall(r'"e"|\b[A-D]\b', pattern)))


class _Writer:
    """Write one clause; `labels` are the variables of its pattern, in order of appearance."""

    def __init__(self, rng: Random, on_stream: bool) -> None:
        self.rng, self.on_stream = rng, on_stream
        self.labels: list[str] = []
        self.subsets: dict[str, list[str]] = {}
        self.has_exclusion = False

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def sample(self, max_rows: int) -> Sample:
        rng = self.rng
        events = rows(rng, max_rows)
        pattern = self.pattern(rng.choice((1, 2, 2, 3)))
        if not (used := _used(pattern)):
            pattern = f"{pattern} {self.variable()}"
            used = _used(pattern)
        self.labels = used
        if len(self.labels) > 1 and self.chance(0.3):
            self.subsets["U"] = rng.sample(self.labels, 2)
        parts = []
        if self.chance(0.6):
            parts.append("PARTITION BY k")
        order, is_ordered = self.order(events)
        parts.append(order)
        all_rows = self.chance(0.5)
        measures = [f"{self.measure(all_rows)} AS m{number}" for number in range(rng.choice((0, 1, 2, 3, 4)) or 1)]
        parts.append("MEASURES " + ", ".join(measures))
        parts.append(self.rows_per_match() if all_rows else rng.choice(("", "ONE ROW PER MATCH")))
        parts.append(self.skip())
        parts.append(f"PATTERN ({pattern})")
        if order.startswith("ORDER BY at") and "DESC" not in order.split(",")[0] and self.chance(0.5):
            parts.append(f"WITHIN INTERVAL '{rng.choice((1, 2, 3, 6))}' SECOND")
        if self.subsets:
            parts.append("SUBSET " + ", ".join(f"{u} = ({', '.join(m)})" for u, m in self.subsets.items()))
        defined = [label for label in self.labels if self.chance(0.8)]
        if defined:
            parts.append("DEFINE " + ", ".join(f"{label} AS {self.condition(label)}" for label in defined))
        text = "MATCH_RECOGNIZE (\n  " + "\n  ".join(filter(None, parts)) + "\n)"
        return Sample(text, events, rng.choice(("fail", "next")), is_ordered)

    # --- clauses ---
    def order(self, events: list[Row]) -> tuple[str, bool]:
        rng, first = self.rng, self.rng.choice(("t", "t", "at", "at"))
        if self.on_stream:
            return f"ORDER BY {first}, seq", len({event["seq"] for event in events}) == len(events)
        more = rng.choice(
            ("", "", ", seq", ", seq DESC", ", n DESC NULLS FIRST", ", x NULLS LAST, seq", ", s ASC, seq")
        )
        direction = rng.choice(("", "", "", " ASC", " DESC"))
        keys = f"{first}{direction}{more}"
        if self.chance(0.1):
            keys = rng.choice(("n", "n DESC", "x ASC NULLS LAST", "d DESC NULLS FIRST, seq", "s"))
        return f"ORDER BY {keys}", "seq" in keys and len({event["seq"] for event in events}) == len(events)

    def rows_per_match(self) -> str:
        modes = ["ALL ROWS PER MATCH", "ALL ROWS PER MATCH SHOW EMPTY MATCHES", "ALL ROWS PER MATCH OMIT EMPTY MATCHES"]
        if not self.has_exclusion:
            modes += ["ALL ROWS PER MATCH WITH UNMATCHED ROWS"] * 2
        return self.rng.choice(modes)

    def skip(self) -> str:
        rng, label = self.rng, self.rng.choice([*self.labels, *self.subsets])
        to = rng.choice(("", "", "PAST LAST ROW", "TO NEXT ROW", "TO NEXT ROW", f"TO {label}", f"TO FIRST {label}"))
        to = f"TO LAST {label}" if self.chance(0.1) else to
        return f"AFTER MATCH SKIP {to}" if to else ""

    # --- patterns ---
    def variable(self) -> str:
        label = self.rng.choice(_LABELS[: self.rng.choice((2, 3, 4, 5))])
        if label not in self.labels:
            self.labels.append(label)
        return label

    def pattern(self, depth: int) -> str:
        rng = self.rng
        if depth == 0 or self.chance(0.15):
            return self.variable() + self.quantifier(0.35)
        kind = rng.choice(("then",) * 6 + ("either",) * 3 + ("permute", "exclude", "group", "group", "anchor", "empty"))
        inner = [self.pattern(depth - 1) for _ in range(rng.choice((1, 2, 2, 3)))]
        match kind:
            case "either":
                return f"({' | '.join(inner)})" + self.quantifier(0.4)
            case "permute":
                return f"PERMUTE({', '.join(inner)})" + self.quantifier(0.2)
            case "exclude" if depth < 3 and not self.has_exclusion:
                self.has_exclusion = True
                return f"{self.variable()} {{- {inner[0]} -}}"
            case "group":
                return f"({' '.join(inner)})" + self.quantifier(0.7)
            case "anchor" if self.chance(0.5):
                return f"^ {inner[0]}" if self.on_stream or self.chance(0.6) else f"{inner[0]} $"
            case "empty" if self.chance(0.5):
                return f"(() | {inner[0]})" + self.quantifier(0.4)
        return " ".join(inner)

    def quantifier(self, share: float) -> str:
        if not self.chance(share):
            return ""
        written = self.rng.choice(("*", "+", "?", "*", "+", "?", "{2}", "{1,}", "{,2}", "{1,3}", "{0,2}", "{2,4}"))
        return written + ("?" if self.chance(0.3) else "")

    # --- conditions and measures ---
    def condition(self, label: str, depth: int = 1) -> str:
        rng = self.rng
        if depth and self.chance(0.35):
            inner = f" {rng.choice(('AND', 'AND', 'OR'))} ".join(self.condition(label, depth - 1) for _ in range(2))
            return f"NOT ({inner})" if self.chance(0.15) else f"({inner})"
        column, other = (rng.choice(("n", "n", "x", "d")) for _ in range(2))
        own = rng.choice(("", "", f"{label}."))
        op = rng.choice(("<", "<=", ">", ">=", "=", "!=", "<>"))
        choices = [
            f"{own}{column} {op} {rng.choice((0, 1, 2, 3))}",
            f"{own}{column} {op} PREV({own}{other}{rng.choice(('', ', 1', ', 2', ', 0'))})",
            f"{own}{column} {op} NEXT({own}{other}{rng.choice(('', ', 2'))})",
            f"{own}s {rng.choice(('=', '<', '!='))} '{rng.choice(('a', 'b', ''))}'",
            f"{own}{column} IS {rng.choice(('', 'NOT '))}NULL",
            f"{own}n IN (1, {rng.choice((2, 3))})",
            f"{own}n BETWEEN 1 AND {rng.choice((1, 2))}",
            f"{own}s LIKE 'a%'",
            f"COALESCE({own}n, 1) + 1 {op} {rng.choice((2, 3))}",
            f"CASE WHEN {own}n > 1 THEN {own}x ELSE 0 END {op} 1",
        ]
        if self.chance(0.4):
            choices = [f"{own}{column} {op} {self.navigation()}" for _ in range(2)]
            choices += [
                f"{self.aggregate()} {op} {rng.choice((1, 2, 3, 5))}",
                f"COUNT({rng.choice(('*', f'{label}.*', f'{self.any_label()}.*'))}) {rng.choice(('<', '<='))} 3",
                f"{own}n {op} MATCH_NUMBER()",
                f"COALESCE(PREV(CLASSIFIER()), 'none') {rng.choice(('=', '!='))} '{self.any_label().strip(chr(34))}'",
                f"{self.navigation()} + 1 {op} {own}{column}",
                f"CLASSIFIER({self.any_label()}) = '{self.labels[0].strip(chr(34))}'",
            ]
        return rng.choice(choices)

    def any_label(self) -> str:
        return self.rng.choice([*self.labels, *self.subsets])

    def navigation(self) -> str:
        rng, label, column = self.rng, self.any_label(), self.rng.choice(("n", "x", "d"))
        return rng.choice(
            (
                f"{label}.{column}",
                f"LAST({label}.{column})",
                f"FIRST({label}.{column})",
                f"FIRST({column})",
                f"LAST({column}, 1)",
                f"LAST({label}.{column}, {rng.choice((1, 2))})",
                f"FIRST({label}.{column}, 1)",
                f"PREV({label}.{column})",
                f"PREV(LAST({label}.{column}, {rng.choice((0, 1))}), {rng.choice((1, 2))})",
                f"NEXT(FIRST({label}.{column}))",
                f"PREV({label}.n + {label}.x)",
            )
        )

    def aggregate(self) -> str:
        rng, label = self.rng, self.any_label()
        function, column = rng.choice(("SUM", "AVG", "MIN", "MAX", "COUNT")), rng.choice(("n", "x", "n"))
        return f"{function}({rng.choice((f'{label}.', f'{label}.', ''))}{column})"

    def measure(self, all_rows: bool) -> str:
        rng, label = self.rng, self.any_label()
        column = rng.choice(("n", "x", "d", "s", "t"))
        written = rng.choice(
            (
                f"{label}.{column}",
                column,
                self.navigation(),
                self.navigation(),
                self.aggregate(),
                self.aggregate(),
                "COUNT(*)",
                f"COUNT({label}.*)",
                "CLASSIFIER()",
                f"CLASSIFIER({label})",
                "MATCH_NUMBER()",
                f"COUNT(DISTINCT {label}.n)",
                f"MIN({label}.s)",
                f"ARRAY_AGG({label}.n)",
                "ARRAY_AGG(CLASSIFIER())",
                f"PREV({column})",
                f"NEXT({column}, 2)",
                "PREV(CLASSIFIER())",
                f"{label}.n + LAST({self.any_label()}.n)",
                f"COALESCE({label}.n, 0) * 2",
            )
        )
        is_call = written.split("(")[0] in ("COUNT", "SUM", "AVG", "MIN", "MAX", "ARRAY_AGG", "FIRST", "LAST")
        is_call = is_call and written.endswith(")") and " + " not in written
        return f"{rng.choice(('RUNNING', 'FINAL'))} {written}" if is_call and all_rows and self.chance(0.5) else written
