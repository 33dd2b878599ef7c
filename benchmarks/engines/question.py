"""Define the workloads that every engine runs, and the columns of their result rows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa


class Kind(StrEnum):
    """The kind of a workload, by its name in the Java driver. All kinds match events of one key."""

    SEQUENCE = "sequence"  # A, then B, then C: all matches
    NEGATION = "negation"  # A, then B, with no D between
    GROUP = "group"  # A, then all B until C
    NEXT = "next"  # A and the first B after it: the only kind that MATCH_RECOGNIZE supports
    COUNT = "count"  # the number of A, B, C, D matches in the window, whenever a match ends


PATTERNS = {
    Kind.SEQUENCE: "SEQ(A a, B b, C c) WHERE [key] WITHIN {window} RETURN a.n AS a, b.n AS b, c.n AS c",
    Kind.NEGATION: "SEQ(A a, !D d, B b) WHERE [key] WITHIN {window} RETURN a.n AS a, b.n AS b",
    Kind.GROUP: "SEQ(A a, B+ b, C c) WHERE [key] WITHIN {window} RETURN a.n AS a, b, c.n AS c",
    Kind.NEXT: "SEQ(A a, !B other, B b) WHERE [key] WITHIN {window} RETURN a.n AS a, b.n AS b",
    Kind.COUNT: "SEQ(A a, B b, C c, D d) GROUP BY key AGG COUNT WITHIN {window}",
}
COLUMNS = {
    Kind.SEQUENCE: ("a", "b", "c"),
    Kind.NEGATION: ("a", "b"),
    Kind.GROUP: ("a", "b", "c"),
    Kind.NEXT: ("a", "b"),
    Kind.COUNT: ("key", "time", "count"),
}


@dataclass(frozen=True, slots=True)
class Question:
    """A kind of workload, a window that includes its bound, and the events: n, t (milliseconds), kind, key."""

    kind: Kind
    window_ms: int
    events: pa.Table

    @property
    def query(self) -> str:
        return PATTERNS[self.kind].format(window=self.window_ms)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns of a result row: numbers of events or a group of them, or a count and its position."""
        return COLUMNS[self.kind]
