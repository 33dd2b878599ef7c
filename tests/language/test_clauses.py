"""Test the syntax of clauses: order, case, units, RETURN k, definitions."""

from __future__ import annotations

from itertools import permutations

import pytest

from streamsift.language import parse, parse_clauses, print_script
from streamsift.language import syntax as s

CLAUSES = (
    "WITH A = (x > 3)",
    "WHERE A.x = B.x",
    "PARTITION BY id",
    "WITHIN 10 s EXCLUSIVE",
    "EMIT FINAL",
    "RETURN A, B.x AS bx",
)


@pytest.mark.parametrize("order", list(permutations(CLAUSES))[::37])
def test_clauses_in_any_order(order: tuple[str, ...]) -> None:
    assert parse(f"PATTERN A; B {' '.join(order)}") == parse(f"PATTERN A; B {' '.join(CLAUSES)}")


def test_keywords_in_any_case() -> None:
    upper = (
        "PATTERN SEQ(A a, NOT B b, ANY c) WHERE a.x IN (1, 2) AND NOT c.x IS NULL OR a.s LIKE 'x%' "
        "PARTITION BY id WITHIN 5 EVENTS EXCLUSIVE RETURN a.x AS y"
    )
    kept = ("A a", "B b", "c.x", "a.x", "a.s", "'x%'", "id", "y")
    lower = upper.lower().replace("seq(a a", "seq(A a").replace("not b b", "not B b")
    assert all(k in lower for k in kept)
    assert parse(lower) == parse(upper)
    mixed = upper.replace("PATTERN", "Pattern").replace("WITHIN", "WithIn").replace("EVENTS", "eVents")
    assert parse(mixed) == parse(upper)


@pytest.mark.parametrize(
    ("written", "unit"),
    [
        ("5", s.Unit.NONE),
        *((f"5 {unit}", s.Unit.MILLISECOND) for unit in ("ms", "MS")),
        *((f"5 {unit}", s.Unit.SECOND) for unit in ("s", "sec", "SEC", "second", "seconds")),
        *((f"5 {unit}", s.Unit.MINUTE) for unit in ("min", "minute", "Minutes")),
        *((f"5 {unit}", s.Unit.HOUR) for unit in ("h", "hour", "hours")),
        *((f"5 {unit}", s.Unit.DAY) for unit in ("d", "day", "days")),
        *((f"5 {unit}", s.Unit.EVENT) for unit in ("EVENT", "events", "UNIT", "units")),
        ("5s", s.Unit.SECOND),
    ],
)
def test_units(written: str, unit: s.Unit) -> None:
    assert parse_clauses(f"WITHIN {written}")["window"] == s.Window(s.Duration(5, unit))


@pytest.mark.parametrize(
    ("written", "limit", "items"),
    [
        ("RETURN 10", 10, 0),
        ("RETURN TOP 10", 10, 0),
        ("RETURN TOP 3 A, A.x", 3, 2),
        ("RETURN A, A.x AS x", None, 2),
        ("RETURN 10 AS ten", None, 1),
        ("RETURN 1, 2", None, 2),
        ("RETURN TOP, A", None, 2),  # a variable named top
    ],
)
def test_return(written: str, limit: int | None, items: int) -> None:
    returns = parse_clauses(written)["returns"]
    assert (returns.limit, len(returns.items)) == (limit, items)


@pytest.mark.parametrize(
    "text",
    [
        "A; B AGG COUNT, COUNT(*) AS n, SUM(B.x) AS total GROUP BY id, n UPDATE 5 WITHIN 10 EMIT CHANGES",
        "A; B PREF MAX[A.x] RETURN 3",
        "A; B PREF MAX[best = A.x + B.x] AND MIN[B.t - A.t] MERGE product RETURN TOP 3 A.x, B",
        "A; B PREF MAX[MAX.x] AND MIN[MIN.x] RETURN 3",
        "A; B WITH A AS (x > 3), B = (kind = 'b' OR flag)",
        "A; B WITHIN 1.5 h",
        "A; B WITHIN .5",
        "A; B WITHIN 1e3",
        "A; B PARTITION BY `group`, `a b`",
        "A; B RETURN A.`group` AS `where`, A.where, A.and, A.within",
        "SEQ S1 = A; B WITHIN 5 WHERE [id] PARTITION BY n SEQ S2 = C PREF MAX[e = C.x] PATTERN S1; S2 RETURN 3",
    ],
)
def test_clauses_survive_printing(text: str) -> None:
    script = parse(text)
    assert parse(print_script(script)) == script


def test_count_star_is_count() -> None:
    assert parse("A AGG COUNT(*)") == parse("A AGG count") == parse("A AGG COUNT")


def test_parse_clauses_gives_the_fields_that_were_written() -> None:
    assert set(parse_clauses("WHERE a.x = 3 WITHIN 5 s")) == {"where", "window"}
