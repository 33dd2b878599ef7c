"""Define the bound form of MATCH_RECOGNIZE (and of RUN): names, types and semantics resolved against a schema.

All classes are frozen, compare by content and are pickled for Spark workers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa

from streamsift.language.row_match.syntax import RowsPerMatch, SkipTo
from streamsift.language.syntax import Written
from streamsift.logical.bound import BoundWindow, Kind, Scalar

# --- expressions that relate the rows of a match -----------------------------------------------------------------
#
# An expression of one row is not here: it is a computed column (`RowColumn`), evaluated for all rows before the match,
# by the JVM on Spark and by Arrow in `run_local`. What remains reads columns at rows that it reaches through the match.


class Anchor(Enum):
    """The row from which a navigation starts."""

    CURRENT = (
        "current"  # DEFINE: the row under test. Measure: the row of the output (ONE ROW: the last row of the match)
    )
    FIRST = "first"  # the (offset+1)-th row of the match that has one of the labels
    LAST = "last"  # the (offset+1)-th last one


class RowReach(Written):
    """A row: go to the anchor, then `shift` rows in the partition (PREV is negative, NEXT positive).

    `labels` are variable numbers; empty means any row of the match. With `running`, FIRST and LAST see the rows of the
    match up to the current row; in DEFINE it is always set, and the row under test counts as bound. The binder
    normalizes: in the condition of A, `A.x` and `LAST(A.x)` and `x` are CURRENT. No such row gives null.
    """

    anchor: Anchor
    labels: tuple[int, ...] = ()
    offset: int = 0
    shift: int = 0
    running: bool = True


class RowValue(Written):
    """The value of a column (of the input, or computed) at a row."""

    column: str
    reach: RowReach
    kind: Kind


class Classifier(Written):
    """The label of a row; null if the row is not one of the match's, or none is reached."""

    reach: RowReach
    kind: Kind = Kind.STRING


class MatchNumber(Written):
    """The number of the match in its partition, from 1."""

    kind: Kind = Kind.INTEGER


class RowAggregate(Written):
    """COUNT (column None: rows), SUM, AVG, MIN, MAX, and in measures array and distinct aggregates, over labeled rows.

    `labels` as in `RowReach`. In DEFINE it is running, and the row under test counts if it has one of the labels.
    `classifier` aggregates CLASSIFIER() instead of a column.
    """

    function: str  # COUNT SUM AVG MIN MAX ARRAY_AGG COLLECT_LIST COLLECT_SET …
    labels: tuple[int, ...]
    column: str | None
    kind: Kind
    distinct: bool = False
    running: bool = True
    classifier: bool = False


class RowConstant(Written):
    value: Scalar
    kind: Kind


class RowOperation(Written):
    """One operator or function over operands, named as in `logical.bound.Operation`, plus `case`.

    The operands of `case` are condition, value, condition, value, …, and last the value if no condition is true.
    """

    op: str
    operands: tuple[RowExpr, ...]
    kind: Kind


RowExpr = RowValue | Classifier | MatchNumber | RowAggregate | RowConstant | RowOperation


# --- patterns: as in the syntax tree, with numbers instead of labels -------------------------------------------------


class Label(Written):
    variable: int


class Then(Written):
    parts: tuple[BoundRowPattern, ...]  # none: the empty pattern


class Either(Written):
    branches: tuple[BoundRowPattern, ...]


class Permute(Written):
    parts: tuple[BoundRowPattern, ...]


class Exclude(Written):
    part: BoundRowPattern


class Loop(Written):
    part: BoundRowPattern
    low: int
    high: int | None
    greedy: bool


class AtStart(Written):
    """`^`."""


class AtEnd(Written):
    """`$`."""


BoundRowPattern = Label | Then | Either | Permute | Exclude | Loop | AtStart | AtEnd


# --- the clause ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowColumn:
    """A computed column: an expression of one row. `sql` is what the JVM evaluates; `data_type` its Arrow type."""

    name: str  # "$row0", …
    sql: str
    data_type: pa.DataType
    local: object | None = field(default=None, compare=False)  # logical.bound.Expr over THIS_ROW for `run_local`


@dataclass(frozen=True, slots=True)
class SortKey:
    column: str  # of the input, or computed
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class BoundMeasure:
    name: str
    expression: RowExpr
    data_type: pa.DataType


@dataclass(frozen=True, slots=True)
class BoundRows:
    """A MATCH_RECOGNIZE clause bound to a schema.

    `labels[v]` is the label of variable v; variables are numbered in order of first appearance in PATTERN. DEFINE of
    another one is an error. `conditions[v]` is None if the variable has no DEFINE. `output` is the schema of the
    result: see rows.md, "Columns".
    """

    partition_by: tuple[str, ...]
    order_by: tuple[SortKey, ...]
    computed: tuple[RowColumn, ...]
    labels: tuple[str, ...]
    conditions: tuple[RowExpr | None, ...]
    pattern: BoundRowPattern
    measures: tuple[BoundMeasure, ...]
    rows_per_match: RowsPerMatch
    skip_to: SkipTo
    skip_labels: tuple[int, ...]  # for SKIP TO FIRST or LAST: the variable, or the members of the subset
    within: BoundWindow | None
    schema: pa.Schema  # of the input columns
    output: pa.Schema
    text: str = field(compare=False, repr=False)
    skip_error: str = "fail"  # "next": SKIP TO an absent row goes on at the next row
    passed_columns: tuple[str, ...] = ()  # ALL ROWS: input columns of the output, in its order
    condition_texts: tuple[str, ...] = ()  # conditions as text, for explain; empty for a variable without DEFINE
    # On Spark: the measures as names and SQL over the columns of `measures`, evaluated by the JVM after the match.
    projections: tuple[tuple[str, str], ...] = ()
