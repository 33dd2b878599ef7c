"""Test the syntax of expressions: precedence, chains, literals, and predicates as arguments of SEQ."""

from __future__ import annotations

from decimal import Decimal

import pytest

from streamsift.errors import QuerySyntaxError
from streamsift.language import parse, parse_expression, print_expression
from streamsift.language import syntax as s

SAME = [
    ("a.x + b.x * c.x", "a.x + (b.x * c.x)"),
    ("a.x - b.x - c.x", "(a.x - b.x) - c.x"),
    ("a.x / b.x % c.x", "(a.x / b.x) % c.x"),
    ("-a.x ^ 2", "-(a.x ^ 2)"),
    ("a.x ^ b.x ^ 2", "a.x ^ (b.x ^ 2)"),
    ("a.x ^ -2", "a.x ^ (-2)"),
    ("-a.x * b.x", "(-a.x) * b.x"),
    ("a.x = 1 OR b.x = 2 AND c.x = 3", "a.x = 1 OR (b.x = 2 AND c.x = 3)"),
    ("NOT a.x = 1 AND b.x = 2", "(NOT a.x = 1) AND b.x = 2"),
    ("NOT NOT a.flag", "NOT (NOT a.flag)"),
    ("a.x BETWEEN 1 AND 2 AND b.x = 3", "(a.x BETWEEN 1 AND 2) AND b.x = 3"),
    ("a.x BETWEEN 1 + 1 AND 2 * 2", "a.x BETWEEN (1 + 1) AND (2 * 2)"),
    ("a.x <> b.x", "a.x != b.x"),
    ('a.s = "it\'s"', "a.s = 'it''s'"),
    ('a.s = "say ""hi"""', "a.s = 'say \"hi\"'"),
    ("abs(a.x) > 3", "ABS(a.x) > 3"),
    ("true AND a.x is not null", "TRUE AND a.x IS NOT NULL"),
    ("`a`.x = 1", "a.x = 1"),
    ("a . x = 1", "a.x = 1"),
]


@pytest.mark.parametrize(("written", "canonical"), SAME)
def test_same_expression(written: str, canonical: str) -> None:
    assert parse_expression(written) == parse_expression(canonical)


@pytest.mark.parametrize(
    "text",
    [
        *(written for written, _ in SAME),
        "a.id = b.id = c.id",
        "a.x < b.x <= c.x != d.x",
        "a.x NOT IN (1, 2.5, -3) AND a.s NOT LIKE '%it''s\\_%' AND b.x NOT BETWEEN 1 AND 2",
        "(a.x = b.x) = TRUE",
        "((a.x + 1) * -(-b.x)) ^ (2 ^ 3) > - -3",
        "(a.x = 1 AND b.x = 2) AND (c.x = 3 OR d.x = 4)",
        "(NOT a.flag) = b.flag",
        "a.time > TIMESTAMP '2024-05-01 12:30:00' AND b.time - a.time < 5 min AND a.x > 1.5 s",
        "COUNT(b) > 3 AND SUM(b.x) / COUNT(b) <= LAST(b.x) AND FIRST(S1.b.x) IS NULL",
        "LEAST(a.x, b.x, 3) = GREATEST(COALESCE(a.x, 0), POW(b.x, 2)) AND LOWER(a.s) = UPPER('x')",
        "[id] AND [n] AND NOT [s]",
        "a.where = b.and AND a.in IN (1) AND a.is IS NULL AND a.like LIKE 'x' AND a.`a b` = 1",
        "a.x = .5 OR a.x = 1e-7 OR a.x = 12345678901234567890123",
        "naïve.größe > 3 AND 変数.列 = 'ü'",
        "min.x > 3 AND s.x > 5 AND count.n = 1",
    ],
)
def test_expressions_survive_printing(text: str) -> None:
    expression = parse_expression(text)
    assert parse_expression(print_expression(expression)) == expression


def test_a_chain_is_one_comparison() -> None:
    a, b, c = (s.Name((v, "id")) for v in "abc")
    assert parse_expression("a.id = b.id < c.id") == s.Comparison((a, b, c), ("=", "<"))


def test_numbers_are_kept_as_written() -> None:
    assert parse_expression("3") == s.Number(3)
    assert parse_expression("3.50") == s.Number(Decimal("3.50"))
    assert parse_expression("9007199254740993") == s.Number(9007199254740993)
    assert parse_expression("0.1") != parse_expression("0.1000000000000000055511151231257827")


@pytest.mark.parametrize(
    ("argument", "is_predicate"),
    [
        ("a.x = 3", True),
        ("3 < 4", True),
        ("a.flag", True),  # no pattern has a dot
        ("NOT a.flag", True),
        ("x IN (1, 2)", True),
        ("x BETWEEN 1 AND 2", True),
        ("x IS NULL", True),
        ("x LIKE 'a%'", True),
        ("[id]", True),
        ("[id] AND a.x = 3", True),
        ("(a.x = 3 OR b.x = 4) AND b.x IN (1, 2)", True),
        ("C", False),
        ("[C; D]", False),
        ("[C c]", False),
        ("C[3]", False),
        ("C AND D", False),
        ("SEQ(C c, c.x = 3)", False),
        ("(C & SEQ(D d, [id]))", False),
        ("!SEQ(C c, D d, c.x = d.x)", False),
    ],
)
def test_arguments_are_patterns_or_predicates(argument: str, is_predicate: bool) -> None:
    for text in (f"SEQ(A a, B b, {argument})", f"AND({argument}, A a, B b)", f"OR(A a, {argument}, B b)"):
        pattern = parse(text).statement.pattern
        assert isinstance(pattern, s.Seq | s.And | s.Or)
        assert len(pattern.operands) == (2 if is_predicate else 3)
        assert len(pattern.predicates) == (1 if is_predicate else 0)


def test_spans_point_at_the_text() -> None:
    text = "SEQ(A a, !B b) WHERE (a.x) > b.x + 1"
    from streamsift.language import parse

    where = parse(text).statement.where
    assert isinstance(where, s.Comparison)
    assert [text[o.span.start : o.span.end] for o in where.operands] == ["(a.x)", "b.x + 1"]


@pytest.mark.parametrize("text", ["1 ^ " * 1000 + "1", "NOT " * 1000 + "TRUE", "(" * 1000 + "1" + ")" * 1000])
def test_nesting_too_deep_is_an_error(text: str) -> None:
    with pytest.raises(QuerySyntaxError, match="nested too deeply"):
        parse_expression(text)


def test_a_query_is_text() -> None:
    with pytest.raises(TypeError, match="a query must be a string, not 5"):
        parse_expression(5)  # type: ignore[arg-type]
