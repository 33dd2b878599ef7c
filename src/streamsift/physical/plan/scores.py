"""Represent the objectives of a ranking as one weighted sum of attributes, or as monotone functions.

A monotone function has parts with one variable each. Weighted sums merged by SUM or AVG become one weighted sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

from streamsift.logical import bound as b
from streamsift.logical.preferences import not_negative

# --- weighted sums -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Term:
    """coefficient * column. Timestamps and durations are in seconds."""

    column: b.Column
    coefficient: Fraction


@dataclass(frozen=True, slots=True)
class LinearScore:
    """A constant and terms. `operations` is the maximum number of rounding steps in the expressions as written.

    Objectives merged by AVG are represented by their sum, which gives the same ranking.
    """

    terms: tuple[Term, ...]
    constant: Fraction
    operations: int


def linear_score(ranking: b.Ranking) -> LinearScore | None:
    """Return the score as a weighted sum; None if it is not one, or is always null."""
    merge, *more = ranking.merges
    if more or (merge.count > 1 and merge.function not in ("SUM", "AVG")):
        return None
    terms: list[Term] = []
    constant, operations = Fraction(0), 0
    for objective in ranking.objectives:
        parts = list(_terms(objective.expression, Fraction(1 if objective.maximise else -1)))
        if objective.preference_class is not b.PreferenceClass.LINEAR or None in parts:
            return None
        terms += [part for part in parts if isinstance(part, Term)]
        constant += sum((part for part in parts if isinstance(part, Fraction)), Fraction(0))
        operations += 2 * len(parts) + sum(1 for _ in objective.expression.walk())
    return LinearScore(tuple(terms), constant, operations)


def _terms(expression: b.Expr, factor: Fraction) -> Iterator[Term | Fraction | None]:
    """Yield the terms and constants of a weighted sum; None for a part that is not a weighted sum."""
    match expression:
        case b.Column():
            yield Term(expression, factor)
        case b.Constant() if (number := _number(expression)) is not None:
            yield number * factor
        case b.Operation(op="negative", operands=(operand,)):
            yield from _terms(operand, -factor)
        case b.Operation(op="+" | "-" as op, operands=(left, right)):
            yield from _terms(left, factor)
            yield from _terms(right, factor if op == "+" else -factor)
        case (
            b.Operation(op="*", operands=(b.Constant() as constant, operand))
            | b.Operation(op="*", operands=(operand, b.Constant() as constant))
        ) if (number := _number(constant)) is not None:
            yield from _terms(operand, factor * number)
        case b.Operation(op="/", operands=(operand, b.Constant() as constant)) if number := _number(constant):
            yield from _terms(operand, factor / number)
        case _:
            yield None


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


# --- monotone functions ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MonotonePart:
    """An expression with one variable. The preference is monotonically increasing in it if `rises`, else decreasing."""

    variable: int
    expression: b.Expr
    rises: bool


@dataclass(frozen=True, slots=True)
class MonotoneObjective:
    """The parts of an objective. `skips_nulls`: a null or NaN part does not make the score null or NaN."""

    parts: tuple[MonotonePart, ...]
    skips_nulls: bool


def monotone_objectives(ranking: b.Ranking) -> tuple[MonotoneObjective, ...] | None:
    """Return the parts of each objective; None if an objective, or the merged score, is not monotone in them."""
    if any(merge.count > 1 and merge.function == "PRODUCT" for merge in ranking.merges):
        return None  # a product of negative scores is not monotone
    objectives = []
    for objective in ranking.objectives:
        parts = list(_parts(objective.expression, objective.maximise, outermost=True))
        monotone = tuple(part for part in parts if part is not None)
        if len({part.variable for part in monotone}) < len(parts):
            return None
        objectives.append(MonotoneObjective(monotone, _skips_nulls(objective.expression)))
    return tuple(objectives)


def _parts(expression: b.Expr, rises: bool, *, outermost: bool) -> Iterator[MonotonePart | None]:
    """Yield the parts of a monotone expression; None for a part in which it is not monotone."""
    variables = expression.variables
    if len(variables) <= 1:
        yield from (MonotonePart(variable, expression, rises) for variable in variables)
        return
    match expression:
        case b.Operation(op="-", operands=(left, right)):
            yield from _parts(left, rises, outermost=False)
            yield from _parts(right, not rises, outermost=False)
        case b.Operation(op="negative", operands=(operand,)):
            yield from _parts(operand, not rises, outermost=outermost)
        case (
            b.Operation(op="*" | "/", operands=(operand, b.Constant(value=int() | float() as factor)))
            | b.Operation(op="*", operands=(b.Constant(value=int() | float() as factor), operand))
        ):
            yield from _parts(operand, rises == (factor > 0), outermost=outermost) if factor else (None,)
        case b.Operation(op="^", operands=(base, b.Constant(value=int() | float() as power))):
            is_odd = isinstance(power, int) and power % 2 == 1
            is_monotone = power > 0 and outermost and (is_odd or not_negative(base))
            yield from _parts(base, rises, outermost=False) if is_monotone else (None,)
        case b.Operation(op="*", operands=operands) if not all(map(not_negative, operands)):
            yield None
        case b.Operation(op="log" | "exp") if not outermost:
            yield None
        case b.Operation(op="+" | "*" | "least" | "greatest" | "sqrt" | "log" | "exp", operands=operands):
            for operand in operands:
                yield from _parts(operand, rises, outermost=False)
        case _:
            yield None


def _skips_nulls(expression: b.Expr) -> bool:
    if not isinstance(expression, b.Operation) or len(expression.variables) <= 1:
        return False
    return expression.op in ("least", "greatest") or any(map(_skips_nulls, expression.operands))
