"""Define the syntax tree of MATCH_RECOGNIZE, which is independent of any schema.

Expressions reuse the nodes of `language/syntax.py` and add those below. The first part of a Name that is a label of the
pattern or a subset is that label: `a.x` with a variable A is Name(("A", "x")). A function is a `Call` with its
upper-case name, also PREV, NEXT, FIRST, LAST, CLASSIFIER, MATCH_NUMBER, the aggregates, and any function of Spark SQL.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from streamsift.errors import NOWHERE, Span
from streamsift.language.syntax import Duration, Written

# --- expressions -------------------------------------------------------------------------------------------------


RowExpression = Any  # a node of `language/syntax.py` or one below; a union of both would have to be named there too


class Semantics(Enum):
    """Which rows a navigation or an aggregate of a measure sees."""

    RUNNING = "RUNNING"  # the rows of the match up to the current row
    FINAL = "FINAL"  # all rows of the match


class WithSemantics(Written):
    """`RUNNING call` or `FINAL call`."""

    semantics: Semantics
    operand: RowExpression


class Distinct(Written):
    """`DISTINCT expression`, the argument of an aggregate."""

    operand: RowExpression


class AllRows(Written):
    """`*` (variable None) or `A.*`, the argument of COUNT."""

    variable: str | None = None  # a label


class Case(Written):
    """`CASE [operand] WHEN … THEN … ELSE … END`: pairs of a condition (or a value of `operand`) and a result."""

    branches: tuple[tuple[RowExpression, RowExpression], ...]
    otherwise: RowExpression | None = None
    operand: RowExpression | None = None


class Cast(Written):
    """`CAST(operand AS type)` or `operand::type`; the type is Spark's text."""

    operand: RowExpression
    type_name: str


class Lambda(Written):
    """`(x, y) -> body`, an argument of a function of Spark."""

    parameters: tuple[str, ...]
    body: RowExpression


class Raw(Written):
    """Syntax that only Spark SQL understands, such as `x[0]`, `a <=> b` or `INTERVAL '1' MONTH`.

    `parts` are pieces of text and the expressions between them, such as (Name(x), "[", Number(0), "]").
    """

    parts: tuple[str | RowExpression, ...]


# --- patterns ----------------------------------------------------------------------------------------------------

# A variable is identified by its label, which is what CLASSIFIER() returns: the name in upper case, or a double-quoted
# name as written.


class RowVariable(Written):
    label: str
    written: str = field(default="", compare=False, kw_only=True)  # as error messages show it


class Concatenation(Written):
    parts: tuple[RowPattern, ...]


class Alternation(Written):
    """`a | b`: branches in order of preference."""

    branches: tuple[RowPattern, ...]


class Permutation(Written):
    """`PERMUTE(a, b)`: all orders, preferred in the lexicographic order of the list."""

    parts: tuple[RowPattern, ...]


class Exclusion(Written):
    """`{- a -}`: rows that ALL ROWS PER MATCH omits."""

    pattern: RowPattern


class Repetition(Written):
    """A quantifier: `high` is None without a bound; reluctant ones prefer fewer iterations."""

    pattern: RowPattern
    low: int
    high: int | None
    greedy: bool = True


class Empty(Written):
    """`()`."""


class PartitionStart(Written):
    """`^`."""


class PartitionEnd(Written):
    """`$`."""


RowPattern = (
    RowVariable
    | Concatenation
    | Alternation
    | Permutation
    | Exclusion
    | Repetition
    | Empty
    | PartitionStart
    | PartitionEnd
)


# --- clauses -----------------------------------------------------------------------------------------------------


class OrderKey(Written):
    """One expression of ORDER BY; `nulls_first` is None if it is not written."""

    expression: RowExpression
    descending: bool = False
    nulls_first: bool | None = None


class RowMeasure(Written):
    expression: RowExpression
    name: str


class RowsPerMatch(Enum):
    ONE = "ONE ROW PER MATCH"
    SHOW_EMPTY = "ALL ROWS PER MATCH SHOW EMPTY MATCHES"  # also ALL ROWS PER MATCH
    OMIT_EMPTY = "ALL ROWS PER MATCH OMIT EMPTY MATCHES"
    WITH_UNMATCHED = "ALL ROWS PER MATCH WITH UNMATCHED ROWS"


class SkipTo(Enum):
    PAST_LAST_ROW = "SKIP PAST LAST ROW"
    NEXT_ROW = "SKIP TO NEXT ROW"
    FIRST = "SKIP TO FIRST"  # of a variable
    LAST = "SKIP TO LAST"  # of a variable; also SKIP TO v


class Skip(Written):
    to: SkipTo
    variable: str | None = None  # the label of a variable or subset


class Subset(Written):
    """`U = (A, B)`."""

    label: str
    members: tuple[str, ...]  # labels


class Define(Written):
    label: str
    condition: RowExpression


class MatchRecognize(Written):
    """One clause. Parts that are not written have their defaults."""

    pattern: RowPattern
    partition_by: tuple[RowExpression, ...] = ()
    order_by: tuple[OrderKey, ...] = ()
    measures: tuple[RowMeasure, ...] = ()
    rows_per_match: RowsPerMatch = RowsPerMatch.ONE
    skip: Skip = field(default_factory=lambda: Skip(SkipTo.PAST_LAST_ROW))
    within: Duration | None = None
    subsets: tuple[Subset, ...] = ()
    defines: tuple[Define, ...] = ()


@dataclass(frozen=True, slots=True)
class RowScript:
    """A parsed `MATCH_RECOGNIZE (…) [AS name [(columns)]]`, or the text between its parentheses."""

    clause: MatchRecognize
    alias: str | None = None
    columns: tuple[str, ...] = ()
    text: str = field(default="", compare=False, repr=False)  # the source that spans refer to
    alias_span: Span = field(default=NOWHERE, compare=False, repr=False)
