"""Bind the expressions of DEFINE and MEASURES: which rows they read, and which parts are columns of one row.

Every largest part that reads a single row becomes a computed column (`RowColumn`), read at that row. What remains
relates rows: operators and functions that our engine evaluates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from datetime import tzinfo
from typing import Any

import pyarrow as pa

from streamsift.errors import QueryError, Span, UnsupportedQuery, nearest
from streamsift.language import syntax as s
from streamsift.language.keywords import FUNCTIONS
from streamsift.language.row_match import print_row_expression, spark_sql
from streamsift.language.row_match import syntax as r
from streamsift.logical import bound as b
from streamsift.logical.columns import kind_of
from streamsift.logical.row_match import bound as m
from streamsift.logical.row_match.types import average_type, plain, result_type, sum_type
from streamsift.logical.row_match.values import Typing, value_binder

NAVIGATIONS = frozenset({"PREV", "NEXT", "FIRST", "LAST"})
RUNNING_AGGREGATES = frozenset({"COUNT", "SUM", "AVG", "MIN", "MAX"})
ARRAY_AGGREGATES = frozenset({"ARRAY_AGG", "COLLECT_LIST", "COLLECT_SET"})
AGGREGATES = RUNNING_AGGREGATES | ARRAY_AGGREGATES
_OTHER_AGGREGATES = frozenset(
    "MEAN STDDEV STDDEV_SAMP STDDEV_POP STD VARIANCE VAR_SAMP VAR_POP MEDIAN MODE PERCENTILE PERCENTILE_APPROX "
    "APPROX_PERCENTILE APPROX_COUNT_DISTINCT COUNT_IF BOOL_AND BOOL_OR EVERY SOME ANY MAX_BY MIN_BY ANY_VALUE LISTAGG "
    "STRING_AGG FIRST_VALUE LAST_VALUE CORR COVAR_POP COVAR_SAMP SKEWNESS KURTOSIS BIT_AND BIT_OR BIT_XOR".split()
)
_OF_MATCH = NAVIGATIONS | AGGREGATES | _OTHER_AGGREGATES | {"CLASSIFIER", "MATCH_NUMBER"}
_STRICT_CALLS = frozenset(  # functions that are null if any argument is
    "ABS SQRT POW POWER LOG EXP LOWER UPPER LENGTH SUBSTR SUBSTRING CONCAT TRIM REPLACE STARTSWITH ENDSWITH CONTAINS "
    "FLOOR CEIL CEILING ROUND SIGN DATE DATE_TRUNC TRUNC HOUR MINUTE SECOND DAY MONTH YEAR DAYOFWEEK DATE_FORMAT "
    "TO_DATE UNIX_TIMESTAMP TO_TIMESTAMP MOD".split()
)
CURRENT = m.Reach(m.Anchor.CURRENT)


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


@dataclass(frozen=True, slots=True)
class Context:
    """Where an expression stands."""

    variable: int | None  # DEFINE: the variable whose condition it is
    running: bool  # the default of FIRST, LAST and aggregates

    @property
    def in_define(self) -> bool:
        return self.variable is not None


@dataclass(frozen=True, slots=True)
class At:
    """An expression of the columns of one row, and how to reach that row."""

    reach: m.Reach
    expression: r.RowExpression  # its names are columns, without labels


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


@dataclass(slots=True)
class MatchExpressions:
    """Bind the expressions of one context."""

    scope: ExpressionScope
    context: Context
    leaves: dict[str, tuple[m.RowExpr, pa.DataType]] = field(default_factory=dict)

    # --- entry points ---
    def condition(self, expression: r.RowExpression) -> m.RowExpr:
        abstract = self._abstract(expression)
        bound = self._values().condition(abstract)
        return self._joined(bound)

    def value(self, expression: r.RowExpression) -> tuple[m.RowExpr, pa.DataType]:
        abstract = self._abstract(expression)
        bound = self._values().value(abstract)
        data_type = result_type(bound, lambda name: self.leaves[name][1])
        return self._joined(bound), data_type

    def leaf(self, expression: r.RowExpression) -> tuple[m.RowExpr, pa.DataType] | None:
        """Return what a measure reads from a match: a column, navigation or aggregate; None for other expressions."""
        match expression:
            case s.Name():
                return self._read(self._at(expression))
            case r.WithSemantics() | s.Call() if self._call(expression) is not None:
                return self._call_leaf(expression)
        return None

    def _values(self) -> Any:
        schema = pa.schema([pa.field(name, data_type) for name, (_, data_type) in self.leaves.items()])
        where = " between rows of a match" if self.scope.typing is not None else " in run_local"
        hint = "compute it as a column beforehand." if self.scope.typing is not None else "run the query on Spark."
        return value_binder(schema, self.scope.text, self.scope.zone, True, where, hint)

    def _joined(self, bound: b.Expr) -> m.RowExpr:
        match bound:
            case b.Column():
                return self.leaves[bound.name][0]
            case b.Constant():
                return m.RowConstant(bound.value, bound.kind, span=bound.span)
            case b.Operation():
                return m.RowOperation(bound.op, tuple(map(self._joined, bound.operands)), bound.kind, span=bound.span)
        raise AssertionError(bound)

    # --- the largest parts of one row ---
    def _abstract(self, expression: r.RowExpression) -> r.RowExpression:
        """Replace every part that reads the match by a name of a leaf."""
        match expression:
            case s.AllOf() | s.AnyOf() if (grouped := self._grouped(expression)) is not None:
                return grouped
        at = self._at_one_row(expression)
        if at is not None and self._may_compute(at):
            return self._leaf(*self._read(at), expression.span)
        if self._call(expression) is not None:
            return self._leaf(*self._call_leaf(expression), expression.span)
        if at is None and not list(self._references(expression)) and not self._has_call(expression):
            return self._constant(expression)
        if _is_joined_by_us(expression):
            return rebuilt(expression, self._abstract)
        if at is not None and self.context.in_define:
            return self._guarded(at, expression.span)
        return rebuilt(expression, self._abstract)  # the binder of values names what is not supported

    def _grouped(self, expression: s.AllOf | s.AnyOf) -> r.RowExpression | None:
        """Compute operands that read the same row as one column."""
        groups: dict[m.Reach, list[r.RowExpression]] = {}
        rest: list[r.RowExpression] = []
        for operand in expression.operands:
            at = self._at_one_row(operand)
            if at is not None and self._may_compute(at):
                groups.setdefault(at.reach, []).append(operand)
            else:
                rest.append(operand)
        if not any(len(group) > 1 for group in groups.values()) or (len(groups) == 1 and not rest):
            return None
        together = [
            group[0] if len(group) == 1 else type(expression)(tuple(group), span=group[0].span.to(group[-1].span))
            for group in groups.values()
        ]
        return type(expression)(tuple(map(self._abstract, [*together, *rest])), span=expression.span)

    def _may_compute(self, at: At) -> bool:
        """Return True if the value at a row that does not exist is null, or the row always exists."""
        exists = self.context.in_define and at.reach == CURRENT
        return exists or _is_strict(at.expression)

    def _constant(self, expression: r.RowExpression) -> r.RowExpression:
        """Leave a constant as it is if our engine has it; else let the JVM compute it for the current row."""
        if self.scope.typing is None or _is_ours(expression):
            return expression
        return self._leaf(*self._read(At(CURRENT, expression)), expression.span)

    def _guarded(self, at: At, span: Span) -> r.RowExpression:
        """Return an expression of Spark at a row that may not exist: then its columns are null."""
        is_there = self._leaf(*self._read(At(at.reach, s.Boolean(True))), span)

        def absent(part: r.RowExpression) -> r.RowExpression:
            return r.Case(((s.Boolean(False), part),)) if isinstance(part, s.Name) else rebuilt(part, absent)

        without = self._leaf(*self._read(At(CURRENT, absent(at.expression))), span)
        return r.Case(((s.IsNull(is_there), without),), self._leaf(*self._read(at), span), span=span)

    def _leaf(self, expression: m.RowExpr, data_type: pa.DataType, span: Span) -> s.Name:
        for name, (known, _) in self.leaves.items():
            if known == expression:
                return s.Name((name,), span=span)
        name = f"$leaf{len(self.leaves)}"
        self.leaves[name] = (expression, plain(data_type))
        return s.Name((name,), span=span)

    def _read(self, at: At) -> tuple[m.RowExpr, pa.DataType]:
        column, data_type = self.scope.column_of(at.expression)
        return m.RowValue(column, at.reach, kind_of(data_type), span=at.expression.span), data_type

    def _at(self, name: s.Name) -> At:
        label, path = self.scope.reference(name)
        return At(self._default_reach(label), s.Name(path, span=name.span))

    def _default_reach(self, label: str | None) -> m.Reach:
        if label is None:
            return CURRENT
        members = self.scope.labels[label]
        if self.context.variable in members:
            return CURRENT
        return m.Reach(m.Anchor.LAST, members, running=self.context.running)

    def _at_one_row(self, expression: r.RowExpression) -> At | None:
        """Return the expression over columns of one row, if all that it reads is in one row."""
        reaches: set[m.Reach] = set()
        is_plain = True

        def convert(part: r.RowExpression, bound: frozenset[str]) -> r.RowExpression:
            nonlocal is_plain
            match part:
                case s.Name(parts=(only,)) if only in bound:
                    return part
                case s.Name():
                    at = self._at(part)
                    reaches.add(at.reach)
                    return at.expression
                case r.Lambda():
                    inner = bound | set(part.parameters)
                    return replace(part, body=convert(part.body, inner))
                case s.Call() | r.WithSemantics() if (call := self._call(part)) is not None:
                    if call.function in NAVIGATIONS:
                        reach, target = self._navigation(part)
                        if not isinstance(target, s.Call) or target.function != "CLASSIFIER":
                            reaches.add(reach)
                            return target
                    is_plain = False
                    return part
            return rebuilt(part, lambda each: convert(each, bound))

        converted = convert(expression, frozenset())
        return At(next(iter(reaches)), converted) if is_plain and len(reaches) == 1 else None

    def _references(self, expression: r.RowExpression, bound: frozenset[str] = frozenset()) -> Iterator[s.Name]:
        match expression:
            case s.Name(parts=(only,)) if only in bound:
                return
            case s.Name():
                yield expression
            case r.Lambda():
                yield from self._references(expression.body, bound | set(expression.parameters))
            case s.Call(function="CLASSIFIER"):
                return
            case _:
                for part in parts_of(expression):
                    yield from self._references(part, bound)

    def _has_call(self, expression: r.RowExpression) -> bool:
        return self._call(expression) is not None or any(map(self._has_call, parts_of(expression)))

    # --- functions of a match ---
    def _call(self, expression: r.RowExpression) -> s.Call | None:
        """Return the call of a function that reads the match."""
        if isinstance(expression, r.WithSemantics):
            return expression.operand if isinstance(expression.operand, s.Call) else None
        return expression if isinstance(expression, s.Call) and expression.function in _OF_MATCH else None

    def _semantics(self, expression: r.RowExpression, call: s.Call) -> bool:
        """Return True for RUNNING."""
        if not isinstance(expression, r.WithSemantics):
            return self.context.running
        word = expression.semantics.value
        if call.function not in {"FIRST", "LAST"} | AGGREGATES:
            hint = f"remove {word}; it stands before FIRST, LAST and aggregates."
            raise self.scope.fail(f"{word} cannot be applied to {call.function}", expression.span, hint)
        if self.context.in_define and expression.semantics is r.Semantics.FINAL:
            hint = "remove FINAL: a condition sees the rows up to the one under test."
            raise self.scope.fail("FINAL is not allowed in DEFINE", expression.span, hint)
        return expression.semantics is r.Semantics.RUNNING

    def _call_leaf(self, expression: r.RowExpression) -> tuple[m.RowExpr, pa.DataType]:
        call = self._call(expression)
        assert call is not None
        running = self._semantics(expression, call)
        match call.function:
            case function if function in NAVIGATIONS:
                reach, target = self._navigation(expression)
                if isinstance(target, s.Call) and target.function == "CLASSIFIER":
                    return m.Classifier(reach, span=call.span), pa.string()
                return self._read(At(reach, target))
            case "CLASSIFIER":
                return m.Classifier(self._default_reach(self._classifier_label(call)), span=call.span), pa.string()
            case "MATCH_NUMBER":
                self._no_arguments(call)
                return m.MatchNumber(span=call.span), pa.int64()
            case function if function in AGGREGATES:
                return self._aggregate(call, running)
        raise self.scope.unsupported(f"{call.function} is not supported in MATCH_RECOGNIZE", call.span, _USE)

    def _no_arguments(self, call: s.Call) -> None:
        if call.arguments:
            raise self.scope.fail(f"{call.function} takes no arguments", call.span)

    def _classifier_label(self, call: s.Call) -> str | None:
        match call.arguments:
            case ():
                return None
            case (s.Name(parts=(label,)) as name,):
                if label in self.scope.labels:
                    return label
                hint = nearest(label, self.scope.written.values())
                raise self.scope.fail(f"`{label}` is not a variable of the pattern", name.span, hint)
        raise self.scope.fail("CLASSIFIER takes a variable", call.span, "write CLASSIFIER() or CLASSIFIER(A).")

    def _navigation(self, expression: r.RowExpression) -> tuple[m.Reach, r.RowExpression]:
        """Return the row of a navigation and what it reads there: columns of one row, or CLASSIFIER."""
        call = self._call(expression)
        assert call is not None
        running = self._semantics(expression, call)
        value, offset = self._arguments(call)
        if call.function in ("FIRST", "LAST"):
            label, target = self._target(value, call)
            members = () if label is None else self.scope.labels[label]
            is_under_test = self.context.in_define and (label is None or self.context.variable in members)
            is_current = is_under_test or (label is None and running)
            if call.function == "LAST" and offset == 0 and is_current:
                return CURRENT, target
            anchor = m.Anchor.FIRST if call.function == "FIRST" else m.Anchor.LAST
            return m.Reach(anchor, members, offset, running=running), target
        inner = self._call(value)
        shift = -offset if call.function == "PREV" else offset
        if inner is not None and inner.function in ("FIRST", "LAST"):
            reach, target = self._navigation(value)
        else:
            label, target = self._target(value, call)
            reach = self._default_reach(label)
        return replace(reach, shift=shift), target

    def _arguments(self, call: s.Call) -> tuple[r.RowExpression, int]:
        default = 1 if call.function in ("PREV", "NEXT") else 0
        if not 1 <= len(call.arguments) <= 2:
            hint = f"write {call.function}(A.x) or {call.function}(A.x, 2)."
            raise self.scope.fail(f"{call.function} takes a value and an offset", call.span, hint)
        match call.arguments:
            case (value,):
                return value, default
            case (value, s.Number(value=int() as offset)):
                return value, offset
        message = f"the offset of {call.function} must be an integer, 0 or more"
        raise self.scope.fail(message, call.arguments[1].span, f"write {call.function}(A.x, 2), for example.")

    def _target(self, value: r.RowExpression, call: s.Call) -> tuple[str | None, r.RowExpression]:
        """Return the label that a navigation or an aggregate reads, and its expression over columns of one row."""
        inner = self._call(value)
        if inner is not None and inner.function == "CLASSIFIER":
            return self._classifier_label(inner), inner
        for part in _all_parts(value):
            if (nested := self._call(part)) is not None:
                raise self._nested(call, nested, part)
        names = list(self._references(value))
        found = {self.scope.reference(name)[0] for name in names}
        if not names:
            hint = f"write {call.function}(A.x), for example."
            raise self.scope.fail(f"{call.function} requires a column", value.span, hint)
        if len(found) > 1:
            shown = " and ".join("the current row" if each is None else f"`{self.scope.written[each]}`" for each in
                                 sorted(found, key=lambda each: each or ""))  # fmt: skip
            message = f"{call.function} reads columns of {shown}"
            raise self.scope.fail(message, call.span, f"name the same variable before each column of {call.function}.")

        def without_label(part: r.RowExpression) -> r.RowExpression:
            if isinstance(part, s.Name):
                is_bound = part not in names
                return part if is_bound else s.Name(self.scope.reference(part)[1], span=part.span)
            return rebuilt(part, without_label)

        return found.pop(), without_label(value)

    def _nested(self, outer: s.Call, inner: s.Call, part: r.RowExpression) -> QueryError:
        if inner.function in NAVIGATIONS and outer.function in AGGREGATES:
            message = f"the navigation {inner.function} is not allowed inside the aggregate {outer.function}"
            return self.scope.fail(message, part.span, "aggregate a column.")
        if inner.function in ("PREV", "NEXT") and outer.function in ("FIRST", "LAST"):
            message = f"{inner.function} is not allowed inside {outer.function}"
            hint = f"write {inner.function}({outer.function}(A.x)) instead."
            return self.scope.fail(message, part.span, hint)
        hint = "PREV and NEXT take FIRST or LAST as the whole first argument; nothing else can be nested."
        return self.scope.fail(f"{inner.function} is not allowed inside {outer.function}", part.span, hint)

    def _aggregate(self, call: s.Call, running: bool) -> tuple[m.RowExpr, pa.DataType]:
        function, span = call.function, call.span
        if len(call.arguments) != 1:
            raise self.scope.fail(f"{function} takes one argument", span, f"write {function}(A.x), for example.")
        argument = call.arguments[0]
        distinct = isinstance(argument, r.Distinct)
        if isinstance(argument, r.Distinct):
            argument = argument.operand
        if self.context.in_define and (distinct or function in ARRAY_AGGREGATES):
            what = f"{function}(DISTINCT …)" if distinct else function
            raise self.scope.unsupported(f"{what} is supported in MEASURES only", span, _USE)
        if isinstance(argument, r.AllRows) or (function == "COUNT" and _is_literal(argument)):
            label = argument.variable if isinstance(argument, r.AllRows) else None
            if label is not None and label not in self.scope.labels:
                hint = nearest(label, self.scope.written.values())
                raise self.scope.fail(f"`{label}` is not a variable of the pattern", argument.span, hint)
            members = () if label is None else self.scope.labels[label]
            return m.RowAggregate("COUNT", members, None, b.Kind.INTEGER, running=running, span=span), pa.int64()
        label, target = self._target(argument, call)
        members = () if label is None else self.scope.labels[label]
        of_labels = isinstance(target, s.Call) and target.function == "CLASSIFIER"
        column, data_type = (None, pa.string()) if of_labels else self.scope.column_of(target)
        result = self._aggregate_type(call, plain(data_type))
        aggregate = m.RowAggregate(
            function, members, column, kind_of(result), distinct, running, classifier=of_labels, span=span
        )
        return aggregate, result

    def _aggregate_type(self, call: s.Call, data_type: pa.DataType) -> pa.DataType:
        kind = kind_of(data_type)
        match call.function:
            case "COUNT":
                return pa.int64()
            case "SUM" | "AVG":
                if kind not in b.NUMERIC | {b.Kind.DURATION, b.Kind.NULL}:
                    message = f"{call.function} requires numbers, not {kind.value}s"
                    raise self.scope.fail(message, call.span, "aggregate a numeric column.")
                return sum_type(data_type) if call.function == "SUM" else average_type(data_type)
            case "MIN" | "MAX":
                if kind is b.Kind.OTHER:
                    raise self.scope.unsupported(f"{call.function} of a {kind.value} is not supported", call.span, _USE)
                return data_type
        return pa.list_(pa.field("element", data_type))


_USE = "use COUNT, SUM, AVG, MIN or MAX; in MEASURES also ARRAY_AGG, COLLECT_LIST, COLLECT_SET and DISTINCT."
_LITERALS = s.Number | s.String | s.Boolean | s.Null | s.Timestamp | s.Duration
_JOINS = (s.Comparison | s.Arithmetic | s.AllOf | s.AnyOf | s.NotExpression | s.InList | s.Between | s.IsNull | s.Like
          | s.Negative | r.Case)  # fmt: skip


def _all_parts(expression: r.RowExpression) -> Iterator[r.RowExpression]:
    yield expression
    for part in parts_of(expression):
        yield from _all_parts(part)


def _is_literal(expression: r.RowExpression) -> bool:
    return isinstance(expression, _LITERALS)


def _is_joined_by_us(expression: r.RowExpression) -> bool:
    """Return True if our engine evaluates the operator or function over values of several rows."""
    return isinstance(expression, _JOINS) or (isinstance(expression, s.Call) and expression.function in FUNCTIONS)


def _is_ours(expression: r.RowExpression) -> bool:
    is_literal = _is_literal(expression) or (isinstance(expression, r.Raw) and expression.parts[0][:5] == "DATE ")
    return is_literal or (_is_joined_by_us(expression) and all(map(_is_ours, parts_of(expression))))


def _is_strict(expression: r.RowExpression) -> bool:
    """Return True if the value is certainly null where all columns are null."""
    match expression:
        case s.Name():
            return True
        case s.Arithmetic() | s.Comparison() | s.Negative() | s.Like() | s.NotExpression() | r.Cast():
            return any(map(_is_strict, parts_of(expression)))
        case s.Between() | s.InList():
            return _is_strict(expression.operand)
        case s.AllOf() | s.AnyOf():
            return all(map(_is_strict, expression.operands))
        case s.Call():
            return expression.function in _STRICT_CALLS and any(map(_is_strict, expression.arguments))
        case r.Raw():
            words = " ".join(part for part in expression.parts if isinstance(part, str)).upper().split()
            strict = not {"<=>", "IS", ","} & set(words) and "(" not in words[:1]
            return strict and any(_is_strict(part) for part in expression.parts if not isinstance(part, str))
    return False


def describe(expression: r.RowExpression, labels: dict[str, tuple[int, ...]]) -> str:
    return print_row_expression(expression, labels)
