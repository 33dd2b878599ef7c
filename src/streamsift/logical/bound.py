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
from typing import cast

import pyarrow as pa

from streamsift.errors import NOWHERE, Span
from streamsift.language.syntax import Emit, Quantifier


def _span() -> Span:
    return field(default=NOWHERE, compare=False, repr=False)


class Kind(Enum):
    """What a value is, as far as operators care. The value is how error messages spell it."""

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


class _Expression:
    """The walks of an expression."""

    __slots__ = ()

    @property
    def operands(self) -> tuple[Expr, ...]:
        return ()

    def walk(self) -> Iterator[Expr]:
        """Yield the expression and all inside it, an operation before its operands."""
        yield cast("Expr", self)
        for operand in self.operands:
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

        def change(part: Expr) -> Expr:
            if isinstance(part, Column) and part.variable in names:
                return replace(part, variable=names[part.variable])
            return part

        return self.transform(change)


@dataclass(frozen=True, slots=True)
class Column(_Expression):
    """The attribute `name` (spelt as in the schema, or TIME) of the event that `variable` is bound to."""

    variable: int
    name: str
    kind: Kind
    span: Span = _span()


Scalar = int | float | Decimal | str | bool | datetime | date | timedelta | None


@dataclass(frozen=True, slots=True)
class Constant(_Expression):
    value: Scalar
    kind: Kind
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Operation(_Expression):
    """One operator or function over operands.

    Arithmetic: + - * / % ^ negative, abs sqrt log exp least greatest coalesce lower upper.
    Predicates (kind BOOLEAN): = != < <= > >= and or not is_null like in. `in` has the value first, then the items;
    `like` the value, then the pattern as a Constant.
    """

    op: str
    operands: tuple[Expr, ...] = field()  # not the property of the base
    kind: Kind = field()
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class GroupAggregate(_Expression):
    """COUNT (column None), SUM AVG MIN MAX FIRST LAST over the group of a Kleene variable."""

    function: str
    variable: int
    column: str | None
    kind: Kind
    span: Span = _span()


Expr = Column | Constant | Operation | GroupAggregate


def truth(op: str, operands: tuple[Expr, ...], span: Span = NOWHERE) -> Operation:
    """Return an operation whose value is true, false or unknown."""
    return Operation(op, operands, Kind.BOOLEAN, span)


# --- classes, variables, predicates --------------------------------------------------------------------------------


class ClassRule(Enum):
    """Which of the four resolution rules gave a class its rows."""

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


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the pattern; its index is its place in order of appearance, negated ones included."""

    index: int
    name: str  # as in the output: `a`, or `S1.A` for a definition's
    event_class: EventClass
    quantifier: Quantifier | None
    scope: int  # id of the innermost Negated that holds it; ROOT_SCOPE for a positive variable
    span: Span = _span()

    @property
    def positive(self) -> bool:
        return self.scope == ROOT_SCOPE


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


@dataclass(frozen=True, slots=True)
class Predicate:
    """One piece of a WHERE or of an operator's own predicates, split at top-level ANDs, chains and `[attr]`."""

    expression: Expr
    variables: tuple[int, ...]  # ascending, without repetition
    scope: int  # the innermost Negated one of whose variables it mentions, else ROOT_SCOPE
    predicate_class: PredicateClass
    text: str
    span: Span = _span()


Side = tuple[int, str]  # a variable and a column of its event


def column_sides(predicate: Predicate) -> tuple[Side, Side] | None:
    """Return the two sides of an equality between plain columns; None for any other predicate."""
    if predicate.predicate_class is PredicateClass.EQUALITY:
        match predicate.expression:
            case Operation(operands=(Column() as left, Column() as right)):
                return (left.variable, left.name), (right.variable, right.name)
    return None


# --- patterns ------------------------------------------------------------------------------------------------------


class _Pattern:
    """The walks of a pattern."""

    __slots__ = ()

    @property
    def children(self) -> tuple[Node, ...]:
        return ()

    def walk(self, *, into_negations: bool = True) -> Iterator[Node]:
        """Yield the node and all inside it, an operator before its operands, in order of appearance.

        Without `into_negations`, negations are yielded, but nothing that they hold.
        """
        yield cast("Node", self)
        if into_negations or not isinstance(self, Negated):
            for child in self.children:
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

    def negations(self) -> list[Negated]:
        """Return the outermost negations, in order of appearance."""
        return [node for node in self.walk(into_negations=False) if isinstance(node, Negated)]

    def windowed_definitions(self, *, into_negations: bool = True) -> list[SubPattern]:
        """Return the definitions that have a window of their own, negated ones included if `into_negations`."""
        nodes = self.walk(into_negations=into_negations)
        return [node for node in nodes if isinstance(node, SubPattern) and node.window is not None]


@dataclass(frozen=True, slots=True)
class Leaf(_Pattern):
    variable: int
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class _Operator(_Pattern):
    children: tuple[Node, ...] = field()  # not the property of the base
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Sequence(_Operator):
    """Matches of all children, each strictly after the one before."""


@dataclass(frozen=True, slots=True)
class Conjunction(_Operator):
    """Matches of all children, in any order."""


@dataclass(frozen=True, slots=True)
class Disjunction(_Operator):
    """A match of one of the children."""


@dataclass(frozen=True, slots=True)
class Negated(_Pattern):
    child: Node
    scope: int
    span: Span = _span()

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.child,)


@dataclass(frozen=True, slots=True)
class SubPattern(_Pattern):
    """A use of a definition: its pattern, limited by its own window when it has one.

    `partition_by` are the definition's own columns: a count window of its own counts the rows of one key.
    """

    name: str
    child: Node
    window: BoundWindow | None
    span: Span = _span()
    partition_by: tuple[str, ...] = ()

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.child,)


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
    """Which columns are the time, the class name and the order among equal times."""

    time: str
    time_kind: TimeKind
    type: str | None = None
    order: str | None = None


class WindowKind(Enum):
    TIME = "time"
    COUNT = "count"


@dataclass(frozen=True, slots=True)
class BoundWindow:
    """`length` in seconds for timestamps and dates, in the column's own units for numbers, in rows for COUNT."""

    kind: WindowKind
    length: Fraction
    exclusive: bool
    text: str
    span: Span = _span()


class PreferenceClass(Enum):
    LINEAR = "linear"  # a weighted sum of attributes
    MONOTONE = "monotone"  # rises (or falls) with each variable's own part
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class BoundObjective:
    name: str
    maximise: bool
    expression: Expr
    preference_class: PreferenceClass
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Merge:
    """How the next `count` objectives become one score: those of the statement, or of one definition."""

    function: str  # SUM AVG MIN MAX PRODUCT
    count: int


@dataclass(frozen=True, slots=True)
class Ranking:
    """Objectives in order; `merges` take them in turn, and the least of what they make is the score."""

    objectives: tuple[BoundObjective, ...]
    merges: tuple[Merge, ...]
    limit: int


@dataclass(frozen=True, slots=True)
class AggregateOutput:
    function: str
    variable: int | None
    column: str | None
    name: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class WholeEvent:
    """An output column that holds the event (or the array of events) of a variable."""

    variable: int
    name: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Computed:
    """An output column that holds the value of an expression."""

    expression: Expr
    name: str
    span: Span = _span()


OutputItem = WholeEvent | Computed


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """What a query means for one schema and binding.

    `output` are the columns of a match; `show_bounds` adds match_start and match_end (there is no RETURN).
    `partition_by` and `group_by` are columns; the equalities they imply are already among `predicates`.
    `group_names` are the GROUP BY columns as they are written, which is how the result calls them.
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


@dataclass(frozen=True, slots=True)
class OrderedConjunction(Conjunction):
    """Two operands of AND, the first strictly before the second. Bounds of negations stay those of the AND."""

    swapped: bool = False
