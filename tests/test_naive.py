"""The oracle against the cases worked out by hand, and its smaller parts."""

import math
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import chain, combinations, product
from typing import Any

import pytest

from casefile import Case, assert_rows, load_cases
from naive import Binding, Search, evaluate, leaves, rows_of, run, span
from streamsift.language import parse_expression

ANSWERED = [case for case in load_cases() if case.error is None]


@pytest.mark.parametrize("case", ANSWERED, ids=lambda case: case.id)
def test_case(case: Case) -> None:
    rows = run(case.query, case.rows(), time=case.time, type=case.type, order=case.order, columns=case.columns)
    assert_rows(case, rows)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7 / 2", 3.5),
        ("1 / 0", None),
        ("-7 % 3", -1),
        ("7 % -3", 1),
        ("7 % 0", None),
        ("-7.5 % 2", -1.5),
        ("2 ^ 3 ^ 2", 512.0),
        ("-2 ^ 2", -4.0),
        ("0 ^ -1", None),
        ("(-8) ^ 0.5", None),
        ("10 ^ 400", math.inf),
        ("SQRT(-1)", None),
        ("LOG(0)", None),
        ("EXP(1000)", math.inf),
        ("ABS(-3)", 3),
        ("9007199254740993 + 1", 9007199254740994),
        ("LEAST(2, NULL, 1)", 1),
        ("GREATEST(NULL, NULL)", None),
        ("COALESCE(NULL, 2, 3)", 2),
        ("LOWER('AbC')", "abc"),
        ("1 + NULL", None),
        ("1 = 1 AND NULL = 1", None),
        ("1 = 2 AND NULL = 1", False),
        ("1 = 1 OR NULL = 1", True),
        ("NOT (NULL = 1)", None),
        ("1 < 2 < 3", True),
        ("1 < 3 < 2", False),
        ("3 IN (1, NULL)", None),
        ("3 IN (1, NULL, 3)", True),
        ("3 NOT IN (1, 2)", True),
        ("NULL BETWEEN 1 AND 2", None),
        ("0 BETWEEN 1 AND NULL", False),
        ("3 NOT BETWEEN 1 AND 2", True),
        ("NULL IS NULL", True),
        ("1 IS NOT NULL", True),
        ("'abc' LIKE 'a%'", True),
        ("'abc' LIKE 'a_'", False),
        (r"'a%c' LIKE 'a\%c'", True),
        (r"'abc' LIKE 'a\%c'", False),
        ("'ABC' LIKE 'a%'", False),
        ("NULL LIKE 'a%'", None),
        ("9007199254740993 = 9007199254740992.0", False),
        ("2 min - 90 s", timedelta(seconds=30)),
        ("2 s * 1.5", timedelta(seconds=3)),
        ("TIMESTAMP '2024-05-01 12:00:00' + 1 h", datetime(2024, 5, 1, 13)),
        ("TIMESTAMP '2024-05-01 12:00:00' - TIMESTAMP '2024-05-01 11:00:00'", timedelta(hours=1)),
    ],
)
def test_expression(text: str, value: object) -> None:
    found = evaluate(parse_expression(text), {}, {})
    assert found == value
    assert type(found) is type(value)


def attribute(text: str, **values: Any) -> object:
    """The expression over one event of the variable `a`."""
    event = {"t": 1, "result": None, **values}
    return run(f"PATTERN X a RETURN {text} AS value", [event], time="t")[0]["value"]


def test_a_literal_with_a_point_is_a_decimal_beside_a_decimal() -> None:
    assert attribute("a.d * 1.10", d=Decimal("0.30")) == Decimal("0.3300")
    assert attribute("a.d = 0.1", d=Decimal("0.1")) is True
    assert attribute("a.f = 0.1", f=0.1) is True
    assert attribute("a.d = a.f", d=Decimal("0.1"), f=0.1) is False
    assert attribute("a.d + a.i", d=Decimal("0.5"), i=2) == Decimal("2.5")
    assert isinstance(attribute("a.d + a.f", d=Decimal("0.5"), f=2.0), float)


@pytest.mark.parametrize(
    "text", ["a.f = a.f", "a.f != a.f", "a.f < 1", "NOT (a.f > 1)", "a.f IN (1)", "1 BETWEEN a.f AND 2"]
)
def test_a_comparison_with_nan_is_unknown(text: str) -> None:
    assert attribute(text, f=math.nan) is None


def test_nan_is_no_null_and_above_every_number() -> None:
    assert attribute("a.f IS NULL", f=math.nan) is False
    assert attribute("LEAST(a.f, 1)", f=math.nan) == 1
    assert math.isnan(attribute("GREATEST(a.f, 1)", f=math.nan))  # type: ignore[arg-type]
    assert math.isnan(attribute("COALESCE(a.f, 1)", f=math.nan))  # type: ignore[arg-type]


def test_the_least_of_a_null_double_and_an_integer_is_a_double() -> None:
    query = "PATTERN ANY a RETURN LEAST(a.x, 9007199254740993) AS least"
    rows = [{"t": 1, "x": None}]
    (found,) = run(query, rows, time="t", columns={"t": "int64", "x": "double"})
    assert repr(found["least"]) == "9007199254740992.0"
    (found,) = run(query, rows, time="t", columns={"t": "int64", "x": "int64"})
    assert repr(found["least"]) == "9007199254740993"


def test_output_columns_in_order() -> None:
    event = {"t": 1, "kind": "A", "x": 2}
    assert run("PATTERN A", [event], time="t", type="kind") == [{"A": event, "match_start": 1, "match_end": 1}]
    (aggregated,) = run("PATTERN A a GROUP BY kind AGG SUM(a.x), COUNT AS n", [event], time="t", type="kind")
    assert list(aggregated.items()) == [("time", 1), ("kind", "A"), ("sum_a_x", 2), ("n", 1)]
    query = "PATTERN A a PREF MAX[best = a.x] AND MIN[a.t] WITHIN 5 UPDATE 5 RETURN TOP 1 a.x"
    (ranked,) = run(query, [event], time="t", type="kind")
    assert list(ranked) == ["window_end", "rank", "score", "best", "objective_2", "a_x"]


def test_no_events_no_rows() -> None:
    assert run("PATTERN A a WHERE a.x > 1", [], time="t", type="kind", columns=["t", "kind", "x"]) == []
    assert run("PATTERN A a AGG COUNT", [], time="t", type="kind", columns=["t", "kind"]) == []


def test_a_dozen_events_without_a_type_column_stay_quick() -> None:
    events = [{"t": time, "x": time % 5} for time in range(14)]
    query = "PATTERN SEQ(P a, Q+ b, R c, !S d, T e) WHERE a.x < b.x AND c.x > e.x WITHIN 8"
    assert run(query, events, time="t")


def maximal_by_definition(search: Search, fixed: Binding, end: tuple[Any, ...] | None) -> Iterator[Binding]:
    """Maximality word for word: among all valid assignments, those that no other one contains."""
    growing = [leaf for leaf in leaves(search.tree) if leaf.grows]
    rows = [search.candidates(leaf) for leaf in growing]
    groups = [list(chain(*(combinations(each, size) for size in range(len(each) + 1)))) for each in rows]
    bindings = [
        {**fixed, **{leaf.variable: group for leaf, group in zip(growing, choice, strict=True)}}
        for choice in product(*groups)
    ]
    valid = [b for b in bindings if search.valid(b) and (end is None or span(rows_of(b))[1] == end)]

    def elements(binding: Binding) -> set[tuple[str, Any]]:
        return {(leaf.variable, row) for leaf in growing for row in binding[leaf.variable]}

    return (one for one in valid if not any(elements(one) < elements(two) for two in valid))


@pytest.mark.parametrize(
    "query",
    [
        "PATTERN A a; B+ b; C c WHERE b.x > a.x",
        "PATTERN A+ a; B+ b WITHIN 4 EVENTS",
        "PATTERN A* a; !C c; B+ b WITHIN 6",
        "PATTERN AND(A+ a, !C c) WITHIN 4",
        "PATTERN A+ a & B b & C* c WITHIN 5 EXCLUSIVE",
        "PATTERN A+ a; !(B b; C c) WITHIN 5",
        "PATTERN (A+ a | B* b); C c",
        "PATTERN A+ a WHERE [x] WITHIN 6",
        "PATTERN A+ a; B+ b WHERE a.x < b.x WITHIN 7 EMIT EACH",
        "PATTERN A a; B* b; !C c; A* d WITHIN 7",
    ],
)
def test_the_search_for_groups_finds_what_the_definition_says(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    choose = random.Random(query)
    tapes = [
        [
            {"t": choose.randint(0, 7), "kind": choose.choice("AABBC"), "x": choose.choice([0, 1, 2, None])}
            for _ in range(7)
        ]
        for _ in range(12)
    ]
    found = [run(query, tape, time="t", type="kind") for tape in tapes]
    monkeypatch.setattr(Search, "maximal", maximal_by_definition)
    assert found == [run(query, tape, time="t", type="kind") for tape in tapes]
    assert any(found)
