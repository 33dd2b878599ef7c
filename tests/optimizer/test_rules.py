"""Test each optimizer rule: what it changes, against the golden of its name, and what it must not change."""

from __future__ import annotations

import pyarrow as pa
import pytest

from golden import check_golden, dump_bound
from streamsift.language import parse
from streamsift.logical import BoundQuery, bind
from streamsift.optimizer import RULES, optimize

SCHEMA = pa.schema(
    [("t", pa.int64()), ("kind", pa.string()), ("id", pa.int64()), ("x", pa.float64()), ("note", pa.string())]
)

CHANGES = {
    "inline_definitions": "SEQ S1 = A a; B b\nSEQ S2 = C c; D d WITHIN 5\nPATTERN S1; S2",
    "unwrap_single_operands": "PATTERN SEQ(AND(A a), OR(SEQ(B b, D d)), SEQ(SEQ(C c)))",
    "flatten_sequences": "PATTERN SEQ(A a, SEQ(B b, (C c; D d)), E e) WITHIN 10",
    "drop_implied_equalities": "PATTERN SEQ(A a, B b, C c) WHERE [id] AND a.id = c.id AND a.x = c.x PARTITION BY id",
    "prune_columns": "PATTERN SEQ(A a, B b) WHERE a.x < b.x RETURN a.id AS id",
}
UNTOUCHED = {
    "inline_definitions": ["SEQ S1 = A a; B b PARTITION BY id\nPATTERN S1; C c"],
    "unwrap_single_operands": [
        "PATTERN SEQ(AND(!A a, B b)) WITHIN 5",  # an AND inside a SEQ has other bounds
        "PATTERN AND(SEQ(A a, !B b))",
    ],
    "flatten_sequences": ["PATTERN SEQ(A a, SEQ(B b, !C c), D d) WITHIN 10", "PATTERN AND(A a, SEQ(B b, C c))"],
    "drop_implied_equalities": [
        "PATTERN SEQ(A a, OR(B b, C c), D d) WHERE [id]",  # a match binds b or c, never both
        "PATTERN SEQ(A a, B* b, C c) WHERE a.id = b.id = c.id",  # an empty group implies nothing
        "PATTERN SEQ(A a, B b, C c) WHERE a.id = b.x AND b.id = c.id",
    ],
    "prune_columns": ["PATTERN SEQ(A a, B b) RETURN a, b.x"],
}


def bound(text: str) -> BoundQuery:
    return bind(parse(text), SCHEMA, time="t", type="kind")


def rule(name: str) -> object:
    return next(r for r in RULES if r.__name__ == name)


def test_every_rule_has_a_golden() -> None:
    assert [r.__name__ for r in RULES] == list(CHANGES)


@pytest.mark.parametrize("name", CHANGES)
def test_rule(name: str) -> None:
    query = bound(CHANGES[name])
    better = rule(name)(query)  # type: ignore[operator]
    assert better != query
    columns = f"columns: {', '.join(better.schema.names)}"
    check_golden(f"optimizer/{name}.txt", f"{CHANGES[name]}\n\n{dump_bound(better)}\n{columns}")


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in UNTOUCHED.items() for text in texts])
def test_rule_leaves_alone(name: str, text: str) -> None:
    query = bound(text)
    assert rule(name)(query) == query  # type: ignore[operator]


def test_optimising_twice_changes_nothing_more() -> None:
    for text in CHANGES.values():
        once, _ = optimize(bound(text))
        assert optimize(once) == (once, ())
