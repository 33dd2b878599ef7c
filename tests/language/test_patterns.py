"""Test the syntax of patterns: operators, brackets, precedence, quantifiers, names."""

from __future__ import annotations

import pytest

from streamsift.language import parse, print_pattern, syntax


def parse_pattern(text: str) -> syntax.Pattern:
    return parse(text).statement.pattern


SAME = [
    # infix and functional forms
    ("A; B; C", "SEQ(A, B, C)"),
    ("A & B", "AND(A, B)"),
    ("A AND B", "AND(A, B)"),
    ("A | B", "OR(A, B)"),
    ("A || B", "OR(A, B)"),
    ("A OR B", "OR(A, B)"),
    ("!A; B", "SEQ(!A, B)"),
    ("NOT A; B", "SEQ(!A, B)"),
    ("A; AND(B, C); D", "SEQ(A, AND(B, C), D)"),
    ("SEQ(A; B, C)", "SEQ(SEQ(A, B), C)"),
    ("SEQ(A, B OR C, D)", "SEQ(A, OR(B, C), D)"),
    # precedence: OR loosest, then `;`, then AND, then `!`
    ("Google; Microsoft[3] AND Del", "SEQ(Google, AND(Microsoft[3], Del))"),
    ("A;!B;C | D", "OR(SEQ(A, !B, C), D)"),
    ("A | B; C & D", "OR(A, SEQ(B, AND(C, D)))"),
    ("!A & B; C", "SEQ(AND(!A, B), C)"),
    # all three kinds of brackets group; brackets around a single operand are dropped
    ("(A; B) & C", "AND(SEQ(A, B), C)"),
    ("[A; B] & C", "AND(SEQ(A, B), C)"),
    ("{A; B} & C", "AND(SEQ(A, B), C)"),
    ("{[(A)]; B}", "SEQ(A, B)"),
    ("A; (B; C)", "SEQ(A, SEQ(B, C))"),
    ("!(A; B) & C", "AND(!SEQ(A, B), C)"),
    ("{[S7&S8];S9}", "SEQ(AND(S7, S8), S9)"),
    # AND and OR before `(`: a call if an operand may start there, an infix operator after an operand
    ("A AND (B; C)", "AND(A, SEQ(B, C))"),
    ("A+ AND (B; C)", "AND(A+, SEQ(B, C))"),
    ("A* OR (B; C)", "OR(A*, SEQ(B, C))"),
    ("A[2] AND (B; C)", "AND(A[2], SEQ(B, C))"),
    ("(A) AND (B)", "AND(A, B)"),
    ("A AND AND(B, C)", "AND(A, AND(B, C))"),
    ("A; OR(B, C)", "SEQ(A, OR(B, C))"),
    ("A & !AND(B, C)", "AND(A, !AND(B, C))"),
    # quantifiers before or after the variable
    ("B+ b", "B b+"),
    ("B* b", "B b*"),
    ("B[3] b", "B b[3]"),
    # white space and comments
    ("A--first\n;--second\nB -- third", "SEQ(A, B)"),
    # names
    ("`A`; B", "SEQ(A, B)"),
    ("`A` `b`", "A b"),
    ("any x", "ANY x"),
]


@pytest.mark.parametrize(("written", "canonical"), SAME)
def test_same_pattern(written: str, canonical: str) -> None:
    assert parse_pattern(written) == parse_pattern(canonical)


@pytest.mark.parametrize(("written", "canonical"), SAME)
def test_patterns_survive_printing(written: str, canonical: str) -> None:
    pattern = parse_pattern(written)
    assert parse_pattern(print_pattern(pattern)) == pattern
    assert parse_pattern(print_pattern(parse_pattern(canonical))) == pattern


DIFFERENT = [
    ("ANY x", "`ANY` x"),  # every row, and the class named ANY
    ("A; (B; C)", "A; B; C"),
    ("A; B", "A & B"),
    ("A b", "A B"),  # names are case-sensitive
    ("A+", "A*"),
    ("A[2]", "A[3]"),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_patterns(one: str, other: str) -> None:
    assert parse_pattern(one) != parse_pattern(other)


PRINTED = [
    "SEQ(Return r, Update u, Where w, Within i, Emit e)",  # clause keywords are names inside brackets
    "(Return r; Update u)",
    "SEQ(Top t, Merge m, By b, Exclusive x)",
    "`WHERE`; `AND` a; `my class` `my variable`",
    "`back``tick`; B",
    "Überweisung ü; 支付 付; _private p1",
    "SEQ(S s, Min min, Count count)",  # units and functions are names unless a number or a parenthesis is next to them
    "`147073`; `56437`+",
]


@pytest.mark.parametrize("text", PRINTED)
def test_names_survive_printing(text: str) -> None:
    pattern = parse_pattern(text)
    assert parse_pattern(print_pattern(pattern)) == pattern


def test_a_statement_may_start_anywhere() -> None:
    expected = parse("PATTERN SEQ(A, B) WITHIN 5")
    for text in (
        "SEQ(A, B) WITHIN 5",
        "A; B WITHIN 5",
        "SEQ A; B WITHIN 5",
        "pattern a_; B within 5".replace("a_", "A"),
    ):
        assert parse(text) == expected
