"""Expressions over columns: each operator with nulls, NaN, extremes, and mixed types."""

from __future__ import annotations

import math
import os
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from streamsift.errors import BadInputError, Span
from streamsift.logical.bound import Column, Constant, Expr, Kind, Operation, Scalar
from streamsift.runtime.expressions.evaluate import Rows, evaluate, mask

NAN, INF = float("nan"), float("inf")
INT_MAX, INT_MIN = 2**63 - 1, -(2**63)
KINDS = {
    bool: Kind.BOOLEAN,
    int: Kind.INTEGER,
    float: Kind.FLOAT,
    Decimal: Kind.DECIMAL,
    str: Kind.STRING,
    datetime: Kind.TIMESTAMP,
    date: Kind.DATE,
    timedelta: Kind.DURATION,
    type(None): Kind.NULL,
}


def constant(value: Scalar) -> Constant:
    return Constant(value, KINDS[type(value)])


def run(op: str, *operands: pa.Array | Constant, kind: Kind = Kind.FLOAT) -> pa.Array:
    """The operator over columns (given as arrays) and constants."""
    length = next((len(o) for o in operands if isinstance(o, pa.Array)), 2)
    expressions: list[Expr] = [
        Column(number, "x", Kind.FLOAT) if isinstance(o, pa.Array) else o for number, o in enumerate(operands)
    ]
    rows = Rows(lambda variable, _: operands[variable], length, "a.x + b.x")
    return evaluate(Operation(op, tuple(expressions), kind, span=Span(0, 9)), rows)


def values(op: str, *operands: pa.Array | Constant, kind: Kind = Kind.FLOAT) -> list[object]:
    return [None if v is None else "NaN" if v != v else v for v in run(op, *operands, kind=kind).to_pylist()]


ints = pa.array([7, -7, None, 0])
floats = pa.array([2.5, -0.5, NAN, None])
dec = pa.array([Decimal("1.50"), Decimal("-2.25"), None], pa.decimal128(10, 2))
NULL = constant(None)
EPOCH = constant(datetime(1970, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("op", "operands", "wanted"),
    [
        ("+", (ints, constant(1)), [8, -6, None, 1]),
        ("-", (constant(1), ints), [-6, 8, None, 1]),
        ("*", (ints, floats), [17.5, 3.5, None, None]),
        ("+", (floats, floats), [5.0, -1.0, "NaN", None]),
        ("+", (dec, constant(1)), [Decimal("2.50"), Decimal("-1.25"), None]),
        ("*", (dec, dec), [Decimal("2.2500"), Decimal("5.0625"), None]),
        ("-", (dec, pa.array([0.5, 0.25, 1.0])), [1.0, -2.5, None]),
        ("/", (ints, constant(2)), [3.5, -3.5, None, 0.0]),
        ("/", (constant(1), ints), [1 / 7, -1 / 7, None, None]),
        ("/", (dec, constant(Decimal("0.5"))), [3.0, -4.5, None]),
        ("/", (floats, constant(0.0)), [None] * 4),
        ("%", (ints, constant(3)), [1, -1, None, 0]),
        ("%", (constant(7), ints), [0, 0, None, None]),
        ("%", (pa.array([INT_MIN]), constant(-1)), [0]),
        ("%", (floats, constant(2)), [0.5, -0.5, "NaN", None]),
        ("%", (pa.array([INF]), constant(2.0)), ["NaN"]),
        ("%", (dec, constant(1)), [Decimal("0.50"), Decimal("-0.25"), None]),
        ("%", (dec, constant(0)), [None] * 3),
        (
            "%",
            (pa.array([Decimal("1" * 30 + ".11")], pa.decimal128(38, 2)), constant(Decimal("0.07"))),
            [Decimal(int("1" * 32) % 7) / 100],
        ),
        ("^", (ints, constant(2)), [49.0, 49.0, None, 0.0]),
        ("^", (ints, constant(-1)), [1 / 7, -1 / 7, None, None]),
        ("^", (pa.array([-1.0, NAN]), constant(0.5)), [None, "NaN"]),
        ("^", (pa.array([10.0]), constant(400)), [INF]),
        ("negative", (ints,), [-7, 7, None, 0]),
        ("negative", (dec,), [Decimal("-1.50"), Decimal("2.25"), None]),
        ("abs", (floats,), [2.5, 0.5, "NaN", None]),
        ("abs", (dec,), [Decimal("1.50"), Decimal("2.25"), None]),
        ("sqrt", (pa.array([4, -1, None, 2]),), [2.0, None, None, math.sqrt(2)]),
        ("log", (pa.array([1.0, 0.0, -1.0, INF]),), [0.0, None, None, INF]),
        ("exp", (pa.array([0, 1000, -1000]),), [1.0, INF, 0.0]),
        ("least", (floats, constant(1)), [1.0, -0.5, 1.0, 1.0]),
        ("greatest", (floats, constant(1)), [2.5, 1.0, "NaN", 1.0]),
        ("greatest", (ints, NULL), [7, -7, None, 0]),
        ("least", (dec, constant(0)), [Decimal("0.00"), Decimal("-2.25"), Decimal("0.00")]),
        ("greatest", (pa.array(["a", None]), constant("b")), ["b", "b"]),
        ("greatest", (pa.array([True, None]), constant(False)), [True, False]),
        ("least", (pa.array([10, None], pa.timestamp("s", "Asia/Tokyo")), EPOCH), [EPOCH.value, EPOCH.value]),
        ("coalesce", (ints, floats), [7.0, -7.0, "NaN", 0.0]),
        ("coalesce", (floats, constant(0)), [2.5, -0.5, "NaN", 0.0]),
        ("coalesce", (NULL, pa.array(["x", None])), ["x", None]),
        ("lower", (pa.array(["ÄB", "AB", None]),), ["äb", "ab", None]),
        ("upper", (pa.array(["straße", "a"]),), ["STRASSE", "A"]),
        ("+", (NULL, ints), [None] * 4),
    ],
)
def test_values(op: str, operands: tuple[pa.Array, ...], wanted: list[object]) -> None:
    assert values(op, *operands) == wanted


@pytest.mark.parametrize(
    ("op", "operands", "wanted"),
    [
        ("=", (floats, constant(2.5)), [True, False, None, None]),
        ("!=", (floats, constant(2.5)), [False, True, None, None]),
        ("=", (ints, NULL), [None] * 4),
        ("<", (pa.array([2**53 + 1, INT_MAX]), constant(float(2**53 + 2))), [True, False]),
        ("=", (pa.array([2**53 + 1]), constant(2.0**53)), [False]),
        ("<", (pa.array([INT_MAX, INT_MIN]), constant(INF)), [True, True]),
        ("=", (pa.array([0.1]), constant(Decimal("0.1"))), [False]),  # a literal beside a double is bound as a double
        ("=", (pa.array([2.0**63]), constant(Decimal(2**63 + 1))), [False]),
        ("=", (dec, constant(1.5)), [True, False, None]),
        (">", (pa.array([2**64 - 1], pa.uint64()), constant(INT_MAX)), [True]),
        ("<", (pa.array(["a", "é", None]), constant("b")), [True, False, None]),
        ("and", (pa.array([True, False, None]), NULL), [None, False, None]),
        ("or", (pa.array([True, False, None]), NULL), [True, None, None]),
        ("not", (pa.array([True, None]),), [False, None]),
        ("is_null", (floats,), [False, False, False, True]),
        ("in", (ints, constant(7), constant(0)), [True, False, None, True]),
        ("in", (ints, constant(7), NULL), [True, None, None, None]),
        ("in", (ints, *(constant(i) for i in range(9))), [True, False, None, True]),
        ("in", (floats, *(constant(float(i)) for i in range(9))), [False, False, None, None]),
        ("in", (floats, constant(Decimal("2.5")), constant(3)), [True, False, None, None]),
        ("like", (pa.array(["a\nb", "ab", None]), constant("a%b")), [True, True, None]),
        ("like", (pa.array(["a%b", "axb", "a.b"]), constant("a\\%b")), [True, False, False]),
        ("like", (pa.array(["é.", "ée", "\\"]), constant("_.")), [True, False, False]),
        ("like", (pa.array(["a\\", "a"]), constant("a\\")), [True, False]),
    ],
)
def test_predicates(op: str, operands: tuple[pa.Array, ...], wanted: list[object]) -> None:
    assert values(op, *operands, kind=Kind.BOOLEAN) == wanted


NOON = datetime(2024, 5, 1, 12)


@pytest.mark.parametrize(
    ("op", "operands", "wanted"),
    [
        ("-", (pa.array([NOON], pa.timestamp("ns")), pa.array([NOON], pa.timestamp("s"))), [timedelta()]),
        ("-", (pa.array([date(2024, 5, 2)]), pa.array([date(2024, 5, 1)])), [timedelta(days=1)]),
        (
            "+",
            (pa.array([NOON], pa.timestamp("s")), constant(timedelta(milliseconds=1))),
            [NOON + timedelta(milliseconds=1)],
        ),
        (
            "+",
            (constant(timedelta(hours=1)), pa.array([NOON], pa.timestamp("us", "Asia/Tokyo"))),
            [datetime(2024, 5, 1, 13, tzinfo=UTC)],
        ),
        ("*", (pa.array([timedelta(seconds=3)], pa.duration("s")), constant(1.5)), [timedelta(seconds=4.5)]),
        ("*", (constant(2), pa.array([timedelta(seconds=3)], pa.duration("s"))), [timedelta(seconds=6)]),
        ("/", (pa.array([timedelta(seconds=3)], pa.duration("s")), constant(2)), [timedelta(seconds=1.5)]),
        ("/", (pa.array([timedelta(seconds=3)]), constant(timedelta(seconds=2))), [1.5]),
        ("abs", (pa.array([timedelta(seconds=-3), None]),), [timedelta(seconds=3), None]),
        ("<", (pa.array([date(2024, 5, 1)]), pa.array([NOON], pa.timestamp("us", "UTC"))), [True]),
        ("=", (pa.array([NOON], pa.timestamp("ms")), constant(NOON.replace(tzinfo=UTC))), [True]),
        ("<", (pa.array([datetime(9999, 1, 1)], pa.timestamp("s")), pa.array([NOON], pa.timestamp("ns"))), [False]),
        ("greatest", (pa.array([date(2024, 5, 1)]), pa.array([NOON])), [NOON]),
    ],
)
def test_times(op: str, operands: tuple[pa.Array, ...], wanted: list[object]) -> None:
    found = run(op, *operands)
    assert found.to_pylist() == wanted


@pytest.mark.parametrize(
    ("op", "operands"),
    [
        ("+", (pa.array([INT_MAX]), constant(1))),
        ("*", (pa.array([2**62]), constant(2))),
        ("negative", (pa.array([INT_MIN]),)),
        ("abs", (pa.array([INT_MIN]),)),
        ("-", (pa.array([datetime(9999, 1, 1)], pa.timestamp("s")), pa.array([NOON], pa.timestamp("ns")))),
        ("*", (pa.array([timedelta(days=10**6)]), constant(1e12))),
        ("*", (pa.array([Decimal("1" * 40)]), pa.array([Decimal("1" * 40)]))),
    ],
)
def test_overflow_is_an_error_at_its_place(op: str, operands: tuple[pa.Array, ...]) -> None:
    with pytest.raises(BadInputError, match=r"(?s)overflow.*line 1, column 1.*a\.x \+ b\.x.*\^{9}"):
        run(op, *operands)


def test_wide_decimals_are_exact() -> None:
    wide = pa.array([Decimal("9" * 38)], pa.decimal128(38, 0))
    narrow = pa.array([Decimal("9" * 37)], pa.decimal128(38, 0))
    assert run("*", wide, narrow, kind=Kind.DECIMAL).to_pylist() == [int("9" * 38) * int("9" * 37)]
    spark = pa.array([Decimal("1.5"), None], pa.decimal128(38, 18))
    assert run("*", spark, spark, kind=Kind.DECIMAL).to_pylist() == [Decimal("2.25"), None]
    assert run("*", spark.slice(0, 0), spark.slice(0, 0)).type == run("*", spark, spark).type
    assert run("+", wide, constant(Decimal("0.1")), kind=Kind.DECIMAL).to_pylist() == [Decimal("9" * 38 + ".1")]


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_texts_of_every_encoding(kind: pa.DataType) -> None:
    column = pa.array(["a", "b", None]).dictionary_encode().cast(kind)
    assert values("=", column, constant("a"), kind=Kind.BOOLEAN) == [True, False, None]
    assert values("like", column, constant("b%"), kind=Kind.BOOLEAN) == [False, True, None]
    assert values("in", column, *map(constant, "acdef"), kind=Kind.BOOLEAN) == [True, False, None]


def test_a_mask_is_true_only_where_the_predicate_is() -> None:
    rows = Rows(lambda variable, name: floats, 4, "")
    greater = Operation(">", (Column(0, "x", Kind.FLOAT), constant(0)), Kind.BOOLEAN)
    assert mask(greater, rows).tolist() == [True, False, False, False]
    assert mask(Operation("not", (greater,), Kind.BOOLEAN), rows).tolist() == [False, True, False, False]
    assert mask(constant(True), rows).tolist() == [True] * 4
    assert mask(NULL, rows).tolist() == [False] * 4
    assert mask(Column(0, "x", Kind.BOOLEAN), Rows(lambda *_: pa.array([True, None]), 2, "")).dtype == np.bool_


def test_constants_alone_are_spread() -> None:
    assert values("+", constant(1), constant(2)) == [3, 3]
    assert values("sqrt", constant(4)) == [2.0, 2.0]
    assert values("%", constant(Decimal("1.5")), constant(1)) == [Decimal("0.5"), Decimal("0.5")]
    assert values("=", constant(1), constant(1.5), kind=Kind.BOOLEAN) == [False, False]


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="NumPy's own functions differ in the last bit")
def test_functions_of_real_numbers_are_the_c_librarys() -> None:
    numbers = np.random.default_rng(0).random(2_000) * 20
    assert run("exp", pa.array(numbers)).to_pylist() == [math.exp(x) for x in numbers]
    assert run("log", pa.array(numbers)).to_pylist() == [math.log(x) for x in numbers]
    assert run("^", pa.array(numbers), constant(2.5)).to_pylist() == [math.pow(x, 2.5) for x in numbers]
    assert run("^", constant(2), pa.array(numbers)).to_pylist() == [math.pow(2, x) for x in numbers]


@pytest.mark.parametrize(
    "kind", [pa.decimal128(9, 2), pa.decimal128(38, 10), pa.decimal128(38, 30), pa.decimal256(60, 3)]
)
def test_decimals_become_the_nearest_doubles(kind: pa.DataType) -> None:
    unscaled = [3841, -22688805, 0, 10**8 + 1, 2**29 + 1]
    if kind.precision > 9:
        unscaled += [2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 12345678901234567890123]
    decimals = [None, *(Decimal(n).scaleb(-kind.scale) for n in unscaled)]
    wanted = [None if number is None else float(number) for number in decimals]
    assert values("+", pa.array(decimals, kind), constant(0.0)) == wanted


def test_a_time_that_does_not_fit_the_common_unit_is_an_error_at_its_place() -> None:
    far = constant(datetime(9999, 12, 31, tzinfo=UTC))
    with pytest.raises(BadInputError, match=r"does not fit in timestamp\[ns"):
        run("coalesce", pa.array([0, None], pa.timestamp("ns")), far, kind=Kind.TIMESTAMP)
