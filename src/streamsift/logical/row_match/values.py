"""Bind the expressions of MATCH_RECOGNIZE that our own engine evaluates: operators, CASE, functions of the language."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, tzinfo
from decimal import Decimal

import pyarrow as pa

from streamsift.errors import QueryError, Span, UnsupportedQuery, nearest
from streamsift.language import syntax as s
from streamsift.language.keywords import FUNCTIONS
from streamsift.language.row_match import print_row_expression
from streamsift.language.row_match import syntax as r
from streamsift.logical.bound import THIS_ROW, Binding, Column, Constant, Expr, Kind, Operation, TimeKind
from streamsift.logical.columns import EventColumns, kind_of
from streamsift.logical.expressions import ExpressionBinder, settled

_NO_TIME = Binding("", TimeKind.INTEGER)
_HERE = "compute it as a column beforehand, or run the query on Spark."


@dataclass(frozen=True, slots=True)
class ValueBinder(ExpressionBinder):
    """Bind expressions over columns of a schema; what only Spark understands raises UnsupportedQuery."""

    text: str = ""
    where: str = ""  # the end of "… is not supported", such as " in run_local"
    hint: str = _HERE

    def value(self, expression: r.RowExpression) -> Expr:
        return settled(self.bind(expression))

    def condition(self, expression: r.RowExpression) -> Expr:
        return settled(self.predicate(expression))

    def bind(self, expression: r.RowExpression) -> Expr:
        match expression:
            case r.Case():
                return self._case(expression)
            case r.Raw() if (bound := _raw_constant(expression)) is not None:
                return bound
            case r.Raw() | r.Cast() | r.Lambda() | r.Distinct() | r.AllRows() | r.WithSemantics():
                raise self._unsupported(f"`{print_row_expression(expression)}`", expression.span)
            case s.Call():
                self._check_call(expression)
        return ExpressionBinder.bind(self, expression)

    def _unsupported(self, what: str, span: Span) -> UnsupportedQuery:
        return UnsupportedQuery(f"{what} is not supported{self.where}", self.text, span, self.hint)

    def _check_call(self, call: s.Call) -> None:
        if call.function not in FUNCTIONS:
            close = nearest(call.function, FUNCTIONS)
            hint = close if close.startswith("did you mean") else self.hint
            raise UnsupportedQuery(f"{call.function} is not supported{self.where}", self.text, call.span, hint)
        minimum, maximum = FUNCTIONS[call.function]
        if len(call.arguments) < minimum or (maximum is not None and len(call.arguments) > maximum):
            takes = f"{minimum} argument{'s' if minimum > 1 else ''}" + ("" if maximum else " or more")
            raise self.fail(f"{call.function} takes {takes}, not {len(call.arguments)}", call.span)

    def _case(self, case: r.Case) -> Operation:
        operands: list[Expr] = []
        for condition, _ in case.branches:
            if case.operand is None:
                operands.append(self.predicate(condition))
            else:
                operands.append(self.comparison("=", case.operand, condition, condition.span, "CASE"))
        results = [value for _, value in case.branches] + [case.otherwise or s.Null()]
        chosen = self._choice(s.Call("COALESCE", tuple(results), span=case.span))  # checks that kinds agree
        interleaved = [each for pair in zip(operands, chosen.operands, strict=False) for each in pair]
        return Operation("case", (*interleaved, chosen.operands[-1]), chosen.kind, span=case.span)

    def _reconciled(self, left: Expr, right: Expr) -> tuple[Expr, Expr]:
        """Type literals as Spark does: `1.5` is a decimal next to an integer, too."""
        for literal, other in ((left, right), (right, left)):
            if other.kind is Kind.INTEGER and isinstance(written := getattr(literal, "written", None), Decimal):
                exact = Constant(written, Kind.DECIMAL, span=literal.span)
                left, right = (exact, right) if literal is left else (left, exact)
        return ExpressionBinder._reconciled(self, left, right)


def _raw_constant(raw: r.Raw) -> Constant | None:
    """Return the constant of a date or of a number with a suffix; None for any other syntax."""
    text, span = raw.parts[0], raw.span
    if len(raw.parts) > 1 or not isinstance(text, str):
        return None
    word, _, rest = text.partition(" ")
    try:
        if word == "DATE":
            return Constant(date.fromisoformat(rest.strip("'\"")), Kind.DATE, span=span)
        if text[:1].isdigit():
            number = text.rstrip("lLsSyYdDfFbB")
            if text[-1] in "lLsSyY":
                return Constant(int(number), Kind.INTEGER, span=span)
            if text[-2:].upper() == "BD":
                return Constant(Decimal(number), Kind.DECIMAL, span=span)
            return Constant(float(number), Kind.FLOAT, span=span)
    except (ValueError, ArithmeticError):
        return None
    return None


def value_binder(
    schema: pa.Schema, text: str, zone: tzinfo, case_sensitive: bool, where: str = "", hint: str = _HERE
) -> ValueBinder:
    """Return a binder of expressions whose names are columns of the schema."""

    def fail(message: str, span: Span, hint: str = "") -> QueryError:
        return QueryError(message, text, span, hint)

    def resolve(name: s.Name) -> Expr:
        if len(name.parts) > 1:
            what = f"the nested column `{'.'.join(name.parts)}`"
            raise UnsupportedQuery(f"{what} is not supported{where}", text, name.span, hint)
        field = schema.field(name.parts[0])
        return Column(THIS_ROW, field.name, kind_of(field.type), span=name.span)

    def group(call: s.Call) -> Expr:
        raise fail(f"{call.function} is not allowed here", call.span)

    columns = EventColumns(schema, _NO_TIME, case_sensitive, zone)
    return ValueBinder(fail, resolve, group, columns, text, where, hint)  # type: ignore[arg-type]


Typing = Callable[[str], pa.DataType]
