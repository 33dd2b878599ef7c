"""Split a monotone preference into each variable's own part, and find in which direction it follows each."""

from __future__ import annotations

from dataclasses import dataclass

from streamsift.logical import bound as b
from streamsift.logical.preferences import not_negative


@dataclass(frozen=True, slots=True)
class MonotonePart:
    """`expression` has one variable; the preference rises with its value, or falls."""

    variable: int
    expression: b.Expr
    rises: bool


@dataclass(frozen=True, slots=True)
class MonotoneObjective:
    """`skips_nulls`: a null or NaN part does not make the whole null or NaN."""

    parts: tuple[MonotonePart, ...]
    skips_nulls: bool


def monotone_objectives(ranking: b.Ranking) -> tuple[MonotoneObjective, ...] | None:
    """The parts of each objective's score, if every score rises with each of its parts and merging keeps that."""
    if any(merge.count > 1 and merge.function == "PRODUCT" for merge in ranking.merges):
        return None  # a product of negative scores falls
    found = []
    for objective in ranking.objectives:
        parts = _parts(objective.expression, objective.maximise, outermost=True)
        if parts is None or len({part.variable for part in parts}) < len(parts):
            return None
        found.append(MonotoneObjective(tuple(parts), _skips_nulls(objective.expression)))
    return tuple(found)


def _parts(expression: b.Expr, rises: bool, *, outermost: bool) -> list[MonotonePart] | None:
    variables = expression.variables
    if not variables:
        return []
    if len(variables) == 1:
        return [MonotonePart(min(variables), expression, rises)]
    match expression:
        case b.Operation(op="-", operands=(left, right)):
            return _both(_parts(left, rises, outermost=False), _parts(right, not rises, outermost=False))
        case b.Operation(op="negative", operands=(operand,)):
            return _parts(operand, not rises, outermost=outermost)
        case b.Operation(op="*" | "/", operands=(operand, b.Constant(value=int() | float() as by))):
            return _parts(operand, rises == (by > 0), outermost=outermost) if by else None
        case b.Operation(op="*", operands=(b.Constant(value=int() | float() as by), operand)):
            return _parts(operand, rises == (by > 0), outermost=outermost) if by else None
        case b.Operation(op="*", operands=operands) if all(map(not_negative, operands)):
            return _of_all(operands, rises)
        case b.Operation(op="^", operands=(base, b.Constant(value=int() | float() as power))) if (
            power > 0 and outermost
        ):
            odd = isinstance(power, int) and power % 2 == 1
            return _parts(base, rises, outermost=False) if odd or not_negative(base) else None
        case b.Operation(op="log" | "exp", operands=(operand,)) if outermost:
            return _parts(operand, rises, outermost=False)
        case b.Operation(op="+" | "least" | "greatest" | "sqrt", operands=operands):
            return _of_all(operands, rises)
        case _:
            return None


def _of_all(operands: tuple[b.Expr, ...], rises: bool) -> list[MonotonePart] | None:
    found: list[MonotonePart] | None = []
    for operand in operands:
        found = _both(found, _parts(operand, rises, outermost=False))
    return found


def _both(one: list[MonotonePart] | None, two: list[MonotonePart] | None) -> list[MonotonePart] | None:
    return None if one is None or two is None else one + two


def _skips_nulls(expression: b.Expr) -> bool:
    if not isinstance(expression, b.Operation) or len(expression.variables) <= 1:
        return False
    return expression.op in ("least", "greatest") or any(map(_skips_nulls, expression.operands))
