"""Resolve names to columns and variables, and collect computed columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from datetime import tzinfo
from typing import Any

import pyarrow as pa

from streamsift.errors import QueryError, Span, UnsupportedQuery, nearest
from streamsift.language import syntax as s
from streamsift.language.row_match import spark_sql
from streamsift.language.row_match import syntax as r
from streamsift.logical import bound as b
from streamsift.logical.row_match import bound as m
from streamsift.logical.row_match.types import result_type
from streamsift.logical.row_match.values import Typing, value_binder


def parts_of(node: Any) -> Iterator[r.RowExpression]:
    """Yield the direct sub-expressions of an expression."""
    for value in (getattr(node, each.name) for each in fields(node)):
        yield from _within(value)


def _within(value: Any) -> Iterator[r.RowExpression]:
    if isinstance(value, tuple):
        for each in value:
            yield from _within(each)
    elif isinstance(value, s.Written):
        yield value


def rebuilt(node: r.RowExpression, change: Callable[[r.RowExpression], r.RowExpression]) -> r.RowExpression:
    """Return the expression with `change` applied to its direct sub-expressions."""

    def changed(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(changed(each) for each in value)
        return change(value) if isinstance(value, s.Written) else value

    values = {each.name: getattr(node, each.name) for each in fields(node) if each.name != "span"}
    return replace(node, **{name: changed(value) for name, value in values.items()})


def all_parts(expression: r.RowExpression) -> Iterator[r.RowExpression]:
    yield expression
    for part in parts_of(expression):
        yield from all_parts(part)


@dataclass(slots=True)
class ExpressionScope:
    """Bind expressions against the columns of a schema and the variables of a pattern."""

    text: str
    schema: pa.Schema
    case_sensitive: bool
    zone: tzinfo
    labels: dict[str, tuple[int, ...]]  # of variables and subsets: the numbers of their variables
    written: dict[str, str]  # labels as the query writes them
    typing: Typing | None  # asks the JVM for types; None in run_local
    computed: dict[str, m.RowColumn] = field(default_factory=dict)  # by SQL text

    def fail(self, message: str, span: Span, hint: str = "") -> QueryError:
        return QueryError(message, self.text, span, hint)

    def unsupported(self, message: str, span: Span, hint: str = "") -> UnsupportedQuery:
        return UnsupportedQuery(message, self.text, span, hint)

    # --- names ---
    def reference(self, name: s.Name) -> tuple[str | None, tuple[str, ...]]:
        """Return the label of a name, or None, and the path of its column."""
        first = name.parts[0]
        if len(name.parts) > 1 and first in self.labels:
            return first, self.path(name.parts[1:], name)
        return None, self.path(name.parts, name)

    def path(self, parts: tuple[str, ...], name: s.Name) -> tuple[str, ...]:
        exact = [n for n in self.schema.names if n == parts[0]]
        folded = [n for n in self.schema.names if n.lower() == parts[0].lower() and not self.case_sensitive]
        matching = exact or folded
        if len(matching) == 1:
            return (matching[0], *parts[1:])
        if matching:
            columns = ", ".join(f"`{column}`" for column in matching)
            raise self.fail(f"`{parts[0]}` is ambiguous: it matches {columns}", name.span, "rename one of them.")
        label = next((each for each in self.labels if parts[0].upper() == each.upper()), None)
        if len(name.parts) == 1 and label is not None:
            hint = f"name one of its columns, as in {self.written[label]}.{(self.schema.names or ['x'])[0]}."
            raise self.fail(f"the variable `{parts[0]}` is not a value", name.span, hint)
        if parts is not name.parts:
            raise self.fail(f"unknown column `{parts[0]}`", name.span, nearest(parts[0], self.schema.names))
        if len(name.parts) > 1:
            message = f"`{parts[0]}` is neither a variable of the pattern nor a column"
            raise self.fail(message, name.span, nearest(parts[0], [*self.written.values(), *self.schema.names]))
        raise self.fail(f"unknown column `{parts[0]}`", name.span, nearest(parts[0], self.schema.names))

    def type_of(self, column: str) -> pa.DataType:
        for each in self.computed.values():
            if each.name == column:
                return each.data_type
        return self.schema.field(column).type

    # --- computed columns ---
    def column_of(self, expression: r.RowExpression) -> tuple[str, pa.DataType]:
        """Return the column that holds an expression of one row; compute it if it is not a column of the input."""
        if isinstance(expression, s.Name) and len(expression.parts) == 1:
            return expression.parts[0], self.schema.field(expression.parts[0]).type
        sql = spark_sql(expression, lambda _: None)
        if sql not in self.computed:
            local, data_type = self._evaluated(expression, sql)
            self.computed[sql] = m.RowColumn(f"$row{len(self.computed)}", sql, data_type, local)
        column = self.computed[sql]
        return column.name, column.data_type

    def _evaluated(self, expression: r.RowExpression, sql: str) -> tuple[b.Expr | None, pa.DataType]:
        if self.typing is not None:
            try:
                return None, self.typing(sql)
            except QueryError as error:
                raise self.fail(error.message, expression.span, error.hint) from None
        binder = value_binder(self.schema, self.text, self.zone, self.case_sensitive, " in run_local")
        local = binder.value(expression)
        return local, result_type(local, lambda name: self.schema.field(name).type)
