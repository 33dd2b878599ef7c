"""Convert a ranking's objectives to one weighted sum of attributes, if they are one.

Objectives that are merged by SUM or AVG collapse: the sum of weighted sums is a weighted sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

from streamsift.logical import bound as b


@dataclass(frozen=True, slots=True)
class Term:
    """coefficient * column; instants and durations count in seconds."""

    column: b.Column
    coefficient: Fraction


@dataclass(frozen=True, slots=True)
class LinearScore:
    """A constant and terms; `operations` is how often the written expressions round, at most.

    Of objectives merged by AVG it is the sum: that ranks alike.
    """

    terms: tuple[Term, ...]
    constant: Fraction
    operations: int


def linear_score(ranking: b.Ranking) -> LinearScore | None:
    """The score as a weighted sum; None if it is none, or is null whatever the events are."""
    merge, *more = ranking.merges
    if more or (merge.count > 1 and merge.function not in ("SUM", "AVG")):
        return None
    terms: list[Term] = []
    constant, operations = Fraction(0), 0
    for objective in ranking.objectives:
        if objective.preference_class is not b.PreferenceClass.LINEAR:
            return None
        found = _terms(objective.expression, Fraction(1 if objective.maximise else -1))
        if found is None:
            return None
        terms += [part for part in found if isinstance(part, Term)]
        constant += sum((part for part in found if isinstance(part, Fraction)), Fraction(0))
        operations += 2 * len(found) + _size(objective.expression)
    return LinearScore(tuple(terms), constant, operations)


def _terms(expression: b.Expr, factor: Fraction) -> list[Term | Fraction] | None:
    match expression:
        case b.Column():
            return [Term(expression, factor)]
        case b.Constant():
            number = _number(expression)
            return None if number is None else [number * factor]
        case b.Operation(op="negative", operands=(operand,)):
            return _terms(operand, -factor)
        case b.Operation(op="+" | "-" as op, operands=(left, right)):
            ones, others = _terms(left, factor), _terms(right, factor if op == "+" else -factor)
            return None if ones is None or others is None else ones + others
        case b.Operation(op="*", operands=(b.Constant() as left, right)):
            return _scaled(right, factor, _number(left))
        case b.Operation(op="*", operands=(left, b.Constant() as right)):
            return _scaled(left, factor, _number(right))
        case b.Operation(op="/", operands=(left, b.Constant() as right)):
            divisor = _number(right)
            return _scaled(left, factor, 1 / divisor if divisor else None)
        case _:
            return None


def _scaled(expression: b.Expr, factor: Fraction, by: Fraction | None) -> list[Term | Fraction] | None:
    return None if by is None else _terms(expression, factor * by)


def _number(constant: b.Constant) -> Fraction | None:
    match constant.value:
        case bool():
            return None
        case int() | Decimal() as value:
            return Fraction(value)
        case float() as value if value - value == 0:  # finite
            return Fraction(value)
        case timedelta() as value:
            return Fraction(value // timedelta(microseconds=1), 1_000_000)
        case _:
            return None


def _size(expression: b.Expr) -> int:
    return 1 + sum(map(_size, expression.operands)) if isinstance(expression, b.Operation) else 1
