"""Split the conditions of DEFINE into parts of the row alone and parts of the match.

A part of the row reads the row under test and rows at a fixed distance from it. It does not depend on the match, so it
is evaluated once for all rows and becomes a bit of the row. Parts of the match read other labels, FIRST, LAST,
aggregates, CLASSIFIER() or MATCH_NUMBER(); the matcher evaluates them for the row under test.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from streamsift.logical.row_match.bound import (
    Anchor,
    Classifier,
    MatchNumber,
    RowAggregate,
    RowConstant,
    RowExpr,
    RowOperation,
    RowValue,
)


@dataclass(frozen=True, slots=True)
class Split:
    """The conjuncts of a condition."""

    of_row: tuple[RowExpr, ...] = ()
    of_match: tuple[RowExpr, ...] = ()


def split(condition: RowExpr | None) -> Split:
    """Return the parts of a condition."""
    parts = () if condition is None else tuple(_conjuncts(condition))
    return Split(
        tuple(part for part in parts if reason(part) == ""), tuple(part for part in parts if reason(part) != "")
    )


def _conjuncts(condition: RowExpr) -> Iterator[RowExpr]:
    match condition:
        case RowOperation(op="and", operands=operands):
            for operand in operands:
                yield from _conjuncts(operand)
        case _:
            yield condition


def leaves(expression: RowExpr) -> Iterator[RowExpr]:
    """Yield the values that an expression reads."""
    if isinstance(expression, RowOperation):
        for operand in expression.operands:
            yield from leaves(operand)
    else:
        yield expression


def reason(part: RowExpr) -> str:
    """Return why a part depends on the match; nothing if it depends on the row alone."""
    for leaf in leaves(part):
        match leaf:
            case RowValue(reach=reach) if reach.anchor is not Anchor.CURRENT:
                return "it reads a row that the match determines"
            case RowAggregate(function=function):
                return f"it reads {function} over rows of the match"
            case Classifier():
                return "it reads CLASSIFIER()"
            case MatchNumber():
                return "it reads MATCH_NUMBER()"
            case RowConstant() | RowValue():
                pass
    return ""


def rows_ahead(expressions: tuple[RowExpr, ...]) -> int:
    """Return how many rows after the row under test the expressions read."""
    shifts = (leaf.reach.shift for part in expressions for leaf in leaves(part) if isinstance(leaf, RowValue))
    return max(0, max(shifts, default=0))


def rows_behind(expressions: tuple[RowExpr, ...]) -> int:
    """Return how many rows before the row under test the expressions read."""
    shifts = (leaf.reach.shift for part in expressions for leaf in leaves(part) if isinstance(leaf, RowValue))
    return max(0, -min(shifts, default=0))
