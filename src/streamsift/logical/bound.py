"""Define the bound query: the syntax tree with every name, type, scope and unit settled against one schema.

Everything here is frozen, compares by content and travels to Spark workers as it is.
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
    """The kind of a value, as far as operators care. The value is how error messages spell it."""

    INTEGER = "integer"
    DECIMAL = "decimal"
    FLOAT = "double"
    STRING = "string"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"
    DATE = "date"
    DURATION = "duration"
    NULL = "null"
    OTHER = "nested or binary value"  # carried through to the output; only IS NULL can look at it


NUMERIC = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT})


# --- expressions -------------------------------------------------------------------------------------------------

THIS_ROW = -1  # Column.variable inside a WITH predicate: the row that is being classified
TIME = "$time"  # Column.name for the bound time, whatever its column is called (already parsed, if it was text)


class _Expression(Written):
    def walk(self) -> Iterator[Expr]:
        """Yield the expression and all inside it, an operation before its operands."""
        expression = cast("Expr", self)
        yield expression
        for operand in expression.operands if isinstance(expression, Operation) else ():
            yield from operand.walk()

    def transform(self, change: Callable[[Expr], Expr]) -> Expr:
        """Return the expression with every part changed, operands before their operation."""
        expression = cast("Expr", self)
        if isinstance(expression, Operation):
            operands = tuple([operand.transform(change) for operand in expression.operands])
            expression = replace(expression, operands=operands)
        return change(expression)

    @property
    def variables(self) -> frozenset[int]:
        return frozenset(part.variable for part in self.walk() if isinstance(part, Column | GroupAggregate))

    def renamed(self, names: Mapping[int, int]) -> Expr:
        """Return the expression over other variables; aggregates keep theirs."""
        return self.transform(
            lambda part: (
                replace(part, variable=names.get(part.variable, part.variable)) if isinstance(part, Column) else part
            )
        )


class Column(_Expression):
    """The attribute `name` (spelt as in the schema, or TIME) of the event that `variable` is bound to."""

    variable: int
    name: str
    kind: Kind


Scalar = int | float | Decimal | str | bool | datetime | date | timedelta | None


class Constant(_Expression):
    value: Scalar
    kind: Kind


class Operation(_Expression):
    """One operator or function over operands.

    Arithmetic: + - * / % ^ negative, abs sqrt log exp least greatest coalesce lower upper.
    Predicates (kind BOOLEAN): = != < <= > >= and or not is_null like in. `in` has the value first, then the items;
    `like` the value, then the pattern as a Constant.
    """

    op: str
    operands: tuple[Expr, ...]
    kind: Kind


class GroupAggregate(_Expression):
    """COUNT (column None), SUM AVG MIN MAX FIRST LAST over the group of a Kleene variable."""

    function: str
    variable: int
    column: str | None
    kind: Kind


Expr = Column | Constant | Operation | GroupAggregate


def truth(op: str, operands: tuple[Expr, ...], span: Span = NOWHERE) -> Operation:
    """Return an operation whose value is true, false or unknown."""
    return Operation(op, operands, Kind.BOOLEAN, span=span)


# --- classes, variables, predicates --------------------------------------------------------------------------------


class ClassRule(Enum):
    """The rule that gives a class its rows."""

    WITH = "WITH"  # rows that satisfy the class's predicate
    ANY = "ANY"  # every row
    TYPE = "type"  # rows whose type column equals the class name
    ALL = "no type column"  # every row, the T1;T2;T3 style


@dataclass(frozen=True, slots=True)
class EventClass:
    name: str
    rule: ClassRule
    predicate: Expr | None = None  # over THIS_ROW, for WITH

    def may_overlap(self, other: EventClass) -> bool:
        """Return True if a row may be of both classes."""
        return not (self.rule is other.rule is ClassRule.TYPE and self.name != other.name)


class Variable(Written):
    """A variable of the pattern; its index is its place in order of appearance, negated ones included."""

    index: int
    name: str  # as in the output: `a`, or `S1.A` for a definition's
    event_class: EventClass
    quantifier: Quantifier | None
    scope: int  # id of the innermost Negated that holds it; ROOT_SCOPE for a positive variable

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
    EQUALITY = "equality"  # one side of one variable = one side of another: a hash lookup
    PAIRWISE = "pairwise"  # the same with another comparison: compared code by code in the kernel
    GENERAL = "general"  # anything else: evaluated over columns of candidate rows
    GROUP = "group"  # mentions an aggregate over a Kleene group: filters finished matches
    UNIFORM = "uniform"  # a column that all elements of these Kleene variables share: `[attr]` without a single event
    CONSTANT = "constant"  # mentions no variable


class Predicate(Written):
    """One piece of a WHERE or of an operator's predicates, split at top-level ANDs, chains and `[attr]`."""

    expression: Expr
    variables: tuple[int, ...]  # ascending, without repetition
    scope: int  # the innermost Negated one of whose variables it mentions, else ROOT_SCOPE
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
        """Yield the node and all inside it, an operator before its operands, in order of appearance.

        Without `into_negations`, negations are yielded, but nothing that they hold.
        """
        node = cast("Node", self)
        yield node
        if into_negations or not isinstance(node, Negated):
            for child in node.children:
                yield from child.walk(into_negations=into_negations)

    def rebuilt(self, change: Callable[[Node], Node]) -> Node:
        """Return the same node over changed children."""
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
        """The variables of the pattern, those of its negations at any depth too."""
        return frozenset(node.variable for node in self.walk() if isinstance(node, Leaf))

    def negations(self) -> list[Negated]:
        """Return the outermost negations, in order of appearance."""
        return [node for node in self.walk(into_negations=False) if isinstance(node, Negated)]

    def windowed_definitions(self) -> list[SubPattern]:
        """Return the definitions that have a window, negated ones included."""
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
    """Matches of all children, each strictly after the one before."""


class Conjunction(_Operator):
    """Matches of all children, in any order."""


class Disjunction(_Operator):
    """A match of one of the children."""


class OrderedConjunction(Conjunction):
    """Two operands of AND, the first strictly before the second. Bounds of negations stay those of the AND."""

    swapped: bool = False


class Negated(_Around):
    scope: int


class SubPattern(_Around):
    """A use of a definition: its pattern, limited by its window if it has one.

    `partition_by` are the definition's columns: its count window counts the rows of one key.
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
    TEXT = "ISO-8601 text"  # a string column, read as timestamps


@dataclass(frozen=True, slots=True)
class Binding:
    """The columns that are the time, the class name and the order among equal times."""

    time: str
    time_kind: TimeKind
    type: str | None = None
    order: str | None = None


class WindowKind(Enum):
    TIME = "time"
    COUNT = "count"


class BoundWindow(Written):
    """`length` in seconds for timestamps and dates, in the column's units for numbers, in rows for COUNT."""

    kind: WindowKind
    length: Fraction
    exclusive: bool
    text: str


class PreferenceClass(Enum):
    LINEAR = "linear"  # a weighted sum of attributes
    MONOTONE = "monotone"  # rises (or falls) with each variable's part
    OTHER = "other"


class BoundObjective(Written):
    name: str
    maximise: bool
    expression: Expr
    preference_class: PreferenceClass


@dataclass(frozen=True, slots=True)
class Merge:
    """How the next `count` objectives become one score: those of the statement, or of one definition."""

    function: str  # SUM AVG MIN MAX PRODUCT
    count: int


@dataclass(frozen=True, slots=True)
class Ranking:
    """Objectives in order; `merges` combine them in turn, and the lowest result is the score."""

    objectives: tuple[BoundObjective, ...]
    merges: tuple[Merge, ...]
    limit: int


class AggregateOutput(Written):
    function: str
    variable: int | None
    column: str | None
    name: str


class WholeEvent(Written):
    """An output column that holds the event (or the array of events) of a variable."""

    variable: int
    name: str


class Computed(Written):
    """An output column that holds the value of an expression."""

    expression: Expr
    name: str


OutputItem = WholeEvent | Computed


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """The meaning of a query for one schema and binding.

    `output` are the columns of a match; `show_bounds` adds match_start and match_end (there is no RETURN).
    `partition_by` and `group_by` are columns; the equalities they imply are already among `predicates`.
    `group_names` are the GROUP BY columns as they are written and as the result names them.
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
