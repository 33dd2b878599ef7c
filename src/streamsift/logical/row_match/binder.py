"""Bind MATCH_RECOGNIZE to a schema; raise QueryError if it is invalid."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, tzinfo
from fractions import Fraction

import pyarrow as pa

from streamsift.errors import QueryError, Span, UnsupportedQuery, nearest, with_article
from streamsift.language import syntax as s
from streamsift.language.printer import print_duration
from streamsift.language.row_match import RowScript, parse_rows, print_row_expression, spark_sql
from streamsift.language.row_match import syntax as r
from streamsift.logical import bound as b
from streamsift.logical.columns import kind_of
from streamsift.logical.expressions import SECONDS_PER_UNIT
from streamsift.logical.row_match import bound as m
from streamsift.logical.row_match.calls import Context
from streamsift.logical.row_match.expressions import MatchExpressions
from streamsift.logical.row_match.patterns import (
    bind_pattern,
    certain_skip_error,
    excludes,
    number_variables,
    resolve_labels,
)
from streamsift.logical.row_match.scope import ExpressionScope
from streamsift.logical.row_match.types import plain
from streamsift.logical.row_match.values import Typing

SKIP_ERRORS = ("fail", "next")
_TIMES = frozenset({b.Kind.TIMESTAMP, b.Kind.DATE, *b.NUMERIC})


def bind_rows(
    script: RowScript | str,
    schema: pa.Schema,
    *,
    case_sensitive: bool = False,
    zone: tzinfo = UTC,
    typing: Typing | None = None,
    on_skip_error: str = "fail",
) -> m.BoundRows:
    """Bind a clause to rows of this schema.

    Without `typing`, all expressions are evaluated in this process. With it, Spark evaluates expressions of one row and
    measures: `typing` returns the type of an SQL text, and `projections` compute the measures from `measures`.
    """
    script = parse_rows(script) if isinstance(script, str) else script
    if on_skip_error not in SKIP_ERRORS:
        raise QueryError(f"invalid value for on_skip_error: {on_skip_error!r}", hint='expected "fail" or "next".')
    try:
        return _RowBinder(script, schema, case_sensitive, zone, typing, on_skip_error).rows()
    except RecursionError:
        raise QueryError("the clause is nested too deeply", hint="remove redundant brackets.") from None


@dataclass(slots=True)
class _RowBinder:
    script: RowScript
    schema: pa.Schema
    case_sensitive: bool
    zone: tzinfo
    typing: Typing | None
    on_skip_error: str

    @property
    def text(self) -> str:
        return self.script.text

    def _fail(self, message: str, span: Span, hint: str = "") -> QueryError:
        return QueryError(message, self.text, span, hint)

    def rows(self) -> m.BoundRows:
        clause = self.script.clause
        written = number_variables(clause)
        numbers = {label: number for number, label in enumerate(written)}
        labels = resolve_labels(clause, numbers, self.text)
        written |= {subset.label: subset.label for subset in clause.subsets}
        scope = ExpressionScope(
            self.text, self.schema, self.case_sensitive, self.zone, labels, written, self.typing
        )  # fmt: skip
        pattern = bind_pattern(clause.pattern, numbers)
        self._check_clauses(clause, pattern)
        partition_by = tuple(self._partition_column(each, scope) for each in clause.partition_by)
        order_by = tuple(self._sort_key(key, scope) for key in clause.order_by)
        conditions, texts = self._conditions(clause, numbers, scope)
        running = clause.rows_per_match is not r.RowsPerMatch.ONE
        measures, projections = self._measures(clause, scope, running)
        passed = self._passed_columns(clause, partition_by, order_by)
        self._check_output([*(passed or partition_by), *(measure.name for measure in clause.measures)], clause)
        return m.BoundRows(
            partition_by=partition_by,
            order_by=order_by,
            computed=tuple(scope.computed.values()),
            labels=tuple(numbers),
            conditions=conditions,
            pattern=pattern,
            measures=measures,
            rows_per_match=clause.rows_per_match,
            skip_to=clause.skip.to,
            skip_labels=self._skip_labels(clause, labels, pattern),
            within=self._within(clause, order_by, scope),
            schema=self.schema,
            output=self._output(partition_by, order_by, measures, passed),
            text=self.text,
            skip_error=self.on_skip_error,
            passed_columns=passed,
            condition_texts=texts,
            projections=projections,
        )

    def _check_clauses(self, clause: r.MatchRecognize, pattern: m.BoundRowPattern) -> None:
        excluded = excludes(pattern)
        if excluded is not None and clause.rows_per_match is r.RowsPerMatch.WITH_UNMATCHED:
            hint = "use ALL ROWS PER MATCH SHOW EMPTY MATCHES, or remove `{- -}`."
            raise self._fail("ALL ROWS PER MATCH WITH UNMATCHED ROWS cannot have an exclusion", excluded.span, hint)

    # --- columns ---
    def _partition_column(self, expression: r.RowExpression, scope: ExpressionScope) -> str:
        label, path = scope.reference(expression) if isinstance(expression, s.Name) else ("", ())
        if label is not None or len(path) > 1:
            hint = "compute it as a column beforehand."
            raise UnsupportedQuery("PARTITION BY takes columns only", self.text, expression.span, hint)
        if pa.types.is_map(self.schema.field(path[0]).type):
            raise self._fail(
                f"`{path[0]}` cannot be compared: it is a map", expression.span, "partition by another column."
            )
        return path[0]

    def _sort_key(self, key: r.OrderKey, scope: ExpressionScope) -> m.SortKey:
        column, data_type = scope.column_of(self._one_row(key.expression, scope, "ORDER BY"))
        if pa.types.is_map(data_type):
            raise self._fail("ORDER BY cannot compare maps", key.span, "order by another column.")
        nulls_first = not key.descending if key.nulls_first is None else key.nulls_first
        return m.SortKey(column, key.descending, nulls_first)

    def _one_row(self, expression: r.RowExpression, scope: ExpressionScope, clause: str) -> r.RowExpression:
        """Return an expression with names of columns; raise if it reads a variable."""
        expressions = MatchExpressions(scope, Context(None, running=True))
        at = expressions._at_one_row(expression)
        if at is None or at.reach != m.RowReach(m.Anchor.CURRENT) or expressions._has_call(expression):
            raise self._fail(f"{clause} requires columns of the input", expression.span, "name a column.")
        return at.expression

    def _passed_columns(
        self, clause: r.MatchRecognize, partition_by: tuple[str, ...], order_by: tuple[m.SortKey, ...]
    ) -> tuple[str, ...]:
        """Return the input columns of the output, in its order: those of ALL ROWS PER MATCH."""
        if clause.rows_per_match is r.RowsPerMatch.ONE:
            return ()
        ordered = [key.column for key in order_by if key.column in self.schema.names]
        return tuple(dict.fromkeys([*partition_by, *ordered, *self.schema.names]))

    def _output(
        self,
        partition_by: tuple[str, ...],
        order_by: tuple[m.SortKey, ...],
        measures: tuple[m.BoundMeasure, ...],
        passed: tuple[str, ...],
    ) -> pa.Schema:
        values = [pa.field(measure.name, measure.data_type) for measure in measures]
        if not passed:
            return pa.schema([*(self._field(name) for name in dict.fromkeys(partition_by)), *values])
        leading = dict.fromkeys([*partition_by, *(key.column for key in order_by if key.column in passed)])
        rest = [self._field(name) for name in passed if name not in leading]
        return pa.schema([*map(self._field, leading), *values, *rest])

    def _field(self, name: str) -> pa.Field:
        return pa.field(name, self.schema.field(name).type)

    def _check_output(self, names: list[str], clause: r.MatchRecognize) -> None:
        spans = {measure.name: measure.span for measure in clause.measures}
        seen: dict[str, str] = {}
        for name in dict.fromkeys(names) if len(set(names)) == len(names) else names:
            folded = name if self.case_sensitive else name.lower()
            if folded in seen:
                hint = "rename the measure with AS."
                raise self._fail(f"two columns of the result are called `{name}`", spans.get(name, Span(0, 0)), hint)
            seen[folded] = name
        columns = self.script.columns
        if columns and len(columns) != len(names):
            message = f"{self.script.alias} names {len(columns)} columns, but the result has {len(names)}"
            raise self._fail(message, self.script.alias_span, f"the columns are {', '.join(names)}.")

    # --- conditions and measures ---
    def _conditions(
        self, clause: r.MatchRecognize, numbers: dict[str, int], scope: ExpressionScope
    ) -> tuple[tuple[m.RowExpr | None, ...], tuple[str, ...]]:
        conditions: list[m.RowExpr | None] = [None] * len(numbers)
        texts = [""] * len(numbers)
        for define in clause.defines:
            if define.label not in numbers:
                is_subset = any(subset.label == define.label for subset in clause.subsets)
                what = "a subset, which has no condition" if is_subset else "not a variable of the pattern"
                hint = "" if is_subset else nearest(define.label, numbers)
                raise self._fail(f"`{define.label}` is {what}", define.span, hint)
            number = numbers[define.label]
            if texts[number]:
                raise self._fail(f"`{define.label}` is defined twice", define.span, "join the conditions with AND.")
            expressions = MatchExpressions(scope, Context(number, running=True))
            conditions[number] = expressions.condition(define.condition)
            texts[number] = print_row_expression(define.condition, scope.labels)
        return tuple(conditions), tuple(texts)

    def _measures(
        self, clause: r.MatchRecognize, scope: ExpressionScope, running: bool
    ) -> tuple[tuple[m.BoundMeasure, ...], tuple[tuple[str, str], ...]]:
        expressions = MatchExpressions(scope, Context(None, running))
        if self.typing is not None:
            return self._projected(clause, expressions)
        bound = []
        for measure in clause.measures:
            value, data_type = expressions.value(measure.expression)
            bound.append(m.BoundMeasure(measure.name, value, plain(data_type)))
        return tuple(bound), ()

    def _projected(
        self, clause: r.MatchRecognize, expressions: MatchExpressions
    ) -> tuple[tuple[m.BoundMeasure, ...], tuple[tuple[str, str], ...]]:
        """Return what the measures read from a match, and the measures as SQL over it."""
        leaves: list[m.BoundMeasure] = []
        parameters: list[str] = []

        def name_of(expression: m.RowExpr, data_type: pa.DataType) -> str:
            for leaf in leaves:
                if leaf.expression == expression:
                    return f"`{leaf.name}`"
            leaves.append(m.BoundMeasure(f"$measure{len(leaves)}", expression, plain(data_type)))
            return f"`{leaves[-1].name}`"

        def hook(part: r.RowExpression) -> str | None:
            if isinstance(part, r.Lambda):
                parameters.extend(part.parameters)
                text = f"({', '.join(part.parameters)}) -> {spark_sql(part.body, hook)}"
                del parameters[-len(part.parameters) :]
                return text
            if isinstance(part, s.Name) and part.parts[0] in parameters:
                return None
            # A field of a struct is read after the match, so that its column is read once.
            leaf = expressions.leaf(part)
            return None if leaf is None else name_of(*leaf)

        texts = [(measure.name, spark_sql(measure.expression, hook)) for measure in clause.measures]
        if clause.rows_per_match is r.RowsPerMatch.WITH_UNMATCHED:
            number = name_of(m.MatchNumber(), pa.int64())
            texts = [(name, f"CASE WHEN {number} IS NOT NULL THEN {text} END") for name, text in texts]
        return tuple(leaves), tuple(texts)

    # --- WITHIN and SKIP ---
    def _within(
        self, clause: r.MatchRecognize, order_by: tuple[m.SortKey, ...], scope: ExpressionScope
    ) -> b.BoundWindow | None:
        length = clause.within
        if length is None:
            return None
        if not order_by or order_by[0].descending:
            hint = "put the time column first in ORDER BY, without DESC."
            raise self._fail("WITHIN requires ORDER BY a time, ascending", length.span, hint)
        kind = kind_of(scope.type_of(order_by[0].column))
        if kind not in _TIMES:
            message = f"WITHIN cannot be applied to {with_article(kind.value)}"
            raise self._fail(message, length.span, "order by a timestamp, a date or a number first.")
        is_number = kind in b.NUMERIC
        if is_number and length.unit is not s.Unit.NONE:
            hint = "write the length as a number without a unit."
            raise self._fail(f"`{order_by[0].column}` is a number, not a time", length.span, hint)
        seconds = Fraction(1) if length.unit is s.Unit.NONE else SECONDS_PER_UNIT[length.unit]
        text = print_duration(length)
        return b.BoundWindow(b.WindowKind.TIME, Fraction(length.value) * seconds, True, text, span=length.span)

    def _skip_labels(
        self, clause: r.MatchRecognize, labels: dict[str, tuple[int, ...]], pattern: m.BoundRowPattern
    ) -> tuple[int, ...]:
        skip = clause.skip
        if skip.variable is None:
            return ()
        if skip.variable not in labels:
            message = f"`{skip.variable}` is not a variable of the pattern"
            raise self._fail(message, skip.span, nearest(skip.variable, labels))
        members = labels[skip.variable]
        why = certain_skip_error(pattern, members, is_first=skip.to is r.SkipTo.FIRST)
        if why and self.on_skip_error == "fail":
            word = "FIRST" if skip.to is r.SkipTo.FIRST else "LAST"
            hint = "skip to another variable, or TO NEXT ROW."
            raise self._fail(f"SKIP TO {word} {skip.variable} always fails: `{skip.variable}` {why}", skip.span, hint)
        return members


def columns_read(rows: m.BoundRows) -> tuple[str, ...]:
    """Return the input columns that the match and its output read."""
    read: dict[str, None] = dict.fromkeys(rows.partition_by)
    read |= dict.fromkeys(key.column for key in rows.order_by)

    def walk(expression: m.RowExpr) -> None:
        match expression:
            case m.RowValue() | m.RowAggregate():
                if expression.column is not None:
                    read[expression.column] = None
            case m.RowOperation():
                for operand in expression.operands:
                    walk(operand)

    for condition in rows.conditions:
        if condition is not None:
            walk(condition)
    for measure in rows.measures:
        walk(measure.expression)
    read |= dict.fromkeys(rows.passed_columns)
    return tuple(name for name in rows.schema.names if name in read)
