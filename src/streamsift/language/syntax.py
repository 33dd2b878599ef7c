"""Define the syntax tree of a query, which is independent of any schema."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from decimal import Decimal
from enum import Enum
from typing import dataclass_transform

from streamsift.errors import NOWHERE, Span


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
@dataclass(frozen=True)
class Written:
    """A node of a tree. Every subclass is a frozen dataclass, and nodes compare by content.

    `span` is the node's position in the query's text; equality ignores it.
    """

    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


# --- expressions (values and predicates, as in SQL) -------------------------------------------


class Name(Written):
    """A dotted name: `a.x` is ("a", "x"), `S1.A.x` ("S1", "A", "x"), a bare `x` or a variable `a` ("x",)."""

    parts: tuple[str, ...]


class Number(Written):
    """A number as written: `3` is an int; `3.50` and `1e3` are Decimals."""

    value: int | Decimal


class String(Written):
    value: str


class Boolean(Written):
    value: bool


class Null(Written):
    """NULL."""


class Timestamp(Written):
    """`TIMESTAMP '2024-05-01 12:00:00'`, the text as written."""

    text: str


class Unit(Enum):
    """The unit of a duration, spelled as the printer prints it."""

    NONE = ""  # the units of the time column; seconds on a timestamp or date
    MILLISECOND = "ms"
    SECOND = "s"
    MINUTE = "min"
    HOUR = "h"
    DAY = "d"
    EVENT = "events"  # a number of rows: EVENT, EVENTS, UNIT or UNITS


class Duration(Written):
    """`5 min`, `10 events` or, in WITHIN and UPDATE only, a number without a unit (NONE)."""

    value: int | Decimal
    unit: Unit


class Negative(Written):
    """Unary minus."""

    operand: Expression


class Arithmetic(Written):
    """`left op right` with op one of + - * / % ^."""

    op: str
    left: Expression
    right: Expression


class Call(Written):
    """A call of a function, by its upper-case name; COUNT SUM AVG MIN MAX FIRST LAST aggregate a Kleene variable."""

    function: str
    arguments: tuple[Expression, ...]


class Comparison(Written):
    """A chain `e0 op0 e1 op1 e2 …`, which compares every adjacent pair. `<>` is parsed as `!=`."""

    operands: tuple[Expression, ...]
    ops: tuple[str, ...]


class SameAttribute(Written):
    """`[attr]`: all variables of the enclosing operator (in WHERE: of the whole pattern) have equal `attr`."""

    attribute: str


class InList(Written):
    operand: Expression
    items: tuple[Expression, ...]
    negated: bool = False


class Between(Written):
    operand: Expression
    low: Expression
    high: Expression
    negated: bool = False


class IsNull(Written):
    operand: Expression
    negated: bool = False


class Like(Written):
    """SQL LIKE: `%` matches any characters, `_` one character; a backslash escapes the next character."""

    operand: Expression
    pattern: str
    negated: bool = False


class NotExpression(Written):
    operand: Expression


class AllOf(Written):
    """AND of two or more predicates; an operand is an AllOf only if it was in parentheses."""

    operands: tuple[Expression, ...]


class AnyOf(Written):
    """OR of two or more predicates."""

    operands: tuple[Expression, ...]


Literal = Number | String | Boolean | Null | Timestamp | Duration
Test = Comparison | SameAttribute | InList | Between | IsNull | Like | NotExpression | AllOf | AnyOf
Expression = Name | Literal | Negative | Arithmetic | Call | Test


# --- patterns ----------------------------------------------------------------------------------------------------


class Repeat(Enum):
    ONE_OR_MORE = "+"
    ANY_NUMBER = "*"
    EXACTLY = "[n]"


class Quantifier(Written):
    repeat: Repeat
    count: int | None = None  # only for EXACTLY


class Nearest(Enum):
    """Which event of a class a component of SEQ binds, instead of any."""

    NEXT = "NEXT"  # the first one after the component before it
    LATEST = "LATEST"  # the last one before the component after it


class _WrittenPattern(Written):
    def walk(self) -> Iterator[Written]:
        """Yield the pattern and its sub-patterns, operators before operands, without those of definitions."""
        yield self
        for value in (getattr(self, each.name) for each in fields(self)):
            for inner in value if isinstance(value, tuple) else (value,):
                if isinstance(inner, _WrittenPattern):
                    yield from inner.walk()

    def events(self) -> list[Event]:
        return [node for node in self.walk() if isinstance(node, Event)]


class Event(_WrittenPattern):
    """`[NEXT | LATEST] class [quantifier] [var]`. The class name may be the name of a definition."""

    class_name: str
    variable: str | None = None
    quantifier: Quantifier | None = None
    any_row: bool = False  # the unquoted class ANY (class_name is then "ANY")
    nearest: Nearest | None = None
    variable_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


class _WrittenOperator(_WrittenPattern):
    operands: tuple[Pattern, ...]
    predicates: tuple[Expression, ...] = ()


class Seq(_WrittenOperator):
    """`SEQ(x1, …, xn, predicates)` or `x1; …; xn`."""


class And(_WrittenOperator):
    """`AND(x1, …, xn, predicates)` or `x1 & … & xn`."""


class Or(_WrittenOperator):
    """`OR(x1, …, xn, predicates)` or `x1 | … | xn`."""


class Not(_WrittenPattern):
    operand: Pattern


Pattern = Event | Seq | And | Or | Not


# --- clauses -----------------------------------------------------------------------------------------------------


class ClassDefinition(Written):
    """`WITH name = (predicate)`."""

    name: str
    predicate: Expression


class Window(Written):
    """`WITHIN length [EXCLUSIVE]`."""

    length: Duration
    exclusive: bool = False


class Aggregate(Written):
    """`COUNT` (argument None), or SUM AVG MIN MAX of `var.attr`."""

    function: str
    argument: Name | None = None
    alias: str | None = None


class Objective(Written):
    """`MAX[name = expression]`, or MIN if `maximise` is False."""

    maximise: bool
    expression: Expression
    name: str | None = None


class Preference(Written):
    objectives: tuple[Objective, ...]
    merge: str | None = None  # SUM AVG MIN MAX PRODUCT, or None if not written


class Emit(Enum):
    FINAL = "FINAL"  # only maximal groups (the default)
    EACH = "EACH"  # a trailing group every time it grows
    CHANGES = "CHANGES"  # aggregates also when they change without the end of a match


class EmitMode(Written):
    mode: Emit


class ReturnItem(Written):
    """A variable (a one-part Name) or an expression, with its AS name."""

    expression: Expression
    alias: str | None = None


class Return(Written):
    """`RETURN k`, `RETURN items` or `RETURN TOP k items`."""

    limit: int | None = None
    items: tuple[ReturnItem, ...] = ()


class Statement(Written):
    """A pattern with its clauses in any order. Clauses that are not written are empty or None."""

    pattern: Pattern
    classes: tuple[ClassDefinition, ...] = ()
    where: Expression | None = None
    until: Event | None = None
    partition_by: tuple[Name, ...] = ()
    group_by: tuple[Name, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    preference: Preference | None = None
    window: Window | None = None
    update: Duration | None = None
    emit: EmitMode | None = None
    returns: Return | None = None


class Definition(Written):
    """`SEQ name = pattern clauses`; the clauses can be WITH, WITHIN, WHERE, PREF and PARTITION BY."""

    name: str
    statement: Statement


@dataclass(frozen=True, slots=True)
class Script:
    definitions: tuple[Definition, ...]
    statement: Statement
    text: str = field(default="", compare=False, repr=False)  # the source that spans refer to

    @property
    def statements(self) -> tuple[tuple[str | None, Statement], ...]:
        """The statements of the definitions with their names, then the main statement with None."""
        return (*((definition.name, definition.statement) for definition in self.definitions), (None, self.statement))
