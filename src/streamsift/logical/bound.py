"""Define the bound query: the syntax tree with names, types, scopes and units resolved against a schema.

All classes are frozen, compare by content and are pickled for Spark workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import ClassVar, cast

import pyarrow as pa

from streamsift.errors import NOWHERE, Span
from streamsift.language.syntax import Emit, Quantifier, Repeat, Written


class Kind(Enum):
    """The kind of a value, which determines the operators that apply. Error messages print the enum's value."""

    INTEGER = "integer"
    DECIMAL = "decimal"
    FLOAT = "double"
    STRING = "string"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"
    DATE = "date"
    DURATION = "duration"
    NULL = "null"
    OTHER = "nested or binary value"  # can only be returned or tested with IS NULL


NUMERIC = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT})


# --- expressions -------------------------------------------------------------------------------------------------

THIS_ROW = -1  # Column.variable in a predicate of WITH: the row that is being classified
TIME = "$time"  # Column.name of the bound time, whatever its column's name; strings are parsed already


class _Expression(Written):
    def walk(self) -> Iterator[Expr]:
        """Yield the expression and its sub-expressions, operations before operands."""
        expression = cast("Expr", self)
        yield expression
        for operand in expression.operands if isinstance(expression, Operation) else ():
            yield from operand.walk()

    def transform(self, change: Callable[[Expr], Expr]) -> Expr:
        """Apply `change` to every sub-expression, operands before operations."""
        expression = cast("Expr", self)
        if isinstance(expression, Operation):
            operands = tuple([operand.transform(change) for operand in expression.operands])
            expression = replace(expression, operands=operands)
        return change(expression)

    @property
    def variables(self) -> frozenset[int]:
        return frozenset(part.variable for part in self.walk() if isinstance(part, Column | GroupAggregate))

    def renamed(self, names: Mapping[int, int]) -> Expr:
        """Return the expression with other variables; aggregates keep theirs."""
        return self.transform(
            lambda part: (
                replace(part, variable=names.get(part.variable, part.variable)) if isinstance(part, Column) else part
            )
        )


class Column(_Expression):
    """The attribute `name`, a column of the schema or TIME, of the event that `variable` binds."""

    variable: int
    name: str
    kind: Kind


Scalar = int | float | Decimal | str | bool | datetime | date | timedelta | None


class Constant(_Expression):
    value: Scalar
    kind: Kind


class Operation(_Expression):
    """One operator or function over operands.

    Arithmetic: + - * / % ^ negative, abs sqrt log exp least greatest coalesce lower upper;
    case, whose operands are condition, value, …, and last the value if no condition is true.
    Predicates (kind BOOLEAN): = != < <= > >= and or not is_null like in. The operands of `in` are the value and the
    items; those of `like` are the value and the pattern, a Constant.
    """

    op: str
    operands: tuple[Expr, ...]
    kind: Kind


class GroupAggregate(_Expression):
    """COUNT (column None), SUM, AVG, MIN, MAX, FIRST or LAST over the events of a Kleene variable."""

    function: str
    variable: int
    column: str | None
    kind: Kind


Expr = Column | Constant | Operation | GroupAggregate


def truth(op: str, operands: tuple[Expr, ...], span: Span = NOWHERE) -> Operation:
    """Return a boolean operation."""
    return Operation(op, operands, Kind.BOOLEAN, span=span)


# --- classes, variables, predicates --------------------------------------------------------------------------------


class ClassRule(Enum):
    """How the rows of a class are found."""

    WITH = "WITH"  # rows that satisfy the class's predicate
    ANY = "ANY"  # every row
    TYPE = "type"  # rows whose type column equals the class name
    ALL = "no type column"  # every row, because no type column is bound


@dataclass(frozen=True, slots=True)
class EventClass:
    name: str
    rule: ClassRule
    predicate: Expr | None = None  # over THIS_ROW, for WITH

    def may_overlap(self, other: EventClass) -> bool:
        """Return True if a row may belong to both classes."""
        return not (self.rule is other.rule is ClassRule.TYPE and self.name != other.name)


class Variable(Written):
    """A variable of the pattern, numbered in order of appearance, including negated variables."""

    index: int
    name: str  # as in the output: `a`, or `S1.A` in a definition
    event_class: EventClass
    quantifier: Quantifier | None
    scope: int  # the innermost Negated that contains it; ROOT_SCOPE for a positive variable

    @property
    def positive(self) -> bool:
        return self.scope == ROOT_SCOPE

    @property
    def may_be_empty(self) -> bool:
        return self.quantifier is not None and self.quantifier.repeat is Repeat.ANY_NUMBER


ROOT_SCOPE = 0


class PredicateClass(Enum):
    """How a predicate can be evaluated, cheapest first."""

    LOCAL = "local"  # one variable: a filter on its class
    EQUALITY = "equality"  # an expression of one variable = one of another: a hash lookup
    PAIRWISE = "pairwise"  # the same with another comparison: the kernel compares codes
    GENERAL = "general"  # other predicates: evaluated over columns of candidate rows
    GROUP = "group"  # has an aggregate over a Kleene group: filters complete matches
    UNIFORM = "uniform"  # `[attr]` over Kleene variables only: all their elements have equal values
    CONSTANT = "constant"  # has no variable


class Predicate(Written):
    """A conjunct of WHERE or of an operator's predicates, which are split at top-level ANDs, chains and `[attr]`."""

    expression: Expr
    variables: tuple[int, ...]  # sorted and distinct
    scope: int  # the innermost Negated that has one of its variables, else ROOT_SCOPE
    predicate_class: PredicateClass
    text: str


Side = tuple[int, str]  # a variable and a column of its event


def column_sides(predicate: Predicate) -> tuple[Side, Side] | None:
    """Return the two sides of an equality between plain columns; None for any other predicate."""
    if predicate.predicate_class is PredicateClass.EQUALITY:
        match predicate.expression:
            case Operation(operands=(Column() as left, Column() as right)):
                return (left.variable, left.name), (right.variable, right.name)
    return None


# --- patterns ------------------------------------------------------------------------------------------------------


class _Pattern(Written):
    def walk(self, *, into_negations: bool = True) -> Iterator[Node]:
        """Yield the node and its descendants in order of appearance, operators before operands.

        Without `into_negations`, yield negations but not their descendants.
        """
        node = cast("Node", self)
        yield node
        if into_negations or not isinstance(node, Negated):
            for child in node.children:
                yield from child.walk(into_negations=into_negations)

    def rebuilt(self, change: Callable[[Node], Node]) -> Node:
        """Return the node with `change` applied to its children."""
        match cast("Node", self):
            case Leaf() as leaf:
                return leaf
            case (Negated() | SubPattern()) as around:
                return replace(around, child=change(around.child))
            case operator:
                return replace(operator, children=tuple(map(change, operator.children)))

    def leaves(self) -> list[int]:
        """Return the positive variables, in order of appearance."""
        return [node.variable for node in self.walk(into_negations=False) if isinstance(node, Leaf)]

    @property
    def variables(self) -> frozenset[int]:
        """The variables of the pattern, including those of its negations."""
        return frozenset(node.variable for node in self.walk() if isinstance(node, Leaf))

    def negations(self) -> list[Negated]:
        """Return the outermost negations, in order of appearance."""
        return [node for node in self.walk(into_negations=False) if isinstance(node, Negated)]

    def windowed_definitions(self) -> list[SubPattern]:
        """Return the definitions that have a window, including negated ones."""
        return [node for node in self.walk() if isinstance(node, SubPattern) and node.window is not None]


class Leaf(_Pattern):
    variable: int
    children: ClassVar[tuple[Node, ...]] = ()


class _Operator(_Pattern):
    children: tuple[Node, ...]


class _Around(_Pattern):
    child: Node

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.child,)


class Sequence(_Operator):
    """Matches of all children, each strictly after the previous one."""


class Conjunction(_Operator):
    """Matches of all children, in any order."""


class Disjunction(_Operator):
    """A match of one of the children."""


class OrderedConjunction(Conjunction):
    """Two operands of AND, the first strictly before the second; negations keep the bounds of the AND."""

    swapped: bool = False


class Negated(_Around):
    scope: int


class SubPattern(_Around):
    """A use of a definition: its pattern, limited by its window if it has one.

    `partition_by` holds the key columns of the definition; its count window counts the rows of one key.
    """

    name: str
    window: BoundWindow | None
    partition_by: tuple[str, ...]


Node = Leaf | Sequence | Conjunction | Disjunction | Negated | SubPattern


# --- time, windows, output -----------------------------------------------------------------------------------------


class TimeKind(Enum):
    INTEGER = "integer"
    DECIMAL = "decimal"
    FLOAT = "double"
    TIMESTAMP = "timestamp"
    DATE = "date"
    TEXT = "ISO-8601 text"  # a string column, parsed as timestamps


@dataclass(frozen=True, slots=True)
class Binding:
    """The columns of the time, the class name and the order of events with equal times."""

    time: str
    time_kind: TimeKind
    type: str | None = None
    order: str | None = None


class WindowKind(Enum):
    TIME = "time"
    COUNT = "count"


class BoundWindow(Written):
    """A window; `length` is in seconds for timestamps and dates, in column units for numbers, in rows for COUNT."""

    kind: WindowKind
    length: Fraction
    exclusive: bool
    text: str


class PreferenceClass(Enum):
    LINEAR = "linear"  # a weighted sum of attributes
    MONOTONE = "monotone"  # monotone in the component of each variable
    OTHER = "other"


class BoundObjective(Written):
    name: str
    maximise: bool
    expression: Expr
    preference_class: PreferenceClass


@dataclass(frozen=True, slots=True)
class Merge:
    """The function that merges the next `count` objectives, of the statement or of one definition, into a score."""

    function: str  # SUM AVG MIN MAX PRODUCT
    count: int


@dataclass(frozen=True, slots=True)
class Ranking:
    """Objectives in order. Each of `merges` combines the next objectives; the minimum of the results is the score."""

    objectives: tuple[BoundObjective, ...]
    merges: tuple[Merge, ...]
    limit: int


class AggregateOutput(Written):
    function: str
    variable: int | None
    column: str | None
    name: str


class WholeEvent(Written):
    """An output column with the event, or the array of events, of a variable."""

    variable: int
    name: str


class Computed(Written):
    """An output column with the value of an expression."""

    expression: Expr
    name: str


OutputItem = WholeEvent | Computed


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A query bound to a schema.

    `output` lists the columns of a match. `show_bounds` adds match_start and match_end, if there is no RETURN.
    `partition_by` and `group_by` are columns; `predicates` includes the equalities that they imply.
    `group_names` are the GROUP BY columns as written, which name the columns of the result.
    """

    pattern: Node
    variables: tuple[Variable, ...]
    predicates: tuple[Predicate, ...]
    window: BoundWindow | None
    partition_by: tuple[str, ...]
    group_by: tuple[str, ...]
    aggregates: tuple[AggregateOutput, ...]
    ranking: Ranking | None
    update: BoundWindow | None
    emit: Emit
    output: tuple[OutputItem, ...]
    show_bounds: bool
    binding: Binding
    schema: pa.Schema
    text: str = field(compare=False, repr=False)
    group_names: tuple[str, ...] = ()

    @property
    def has_count_window(self) -> bool:
        return self.window is not None and self.window.kind is WindowKind.COUNT
