"""Test the split of WHERE into conjuncts, and the scope and class of each conjunct."""

from __future__ import annotations

import pytest

from logical.events import bound, predicates
from streamsift.errors import QueryError


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("a.x > 3", "local"),
        ("a.x > a.n", "local"),
        ("a.flag", "local"),
        ("a.x > 3 OR a.n IS NULL", "local"),
        ("a.id = b.id", "equality"),
        ("a.x + 1 = b.x * 2", "equality"),
        ("a.x < b.x", "pairwise"),
        ("a.x + a.n >= b.x - 2", "pairwise"),
        ("a.x != b.x", "pairwise"),
        ("a.x + b.x > 3", "general"),
        ("a.x + b.x = c.x", "general"),
        ("a.x = b.x OR a.n = b.n", "general"),
        ("NOT a.x = b.x", "general"),
        ("a.x IN (b.x, 3)", "general"),
        ("a.x BETWEEN b.x AND 5", "general"),
        ("COUNT(k) > 2", "group"),
        ("SUM(k.x) > a.x", "group"),
        ("1 = 2", "constant"),
        ("NULL", "constant"),
        ("k.x > 3", "local"),  # applies to each element
        ("k.x > a.x", "pairwise"),
    ],
)
def test_predicate_classes(where: str, expected: str) -> None:
    assert predicates(f"A a; B b; C c; K+ k WHERE {where}") == [(where, expected, 0)]


def test_where_splits_at_top_level_ands_and_chains() -> None:
    text = "A a; B b; C c WHERE a.id = b.id = c.id AND (a.x > 3 AND b.x > 4) AND (a.n = 1 OR b.n = 2 AND c.n = 3)"
    assert predicates(text) == [
        ("a.id = b.id", "equality", 0),
        ("b.id = c.id", "equality", 0),
        ("a.x > 3", "local", 0),
        ("b.x > 4", "local", 0),
        ("a.n = 1 OR b.n = 2 AND c.n = 3", "general", 0),
    ]


def test_same_attribute_of_a_plain_pattern_is_neighbouring_pairs() -> None:
    assert predicates("A; B; C WHERE [id]") == [("A.id = B.id", "equality", 0), ("B.id = C.id", "equality", 0)]


def test_same_attribute_with_or_and_negation_is_all_pairs_that_see_each_other() -> None:
    assert predicates("A; (B | C); D WHERE [id]") == [
        (f"{one}.id = {other}.id", "equality", 0) for one, other in ("AB", "AC", "AD", "BC", "BD", "CD")
    ]
    assert predicates("SEQ(A, !B, !SEQ(C, !D), E) WHERE [id]") == [
        ("A.id = B.id", "equality", 1),
        ("A.id = C.id", "equality", 2),
        ("A.id = D.id", "equality", 3),
        ("A.id = E.id", "equality", 0),
        ("B.id = E.id", "equality", 1),
        ("C.id = D.id", "equality", 3),
        ("C.id = E.id", "equality", 2),
        ("D.id = E.id", "equality", 3),
    ]


def test_same_attribute_stands_for_the_operator_it_is_in() -> None:
    assert predicates("SEQ(A, AND(B, C, [id]), D)") == [("B.id = C.id", "equality", 0)]


def test_same_attribute_under_not_and_or_is_about_positive_variables() -> None:
    (piece,) = bound("SEQ(A, !B, C, D) WHERE NOT [id] OR A.x = 3").predicates
    assert piece.text == "NOT [id] OR A.x = 3"
    assert piece.variables == (0, 2, 3)
    (alone,) = bound("A WHERE NOT [id]").predicates
    assert alone.variables == ()


def test_partition_by_and_group_by_are_equalities() -> None:
    assert predicates("A; B PARTITION BY id") == [("A.id = B.id", "equality", 0)]
    assert predicates("A; B AGG COUNT GROUP BY ID") == [("A.ID = B.ID", "equality", 0)]
    assert bound("A; B AGG COUNT GROUP BY ID").group_by == ("id",)


def test_keys_are_not_null_where_no_equality_says_so() -> None:
    assert predicates("A PARTITION BY id") == [("A.id IS NOT NULL", "local", 0)]
    assert predicates("A | B PARTITION BY id") == [
        ("A.id = B.id", "equality", 0),
        ("A.id IS NOT NULL", "local", 0),
        ("B.id IS NOT NULL", "local", 0),
    ]


@pytest.mark.parametrize(
    ("where", "scope"),
    [
        ("a.x > 3", 0),
        ("b.x > 3", 1),
        ("b.x > a.x", 1),
        ("c.x > b.x", 2),
        ("c.x > a.x", 2),
        ("c.x + b.x + a.x > d.x", 2),
        ("e.x = d.x", 3),
    ],
)
def test_the_innermost_negation_mentioned_owns_a_predicate(where: str, scope: int) -> None:
    assert predicates(f"SEQ(A a, !SEQ(B b, !C c), D d, !E e, F f) WHERE {where}")[0][2] == scope


def test_a_predicate_inside_a_negation_may_filter_the_match() -> None:
    assert predicates("SEQ(A a, !SEQ(B b, a.x > 3, b.x > 4), C c)") == [
        ("a.x > 3", "local", 0),
        ("b.x > 4", "local", 1),
    ]


def test_variables_of_two_negations_do_not_see_each_other() -> None:
    with pytest.raises(QueryError, match=r"belongs to the negation at line 1, column 21 .* line 1, column 10"):
        bound("SEQ(A a, !B b, C c, !D d, E e) WHERE b.x = d.x")


def test_definitions() -> None:
    text = "SEQ S1 = A; B WHERE [id] SEQ S2 = C; !D WITHIN 5 WHERE D.x > C.x PATTERN S1; S2 WHERE S1.A.n = S2.C.n"
    assert predicates(text) == [
        ("S1.A.id = S1.B.id", "equality", 0),
        ("D.x > C.x", "pairwise", 1),
        ("S1.A.n = S2.C.n", "equality", 0),
    ]


def test_a_definition_sees_the_statements_variables() -> None:
    assert predicates("SEQ S1 = A; B WHERE A.x > C.x PATTERN S1; C") == [("A.x > C.x", "pairwise", 0)]


def test_objectives_of_definitions_are_values() -> None:
    text = "SEQ S1 = A; B PREF MAX[e = A.x + B.x] PATTERN S1; C WHERE S1.e > C.x RETURN 3"
    assert predicates(text) == [("S1.e > C.x", "general", 0)]
    assert bound(text).predicates[0].variables == (0, 1, 2)
