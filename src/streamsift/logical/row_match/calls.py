"""Bind the functions that read the rows of a match: navigation, aggregates, CLASSIFIER and MATCH_NUMBER."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from streamsift.errors import QueryError, nearest
from streamsift.language import syntax as s
from streamsift.language.row_match import syntax as r
from streamsift.logical import bound as b
from streamsift.logical.columns import kind_of
from streamsift.logical.row_match import bound as m
from streamsift.logical.row_match.scope import ExpressionScope, all_parts, parts_of, rebuilt
from streamsift.logical.row_match.types import average_type, plain, sum_type

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
CURRENT = m.RowReach(m.Anchor.CURRENT)
_USE = "use COUNT, SUM, AVG, MIN or MAX; in MEASURES also ARRAY_AGG, COLLECT_LIST, COLLECT_SET and DISTINCT."
_LITERALS = s.Number | s.String | s.Boolean | s.Null | s.Timestamp | s.Duration


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

    reach: m.RowReach
    expression: r.RowExpression  # its names are columns, without labels


@dataclass(slots=True)
class MatchCalls:
    """Bind the functions that read the rows of a match, in one context."""

    scope: ExpressionScope
    context: Context

    def _read(self, at: At) -> tuple[m.RowExpr, pa.DataType]:
        column, data_type = self.scope.column_of(at.expression)
        return m.RowValue(column, at.reach, kind_of(data_type), span=at.expression.span), data_type

    def _at(self, name: s.Name) -> At:
        label, path = self.scope.reference(name)
        return At(self._default_reach(label), s.Name(path, span=name.span))

    def _default_reach(self, label: str | None) -> m.RowReach:
        if label is None:
            return CURRENT
        members = self.scope.labels[label]
        if self.context.variable in members:
            return CURRENT
        return m.RowReach(m.Anchor.LAST, members, running=self.context.running)

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

    def _navigation(self, expression: r.RowExpression) -> tuple[m.RowReach, r.RowExpression]:
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
            return m.RowReach(anchor, members, offset, running=running), target
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
        for part in all_parts(value):
            if (nested := self._call(part)) is not None:
                raise self._nested(call, nested, part)
        names = list(self._references(value))
        labels = {self.scope.reference(name)[0] for name in names}
        if not names:
            hint = f"write {call.function}(A.x), for example."
            raise self.scope.fail(f"{call.function} requires a column", value.span, hint)
        if len(labels) > 1:
            shown = " and ".join("the current row" if each is None else f"`{self.scope.written[each]}`" for each in
                                 sorted(labels, key=lambda each: each or ""))  # fmt: skip
            message = f"{call.function} reads columns of {shown}"
            raise self.scope.fail(message, call.span, f"name the same variable before each column of {call.function}.")

        def without_label(part: r.RowExpression) -> r.RowExpression:
            if isinstance(part, s.Name):
                is_bound = part not in names
                return part if is_bound else s.Name(self.scope.reference(part)[1], span=part.span)
            return rebuilt(part, without_label)

        return labels.pop(), without_label(value)

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
        if isinstance(argument, r.AllRows) or (function == "COUNT" and is_literal(argument)):
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


def is_literal(expression: r.RowExpression) -> bool:
    return isinstance(expression, _LITERALS)
