"""Test the four rules that resolve a class name, and the variables of classes."""

from __future__ import annotations

import pytest

from logical.events import bound
from streamsift.errors import QueryError
from streamsift.language.syntax import Repeat
from streamsift.logical.bound import ClassRule


def rules(text: str, type: str | None = "kind") -> list[ClassRule]:
    return [v.event_class.rule for v in bound(text, type=type).variables]


def test_rule_1_a_class_defined_in_with() -> None:
    assert rules("A; B WITH A = (x > 3)") == [ClassRule.WITH, ClassRule.TYPE]
    assert rules("A; B WITH A AS (x > 3)", type=None) == [ClassRule.WITH, ClassRule.ALL]


def test_rule_1_comes_before_any() -> None:
    assert rules("ANY a; B WITH any = (x > 3)") == [ClassRule.WITH, ClassRule.TYPE]


def test_rule_2_any_is_every_row() -> None:
    assert rules("ANY a; any b; `ANY` c") == [ClassRule.ANY, ClassRule.ANY, ClassRule.TYPE]


def test_rule_3_the_type_column() -> None:
    assert rules("A; NoRowHasThis") == [ClassRule.TYPE, ClassRule.TYPE]


def test_rule_4_no_type_column() -> None:
    assert rules("T1; T2; T3", type=None) == [ClassRule.ALL] * 3


def test_a_definition_sees_its_own_with_first() -> None:
    text = "SEQ S1 = A WITH A = (n = 1) PATTERN S1; A b; C c WITH A = (n = 2), C = (n = 3)"
    text = text.replace("S1 = A ", "S1 = A a ")
    predicates = [v.event_class.predicate for v in bound(text).variables]
    constants = [p.operands[1].value for p in predicates if p is not None]  # type: ignore[union-attr]
    assert constants == [1, 2, 3]


def test_a_definition_sees_the_statements_with() -> None:
    assert rules("SEQ S1 = A; B PATTERN S1; C WITH A = (n = 1)") == [ClassRule.WITH, ClassRule.TYPE, ClassRule.TYPE]


def test_default_variables() -> None:
    assert [v.name for v in bound("A; !B; C c").variables] == ["A", "B", "c"]


@pytest.mark.parametrize(
    "text",
    [
        "A; A",
        "A; !A; B",
        "A | A",
        "A a; A",  # the class occurs twice, though one has a variable
        "SEQ S1 = A; B PATTERN S1; A a",
        "ANY; ANY x",
    ],
)
def test_a_class_that_occurs_twice_needs_variables(text: str) -> None:
    with pytest.raises(QueryError, match="needs a variable each time"):
        bound(text)


def test_variables_in_order_of_appearance_with_their_scopes() -> None:
    query = bound("SEQ(A, !SEQ(B, !C, D), E+, !F, G)")
    assert [(v.name, v.scope) for v in query.variables] == [
        ("A", 0),
        ("B", 1),
        ("C", 2),
        ("D", 1),
        ("E", 0),
        ("F", 3),
        ("G", 0),
    ]
    assert [v.name for v in query.variables if v.positive] == ["A", "E", "G"]
    quantifier = query.variables[4].quantifier
    assert quantifier is not None
    assert quantifier.repeat is Repeat.ONE_OR_MORE


def test_definitions_variables_come_where_they_are_used() -> None:
    query = bound("SEQ S1 = A; B SEQ S2 = C; S1 PATTERN D; S2; E")
    assert [v.name for v in query.variables] == ["D", "S2.C", "S1.A", "S1.B", "E"]
