"""Test WITHIN and UPDATE with units for each type of time column."""

from __future__ import annotations

from fractions import Fraction

import pytest

from logical.events import bound
from streamsift.errors import QueryError
from streamsift.logical.bound import BoundWindow, WindowKind


@pytest.mark.parametrize(
    ("written", "time", "kind", "length"),
    [
        ("10", "t", WindowKind.TIME, Fraction(10)),
        ("1.5", "x", WindowKind.TIME, Fraction(3, 2)),
        ("0.1", "Price", WindowKind.TIME, Fraction(1, 10)),
        ("10", "ts", WindowKind.TIME, Fraction(10)),
        ("10 s", "ts", WindowKind.TIME, Fraction(10)),
        ("1 ms", "ts", WindowKind.TIME, Fraction(1, 1000)),
        ("2 min", "ts", WindowKind.TIME, Fraction(120)),
        ("1.5 h", "ts", WindowKind.TIME, Fraction(5400)),
        ("2 days", "day", WindowKind.TIME, Fraction(172800)),
        ("60", "day", WindowKind.TIME, Fraction(60)),
        ("1 hour", "s", WindowKind.TIME, Fraction(3600)),
        ("10 EVENTS", "t", WindowKind.COUNT, Fraction(10)),
        ("10 UNIT", "ts", WindowKind.COUNT, Fraction(10)),
        ("0", "t", WindowKind.TIME, Fraction(0)),
    ],
)
def test_lengths(written: str, time: str, kind: WindowKind, length: Fraction) -> None:
    window = bound(f"A; B WITHIN {written}", time=time).window
    assert window is not None
    assert (window.kind, window.length, window.exclusive) == (kind, length, False)


def test_exclusive() -> None:
    window = bound("A; B WITHIN 10 EXCLUSIVE").window
    assert window == BoundWindow(WindowKind.TIME, Fraction(10), True, "10 EXCLUSIVE")


def test_update() -> None:
    query = bound("A; B AGG COUNT WITHIN 10 min UPDATE 30 s", time="ts")
    assert query.update is not None
    assert query.update.length == 30
    count = bound("A; B PREF MAX[A.x] RETURN 3 WITHIN 50 EVENTS UPDATE 20 EVENTS").update
    assert count is not None
    assert (count.kind, count.length) == (WindowKind.COUNT, Fraction(20))


@pytest.mark.parametrize("time", ["t", "x", "Price"])
@pytest.mark.parametrize("unit", ["ms", "s", "min", "h", "d"])
def test_a_time_unit_needs_a_calendar(time: str, unit: str) -> None:
    with pytest.raises(QueryError, match="has a unit, but the time column"):
        bound(f"A; B WITHIN 5 {unit}", time=time)


@pytest.mark.parametrize(
    "text",
    [
        "A; !B WITHIN 5",
        "A; !B; C",
        "!A; B",
        "!A; B*",  # B cannot be empty: a match binds at least one event
        "A & !B",  # bounded by the end of the match
        "AND(A, SEQ(B, !C))",
        "SEQ(A, SEQ(B, !C), D)",
        "SEQ(A, !SEQ(B, !C), D)",
        "A*; !B; C",
        "(!A; B) | (C; !D; E)",
        "SEQ S1 = A; !B PATTERN S1; C",
        "SEQ S1 = A; !B WITHIN 5 PATTERN C; S1",
    ],
)
def test_negations_that_can_be_decided(text: str) -> None:
    bound(text)


@pytest.mark.parametrize(
    "text",
    [
        "A; !B",
        "A; !B; C*",
        "A*; !B; C*",
        "A; (B & !C)",
        "A; AND(B, SEQ(C, !D))",
        "SEQ(A, SEQ(B, !C))",
        "SEQ(A, OR(SEQ(B, !C), D))",
        "(A; B) | (C; !D)",
        "A; !SEQ(B, !C)",
        "SEQ S1 = A; !B PATTERN C; S1",
        "SEQ S1 = C* PATTERN A; !B; S1",
    ],
)
def test_an_upper_edge_needs_within(text: str) -> None:
    with pytest.raises(QueryError, match="a negation at the end of a pattern requires WITHIN"):
        bound(text)
    bound(f"{text} WITHIN 5")
