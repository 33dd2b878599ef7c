"""Bind and type expressions; raise QueryError with both types where they do not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import isinf

import pyarrow as pa

from streamsift.errors import QueryError, Span, with_article
from streamsift.language import syntax as s
from streamsift.logical.bound import NUMERIC, THIS_ROW, Column, Constant, Expr, GroupAggregate, Kind, Operation, truth
from streamsift.logical.columns import EventColumns

SECONDS_PER_UNIT = {
    s.Unit.MILLISECOND: Fraction(1, 1000),
    s.Unit.SECOND: Fraction(1),
    s.Unit.MINUTE: Fraction(60),
    s.Unit.HOUR: Fraction(3600),
    s.Unit.DAY: Fraction(86400),
}
_INSTANTS = frozenset({Kind.TIMESTAMP, Kind.DATE})


@dataclass(frozen=True, slots=True)
class ExpressionBinder:
    """Binds expressions whose names `resolve` turns into columns (or whole expressions, for objectives)."""

    text: str
    resolve: Callable[[s.Name], Expr]
    group: Callable[[s.Call], GroupAggregate]
    columns: EventColumns

    def _fail(self, message: str, span: Span, hint: str = "") -> QueryError:
        return QueryError(message, self.text, span, hint)

    def predicate(self, expression: s.Expression) -> Expr:
        """A bound expression that is true, false or unknown."""
        bound = self.bind(expression)
        if bound.kind not in (Kind.BOOLEAN, Kind.NULL):
            message = f"a predicate was expected here, not {with_article(bound.kind.value)}"
            raise self._fail(message, expression.span, "compare it with something: `= …`, `> …`, `IS NOT NULL`.")
        return bound

    def bind(self, expression: s.Expression) -> Expr:
        match expression:
            case s.Name():
                return self.resolve(expression)
            case s.Number() | s.String() | s.Boolean() | s.Null() | s.Timestamp() | s.Duration():
                return self._constant(expression)
            case s.Negative():
                return self._negative(expression)
            case s.Arithmetic():
                return self._arithmetic(expression)
            case s.Call():
                return self._call(expression)
            case s.Comparison():
                pairs = tuple(
                    self.comparison(op, left, right, expression.span)
                    for op, left, right in zip(
                        expression.ops, expression.operands, expression.operands[1:], strict=False
                    )
                )
                return pairs[0] if len(pairs) == 1 else truth("and", pairs, expression.span)
            case s.SameAttribute():
                raise self._fail(
                    f"`[{expression.attribute}]` is not a value",
                    expression.span,
                    "it is a predicate over all variables of an operator: in WHERE, or an argument of SEQ, AND or OR.",
                )
            case s.InList():
                items = [self.comparison("=", expression.operand, item, item.span) for item in expression.items]
                operand = items[0].operands[0]
                bound: Expr = truth("in", (operand, *(i.operands[1] for i in items)), expression.span)
                if isinstance(operand, Constant):  # it may be a decimal beside one item and a double beside another
                    bound = truth("or", tuple(items), expression.span)
                return self._maybe_not(bound, expression.negated)
            case s.Between():
                low = self.comparison(">=", expression.operand, expression.low, expression.low.span)
                high = self.comparison("<=", expression.operand, expression.high, expression.high.span)
                return self._maybe_not(truth("and", (low, high), expression.span), expression.negated)
            case s.IsNull():
                operand = self.bind(expression.operand)
                return self._maybe_not(truth("is_null", (operand,), expression.span), expression.negated)
            case s.Like():
                operand = self._expect(expression.operand, "LIKE", Kind.STRING)
                pattern = Constant(expression.pattern, Kind.STRING, expression.span)
                return self._maybe_not(truth("like", (operand, pattern), expression.span), expression.negated)
            case s.NotExpression():
                return truth("not", (self.predicate(expression.operand),), expression.span)
            case s.AllOf() | s.AnyOf():
                op = "and" if isinstance(expression, s.AllOf) else "or"
                return truth(op, tuple(self.predicate(o) for o in expression.operands), expression.span)

    def comparison(self, op: str, left: s.Expression, right: s.Expression, span: Span) -> Operation:
        a, b = self._reconciled(self.bind(left), self.bind(right))
        if not _comparable(a.kind, b.kind):
            message = f"`{op}` compares {with_article(a.kind.value)} with {with_article(b.kind.value)}"
            raise self._fail(message, span, _comparison_hint(a, b))
        return truth(op, (a, b), span)

    @staticmethod
    def _maybe_not(bound: Expr, negated: bool) -> Expr:
        return truth("not", (bound,), bound.span) if negated else bound

    def _expect(self, expression: s.Expression, what: str, *kinds: Kind) -> Expr:
        bound = self.bind(expression)
        if bound.kind not in (*kinds, Kind.NULL):
            names = ["number"] * (set(kinds) >= NUMERIC) + [k.value for k in kinds if k not in NUMERIC]
            wanted = " or ".join(with_article(name) for name in names)
            raise self._fail(f"{what} takes {wanted}, not {with_article(bound.kind.value)}", expression.span)
        return bound

    def _reconciled(self, left: Expr, right: Expr) -> tuple[Expr, Expr]:
        """Literals in the light of what they stand next to.

        A number with a point is a decimal next to a decimal, and a double anywhere else. A timestamp without a zone is
        in the session's zone next to one that has a zone, and a plain clock time anywhere else.
        """
        if left.kind is Kind.DECIMAL:
            right = _as_decimal(right)
        elif right.kind is Kind.DECIMAL:
            left = _as_decimal(left)
        return self._zoned(left, right), self._zoned(right, left)

    def _zoned(self, literal: Expr, beside: Expr) -> Expr:
        if isinstance(literal, _ClockTime) and self._has_zone(beside):
            instant = self._in_utc(literal.written.replace(tzinfo=self.columns.zone), literal.span)
            return Constant(instant, Kind.TIMESTAMP, literal.span)
        return literal

    def _has_zone(self, expression: Expr) -> bool:
        return any(isinstance(part, Column) and self.columns.has_zone(part.name) for part in expression.walk())

    def _constant(self, literal: s.Number | s.String | s.Boolean | s.Null | s.Timestamp | s.Duration) -> Constant:
        span = literal.span
        match literal:
            case s.Number(value=int() as value):
                if -(2**63) <= value < 2**63:
                    return Constant(value, Kind.INTEGER, span)
                if abs(value) < 10**38:
                    return Constant(Decimal(value), Kind.DECIMAL, span)
                raise self._fail("this number has more than 38 digits", span, "the longest decimals have 38.")
            case s.Number():
                if isinf(float(literal.value)):
                    raise self._fail("this number is too large for a double", span, "the largest is about 1.8e308.")
                return _Literal(float(literal.value), Kind.FLOAT, span, written=Decimal(literal.value))
            case s.String():
                return Constant(literal.value, Kind.STRING, span)
            case s.Boolean():
                return Constant(literal.value, Kind.BOOLEAN, span)
            case s.Null():
                return Constant(None, Kind.NULL, span)
            case s.Timestamp():
                return self._instant(literal)
            case s.Duration():
                return Constant(self._timedelta(literal), Kind.DURATION, span)

    def _instant(self, literal: s.Timestamp) -> Constant:
        try:
            instant = datetime.fromisoformat(literal.text.strip())
        except ValueError:
            hint = "write TIMESTAMP '2024-05-01 12:30:00', with +02:00 or Z for a zone."
            raise self._fail(f"`{literal.text}` is not a timestamp", literal.span, hint) from None
        if instant.tzinfo is not None:
            return Constant(self._in_utc(instant, literal.span), Kind.TIMESTAMP, literal.span)
        return _ClockTime(instant.replace(tzinfo=UTC), Kind.TIMESTAMP, literal.span, written=instant)

    def _in_utc(self, instant: datetime, span: Span) -> datetime:
        try:
            return instant.astimezone(UTC)
        except OverflowError:
            raise self._fail("this timestamp, in UTC, is outside the years 1 to 9999", span) from None

    def _timedelta(self, literal: s.Duration) -> timedelta:
        microseconds = Fraction(literal.value) * SECONDS_PER_UNIT[literal.unit] * 1_000_000
        if microseconds.denominator != 1 or abs(microseconds) >= 2**62:
            message = "this duration is no whole number of microseconds, or longer than 146,000 years"
            raise self._fail(message, literal.span, "times are kept in microseconds: 0.001 ms is the shortest step.")
        try:
            return timedelta(microseconds=int(microseconds))
        except OverflowError:
            raise self._fail("this duration is too long", literal.span) from None

    def _negative(self, expression: s.Negative) -> Expr:
        operand = self._expect(
            expression.operand, "unary minus", *sorted(NUMERIC, key=lambda k: k.value), Kind.DURATION
        )
        match operand:
            case _Literal():
                assert isinstance(operand.value, float)
                return _Literal(-operand.value, Kind.FLOAT, expression.span, written=-operand.written)
            case Constant(value=Decimal() as value) if value == 2**63:
                return Constant(-(2**63), Kind.INTEGER, expression.span)
            case Constant(value=int() | Decimal() | timedelta() as value):
                return Constant(-value, operand.kind, expression.span)
        return Operation("negative", (operand,), operand.kind, expression.span)

    def _arithmetic(self, expression: s.Arithmetic) -> Expr:
        left, right = self._reconciled(self.bind(expression.left), self.bind(expression.right))
        kind = _arithmetic_kind(expression.op, left.kind, right.kind)
        if kind is None:
            # Before the columns are known, theirs is no kind to speak of.
            kinds = [kind for kind in (left.kind, right.kind) if kind is not Kind.NULL]
            wrong = " and ".join(with_article(kind.value) for kind in kinds)
            raise self._fail(f"`{expression.op}` cannot take {wrong}", expression.span, _arithmetic_hint(set(kinds)))
        return Operation(expression.op, (left, right), kind, expression.span)

    def _call(self, call: s.Call) -> Expr:
        numeric = (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT)
        match call.function:
            case "COUNT" | "SUM" | "AVG" | "MIN" | "MAX" | "FIRST" | "LAST":
                return self.group(call)
            case "ABS":
                operand = self._expect(call.arguments[0], "ABS", *numeric, Kind.DURATION)
                return Operation("abs", (operand,), operand.kind, call.span)
            case "SQRT" | "LOG" | "EXP" | "POW":
                operands = tuple(self._expect(a, call.function, *numeric) for a in call.arguments)
                return Operation(
                    "^" if call.function == "POW" else call.function.lower(), operands, Kind.FLOAT, call.span
                )
            case "LOWER" | "UPPER":
                return Operation(
                    call.function.lower(),
                    (self._expect(call.arguments[0], call.function, Kind.STRING),),
                    Kind.STRING,
                    call.span,
                )
            case _:
                return self._choice(call)

    def _choice(self, call: s.Call) -> Operation:
        """LEAST, GREATEST and COALESCE: arguments of one family, the result of their common kind."""
        operands = [self.bind(a) for a in call.arguments]
        if any(o.kind is Kind.DECIMAL for o in operands):
            operands = [_as_decimal(o) for o in operands]
        kind = Kind.NULL
        for argument, operand in zip(call.arguments, operands, strict=True):
            common = _common_kind(kind, operand.kind)
            if common is None or (common is Kind.OTHER and call.function != "COALESCE"):
                raise self._fail(_choice_message(call.function, kind, operand.kind), argument.span)
            kind = common
        types = list(dict.fromkeys(str(t) for o in operands for t in self._carried_types(o)))
        if len(types) > 1:
            raise self._fail(f"{call.function} mixes {types[0]} and {types[1]}", call.span)
        return Operation(call.function.lower(), tuple(operands), kind, call.span)

    def _carried_types(self, expression: Expr) -> Iterator[pa.DataType]:
        """Yield the types of the nested and binary columns that an expression chooses from."""
        for part in expression.walk() if expression.kind is Kind.OTHER else ():
            if isinstance(part, Column) and part.kind is Kind.OTHER:
                yield self.columns.schema.field(part.name).type


@dataclass(frozen=True, slots=True)
class _Literal(Constant):
    """A number with a point, still as written: it becomes a decimal next to a decimal."""

    written: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class _ClockTime(Constant):
    """A timestamp without a zone, still as written: next to one with a zone it is in the session's."""

    written: datetime = datetime.min


def settled(expression: Expr) -> Expr:
    """Return the expression with plain constants only, as the rest of the system knows them."""

    def plain(part: Expr) -> Expr:
        return Constant(part.value, part.kind, part.span) if isinstance(part, _Literal | _ClockTime) else part

    return expression.transform(plain)


def anonymous(expression: Expr) -> Expr:
    """Return the expression with its variable forgotten: `a.key` and `b.key` become the same."""
    return expression.transform(lambda part: replace(part, variable=THIS_ROW) if isinstance(part, Column) else part)


def _as_decimal(expression: Expr) -> Expr:
    if isinstance(expression, _Literal):
        digits = expression.written.as_tuple()
        if (
            isinstance(digits.exponent, int)
            and digits.exponent > -38
            and len(digits.digits) + max(digits.exponent, 0) <= 38
        ):
            return Constant(expression.written, Kind.DECIMAL, expression.span)
    return expression


def _comparable(a: Kind, b: Kind) -> bool:
    if Kind.OTHER in (a, b):
        return False
    return Kind.NULL in (a, b) or a is b or {a, b} <= NUMERIC or {a, b} <= _INSTANTS


def _comparison_hint(a: Expr, b: Expr) -> str:
    kinds = {a.kind, b.kind}
    if kinds & _INSTANTS and Kind.STRING in kinds:
        return "write a time as TIMESTAMP '2024-05-01 12:30:00'."
    if Kind.DURATION in kinds and kinds & NUMERIC:
        return "give the number a unit, as in `5 min`."
    if Kind.STRING in kinds and kinds & NUMERIC:
        return "quote the number to compare text with text, or read the column as a number."
    if Kind.OTHER in kinds:
        return "nested and binary columns are carried through, not compared."
    return "both sides must be of one kind."


def _arithmetic_hint(kinds: set[Kind]) -> str:
    if Kind.STRING in kinds:
        return "text cannot be computed with; is the column read with the right type?"
    if kinds & _INSTANTS and kinds & NUMERIC:
        return "give the number a unit, as in `a.time + 5 min`."
    if kinds <= _INSTANTS:
        return "two times can be subtracted, which gives a duration; nothing else."
    return "arithmetic takes numbers, and `+` and `-` times and durations."


def _arithmetic_kind(op: str, a: Kind, b: Kind) -> Kind | None:
    """The kind of `a op b`, or None where it has no meaning. `/` is real division."""
    if Kind.NULL in (a, b):
        # Null, whatever kind the other makes it: `NULL - time` could be a time or a duration.
        return None if {a, b} & {Kind.STRING, Kind.BOOLEAN, Kind.OTHER} else Kind.NULL
    if {a, b} <= NUMERIC:
        if op in ("/", "^") or Kind.FLOAT in (a, b):
            return Kind.FLOAT
        return Kind.DECIMAL if Kind.DECIMAL in (a, b) else Kind.INTEGER
    if a in _INSTANTS and b in _INSTANTS:
        return Kind.DURATION if op == "-" else None
    if a in _INSTANTS and b is Kind.DURATION:
        return Kind.TIMESTAMP if op in "+-" else None
    if a is Kind.DURATION and b in _INSTANTS:
        return Kind.TIMESTAMP if op == "+" else None
    if a is b is Kind.DURATION:
        return {"+": Kind.DURATION, "-": Kind.DURATION, "/": Kind.FLOAT}.get(op)
    if a is Kind.DURATION and b in NUMERIC:
        return Kind.DURATION if op in "*/" else None
    if a in NUMERIC and b is Kind.DURATION:
        return Kind.DURATION if op == "*" else None
    return None


def _choice_message(function: str, kind: Kind, other: Kind) -> str:
    if other is Kind.OTHER and kind in (Kind.NULL, Kind.OTHER):
        return f"{function} cannot order {with_article(other.value)}"
    return f"{function} mixes {with_article(kind.value)} and {with_article(other.value)}"


def _common_kind(a: Kind, b: Kind) -> Kind | None:
    if a is Kind.NULL or a is b:
        return b
    if b is Kind.NULL:
        return a
    if {a, b} <= NUMERIC:
        return Kind.FLOAT if Kind.FLOAT in (a, b) else Kind.DECIMAL
    return Kind.TIMESTAMP if {a, b} <= _INSTANTS else None
