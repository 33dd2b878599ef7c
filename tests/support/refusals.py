"""List every kind of unsupported query, and generate `docs/refusals.md` from the error messages.

Streaming queries need no Spark here: `stream_plan` checks them.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa

import streamsift as ss
from streamsift.errors import UnsupportedQuery
from streamsift.physical.stream import stream_plan

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src" / "streamsift"
SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("kind", pa.string()), ("id", pa.int64()), ("x", pa.float64())])


def rows(clause: str) -> str:
    return f"MATCH_RECOGNIZE ({clause})"


STARS = ", ".join(f"A* a{n}" for n in range(9))
LONG = ", ".join(f"ANY n{n}" for n in range(63))
ORS = "; ".join(f"(A a{n} | B b{n} | C c{n})" for n in range(8))


@dataclass(frozen=True, slots=True)
class Refusal:
    title: str
    query: str
    choices: dict[str, Any] = field(default_factory=dict)
    is_stream: bool = False

    def raised(self) -> UnsupportedQuery:
        binding = {} if self.query.startswith("MATCH_RECOGNIZE") else {"time": "ts", "type": "kind"}
        try:
            query = ss.query(self.query)
            if self.is_stream:
                stream_plan(query.plan(SCHEMA, "ts", "kind", None))
            else:
                query.run_local(SCHEMA.empty_table(), **binding, **self.choices)
        except UnsupportedQuery as error:
            return error
        raise AssertionError(f"{self.title}: this is supported now; remove it from tests/support/refusals.py")


REFUSALS = (
    Refusal("UNTIL with a pattern that does not begin and end with single events", "PATTERN A+ a; B b UNTIL C c"),
    Refusal("UNTIL together with `[attr]` inside SEQ", "PATTERN SEQ(A a, B b, [id]) UNTIL C c"),
    Refusal("Predicates between two Kleene groups", "PATTERN A+ a; B+ b WHERE a.x < b.x"),
    Refusal("Predicates between a Kleene group and a negated variable", "PATTERN SEQ(A+ a, !B b, C c) WHERE a.x < b.x"),
    Refusal(
        "Predicates between an aggregate and a negated variable", "PATTERN SEQ(A+ a, !B b, C c) WHERE AVG(a.x) < b.x"
    ),
    Refusal("Negations in a pattern with more than 8 `*` variables", f"PATTERN SEQ({STARS}, !B b, C c)"),
    Refusal("A definition with a window and only Kleene groups", "SEQ S1 = B+ b WITHIN 5 PATTERN A a; S1"),
    Refusal(
        "A negation at the edge of a definition with a window, in a Kleene pattern",
        "SEQ S1 = A; !B WITHIN 5 PATTERN S1; C+ c",
    ),
    Refusal(
        "A negated Kleene class at the edge of a definition with a window",
        "SEQ S1 = A; !B+ b WITHIN 5 PATTERN S1; C c",
    ),
    Refusal("More than 1,000 alternatives", f"PATTERN {ORS}"),
    Refusal("A negated sub-pattern of more than 62 events", f"PATTERN SEQ(A a, !SEQ({LONG}), B b)"),
    Refusal("A negated Kleene class of more than 62 events", "PATTERN SEQ(A a, B+ b, !C[63] c, D d) WITHIN 5"),
    Refusal(
        "A strategy that does not apply to the query",
        "PATTERN SEQ(A a, B b, !C c) AGG COUNT WITHIN 30",
        {"strategy": "pairs"},
    ),
    Refusal("UPDATE intervals shorter than a nanosecond", "PATTERN A a AGG COUNT WITHIN 1 s UPDATE 0.0000000001 s"),
    Refusal(
        "Streaming: count windows mixed with time windows",
        "SEQ S1 = A; B WITHIN 5 EVENTS PATTERN S1; C WITHIN 1 hour",
        is_stream=True,
    ),
    Refusal(
        "Streaming: aggregates that wait for the end of a count window",
        "PATTERN SEQ(A a, !B b) PARTITION BY id AGG COUNT WITHIN 5 EVENTS",
        is_stream=True,
    ),
    Refusal("MATCH_RECOGNIZE: PARTITION BY an expression", rows("PARTITION BY id + 1 PATTERN (A)")),
    Refusal("MATCH_RECOGNIZE: other aggregates", rows("MEASURES STDDEV(A.x) AS s PATTERN (A+)")),
    Refusal("MATCH_RECOGNIZE in process: nested columns", rows("PATTERN (A) DEFINE A AS kind.part = 1")),
    Refusal(
        "MATCH_RECOGNIZE in process: CAST and other syntax of Spark", rows("MEASURES CAST(A.x AS INT) AS n PATTERN (A)")
    ),
    Refusal("MATCH_RECOGNIZE in process: functions of Spark", rows("PATTERN (A) DEFINE A AS MD5(kind) = 'x'")),
    Refusal("A row pattern of more than 10,000 instructions", "MATCH_RECOGNIZE (ORDER BY ts PATTERN (A{10000}))"),
    Refusal(
        "A duration times a double in a condition that joins rows",
        "MATCH_RECOGNIZE (ORDER BY ts PATTERN (A B) DEFINE B AS (B.ts - A.ts) * A.x > 5 s)",
    ),
)
# Errors about Spark sessions and DataFrames, not about queries; tests/spark covers them.
ABOUT_SESSIONS = (
    "spark/columns/schemas.py",
    "spark/columns/arrow_types.py",
    "spark/row_match/types.py",
    "api/row_query.py",
    "api/sql.py",
    "runtime/row_match/matching.py",  # about the steps that a pattern takes on some rows
)


OPENING = """\
A query that is valid but not supported raises `UnsupportedQuery` before Streamsift reads any data. This page lists all
such queries with their error messages. It is generated, and a test fails if a message is missing.
"""
CLOSING = """\
`UnsupportedQuery` is also raised for a DataFrame with a column that Spark cannot send to Python, such as an interval of
years and months, for DataFrames and options that MATCH_RECOGNIZE does not take, for a row pattern that takes too many
steps on some rows, and for a Spark session whose time zone has a name that only Java knows.
"""


def page() -> str:
    """Return the text of `docs/refusals.md`."""
    parts = ["# Unsupported queries\n", OPENING]
    for refusal in REFUSALS:
        parts += [f"## {refusal.title}\n", "```text", _short(str(refusal.raised())), "```\n"]
    parts += ["## Columns and time zones\n", CLOSING]
    return "\n".join(parts)


def _short(message: str) -> str:
    lines = message.splitlines()
    if all(len(line) <= 118 for line in lines[1:3]):
        return message
    return "\n".join([lines[0], *(f"{line[:112]} …" if len(line) > 118 else line for line in lines[1:])])


def places() -> set[str]:
    """Return every `file:line` that creates an UnsupportedQuery."""
    return {
        f"{path.relative_to(SOURCES)}:{call.lineno}"
        for path in SOURCES.rglob("*.py")
        for call in _calls(ast.parse(path.read_text(encoding="utf-8")))
        if str(path.relative_to(SOURCES)) not in ABOUT_SESSIONS
    }


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == UnsupportedQuery.__name__:
            yield node


def place_of(action: Callable[[], object]) -> str:
    """Return the `file:line` that creates the error of an action."""
    made: list[str] = []
    init = UnsupportedQuery.__init__

    def noted(self: UnsupportedQuery, *arguments: Any, **named: Any) -> None:
        frame = sys._getframe(1)
        path = Path(frame.f_code.co_filename).resolve()
        made.append(f"{path.relative_to(SOURCES)}:{frame.f_lineno}")
        init(self, *arguments, **named)

    with patch.object(UnsupportedQuery, "__init__", noted):
        action()
    return made[-1]
