"""Bind and type expressions; raise QueryError with both types if they are incompatible."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from itertools import pairwise
from math import isinf

import pyarrow as pa

from streamsift.errors import QueryError, Span, with_article
from streamsift.language import syntax as s
from streamsift.language.keywords import GROUP_FUNCTIONS
from streamsift.language.printer import print_expression
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
_ADDABLE = NUMERIC | {Kind.DURATION}
_TAKES = {  # the kinds of a function's arguments
    "ABS": _ADDABLE,
    **dict.fromkeys(("SQRT", "LOG", "EXP", "POW"), NUMERIC),
    **dict.fromkeys(("LOWER", "UPPER"), frozenset({Kind.STRING})),
}
NESTED_HINT = "compare other columns: nested and binary ones can only be returned or tested with IS NULL."
_TIME_ARITHMETIC = {
    ("time", "-", "time"): Kind.DURATION,
    ("time", "+", "duration"): Kind.TIMESTAMP,
    ("time", "-", "duration"): Kind.TIMESTAMP,
    ("duration", "+", "time"): Kind.TIMESTAMP,
    ("duration", "+", "duration"): Kind.DURATION,
    ("duration", "-", "duration"): Kind.DURATION,
    ("duration", "/", "duration"): Kind.FLOAT,
    ("duration", "*", "number"): Kind.DURATION,
    ("duration", "/", "number"): Kind.DURATION,
    ("number", "*", "duration"): Kind.DURATION,
}


@dataclass(frozen=True, slots=True)
class ExpressionBinder:
    """Bind expressions; `resolve` turns a name into a column or, for an objective, into its expression."""

    fail: Callable[..., QueryError]  # message, span, hint
    resolve: Callable[[s.Name], Expr]
    group: Callable[[s.Call], GroupAggregate]
    columns: EventColumns

    def predicate(self, expression: s.Expression) -> Expr:
        """Bind an expression that must be boolean."""
        bound = self.bind(expression)
        if bound.kind not in (Kind.BOOLEAN, Kind.NULL):
            message = f"expected a predicate, not {with_article(bound.kind.value)}"
            raise self.fail(message, expression.span, "compare it with a value, or add IS NOT NULL.")
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
                pairs = zip(expression.ops, pairwise(expression.operands), strict=True)
                tests = tuple(self.comparison(op, *pair, expression.span) for op, pair in pairs)
                return tests[0] if len(tests) == 1 else truth("and", tests, expression.span)
            case s.SameAttribute():
                message = f"`[{expression.attribute}]` is not a value"
                hint = "use it as a predicate: in WHERE, or as an argument of SEQ, AND or OR."
                raise self.fail(message, expression.span, hint)
            case s.InList() | s.Between() | s.IsNull() | s.Like():
                test = self._test(expression)
                return truth("not", (test,), test.span) if expression.negated else test
            case s.NotExpression():
                return truth("not", (self.predicate(expression.operand),), expression.span)
            case s.AllOf() | s.AnyOf():
                op = "and" if isinstance(expression, s.AllOf) else "or"
                return truth(op, tuple(self.predicate(o) for o in expression.operands), expression.span)

    def _test(self, expression: s.InList | s.Between | s.IsNull | s.Like) -> Operation:
        """Bind a test without its negation."""
        span = expression.span
        match expression:
            case s.InList():
                items = tuple(
                    self.comparison("=", expression.operand, item, item.span, "IN") for item in expression.items
                )
                operand = items[0].operands[0]
                if isinstance(operand, Constant):  # may be a decimal for one item and a double for another
                    return truth("or", items, span)
                return truth("in", (operand, *(item.operands[1] for item in items)), span)
            case s.Between():
                low = self.comparison(">=", expression.operand, expression.low, expression.low.span, "BETWEEN")
                high = self.comparison("<=", expression.operand, expression.high, expression.high.span, "BETWEEN")
                return truth("and", (low, high), span)
            case s.IsNull():
                return truth("is_null", (self.bind(expression.operand),), span)
            case s.Like():
                operand = self._expect(expression.operand, "LIKE", frozenset({Kind.STRING}))
                return truth("like", (operand, Constant(expression.pattern, Kind.STRING, span=span)), span)

    def comparison(self, op: str, left: s.Expression, right: s.Expression, span: Span, written: str = "") -> Operation:
        """Bind `left op right`; `written` is the operator as error messages show it."""
        a, b = self._reconciled(self.bind(left), self.bind(right))
        if Kind.OTHER in (a.kind, b.kind) or _common_kind(a.kind, b.kind) is None:
            message = (
                f"{written or f'`{op}`'} cannot compare {with_article(a.kind.value)} with {with_article(b.kind.value)}"
            )
            raise self.fail(message, span, _comparison_hint({a.kind: left, b.kind: right}))
        return truth(op, (a, b), span)

    def _expect(self, expression: s.Expression, what: str, kinds: frozenset[Kind]) -> Expr:
        bound = self.bind(expression)
        if bound.kind not in kinds | {Kind.NULL}:
            names = ["number"] * (kinds >= NUMERIC) + [kind.value for kind in kinds - NUMERIC]
            wanted = " or ".join(map(with_article, names))
            raise self.fail(f"{what} requires {wanted}, not {with_article(bound.kind.value)}", expression.span)
        return bound

    def _reconciled(self, left: Expr, right: Expr) -> tuple[Expr, Expr]:
        """Type literals by the other operand.

        A number with a decimal point is a decimal next to a decimal, and a double otherwise. A timestamp without a time
        zone is in the session's zone next to a value with a time zone, and a local time otherwise.
        """
        if left.kind is Kind.DECIMAL:
            right = _as_decimal(right)
        elif right.kind is Kind.DECIMAL:
            left = _as_decimal(left)
        return self._zoned(left, right), self._zoned(right, left)

    def _zoned(self, literal: Expr, beside: Expr) -> Expr:
        columns = (part.name for part in beside.walk() if isinstance(part, Column))
        if isinstance(literal, _ClockTime) and any(map(self.columns.has_zone, columns)):
            instant = self._in_utc(literal.written.replace(tzinfo=self.columns.zone), literal.span)
            return Constant(instant, Kind.TIMESTAMP, span=literal.span)
        return literal

    def _constant(self, literal: s.Literal) -> Constant:
        span = literal.span
        match literal:
            case s.Number(value=int() as value):
                if -(2**63) <= value < 2**63:
                    return Constant(value, Kind.INTEGER, span=span)
                if abs(value) < 10**38:
                    return Constant(Decimal(value), Kind.DECIMAL, span=span)
                raise self.fail("the number has more than 38 digits", span, "use a number of at most 38 digits.")
            case s.Number():
                if isinf(float(literal.value)):
                    raise self.fail("the number is too large for a double", span, "use a number below 1.8e308.")
                return _Literal(float(literal.value), Kind.FLOAT, Decimal(literal.value), span=span)
            case s.String():
                return Constant(literal.value, Kind.STRING, span=span)
            case s.Boolean():
                return Constant(literal.value, Kind.BOOLEAN, span=span)
            case s.Null():
                return Constant(None, Kind.NULL, span=span)
            case s.Timestamp():
                return self._instant(literal)
            case s.Duration():
                return Constant(self._timedelta(literal), Kind.DURATION, span=span)

    def _instant(self, literal: s.Timestamp) -> Constant:
        try:
            instant = datetime.fromisoformat(literal.text.strip())
        except ValueError:
            hint = "write TIMESTAMP '2024-05-01 12:30:00', with an optional time zone such as +02:00 or Z."
            raise self.fail(f"`{literal.text}` is not a timestamp", literal.span, hint) from None
        if instant.tzinfo is not None:
            return Constant(self._in_utc(instant, literal.span), Kind.TIMESTAMP, span=literal.span)
        return _ClockTime(instant.replace(tzinfo=UTC), Kind.TIMESTAMP, instant, span=literal.span)

    def _in_utc(self, instant: datetime, span: Span) -> datetime:
        try:
            return instant.astimezone(UTC)
        except OverflowError:
            raise self.fail("the timestamp is outside the years 1 to 9999 in UTC", span) from None

    def _timedelta(self, literal: s.Duration) -> timedelta:
        microseconds = Fraction(literal.value) * SECONDS_PER_UNIT[literal.unit] * 1_000_000
        if microseconds.denominator != 1 or abs(microseconds) >= 2**62:
            if microseconds.denominator != 1:
                message, hint = "the duration is not a multiple of 1 microsecond", "use a multiple of 0.001 ms."
            else:
                message, hint = "the duration is longer than 146,000 years", "use a shorter duration."
            raise self.fail(message, literal.span, hint)
        return timedelta(microseconds=int(microseconds))

    def _negative(self, expression: s.Negative) -> Expr:
        operand, span = self._expect(expression.operand, "unary minus", _ADDABLE), expression.span
        match operand:
            case _Literal():
                assert isinstance(operand.value, float)
                return _Literal(-operand.value, Kind.FLOAT, -operand.written, span=span)
            case Constant(value=Decimal() as value) if value == 2**63:
                return Constant(-(2**63), Kind.INTEGER, span=span)
            case Constant(value=int() | Decimal() | timedelta() as value):
                return Constant(-value, operand.kind, span=span)
        return Operation("negative", (operand,), operand.kind, span=span)

    def _arithmetic(self, expression: s.Arithmetic) -> Expr:
        left, right = self._reconciled(self.bind(expression.left), self.bind(expression.right))
        kind = _arithmetic_kind(expression.op, left.kind, right.kind)
        if kind is None:
            # Without a schema, a column has no kind to show.
            kinds = [kind for kind in (left.kind, right.kind) if kind is not Kind.NULL]
            wrong = " and ".join(with_article(kind.value) for kind in kinds)
            raise self.fail(
                f"`{expression.op}` cannot be applied to {wrong}", expression.span, _arithmetic_hint(set(kinds))
            )
        return Operation(expression.op, (left, right), kind, span=expression.span)

    def _call(self, call: s.Call) -> Expr:
        function, name = call.function, "^" if call.function == "POW" else call.function.lower()
        if function in GROUP_FUNCTIONS:
            return self.group(call)
        if function not in _TAKES:
            return self._choice(call)
        operands = tuple(self._expect(argument, function, _TAKES[function]) for argument in call.arguments)
        kind = operands[0].kind if function == "ABS" else Kind.STRING if Kind.STRING in _TAKES[function] else Kind.FLOAT
        return Operation(name, operands, kind, span=call.span)

    def _choice(self, call: s.Call) -> Operation:
        """Bind LEAST, GREATEST or COALESCE: the arguments must have a common kind, which is that of the result."""
        operands = [self.bind(a) for a in call.arguments]
        if any(o.kind is Kind.DECIMAL for o in operands):
            operands = [_as_decimal(o) for o in operands]
        kind = Kind.NULL
        for argument, operand in zip(call.arguments, operands, strict=True):
            common = _common_kind(kind, operand.kind)
            if common is None or (common is Kind.OTHER and call.function != "COALESCE"):
                other = with_article(operand.kind.value)
                is_first = operand.kind is Kind.OTHER and kind in (Kind.NULL, Kind.OTHER)
                wrong = f"cannot order {other}" if is_first else f"cannot mix {with_article(kind.value)} and {other}"
                raise self.fail(f"{call.function} {wrong}", argument.span)
            kind = common
        types = list(dict.fromkeys(str(t) for o in operands for t in self._carried_types(o)))
        if len(types) > 1:
            raise self.fail(f"{call.function} cannot mix {types[0]} and {types[1]}", call.span)
        return Operation(call.function.lower(), tuple(operands), kind, span=call.span)

    def _carried_types(self, expression: Expr) -> Iterator[pa.DataType]:
        """Yield the types of the nested and binary columns in an expression."""
        for part in expression.walk() if expression.kind is Kind.OTHER else ():
            if isinstance(part, Column) and part.kind is Kind.OTHER:
                yield self.columns.schema.field(part.name).type


class _Literal(Constant):
    """A number with a decimal point, as written: next to a decimal it becomes a decimal."""

    written: Decimal


class _ClockTime(Constant):
    """A timestamp without a time zone, as written: next to a value with one, it is in the session's zone."""

    written: datetime


def settled(expression: Expr) -> Expr:
    """Replace literals with plain constants, now that their kinds are settled."""

    def plain(part: Expr) -> Expr:
        return Constant(part.value, part.kind, span=part.span) if isinstance(part, _Literal | _ClockTime) else part

    return expression.transform(plain)


def anonymous(expression: Expr) -> Expr:
    """Return the expression without its variables, so that `a.key` and `b.key` are equal."""
    return expression.transform(lambda part: replace(part, variable=THIS_ROW) if isinstance(part, Column) else part)


def _as_decimal(expression: Expr) -> Expr:
    if isinstance(expression, _Literal):
        _, digits, exponent = expression.written.as_tuple()
        if isinstance(exponent, int) and exponent > -38 and len(digits) + max(exponent, 0) <= 38:
            return Constant(expression.written, Kind.DECIMAL, span=expression.span)
    return expression


def _comparison_hint(sides: dict[Kind, s.Expression]) -> str:
    """Return what to change in a comparison of these two kinds."""
    kinds = set(sides)
    number = next((sides[kind] for kind in NUMERIC if kind in kinds), None)
    if Kind.OTHER in kinds:
        return NESTED_HINT
    if Kind.DURATION in kinds and number is not None:
        return "add a unit to the number, such as 5 min."
    if Kind.STRING not in kinds:
        return "compare values of the same type."
    string = sides[Kind.STRING]
    if kinds & _INSTANTS:
        if not isinstance(string, s.String):
            return "convert the strings to timestamps first."
        return f"write TIMESTAMP '{string.value if _is_timestamp(string.value) else '2024-05-01 12:30:00'}'."
    if number is None:
        return "compare values of the same type."
    if isinstance(string, s.String):
        if _is_number(string.value):
            return f"remove the quotes: {string.value.strip()}."
        return f"compare `{print_expression(number)}` with a number, or compare the string with a column of strings."
    if isinstance(number, s.Number | s.Negative):
        return f"quote the number ('{print_expression(number)}') to compare strings, or convert the column to a number."
    return "convert one of the columns, so that both have the same type."


def _is_number(text: str) -> bool:
    try:
        Decimal(text.strip())
    except InvalidOperation:
        return False
    return True


def _is_timestamp(text: str) -> bool:
    try:
        datetime.fromisoformat(text.strip())
    except ValueError:
        return False
    return True


def _arithmetic_hint(kinds: set[Kind]) -> str:
    if Kind.STRING in kinds:
        return "use numeric columns, or convert the strings to numbers first."
    if kinds & _INSTANTS and kinds & NUMERIC:
        return "add a unit to the number, such as a.time + 5 min."
    if kinds <= _INSTANTS:
        return "subtract two times to get a duration."
    return "use numbers; `+` and `-` also take times and durations."


def _arithmetic_kind(op: str, a: Kind, b: Kind) -> Kind | None:
    """Return the kind of `a op b`, or None if the operator does not apply. `/` is floating-point division."""
    if Kind.NULL in (a, b):
        # The result is null. Its kind is unknown: `NULL - time` could be a time or a duration.
        return None if {a, b} & {Kind.STRING, Kind.BOOLEAN, Kind.OTHER} else Kind.NULL
    if {a, b} <= NUMERIC:
        if op in ("/", "^") or Kind.FLOAT in (a, b):
            return Kind.FLOAT
        return Kind.DECIMAL if Kind.DECIMAL in (a, b) else Kind.INTEGER
    families = ["number" if kind in NUMERIC else "time" if kind in _INSTANTS else kind.value for kind in (a, b)]
    return _TIME_ARITHMETIC.get((families[0], op, families[1]))


def _common_kind(a: Kind, b: Kind) -> Kind | None:
    if a is Kind.NULL or a is b:
        return b
    if b is Kind.NULL:
        return a
    if {a, b} <= NUMERIC:
        return Kind.FLOAT if Kind.FLOAT in (a, b) else Kind.DECIMAL
    return Kind.TIMESTAMP if {a, b} <= _INSTANTS else None
