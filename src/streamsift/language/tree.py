"""Lark's parse tree in, the syntax tree with spans out."""

from __future__ import annotations

from dataclasses import fields, replace
from decimal import Decimal
from typing import Any

from lark import Token, Transformer, v_args
from lark.tree import Meta

from streamsift.errors import QuerySyntaxError, Span, nearest
from streamsift.language import syntax as s

FUNCTIONS = {  # name: (fewest, most) arguments
    "ABS": (1, 1),
    "SQRT": (1, 1),
    "POW": (2, 2),
    "LOG": (1, 1),
    "EXP": (1, 1),
    "LEAST": (1, None),
    "GREATEST": (1, None),
    "COALESCE": (1, None),
    "LOWER": (1, 1),
    "UPPER": (1, 1),
}
_EXAMPLES = {
    "POW": "e.g. POW(a.x, 2), or a.x ^ 2.",
    "SQRT": "e.g. SQRT(a.x).",
    "LOG": "it is the natural logarithm; for another base divide: LOG(a.x) / LOG(10).",
    "MIN": "it is over the group of a Kleene variable; the least of several values is LEAST(a.x, b.x).",
    "MAX": "it is over the group of a Kleene variable; the greatest of several values is GREATEST(a.x, b.x).",
}
GROUP_FUNCTIONS = ("COUNT", "SUM", "AVG", "MIN", "MAX", "FIRST", "LAST")
AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX")
MERGES = ("SUM", "AVG", "MIN", "MAX", "PRODUCT")
UNITS = {
    s.Unit.MILLISECOND: ("ms", "msec", "millisecond", "milliseconds"),
    s.Unit.SECOND: ("s", "sec", "secs", "second", "seconds"),
    s.Unit.MINUTE: ("min", "mins", "minute", "minutes"),
    s.Unit.HOUR: ("h", "hour", "hours"),
    s.Unit.DAY: ("d", "day", "days"),
    s.Unit.EVENT: ("event", "events", "unit", "units"),
}
_UNIT_OF = {spelling: unit for unit, spellings in UNITS.items() for spelling in spellings}
_CALLS: dict[str, type[s.Seq] | type[s.And] | type[s.Or]] = {"SEQ_CALL": s.Seq, "AND_CALL": s.And, "OR_CALL": s.Or}
_DEFINITION_CLAUSES = ("classes", "where", "partition_by", "preference", "window")
_INSTEAD_OF_A_SECOND = {
    "where": "join the predicates with AND.",
    "preference": "join the objectives with AND.",
    "window": "leave one of them out.",
    "update": "leave one of them out.",
    "emit": "leave one of them out.",
}
_CLAUSE_NAMES = {
    "classes": "WITH",
    "where": "WHERE",
    "partition_by": "PARTITION BY",
    "group_by": "GROUP BY",
    "aggregates": "AGG",
    "preference": "PREF",
    "window": "WITHIN",
    "update": "UPDATE",
    "emit": "EMIT",
    "returns": "RETURN",
}


class _Predicate:
    """An argument of SEQ, AND or OR that is a predicate."""

    def __init__(self, expression: s.Expression) -> None:
        self.expression = expression


class _Clause:
    def __init__(self, field: str, value: Any, span: Span) -> None:
        self.field, self.value, self.span = field, value, span


def _of_token(token: Token) -> Span:
    return Span(token.start_pos or 0, token.end_pos or 0)


def _nodes(children: list[Any]) -> list[Any]:
    """The children that are not punctuation or keywords."""
    return [child for child in children if not isinstance(child, Token)]


@v_args(meta=True)
class TreeBuilder(Transformer[Token, Any]):
    def __init__(self, text: str) -> None:
        super().__init__(visit_tokens=False)
        self.text = text

    def _fail(self, message: str, span: Span, hint: str = "") -> QuerySyntaxError:
        return QuerySyntaxError(message, self.text, span, hint)

    @staticmethod
    def _span(meta: Meta) -> Span:
        return Span(meta.start_pos, meta.end_pos) if not meta.empty else Span(0, 0)

    @staticmethod
    def clause_fields(statement: s.Statement) -> dict[str, Any]:
        """The clauses of a statement that were written, by field name."""
        values = {f.name: getattr(statement, f.name) for f in fields(statement) if f.name in _CLAUSE_NAMES}
        return {name: value for name, value in values.items() if value not in (None, ())}

    def _number(self, token: Token) -> int | Decimal:
        if len(token) > 400:
            raise self._fail(f"a number of {len(token)} digits", _of_token(token), "the longest decimals have 38.")
        return int(token) if token.isdigit() else Decimal(token)

    # --- script ---
    def script(self, meta: Meta, children: list[Any]) -> s.Script:
        *definitions, statement = children
        return s.Script(tuple(definitions), statement, self.text)

    def statement(self, meta: Meta, children: list[Any]) -> s.Statement:
        pattern, *clauses = _nodes(children)
        found: dict[str, _Clause] = {}
        for clause in clauses:
            if clause.field in found:
                name = _CLAUSE_NAMES[clause.field]
                instead = _INSTEAD_OF_A_SECOND.get(clause.field, "put all of it into one, separated by commas.")
                raise self._fail(f"a second {name}", clause.span, instead)
            found[clause.field] = clause
        return s.Statement(pattern, **{name: clause.value for name, clause in found.items()}, span=self._span(meta))

    def definition(self, meta: Meta, children: list[Any]) -> s.Definition:
        name, pattern, *clauses = _nodes(children)
        for clause in clauses:
            if clause.field not in _DEFINITION_CLAUSES:
                raise self._fail(
                    f"{_CLAUSE_NAMES[clause.field]} in the definition of `{name.parts[0]}`",
                    clause.span,
                    "a definition has WITH, WITHIN, WHERE, PREF and PARTITION BY only; put it into the statement.",
                )
        return s.Definition(name.parts[0], self.statement(meta, [pattern, *clauses]), name.span)

    # --- patterns ---
    def group(self, meta: Meta, children: list[Any]) -> s.Pattern:
        pattern: s.Pattern = children[1]
        return pattern

    def or_pattern(self, meta: Meta, children: list[Any]) -> s.Or:
        return s.Or(tuple(_nodes(children)), span=self._span(meta))

    def seq_pattern(self, meta: Meta, children: list[Any]) -> s.Seq:
        return s.Seq(tuple(_nodes(children)), span=self._span(meta))

    def and_pattern(self, meta: Meta, children: list[Any]) -> s.And:
        return s.And(tuple(_nodes(children)), span=self._span(meta))

    def not_pattern(self, meta: Meta, children: list[Any]) -> s.Not:
        return s.Not(children[1], span=self._span(meta))

    def predicate_argument(self, meta: Meta, children: list[Any]) -> _Predicate:
        return _Predicate(children[1])

    def call_pattern(self, meta: Meta, children: list[Any]) -> s.Pattern:
        arguments = _nodes(children)
        operands = tuple(a for a in arguments if not isinstance(a, _Predicate))
        predicates = tuple(a.expression for a in arguments if isinstance(a, _Predicate))
        if not operands:
            raise self._fail(
                f"{children[0].upper()} has predicates but no pattern",
                self._span(meta),
                "name at least one event class.",
            )
        return _CALLS[children[0].type](operands, predicates, span=self._span(meta))

    def _is_any(self, name: s.Name) -> bool:
        return name.parts[0].upper() == "ANY" and self.text[name.span.start] != "`"

    def _event(self, meta: Meta, name: s.Name, variable: s.Name | None, quantifier: s.Quantifier | None) -> s.Event:
        any_row = self._is_any(name)
        return s.Event(
            "ANY" if any_row else name.parts[0],
            variable.parts[0] if variable else None,
            quantifier,
            any_row,
            span=self._span(meta),
            variable_span=variable.span if variable else name.span,
        )

    def event(self, meta: Meta, children: list[Any]) -> s.Event:
        name, *quantifier = children
        return self._event(meta, name, None, quantifier[0] if quantifier else None)

    def event_variable(self, meta: Meta, children: list[Any]) -> s.Event:
        return self._event(meta, children[0], children[1], None)

    def event_quantifier_variable(self, meta: Meta, children: list[Any]) -> s.Event:
        return self._event(meta, children[0], children[2], children[1])

    def event_variable_quantifier(self, meta: Meta, children: list[Any]) -> s.Event:
        return self._event(meta, children[0], children[1], children[2])

    def quantifier(self, meta: Meta, children: list[Token]) -> s.Quantifier:
        span = self._span(meta)
        if children[0].type == "PLUS":
            return s.Quantifier(s.Repeat.ONE_OR_MORE, span=span)
        if children[0].type == "STAR":
            return s.Quantifier(s.Repeat.ANY_NUMBER, span=span)
        count = self._positive_integer(children[1], "a quantifier [n]", "A[3]")
        return s.Quantifier(s.Repeat.EXACTLY, count, span=span)

    def _positive_integer(self, token: Token, what: str, example: str) -> int:
        if not token.isdigit() or int(token) < 1:
            raise self._fail(f"{what} takes a whole number of at least 1", _of_token(token), f"e.g. {example}.")
        return int(token)

    # --- clauses ---
    def with_clause(self, meta: Meta, children: list[Any]) -> _Clause:
        return _Clause("classes", tuple(_nodes(children)), self._span(meta))

    def class_definition(self, meta: Meta, children: list[Any]) -> s.ClassDefinition:
        name, predicate = _nodes(children)
        class_name = "ANY" if self._is_any(name) else name.parts[0]
        return s.ClassDefinition(class_name, predicate, span=name.span)

    def where_clause(self, meta: Meta, children: list[Any]) -> _Clause:
        return _Clause("where", children[1], self._span(meta))

    def partition_clause(self, meta: Meta, children: list[Any]) -> _Clause:
        return _Clause("partition_by", tuple(_nodes(children)), self._span(meta))

    def group_clause(self, meta: Meta, children: list[Any]) -> _Clause:
        return _Clause("group_by", tuple(_nodes(children)), self._span(meta))

    def agg_clause(self, meta: Meta, children: list[Any]) -> _Clause:
        return _Clause("aggregates", tuple(_nodes(children)), self._span(meta))

    def bare_aggregate(self, meta: Meta, children: list[Any]) -> s.Aggregate:
        name, alias = children[0], children[-1]
        if name.parts[0].upper() != "COUNT":
            hint = f"only COUNT stands alone; {name.parts[0].upper()} takes `(variable.attribute)`."
            hint = hint if name.parts[0].upper() in AGGREGATES else nearest(name.parts[0], AGGREGATES) or hint
            raise self._fail(f"`{name.parts[0]}` is not an aggregate", name.span, hint)
        return s.Aggregate("COUNT", None, alias.parts[0] if alias else None, span=self._span(meta))

    def star_aggregate(self, meta: Meta, children: list[Any]) -> s.Aggregate:
        function, alias = self._aggregate_name(children[0]), children[-1]
        if function != "COUNT":
            raise self._fail(
                f"{function}(*) has nothing to aggregate", self._span(meta), f"write {function}(variable.attribute)."
            )
        return s.Aggregate("COUNT", None, alias.parts[0] if alias else None, span=self._span(meta))

    def attribute_aggregate(self, meta: Meta, children: list[Any]) -> s.Aggregate:
        function, argument, alias = self._aggregate_name(children[0]), children[2], children[-1]
        if function == "COUNT":
            raise self._fail(
                "AGG COUNT counts matches and takes no attribute", self._span(meta), "write COUNT or COUNT(*)."
            )
        if not isinstance(argument, s.Name):
            hint = "add the value to the events as a column first."
            raise self._fail(f"AGG {function} of an expression instead of `variable.attribute`", argument.span, hint)
        return s.Aggregate(function, argument, alias.parts[0] if alias else None, span=self._span(meta))

    def _aggregate_name(self, token: Token) -> str:
        if token.upper() not in AGGREGATES:
            raise self._fail(f"`{token}` is not an aggregate", _of_token(token), nearest(token, AGGREGATES))
        return token.upper()

    def pref_clause(self, meta: Meta, children: list[Any]) -> _Clause:
        objectives = tuple(c for c in children if isinstance(c, s.Objective))
        merge = children[-1] if isinstance(children[-1], s.Name) else None
        if merge and merge.parts[0].upper() not in MERGES:
            raise self._fail(
                f"`{merge.parts[0]}` is not a way to merge objectives", merge.span, nearest(merge.parts[0], MERGES)
            )
        preference = s.Preference(objectives, merge.parts[0].upper() if merge else None, span=self._span(meta))
        return _Clause("preference", preference, self._span(meta))

    def objective(self, meta: Meta, children: list[Any]) -> s.Objective:
        return s.Objective(children[0].upper() == "MAX", _nodes(children)[0], None, span=self._span(meta))

    def named_objective(self, meta: Meta, children: list[Any]) -> s.Objective:
        name, expression = _nodes(children)
        return s.Objective(children[0].upper() == "MAX", expression, name.parts[0], span=self._span(meta))

    def within_clause(self, meta: Meta, children: list[Any]) -> _Clause:
        span = self._span(meta)
        return _Clause("window", s.Window(children[1], children[2] is not None, span=span), span)

    def update_clause(self, meta: Meta, children: list[Any]) -> _Clause:
        return _Clause("update", children[1], self._span(meta))

    def duration(self, meta: Meta, children: list[Any]) -> s.Duration:
        number, unit = children
        return s.Duration(self._number(number), self._unit(unit) if unit else s.Unit.NONE, span=self._span(meta))

    def _unit(self, token: Token) -> s.Unit:
        unit = _UNIT_OF.get(token.lower())
        if unit is None:
            hint = nearest(token, _UNIT_OF)
            hint = (
                hint
                if hint.startswith("did you mean")
                else "units are ms, s, min, h, d, and EVENTS for a count of rows."
            )
            raise self._fail(f"unknown unit `{token}`", _of_token(token), hint)
        return unit

    def emit_clause(self, meta: Meta, children: list[Any]) -> _Clause:
        name = children[1]
        try:
            mode = s.Emit(name.parts[0].upper())
        except ValueError:
            raise self._fail(
                f"unknown EMIT mode `{name.parts[0]}`", name.span, "EMIT takes FINAL, EACH or CHANGES."
            ) from None
        return _Clause("emit", s.EmitMode(mode, span=self._span(meta)), self._span(meta))

    def return_clause(self, meta: Meta, children: list[Any]) -> _Clause:
        span = self._span(meta)
        items = tuple(_nodes(children[3:]))
        items = tuple(i for i in items if i is not None)
        limit = self._positive_integer(children[2], "RETURN TOP", "RETURN TOP 10") if children[2] is not None else None
        if limit is None and len(items) == 1 and items[0].alias is None:
            match items[0].expression:
                case s.Number(value=int() as alone) if alone >= 1:
                    return _Clause("returns", s.Return(alone, (), span=span), span)
                case s.Number() | s.Negative(operand=s.Number()):
                    raise self._fail(
                        "RETURN k takes a whole number of at least 1",
                        items[0].span,
                        "to return it as a column, give it a name with AS.",
                    )
        return _Clause("returns", s.Return(limit, items, span=span), span)

    def return_top_clause(self, meta: Meta, children: list[Any]) -> _Clause:
        span = self._span(meta)
        return _Clause(
            "returns", s.Return(self._positive_integer(children[2], "RETURN TOP", "RETURN TOP 10"), (), span=span), span
        )

    def item(self, meta: Meta, children: list[Any]) -> s.ReturnItem:
        alias = children[-1]
        return s.ReturnItem(children[0], alias.parts[0] if alias else None, span=self._span(meta))

    # --- predicates ---
    def any_of(self, meta: Meta, children: list[Any]) -> s.AnyOf:
        return s.AnyOf(tuple(_nodes(children)), span=self._span(meta))

    def all_of(self, meta: Meta, children: list[Any]) -> s.AllOf:
        return s.AllOf(tuple(_nodes(children)), span=self._span(meta))

    def not_expression(self, meta: Meta, children: list[Any]) -> s.NotExpression:
        return s.NotExpression(children[1], span=self._span(meta))

    def chain(self, meta: Meta, children: list[Any]) -> s.Comparison:
        return s.Comparison(tuple(children[0::2]), tuple(children[1::2]), span=self._span(meta))

    def comparator(self, meta: Meta, children: list[Token]) -> str:
        return "!=" if children[0] == "<>" else str(children[0])

    def _in(self, meta: Meta, children: list[Any], negated: bool) -> s.InList:
        operand, *items = _nodes(children)
        return s.InList(operand, tuple(items), negated, span=self._span(meta))

    def in_list(self, meta: Meta, children: list[Any]) -> s.InList:
        return self._in(meta, children, False)

    def not_in_list(self, meta: Meta, children: list[Any]) -> s.InList:
        return self._in(meta, children, True)

    def _between(self, meta: Meta, children: list[Any], negated: bool) -> s.Between:
        operand, low, high = _nodes(children)
        return s.Between(operand, low, high, negated, span=self._span(meta))

    def between(self, meta: Meta, children: list[Any]) -> s.Between:
        return self._between(meta, children, False)

    def not_between(self, meta: Meta, children: list[Any]) -> s.Between:
        return self._between(meta, children, True)

    def is_null(self, meta: Meta, children: list[Any]) -> s.IsNull:
        return s.IsNull(children[0], span=self._span(meta))

    def is_not_null(self, meta: Meta, children: list[Any]) -> s.IsNull:
        return s.IsNull(children[0], True, span=self._span(meta))

    def like(self, meta: Meta, children: list[Any]) -> s.Like:
        return s.Like(children[0], _unquote(children[-1]), span=self._span(meta))

    def not_like(self, meta: Meta, children: list[Any]) -> s.Like:
        return s.Like(children[0], _unquote(children[-1]), True, span=self._span(meta))

    # --- expressions ---
    def arithmetic(self, meta: Meta, children: list[Any]) -> s.Arithmetic:
        left, op, right = children
        return s.Arithmetic(str(op), left, right, span=self._span(meta))

    def negative(self, meta: Meta, children: list[Any]) -> s.Negative:
        return s.Negative(children[1], span=self._span(meta))

    def number(self, meta: Meta, children: list[Token]) -> s.Number:
        return s.Number(self._number(children[0]), span=self._span(meta))

    def duration_literal(self, meta: Meta, children: list[Token]) -> s.Duration:
        unit = self._unit(children[1])
        if unit is s.Unit.EVENT:
            raise self._fail(
                "a count of events is not a value", self._span(meta), "only WITHIN and UPDATE take EVENTS."
            )
        return s.Duration(self._number(children[0]), unit, span=self._span(meta))

    def string(self, meta: Meta, children: list[Token]) -> s.String:
        return s.String(_unquote(children[0]), span=self._span(meta))

    def true(self, meta: Meta, children: list[Token]) -> s.Boolean:
        return s.Boolean(True, span=self._span(meta))

    def false(self, meta: Meta, children: list[Token]) -> s.Boolean:
        return s.Boolean(False, span=self._span(meta))

    def null(self, meta: Meta, children: list[Token]) -> s.Null:
        return s.Null(span=self._span(meta))

    def timestamp(self, meta: Meta, children: list[Token]) -> s.Timestamp:
        return s.Timestamp(_unquote(children[1]), span=self._span(meta))

    def parenthesised(self, meta: Meta, children: list[Any]) -> s.Expression:
        # The span takes in the parentheses, so that an operator around points at all of its operand.
        expression: s.Expression = replace(children[1], span=self._span(meta))
        return expression

    def same_attribute(self, meta: Meta, children: list[Any]) -> s.SameAttribute:
        return s.SameAttribute(children[1].parts[0], span=self._span(meta))

    def function_call(self, meta: Meta, children: list[Any]) -> s.Call:
        name, arguments = children[0], tuple(c for c in _nodes(children) if c is not None)
        function, span = name.upper(), self._span(meta)
        known = (*FUNCTIONS, *GROUP_FUNCTIONS)
        if function not in known:
            hint = nearest(name, known) or f"functions are {', '.join(known)}."
            raise self._fail(f"unknown function `{name}`", _of_token(name), hint)
        fewest, most = FUNCTIONS.get(function, (1, 1))
        if len(arguments) < fewest or (most is not None and len(arguments) > most):
            takes = f"{fewest} argument{'s' if fewest > 1 else ''}" + ("" if most else " or more")
            raise self._fail(f"{function} takes {takes}, not {len(arguments)}", span, _EXAMPLES.get(function, ""))
        return s.Call(function, arguments, span=span)

    def star_call(self, meta: Meta, children: list[Any]) -> s.Call:
        raise self._fail(
            f"{children[0]}(*) is not a value of a match",
            self._span(meta),
            "COUNT(b) counts the events of a Kleene variable b; AGG COUNT counts matches.",
        )

    def dotted(self, meta: Meta, children: list[Any]) -> s.Name:
        names = _nodes(children)
        return s.Name(tuple(n.parts[0] for n in names), span=self._span(meta))

    def name(self, meta: Meta, children: list[Token]) -> s.Name:
        return s.Name((str(children[0]),), span=self._span(meta))


def _unquote(token: Token) -> str:
    quote = token[0]
    return str(token[1:-1]).replace(quote * 2, quote)
