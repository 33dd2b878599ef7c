"""Define the syntax tree: what a query's text says, before any schema gives it meaning.

Nodes are frozen and compare by content only: `span` says where in the text a node stands and takes no part in equality.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import cast

from streamsift.errors import NOWHERE, Span


@dataclass(frozen=True, slots=True)
class _Written:
    """What stands somewhere in the text."""

    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


# --- expressions (values and predicates share one family, as in SQL) -------------------------------------------


@dataclass(frozen=True, slots=True)
class Name(_Written):
    """A dotted name: `a.x` is ("a", "x"), `S1.A.x` ("S1", "A", "x"), a bare `x` or a variable `a` ("x",)."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Number(_Written):
    """A number as written: `3` is an int, `3.50` and `1e3` a Decimal."""

    value: int | Decimal


@dataclass(frozen=True, slots=True)
class String(_Written):
    value: str


@dataclass(frozen=True, slots=True)
class Boolean(_Written):
    value: bool


@dataclass(frozen=True, slots=True)
class Null(_Written):
    """NULL."""


@dataclass(frozen=True, slots=True)
class Timestamp(_Written):
    """`TIMESTAMP '2024-05-01 12:00:00'`, the text as written."""

    text: str


class Unit(Enum):
    """What a duration's number counts. The value is the spelling that the printer uses."""

    NONE = ""  # the time column's own units; seconds on a timestamp or date
    MILLISECOND = "ms"
    SECOND = "s"
    MINUTE = "min"
    HOUR = "h"
    DAY = "d"
    EVENT = "events"  # EVENT(S) and UNIT(S): a count of rows


@dataclass(frozen=True, slots=True)
class Duration(_Written):
    """`5 min`, `10 events`, or in WITHIN and UPDATE a bare number. In an expression the unit is never NONE."""

    value: int | Decimal
    unit: Unit


@dataclass(frozen=True, slots=True)
class Negative(_Written):
    """Unary minus."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Arithmetic(_Written):
    """`left op right` with op one of + - * / % ^."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Call(_Written):
    """A function by its upper-case name: ABS … UPPER, and COUNT SUM AVG MIN MAX FIRST LAST over a Kleene variable."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Comparison(_Written):
    """A chain `e0 op0 e1 op1 e2 …`: every adjacent pair. ops are = != < <= > >= (`<>` is read as `!=`)."""

    operands: tuple[Expression, ...]
    ops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SameAttribute(_Written):
    """`[attr]`: all variables of the operator it stands in (in WHERE: of the whole pattern) have equal `attr`."""

    attribute: str


@dataclass(frozen=True, slots=True)
class InList(_Written):
    operand: Expression
    items: tuple[Expression, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Between(_Written):
    operand: Expression
    low: Expression
    high: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsNull(_Written):
    operand: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Like(_Written):
    """SQL LIKE: `%` any characters, `_` one, backslash takes the next literally."""

    operand: Expression
    pattern: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class NotExpression(_Written):
    operand: Expression


@dataclass(frozen=True, slots=True)
class AllOf(_Written):
    """A predicate's AND: two or more operands, none itself an AllOf unless it was put in parentheses."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class AnyOf(_Written):
    """A predicate's OR."""

    operands: tuple[Expression, ...]


Expression = (
    Name
    | Number
    | String
    | Boolean
    | Null
    | Timestamp
    | Duration
    | Negative
    | Arithmetic
    | Call
    | Comparison
    | SameAttribute
    | InList
    | Between
    | IsNull
    | Like
    | NotExpression
    | AllOf
    | AnyOf
)


# --- patterns ----------------------------------------------------------------------------------------------------


class Repeat(Enum):
    ONE_OR_MORE = "+"
    ANY_NUMBER = "*"
    EXACTLY = "[n]"


@dataclass(frozen=True, slots=True)
class Quantifier(_Written):
    repeat: Repeat
    count: int | None = None  # set for EXACTLY alone


class _WrittenPattern:
    """The walk of a pattern as written: definitions are not entered."""

    __slots__ = ()

    def walk(self) -> Iterator[Pattern]:
        """Yield the pattern and all inside it, an operator before its operands."""
        match cast("Pattern", self):
            case Event() as event:
                yield event
            case Not() as negation:
                yield negation
                yield from negation.operand.walk()
            case operator:
                yield operator
                for operand in operator.operands:
                    yield from operand.walk()

    def events(self) -> list[Event]:
        return [node for node in self.walk() if isinstance(node, Event)]


@dataclass(frozen=True, slots=True)
class Event(_Written, _WrittenPattern):
    """`class [quantifier] [var]`. A class name that a definition of the script bears stands for that definition."""

    class_name: str
    variable: str | None = None
    quantifier: Quantifier | None = None
    any_row: bool = False  # the unquoted class ANY (class_name is then "ANY")
    variable_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class _WrittenOperator(_Written, _WrittenPattern):
    operands: tuple[Pattern, ...]
    predicates: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Seq(_WrittenOperator):
    """`SEQ(x1, …, xn, predicates)` or `x1; …; xn`."""


@dataclass(frozen=True, slots=True)
class And(_WrittenOperator):
    """`AND(x1, …, xn, predicates)` or `x1 & … & xn`."""


@dataclass(frozen=True, slots=True)
class Or(_WrittenOperator):
    """`OR(x1, …, xn, predicates)` or `x1 | … | xn`."""


@dataclass(frozen=True, slots=True)
class Not(_Written, _WrittenPattern):
    operand: Pattern


Pattern = Event | Seq | And | Or | Not


# --- clauses -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClassDefinition(_Written):
    """`WITH name = (predicate)`."""

    name: str
    predicate: Expression


@dataclass(frozen=True, slots=True)
class Window(_Written):
    """`WITHIN length [EXCLUSIVE]`."""

    length: Duration
    exclusive: bool = False


@dataclass(frozen=True, slots=True)
class Aggregate(_Written):
    """`COUNT` (argument None), or SUM AVG MIN MAX of `var.attr`."""

    function: str
    argument: Name | None = None
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class Objective(_Written):
    """`MAX[name = expression]`; maximise False for MIN."""

    maximise: bool
    expression: Expression
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Preference(_Written):
    objectives: tuple[Objective, ...]
    merge: str | None = None  # SUM AVG MIN MAX PRODUCT, or None where not written


class Emit(Enum):
    FINAL = "FINAL"  # maximal groups only (the default)
    EACH = "EACH"  # a trailing group as it grows
    CHANGES = "CHANGES"  # aggregates also where they change without a match ending


@dataclass(frozen=True, slots=True)
class EmitMode(_Written):
    mode: Emit


@dataclass(frozen=True, slots=True)
class ReturnItem(_Written):
    """A variable (a one-part Name) or an expression, with its AS name."""

    expression: Expression
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class Return(_Written):
    """`RETURN k`, `RETURN items` or `RETURN TOP k items`."""

    limit: int | None = None
    items: tuple[ReturnItem, ...] = ()


@dataclass(frozen=True, slots=True)
class Statement(_Written):
    """A pattern with its clauses, whatever order they were written in. Clauses not written are empty or None."""

    pattern: Pattern
    classes: tuple[ClassDefinition, ...] = ()
    where: Expression | None = None
    partition_by: tuple[Name, ...] = ()
    group_by: tuple[Name, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    preference: Preference | None = None
    window: Window | None = None
    update: Duration | None = None
    emit: EmitMode | None = None
    returns: Return | None = None


@dataclass(frozen=True, slots=True)
class Definition(_Written):
    """`SEQ name = pattern clauses`; the statement holds WITH, WITHIN, WHERE, PREF and PARTITION BY only."""

    name: str
    statement: Statement


@dataclass(frozen=True, slots=True)
class Script:
    definitions: tuple[Definition, ...]
    statement: Statement
    text: str = field(default="", compare=False, repr=False)  # the source that the spans point into

    @property
    def statements(self) -> tuple[Statement, ...]:
        """Those of the definitions, then its own."""
        return (*(definition.statement for definition in self.definitions), self.statement)
