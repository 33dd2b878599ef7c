"""Build the syntax tree, with spans, of Lark's parse tree."""

from __future__ import annotations

from collections.abc import Callable
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


def _alias(children: list[Any]) -> str | None:
    return children[-1].parts[0] if children[-1] else None


def _is_negated(children: list[Any]) -> bool:
    return any(isinstance(child, Token) and child.type == "NOT" for child in children)


def _unquote(token: Token) -> str:
    quote = token[0]
    return str(token[1:-1]).replace(quote * 2, quote)


def _span(meta: Meta) -> Span:
    return Span(meta.start_pos, meta.end_pos) if not meta.empty else Span(0, 0)


def _rule(make: Callable[[list[Any], Span], Any]) -> Callable[..., Any]:
    """Return the method of a rule that makes something of its children and the place of the whole."""

    def method(self: TreeBuilder, meta: Meta, children: list[Any]) -> Any:
        return make(children, _span(meta))

    return method


def _rule_of_nodes(kind: Callable[..., Any]) -> Callable[..., Any]:
    return _rule(lambda children, span: kind(tuple(_nodes(children)), span=span))


def _clause_of_nodes(field: str) -> Callable[..., Any]:
    return _rule(lambda children, span: _Clause(field, tuple(_nodes(children)), span))


@v_args(meta=True)
class TreeBuilder(Transformer[Token, Any]):
    def __init__(self, text: str) -> None:
        super().__init__(visit_tokens=False)
        self.text = text

    def _fail(self, message: str, span: Span, hint: str = "") -> QuerySyntaxError:
        return QuerySyntaxError(message, self.text, span, hint)

    @staticmethod
    def clause_fields(statement: s.Statement) -> dict[str, Any]:
        """The clauses of a statement that were written, by field name."""
        values = {f.name: getattr(statement, f.name) for f in fields(statement) if f.name in _CLAUSE_NAMES}
        return {name: value for name, value in values.items() if value not in (None, ())}

    def _number(self, token: Token) -> int | Decimal:
        if len(token) > 400:
            raise self._fail(f"a number of {len(token)} digits", _of_token(token), "the longest decimals have 38.")
        return int(token) if token.isdigit() else Decimal(token)

    # --- rules that make a node of their children, as they are ---
    group = _rule(lambda children, span: children[1])
    or_pattern = _rule_of_nodes(s.Or)
    seq_pattern = _rule_of_nodes(s.Seq)
    and_pattern = _rule_of_nodes(s.And)
    not_pattern = _rule(lambda children, span: s.Not(children[1], span=span))
    predicate_argument = _rule(lambda children, span: _Predicate(children[1]))
    with_clause = _clause_of_nodes("classes")
    where_clause = _rule(lambda children, span: _Clause("where", children[1], span))
    partition_clause = _clause_of_nodes("partition_by")
    group_clause = _clause_of_nodes("group_by")
    agg_clause = _clause_of_nodes("aggregates")
    update_clause = _rule(lambda children, span: _Clause("update", children[1], span))
    item = _rule(lambda children, span: s.ReturnItem(children[0], _alias(children), span=span))
    any_of = _rule_of_nodes(s.AnyOf)
    all_of = _rule_of_nodes(s.AllOf)
    not_expression = _rule(lambda children, span: s.NotExpression(children[1], span=span))
    chain = _rule(lambda children, span: s.Comparison(tuple(children[0::2]), tuple(children[1::2]), span=span))
    comparator = _rule(lambda children, span: "!=" if children[0] == "<>" else str(children[0]))
    is_null = _rule(lambda children, span: s.IsNull(children[0], _is_negated(children), span=span))
    like = _rule(lambda children, span: s.Like(children[0], _unquote(children[-1]), _is_negated(children), span=span))
    arithmetic = _rule(lambda children, span: s.Arithmetic(str(children[1]), children[0], children[2], span=span))
    negative = _rule(lambda children, span: s.Negative(children[1], span=span))
    string = _rule(lambda children, span: s.String(_unquote(children[0]), span=span))
    true = _rule(lambda children, span: s.Boolean(True, span=span))
    false = _rule(lambda children, span: s.Boolean(False, span=span))
    null = _rule(lambda children, span: s.Null(span=span))
    timestamp = _rule(lambda children, span: s.Timestamp(_unquote(children[1]), span=span))
    # The span takes in the parentheses, so that an operator around points at all of its operand.
    parenthesised = _rule(lambda children, span: replace(children[1], span=span))
    same_attribute = _rule(lambda children, span: s.SameAttribute(children[1].parts[0], span=span))
    dotted = _rule(lambda children, span: s.Name(tuple(n.parts[0] for n in _nodes(children)), span=span))
    name = _rule(lambda children, span: s.Name((str(children[0]),), span=span))

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
        return s.Statement(pattern, **{name: clause.value for name, clause in found.items()}, span=_span(meta))

    def definition(self, meta: Meta, children: list[Any]) -> s.Definition:
        name, pattern, *clauses = _nodes(children)
        for clause in clauses:
            if clause.field not in _DEFINITION_CLAUSES:
                message = f"{_CLAUSE_NAMES[clause.field]} in the definition of `{name.parts[0]}`"
                hint = "a definition has WITH, WITHIN, WHERE, PREF and PARTITION BY only; put it into the statement."
                raise self._fail(message, clause.span, hint)
        return s.Definition(name.parts[0], self.statement(meta, [pattern, *clauses]), span=name.span)

    # --- patterns ---
    def call_pattern(self, meta: Meta, children: list[Any]) -> s.Pattern:
        arguments = _nodes(children)
        operands = tuple(a for a in arguments if not isinstance(a, _Predicate))
        predicates = tuple(a.expression for a in arguments if isinstance(a, _Predicate))
        if not operands:
            hint = "name at least one event class."
            raise self._fail(f"{children[0].upper()} has predicates but no pattern", _span(meta), hint)
        return _CALLS[children[0].type](operands, predicates, span=_span(meta))

    def _is_any(self, name: s.Name) -> bool:
        return name.parts[0].upper() == "ANY" and self.text[name.span.start] != "`"

    def event(self, meta: Meta, children: list[Any]) -> s.Event:
        """A class, then its variable and its quantifier in either order, if it has them."""
        name, *rest = children
        variable = next((child for child in rest if isinstance(child, s.Name)), None)
        quantifier = next((child for child in rest if isinstance(child, s.Quantifier)), None)
        any_row = self._is_any(name)
        return s.Event(
            "ANY" if any_row else name.parts[0],
            variable.parts[0] if variable else None,
            quantifier,
            any_row,
            span=_span(meta),
            variable_span=variable.span if variable else name.span,
        )

    def quantifier(self, meta: Meta, children: list[Token]) -> s.Quantifier:
        span = _span(meta)
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
    def class_definition(self, meta: Meta, children: list[Any]) -> s.ClassDefinition:
        name, predicate = _nodes(children)
        class_name = "ANY" if self._is_any(name) else name.parts[0]
        return s.ClassDefinition(class_name, predicate, span=name.span)

    def bare_aggregate(self, meta: Meta, children: list[Any]) -> s.Aggregate:
        name = children[0]
        if name.parts[0].upper() != "COUNT":
            hint = f"only COUNT stands alone; {name.parts[0].upper()} takes `(variable.attribute)`."
            hint = hint if name.parts[0].upper() in AGGREGATES else nearest(name.parts[0], AGGREGATES) or hint
            raise self._fail(f"`{name.parts[0]}` is not an aggregate", name.span, hint)
        return s.Aggregate("COUNT", None, _alias(children), span=_span(meta))

    def star_aggregate(self, meta: Meta, children: list[Any]) -> s.Aggregate:
        function = self._aggregate_name(children[0])
        if function != "COUNT":
            hint = f"write {function}(variable.attribute)."
            raise self._fail(f"{function}(*) has nothing to aggregate", _span(meta), hint)
        return s.Aggregate("COUNT", None, _alias(children), span=_span(meta))

    def attribute_aggregate(self, meta: Meta, children: list[Any]) -> s.Aggregate:
        function, argument = self._aggregate_name(children[0]), children[2]
        if function == "COUNT":
            raise self._fail("AGG COUNT counts matches and takes no attribute", _span(meta), "write COUNT or COUNT(*).")
        if not isinstance(argument, s.Name):
            hint = "add the value to the events as a column first."
            raise self._fail(f"AGG {function} of an expression instead of `variable.attribute`", argument.span, hint)
        return s.Aggregate(function, argument, _alias(children), span=_span(meta))

    def _aggregate_name(self, token: Token) -> str:
        if token.upper() not in AGGREGATES:
            raise self._fail(f"`{token}` is not an aggregate", _of_token(token), nearest(token, AGGREGATES))
        return token.upper()

    def pref_clause(self, meta: Meta, children: list[Any]) -> _Clause:
        objectives = tuple(c for c in children if isinstance(c, s.Objective))
        merge = children[-1] if isinstance(children[-1], s.Name) else None
        if merge and merge.parts[0].upper() not in MERGES:
            message = f"`{merge.parts[0]}` is not a way to merge objectives"
            raise self._fail(message, merge.span, nearest(merge.parts[0], MERGES))
        preference = s.Preference(objectives, merge.parts[0].upper() if merge else None, span=_span(meta))
        return _Clause("preference", preference, _span(meta))

    def objective(self, meta: Meta, children: list[Any]) -> s.Objective:
        *name, expression = _nodes(children)
        return s.Objective(
            children[0].upper() == "MAX", expression, name[0].parts[0] if name else None, span=_span(meta)
        )

    def within_clause(self, meta: Meta, children: list[Any]) -> _Clause:
        span = _span(meta)
        return _Clause("window", s.Window(children[1], children[2] is not None, span=span), span)

    def duration(self, meta: Meta, children: list[Any]) -> s.Duration:
        number, unit = children
        return s.Duration(self._number(number), self._unit(unit) if unit else s.Unit.NONE, span=_span(meta))

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
            hint = "EMIT takes FINAL, EACH or CHANGES."
            raise self._fail(f"unknown EMIT mode `{name.parts[0]}`", name.span, hint) from None
        return _Clause("emit", s.EmitMode(mode, span=_span(meta)), _span(meta))

    def return_clause(self, meta: Meta, children: list[Any]) -> _Clause:
        span = _span(meta)
        items = tuple(_nodes(children[3:]))
        items = tuple(i for i in items if i is not None)
        limit = self._positive_integer(children[2], "RETURN TOP", "RETURN TOP 10") if children[2] is not None else None
        if limit is None and len(items) == 1 and items[0].alias is None:
            match items[0].expression:
                case s.Number(value=int() as alone) if alone >= 1:
                    return _Clause("returns", s.Return(alone, (), span=span), span)
                case s.Number() | s.Negative(operand=s.Number()):
                    hint = "to return it as a column, give it a name with AS."
                    raise self._fail("RETURN k takes a whole number of at least 1", items[0].span, hint)
        return _Clause("returns", s.Return(limit, items, span=span), span)

    # --- predicates ---
    # --- expressions ---
    def in_list(self, meta: Meta, children: list[Any]) -> s.InList:
        operand, *items = _nodes(children)
        return s.InList(operand, tuple(items), _is_negated(children), span=_span(meta))

    def between(self, meta: Meta, children: list[Any]) -> s.Between:
        operand, low, high = _nodes(children)
        return s.Between(operand, low, high, _is_negated(children), span=_span(meta))

    def number(self, meta: Meta, children: list[Token]) -> s.Number:
        return s.Number(self._number(children[0]), span=_span(meta))

    def duration_literal(self, meta: Meta, children: list[Token]) -> s.Duration:
        unit = self._unit(children[1])
        if unit is s.Unit.EVENT:
            raise self._fail("a count of events is not a value", _span(meta), "only WITHIN and UPDATE take EVENTS.")
        return s.Duration(self._number(children[0]), unit, span=_span(meta))

    def function_call(self, meta: Meta, children: list[Any]) -> s.Call:
        name, arguments = children[0], tuple(c for c in _nodes(children) if c is not None)
        function, span = name.upper(), _span(meta)
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
        hint = "COUNT(b) counts the events of a Kleene variable b; AGG COUNT counts matches."
        raise self._fail(f"{children[0]}(*) is not a value of a match", _span(meta), hint)
