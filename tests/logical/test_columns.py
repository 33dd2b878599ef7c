"""Test the resolution of columns and of the bound time, and the types of literals."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from golden import dump_expression
from logical.events import SCHEMA, bound
from streamsift.errors import QueryError
from streamsift.language import parse
from streamsift.logical.binder import bind, sketch
from streamsift.logical.bound import TIME, Column, Constant, Expr, Kind, Operation, TimeKind


def operands(where: str, **binding: str) -> tuple[Expr, ...]:
    expression = bound(f"A; B WHERE {where}", **binding).predicates[0].expression
    assert isinstance(expression, Operation)
    return expression.operands


def test_columns_are_case_insensitive() -> None:
    (left, right) = operands("A.PRICE = B.price")
    assert isinstance(left, Column)
    assert isinstance(right, Column)
    assert left.name == right.name == "Price"


def test_columns_can_be_case_sensitive() -> None:
    with pytest.raises(QueryError, match="unknown column `price`"):
        bind(parse("A WHERE A.price > 3"), SCHEMA, time="t", case_sensitive=True)


def test_ambiguous_columns() -> None:
    schema = pa.schema([("t", pa.int64()), ("Id", pa.int64()), ("ID", pa.int64())])
    with pytest.raises(QueryError, match="`id` is ambiguous: it matches the columns `Id`, `ID`"):
        bind(parse("A; B WHERE [id]"), schema, time="t")
    exact = bind(parse("A; B WHERE [Id]"), schema, time="t").predicates[0].expression
    assert dump_expression(exact, ["A", "B"]) == "(= A.Id:integer B.Id:integer)"


def test_time_names_the_bound_time_where_no_column_does() -> None:
    (left, _) = operands("A.time = B.x")
    assert left == Column(0, TIME, Kind.INTEGER)
    (left, _) = operands("A.t = B.x", time="x")  # `t` is a column
    assert left == Column(0, "t", Kind.INTEGER)
    schema = pa.schema([("at", pa.timestamp("ms")), ("time", pa.string())])
    query = bind(parse("A; B WHERE B.t > A.T AND A.time = 'noon'"), schema, time="at")
    assert [dump_expression(p.expression, ["A", "B"]) for p in query.predicates] == [
        "(> B.$time:timestamp A.$time:timestamp)",
        "(= A.time:string 'noon':string)",
    ]


@pytest.mark.parametrize(
    ("where", "constant"),
    [
        ("A.x = 1.10", Constant(1.1, Kind.FLOAT)),
        ("A.Price = 1.10", Constant(Decimal("1.10"), Kind.DECIMAL)),
        ("A.Price = -1.10", Constant(Decimal("-1.10"), Kind.DECIMAL)),
        ("A.Price = 3", Constant(3, Kind.INTEGER)),
        ("A.id = 9007199254740993", Constant(9007199254740993, Kind.INTEGER)),
        ("A.id = 9223372036854775807", Constant(2**63 - 1, Kind.INTEGER)),
        ("A.id = 9223372036854775808", Constant(Decimal(2**63), Kind.DECIMAL)),
        ("A.id = -9223372036854775808", Constant(-(2**63), Kind.INTEGER)),
        ("A.id = -9223372036854775809", Constant(Decimal(-(2**63) - 1), Kind.DECIMAL)),
        ("A.s = NULL", Constant(None, Kind.NULL)),
    ],
)
def test_literals(where: str, constant: Constant) -> None:
    (_, right) = operands(where)
    assert right == constant
    assert type(right) is Constant


def test_a_literal_in_front_of_a_list_takes_each_items_type() -> None:
    (first, second) = operands("0.1 IN (A.x, A.Price)")
    assert dump_expression(first, ["A", "B"]) == "(= 0.1:double A.x:double)"
    assert dump_expression(second, ["A", "B"]) == "(= Decimal('0.1'):decimal A.Price:decimal)"


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("A.n + 1", Kind.INTEGER),
        ("A.n / 2", Kind.FLOAT),
        ("A.n ^ 2", Kind.FLOAT),
        ("A.n * 1.5", Kind.FLOAT),
        ("A.Price * 1.5", Kind.DECIMAL),
        ("A.Price * A.n", Kind.DECIMAL),
        ("A.Price * A.x", Kind.FLOAT),
        ("A.Price % 2", Kind.DECIMAL),
        ("A.ts - B.ts", Kind.DURATION),
        ("A.day - B.ts", Kind.DURATION),
        ("A.ts + 5 min", Kind.TIMESTAMP),
        ("5 min + A.ts", Kind.TIMESTAMP),
        ("(A.ts - B.ts) / 2", Kind.DURATION),
        ("(A.ts - B.ts) / 5 min", Kind.FLOAT),
        ("2 * (A.ts - B.ts)", Kind.DURATION),
        ("ABS(A.ts - B.ts)", Kind.DURATION),
        ("A.x + NULL", Kind.NULL),
        ("NULL - A.ts", Kind.NULL),
        ("LEAST(A.n, 2.5)", Kind.FLOAT),
        ("GREATEST(A.Price, 2.5)", Kind.DECIMAL),
        ("COALESCE(NULL, A.day, A.ts)", Kind.TIMESTAMP),
        ("COALESCE(A.tags, B.tags)", Kind.OTHER),
        ("LOWER(A.s)", Kind.STRING),
        ("SQRT(A.n)", Kind.FLOAT),
        ("A.x > 3", Kind.BOOLEAN),
    ],
)
def test_kinds(expression: str, kind: Kind) -> None:
    sketch(parse(f"A; B RETURN {expression} AS value"))  # valid without a schema, too
    (item,) = bound(f"A; B RETURN {expression} AS value").output
    assert item.expression.kind is kind  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "where",
    [
        "B.ts - A.ts > 5 min",
        "A.ts - TIMESTAMP '2024-05-01' > 5 min",
        "(B.ts - A.ts) / 2 > 5 min",
        "A.ts + 5 min > B.ts AND -(A.ts - B.ts) < 1 h",
        "COALESCE(A.s, 'x') = LOWER(B.s)",
        "A.flag = (B.x > 3)",
        "A.Price * 1.5 IN (1, 2.5)",
    ],
)
def test_no_schema_refuses_nothing_that_a_schema_allows(where: str) -> None:
    sketch(parse(f"A; B WHERE {where}"))
    bound(f"A; B WHERE {where}")


@pytest.mark.parametrize(
    ("data_type", "kind"),
    [
        (pa.int16(), TimeKind.INTEGER),
        (pa.uint64(), TimeKind.DECIMAL),
        (pa.float32(), TimeKind.FLOAT),
        (pa.decimal128(20, 3), TimeKind.DECIMAL),
        (pa.timestamp("ns", "Europe/Berlin"), TimeKind.TIMESTAMP),
        (pa.date32(), TimeKind.DATE),
        (pa.string(), TimeKind.TEXT),
        (pa.dictionary(pa.int32(), pa.string()), TimeKind.TEXT),
    ],
)
def test_time_types(data_type: pa.DataType, kind: TimeKind) -> None:
    assert bind(parse("A; B"), pa.schema([("at", data_type)]), time="AT").binding.time_kind is kind


@pytest.mark.parametrize("time", [None, 1, ["t"]])
def test_a_binding_is_a_name(time: object) -> None:
    with pytest.raises(QueryError, match=r"(?s)invalid value for time: .*pass the name of a column"):
        bind(parse("A"), SCHEMA, time=time)  # type: ignore[arg-type]


def test_columns_of_one_name_cannot_be_carried_in_whole_events() -> None:
    schema = pa.schema([("t", pa.int64()), ("x", pa.int64()), ("x", pa.int64())])
    with pytest.raises(QueryError, match="the input has two columns named `x`"):
        bind(parse("A; B"), schema, time="t")
    bind(parse("A; B RETURN A.t"), schema, time="t")
