"""Bind the expressions of DEFINE and MEASURES: which rows they read, and which parts are columns of one row.

Every largest part that reads a single row becomes a computed column (`RowColumn`), read at that row. What remains
relates rows: operators and functions that our engine evaluates.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from streamsift.errors import Span
from streamsift.language import syntax as s
from streamsift.language.keywords import FUNCTIONS
from streamsift.language.row_match import syntax as r
from streamsift.logical import bound as b
from streamsift.logical.row_match import bound as m
from streamsift.logical.row_match.calls import CURRENT, NAVIGATIONS, At, MatchCalls, is_literal
from streamsift.logical.row_match.scope import parts_of, rebuilt
from streamsift.logical.row_match.types import plain, result_type
from streamsift.logical.row_match.values import value_binder

_STRICT_CALLS = frozenset(  # functions that are null if any argument is
    "ABS SQRT POW POWER LOG EXP LOWER UPPER LENGTH SUBSTR SUBSTRING CONCAT TRIM REPLACE STARTSWITH ENDSWITH CONTAINS "
    "FLOOR CEIL CEILING ROUND SIGN DATE DATE_TRUNC TRUNC HOUR MINUTE SECOND DAY MONTH YEAR DAYOFWEEK DATE_FORMAT "
    "TO_DATE UNIX_TIMESTAMP TO_TIMESTAMP MOD".split()
)
_JOINS = (s.Comparison | s.Arithmetic | s.AllOf | s.AnyOf | s.NotExpression | s.InList | s.Between | s.IsNull | s.Like
          | s.Negative | r.Case)  # fmt: skip


@dataclass(slots=True)
class MatchExpressions(MatchCalls):
    """Bind the expressions of one context."""

    leaves: dict[str, tuple[m.RowExpr, pa.DataType]] = field(default_factory=dict)

    # --- entry points ---
    def condition(self, expression: r.RowExpression) -> m.RowExpr:
        abstract = self._abstract(expression)
        bound = self._values().condition(abstract)
        return self._joined(bound)

    def value(self, expression: r.RowExpression) -> tuple[m.RowExpr, pa.DataType]:
        abstract = self._abstract(expression)
        bound = self._values().value(abstract)
        data_type = result_type(bound, lambda name: self.leaves[name][1])
        return self._joined(bound), data_type

    def leaf(self, expression: r.RowExpression) -> tuple[m.RowExpr, pa.DataType] | None:
        """Return what a measure reads from a match: a column, navigation or aggregate; None for other expressions."""
        match expression:
            case s.Name():
                return self._read(self._at(expression))
            case r.WithSemantics() | s.Call() if self._call(expression) is not None:
                return self._call_leaf(expression)
        return None

    def _values(self) -> Any:
        schema = pa.schema([pa.field(name, data_type) for name, (_, data_type) in self.leaves.items()])
        where = " between rows of a match" if self.scope.typing is not None else " in run_local"
        hint = "compute it as a column beforehand." if self.scope.typing is not None else "run the query on Spark."
        return value_binder(schema, self.scope.text, self.scope.zone, True, where, hint)

    def _joined(self, bound: b.Expr) -> m.RowExpr:
        match bound:
            case b.Column():
                return self.leaves[bound.name][0]
            case b.Constant():
                return m.RowConstant(bound.value, bound.kind, span=bound.span)
            case b.Operation():
                return m.RowOperation(bound.op, tuple(map(self._joined, bound.operands)), bound.kind, span=bound.span)
        raise AssertionError(bound)

    # --- the largest parts of one row ---
    def _abstract(self, expression: r.RowExpression) -> r.RowExpression:
        """Replace every part that reads the match by a name of a leaf."""
        match expression:
            case s.AllOf() | s.AnyOf() if (grouped := self._grouped(expression)) is not None:
                return grouped
        at = self._at_one_row(expression)
        if at is not None and self._may_compute(at):
            return self._leaf(*self._read(at), expression.span)
        if self._call(expression) is not None:
            return self._leaf(*self._call_leaf(expression), expression.span)
        if at is None and not list(self._references(expression)) and not self._has_call(expression):
            return self._constant(expression)
        if _is_joined_by_us(expression):
            return rebuilt(expression, self._abstract)
        if at is not None and self.context.in_define:
            return self._guarded(at, expression.span)
        return rebuilt(expression, self._abstract)  # the binder of values names what is not supported

    def _grouped(self, expression: s.AllOf | s.AnyOf) -> r.RowExpression | None:
        """Compute operands that read the same row as one column."""
        groups: dict[m.RowReach, list[r.RowExpression]] = {}
        rest: list[r.RowExpression] = []
        for operand in expression.operands:
            at = self._at_one_row(operand)
            if at is not None and self._may_compute(at):
                groups.setdefault(at.reach, []).append(operand)
            else:
                rest.append(operand)
        if not any(len(group) > 1 for group in groups.values()) or (len(groups) == 1 and not rest):
            return None
        together = [
            group[0] if len(group) == 1 else type(expression)(tuple(group), span=group[0].span.to(group[-1].span))
            for group in groups.values()
        ]
        return type(expression)(tuple(map(self._abstract, [*together, *rest])), span=expression.span)

    def _may_compute(self, at: At) -> bool:
        """Return True if the value at a row that does not exist is null, or the row always exists."""
        exists = self.context.in_define and at.reach == CURRENT
        return exists or _is_strict(at.expression)

    def _constant(self, expression: r.RowExpression) -> r.RowExpression:
        """Leave a constant as it is if our engine has it; else let the JVM compute it for the current row."""
        if self.scope.typing is None or _is_ours(expression):
            return expression
        return self._leaf(*self._read(At(CURRENT, expression)), expression.span)

    def _guarded(self, at: At, span: Span) -> r.RowExpression:
        """Return an expression of Spark at a row that may not exist: then its columns are null."""
        is_there = self._leaf(*self._read(At(at.reach, s.Boolean(True))), span)

        def absent(part: r.RowExpression) -> r.RowExpression:
            return r.Case(((s.Boolean(False), part),)) if isinstance(part, s.Name) else rebuilt(part, absent)

        without = self._leaf(*self._read(At(CURRENT, absent(at.expression))), span)
        return r.Case(((s.IsNull(is_there), without),), self._leaf(*self._read(at), span), span=span)

    def _leaf(self, expression: m.RowExpr, data_type: pa.DataType, span: Span) -> s.Name:
        for name, (existing, _) in self.leaves.items():
            if existing == expression:
                return s.Name((name,), span=span)
        name = f"$leaf{len(self.leaves)}"
        self.leaves[name] = (expression, plain(data_type))
        return s.Name((name,), span=span)

    def _at_one_row(self, expression: r.RowExpression) -> At | None:
        """Return the expression over columns of one row, if all that it reads is in one row."""
        reaches: set[m.RowReach] = set()
        is_plain = True

        def convert(part: r.RowExpression, bound: frozenset[str]) -> r.RowExpression:
            nonlocal is_plain
            match part:
                case s.Name(parts=(only,)) if only in bound:
                    return part
                case s.Name():
                    at = self._at(part)
                    reaches.add(at.reach)
                    return at.expression
                case r.Lambda():
                    inner = bound | set(part.parameters)
                    return replace(part, body=convert(part.body, inner))
                case s.Call() | r.WithSemantics() if (call := self._call(part)) is not None:
                    if call.function in NAVIGATIONS:
                        reach, target = self._navigation(part)
                        if not isinstance(target, s.Call) or target.function != "CLASSIFIER":
                            reaches.add(reach)
                            return target
                    is_plain = False
                    return part
            return rebuilt(part, lambda each: convert(each, bound))

        converted = convert(expression, frozenset())
        return At(next(iter(reaches)), converted) if is_plain and len(reaches) == 1 else None


def _is_joined_by_us(expression: r.RowExpression) -> bool:
    """Return True if our engine evaluates the operator or function over values of several rows."""
    return isinstance(expression, _JOINS) or (isinstance(expression, s.Call) and expression.function in FUNCTIONS)


def _is_ours(expression: r.RowExpression) -> bool:
    if is_literal(expression):
        return True
    if isinstance(expression, r.Raw):
        return isinstance(expression.parts[0], str) and expression.parts[0].startswith("DATE ")
    return _is_joined_by_us(expression) and all(map(_is_ours, parts_of(expression)))


def _is_strict(expression: r.RowExpression) -> bool:
    """Return True if the value is certainly null where all columns are null."""
    match expression:
        case s.Name():
            return True
        case s.Arithmetic() | s.Comparison() | s.Negative() | s.Like() | s.NotExpression() | r.Cast():
            return any(map(_is_strict, parts_of(expression)))
        case s.Between() | s.InList():
            return _is_strict(expression.operand)
        case s.AllOf() | s.AnyOf():
            return all(map(_is_strict, expression.operands))
        case s.Call():
            return expression.function in _STRICT_CALLS and any(map(_is_strict, expression.arguments))
        case r.Raw():
            words = " ".join(part for part in expression.parts if isinstance(part, str)).upper().split()
            strict = not {"<=>", "IS", ","} & set(words) and "(" not in words[:1]
            return strict and any(_is_strict(part) for part in expression.parts if not isinstance(part, str))
    return False
