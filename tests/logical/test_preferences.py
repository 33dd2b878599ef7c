"""Test the classification of objectives as linear, monotone or other."""

from __future__ import annotations

import pytest

from logical.events import bound
from streamsift.logical.bound import Merge


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a.x", "linear"),
        ("a.x + b.x - c.x", "linear"),
        ("2 * a.x - b.x / 3 + 1", "linear"),
        ("-(a.x + b.n) * 0.5", "linear"),
        ("c.ts - a.ts", "linear"),
        ("c.time - a.time", "linear"),
        ("3", "linear"),
        ("SQRT(a.x)", "monotone"),
        ("a.x ^ 2", "monotone"),  # a component of a single variable
        ("a.x * a.n", "monotone"),
        ("SQRT(a.x ^ 2 + b.x ^ 2 + c.x ^ 2)", "monotone"),
        ("LEAST(a.x, b.x, c.x)", "monotone"),
        ("EXP(a.x) * EXP(b.x)", "monotone"),
        ("ABS(a.x) + ABS(b.x)", "monotone"),
        ("(a.x + b.x) ^ 3", "monotone"),
        ("(ABS(a.x) + ABS(b.x)) ^ 2", "monotone"),
        ("a.x * b.x", "other"),  # decreases with b if a is negative
        ("a.x / b.x", "other"),
        ("ABS(a.x - b.x)", "other"),
        ("(a.x - b.x) ^ 2", "other"),
        ("SQRT(a.x * b.x) - SQRT(a.x)", "other"),
        ("a.x % 3 + b.x", "monotone"),
        ("COALESCE(a.x, b.x)", "other"),
    ],
)
def test_preference_class(expression: str, expected: str) -> None:
    ranking = bound(f"A a; B b; C c PREF MAX[{expression}] RETURN 3").ranking
    assert ranking is not None
    assert ranking.objectives[0].preference_class.value == expected


def test_objectives_of_definitions() -> None:
    definitions = "SEQ S1 = A; B PREF MAX[e = A.x + B.x] AND MIN[B.x] SEQ S2 = C PREF MAX[C.x] "
    ranking = bound(definitions + "PATTERN S1; S2 RETURN 3").ranking
    assert ranking is not None
    assert [(o.name, o.maximise) for o in ranking.objectives] == [
        ("S1.e", True),
        ("objective_2", False),
        ("objective_3", True),
    ]
    assert ranking.merges == (Merge("MIN", 2), Merge("MIN", 1))
    own = bound(definitions + "PATTERN S1; S2 PREF MIN[late = S1.e] MERGE avg RETURN 5").ranking
    assert own is not None
    assert ([o.name for o in own.objectives], own.merges, own.limit) == (["late"], (Merge("AVG", 1),), 5)
