"""Every way to be refused: a name, what brings it about, and how. `docs/refusals.md` is made from these.

`stream` refusals need no Spark: they are found by what a stream's plan is checked with.
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
STARS = ", ".join(f"A* a{n}" for n in range(9))
LONG = ", ".join(f"ANY n{n}" for n in range(63))
ORS = "; ".join(f"(A a{n} | B b{n} | C c{n})" for n in range(8))


@dataclass(frozen=True, slots=True)
class Refusal:
    title: str
    query: str  # as it is shown; long ones are shortened
    choices: dict[str, Any] = field(default_factory=dict)
    is_stream: bool = False

    def raised(self) -> UnsupportedQuery:
        binding = {"time": "ts", "type": "kind"}
        try:
            query = ss.query(self.query)
            if self.is_stream:
                stream_plan(query.plan(SCHEMA, "ts", "kind", None))
            else:
                query.run_local(SCHEMA.empty_table(), **binding, **self.choices)
        except UnsupportedQuery as error:
            return error
        raise AssertionError(f"{self.title}: this is evaluated now; take it off the list in tests/support/refusals.py")


REFUSALS = (
    Refusal("Two groups compared element by element", "PATTERN A+ a; B+ b WHERE a.x < b.x"),
    Refusal("A group and a negated variable", "PATTERN SEQ(A+ a, !B b, C c) WHERE a.x < b.x"),
    Refusal("An aggregate of a group and a negated variable", "PATTERN SEQ(A+ a, !B b, C c) WHERE AVG(a.x) < b.x"),
    Refusal("Negations beside many `*` variables", f"PATTERN SEQ({STARS}, !B b, C c)"),
    Refusal("A definition's window around groups alone", "SEQ S1 = B+ b WITHIN 5 PATTERN A a; S1"),
    Refusal("A negation that a definition's window bounds, beside a group", "SEQ S1 = A; !B WITHIN 5 PATTERN S1; C+ c"),
    Refusal("Very many alternatives", f"PATTERN {ORS}"),
    Refusal("A very long negated pattern", f"PATTERN SEQ(A a, !SEQ({LONG}), B b)"),
    Refusal("A very long negated group", "PATTERN SEQ(A a, B+ b, !C[63] c, D d) WITHIN 5"),
    Refusal(
        "A strategy that cannot count the query",
        "PATTERN SEQ(A a, B b, !C c) AGG COUNT WITHIN 30",
        {"strategy": "pairs"},
    ),
    Refusal("Ticks finer than any timestamp", "PATTERN A a AGG COUNT WITHIN 1 s UPDATE 0.0000000001 s"),
    Refusal(
        "On a stream, windows of rows beside windows of time",
        "SEQ S1 = A; B WITHIN 5 EVENTS PATTERN S1; C WITHIN 1 hour",
        is_stream=True,
    ),
    Refusal(
        "On a stream, totals that wait for the end of a count window",
        "PATTERN SEQ(A a, !B b) PARTITION BY id AGG COUNT WITHIN 5 EVENTS",
        is_stream=True,
    ),
)
# Refused for what a Spark session or DataFrame is, not for what a query says: tests/spark has them.
ABOUT_SESSIONS = ("spark/columns/schemas.py",)


OPENING = """\
A query that Streamsift understands but cannot evaluate raises `UnsupportedQuery`, before any data is read. This is
all of them: the page is made from the messages, and a test fails where the code has one that is not here.
"""
CLOSING = """\
A DataFrame with a column that Spark cannot send to Python (an interval of years and months, say), and a session
whose time zone has a name that only Java knows, are refused in the same way.
"""


def page() -> str:
    """`docs/refusals.md`: made of the messages themselves."""
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
    """Where the code makes such an error, as `file:line`."""
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
    """Where the error that an action ends with was made, as `file:line`."""
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
