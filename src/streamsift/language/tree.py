"""Convert Lark's parse tree to a syntax tree with spans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

from lark import Token, Transformer, v_args
from lark.tree import Meta

from streamsift.errors import NOWHERE, QuerySyntaxError, Span, nearest
from streamsift.language import syntax as s
from streamsift.language.keywords import AGGREGATES, FUNCTIONS, GROUP_FUNCTIONS, MERGES, UNIT_OF
from streamsift.language.printer import print_expression

_EXAMPLES = {
    "POW": "write POW(a.x, 2) or a.x ^ 2.",
    "SQRT": "write SQRT(a.x).",
    "LOG": "divide for another base: LOG(a.x) / LOG(10).",
    "MIN": "write LEAST(a.x, b.x) for the smallest of several values.",
    "MAX": "write GREATEST(a.x, b.x) for the largest of several values.",
}
_CALLS: dict[str, type[s.Seq | s.And | s.Or]] = {"SEQ_CALL": s.Seq, "AND_CALL": s.And, "OR_CALL": s.Or}
_DEFINITION_CLAUSES = ("classes", "where", "partition_by", "preference", "window")
_JOIN, _REMOVE = "merge the two into one, separated by commas.", "remove one of them."
_CLAUSES = {  # field of a statement: the keyword, and the hint if the clause is written twice
    "classes": ("WITH", _JOIN),
    "where": ("WHERE", "join the predicates with AND."),
    "until": ("UNTIL", _REMOVE),
    "partition_by": ("PARTITION BY", _JOIN),
    "group_by": ("GROUP BY", _JOIN),
    "aggregates": ("AGG", _JOIN),
    "preference": ("PREF", "join the objectives with AND."),
    "window": ("WITHIN", _REMOVE),
    "update": ("UPDATE", _REMOVE),
    "emit": ("EMIT", _REMOVE),
    "returns": ("RETURN", _JOIN),
}


class _Clause(s.Written):
    field: str
    value: Any


def written_clauses(statement: s.Statement) -> dict[str, Any]:
    """Return the clauses of a statement that were written, by field name."""
    values = {name: getattr(statement, name) for name in _CLAUSES}
    return {name: value for name, value in values.items() if value not in (None, ())}


def _nodes(children: list[Any]) -> list[Any]:
    """Return the children that are not punctuation, keywords or missing."""
    return [child for child in children if not isinstance(child, Token | None)]


def _alias(children: list[Any]) -> str | None:
    return children[-1].parts[0] if children[-1] else None


def _is_negated(children: list[Any]) -> bool:
    return any(isinstance(child, Token) and child.type == "NOT" for child in children)


def _unquote(token: Token) -> str:
    quote = token[0]
    return str(token[1:-1]).replace(quote * 2, quote)


def _of_nodes(kind: Callable[..., Any]) -> Any:
    return staticmethod(lambda children: kind(tuple(_nodes(children))))


def _clause(field: str, value: Callable[[list[Any]], Any]) -> Any:
    return staticmethod(lambda children: _Clause(field, value(children)))


def _clause_of_nodes(field: str) -> Any:
    return _clause(field, lambda children: tuple(_nodes(children)))


def _placed(rule: Callable[[list[Any]], Any], _: str, children: list[Any], meta: Meta) -> Any:
    """Call a rule, and give its node or its error the rule's span unless it has one."""
    span = NOWHERE if meta.empty else Span(meta.start_pos, meta.end_pos)
    try:
        return _at(span, rule(children))
    except QuerySyntaxError as error:
        if error.span != NOWHERE:
            raise
        raise QuerySyntaxError(error.message, error.text, span, error.hint) from None


def _at(span: Span, node: Any) -> Any:
    if isinstance(node, _Clause):
        node = replace(node, value=_at(span, node.value))
    return replace(node, span=span) if isinstance(node, s.Written) and node.span == NOWHERE else node


def aggregate_rows_hint(argument: s.Expression) -> str:
    """Return the hint for an aggregate over matches whose argument is an expression."""
    return f"write RETURN {print_expression(argument)} AS value, and aggregate the rows of the result."


@v_args(wrapper=_placed)
class TreeBuilder(Transformer[Token, Any]):
    def __init__(self, text: str) -> None:
        super().__init__(visit_tokens=False)
        self.text = text

    def _fail(self, message: str, hint: str = "", at: Token | s.Written | None = None) -> QuerySyntaxError:
        """Return an error at a token or node; by default at the rule that raises it."""
        span = at.span if isinstance(at, s.Written) else Span(at.start_pos or 0, at.end_pos or 0) if at else NOWHERE
        return QuerySyntaxError(message, self.text, span, hint)

    def _number(self, token: Token) -> int | Decimal:
        if len(token) > 400:
            raise self._fail(f"the number has {len(token)} digits", "use a number of at most 38 digits.", token)
        return int(token) if token.isdigit() else Decimal(token)

    # --- rules that turn their children into a node without checks ---
    group = staticmethod(lambda children: children[1])
    or_pattern = _of_nodes(s.Or)
    seq_pattern = _of_nodes(s.Seq)
    and_pattern = _of_nodes(s.And)
    not_pattern = staticmethod(lambda children: s.Not(children[1]))
    predicate_argument = staticmethod(lambda children: children[1])
    with_clause = _clause_of_nodes("classes")
    where_clause = _clause("where", lambda children: children[1])
    until_clause = _clause("until", lambda children: children[1])
    partition_clause = _clause_of_nodes("partition_by")
    group_clause = _clause_of_nodes("group_by")
    agg_clause = _clause_of_nodes("aggregates")
    within_clause = _clause("window", lambda children: s.Window(children[1], children[2] is not None))
    update_clause = _clause("update", lambda children: children[1])
    item = staticmethod(lambda children: s.ReturnItem(children[0], _alias(children)))
    any_of = _of_nodes(s.AnyOf)
    all_of = _of_nodes(s.AllOf)
    not_expression = staticmethod(lambda children: s.NotExpression(children[1]))
    chain = staticmethod(lambda children: s.Comparison(tuple(children[0::2]), tuple(children[1::2])))
    comparator = staticmethod(lambda children: "!=" if children[0] == "<>" else str(children[0]))
    is_null = staticmethod(lambda children: s.IsNull(children[0], _is_negated(children)))
    like = staticmethod(lambda children: s.Like(children[0], _unquote(children[-1]), _is_negated(children)))
    arithmetic = staticmethod(lambda children: s.Arithmetic(str(children[1]), children[0], children[2]))
    negative = staticmethod(lambda children: s.Negative(children[1]))
    string = staticmethod(lambda children: s.String(_unquote(children[0])))
    true = staticmethod(lambda children: s.Boolean(True))
    false = staticmethod(lambda children: s.Boolean(False))
    null = staticmethod(lambda children: s.Null())
    timestamp = staticmethod(lambda children: s.Timestamp(_unquote(children[1])))
    # The span includes the parentheses, so that an error in the enclosing operator underlines the whole operand.
    parenthesized = staticmethod(lambda children: replace(children[1], span=NOWHERE))
    same_attribute = staticmethod(lambda children: s.SameAttribute(children[1].parts[0]))
    dotted = staticmethod(lambda children: s.Name(tuple(name.parts[0] for name in _nodes(children))))
    name = staticmethod(lambda children: s.Name((str(children[0]),)))

    # --- script ---
    def script(self, children: list[Any]) -> s.Script:
        *definitions, statement = children
        return s.Script(tuple(definitions), statement, self.text)

    def statement(self, children: list[Any]) -> s.Statement:
        pattern, *clauses = _nodes(children)
        values: dict[str, Any] = {}
        for clause in clauses:
            if clause.field in values:
                keyword, hint = _CLAUSES[clause.field]
                raise self._fail(f"{keyword} is written twice", hint, clause)
            values[clause.field] = clause.value
        return s.Statement(pattern, **values)

    def definition(self, children: list[Any]) -> s.Definition:
        name, *body = _nodes(children)
        for clause in body[1:]:
            if clause.field not in _DEFINITION_CLAUSES:
                message = f"the definition `{name.parts[0]}` cannot have {_CLAUSES[clause.field][0]}"
                hint = "move it to the statement; a definition takes WITH, WHERE, PARTITION BY, PREF and WITHIN."
                raise self._fail(message, hint, clause)
        return s.Definition(name.parts[0], self.statement(body), span=name.span)

    # --- patterns ---
    def call_pattern(self, children: list[Any]) -> s.Pattern:
        arguments = _nodes(children)
        operands = tuple(each for each in arguments if isinstance(each, s.Pattern))
        if not operands:
            raise self._fail(f"{children[0].upper()} has predicates but no pattern", "add an event class.")
        predicates = tuple(each for each in arguments if not isinstance(each, s.Pattern))
        return _CALLS[children[0].type](operands, predicates)

    def _is_any(self, name: s.Name) -> bool:
        return name.parts[0].upper() == "ANY" and self.text[name.span.start] != "`"

    def event(self, children: list[Any]) -> s.Event:
        """Build an event from a class, then an optional variable and an optional quantifier in either order."""
        nearest, name, *rest = children
        variable = next((child for child in rest if isinstance(child, s.Name)), None)
        quantifier = next((child for child in rest if isinstance(child, s.Quantifier)), None)
        any_row = self._is_any(name)
        return s.Event(
            "ANY" if any_row else name.parts[0],
            variable.parts[0] if variable else None,
            quantifier,
            any_row,
            s.Nearest(nearest.upper()) if nearest else None,
            variable_span=variable.span if variable else name.span,
        )

    def quantifier(self, children: list[Token]) -> s.Quantifier:
        if children[0].type == "LSQB":
            count = self._positive_integer(children[1], "the quantifier `[n]`", "A[3]")
            return s.Quantifier(s.Repeat.EXACTLY, count)
        return s.Quantifier(s.Repeat(str(children[0])))

    def _positive_integer(self, token: Token, what: str, example: str) -> int:
        if not token.isdigit() or int(token) < 1:
            raise self._fail(f"{what} requires a positive integer", f"write {example}, for example.", token)
        return int(token)

    # --- clauses ---
    def class_definition(self, children: list[Any]) -> s.ClassDefinition:
        name, predicate = _nodes(children)
        return s.ClassDefinition("ANY" if self._is_any(name) else name.parts[0], predicate, span=name.span)

    def bare_aggregate(self, children: list[Any]) -> s.Aggregate:
        name = children[0]
        function = name.parts[0].upper()
        if function != "COUNT":
            if function in AGGREGATES:
                raise self._fail(f"{function} requires an attribute", f"write {function}(variable.attribute).", name)
            raise self._fail(f"unknown aggregate `{name.parts[0]}`", nearest(name.parts[0], AGGREGATES), name)
        return s.Aggregate("COUNT", None, _alias(children))

    def aggregate_call(self, children: list[Any]) -> s.Aggregate:
        name, argument, function = children[0], children[2], children[0].upper()
        if function not in AGGREGATES:
            raise self._fail(f"unknown aggregate `{name}`", nearest(name, AGGREGATES), name)
        if isinstance(argument, Token):  # `*`
            if function != "COUNT":
                raise self._fail(f"{function} requires an attribute", f"write {function}(variable.attribute).")
            return s.Aggregate("COUNT", None, _alias(children))
        if function == "COUNT":
            raise self._fail("AGG COUNT counts matches and takes no attribute", "write COUNT without an argument.")
        if not isinstance(argument, s.Name):
            message = f"AGG {function} takes one attribute, not an expression"
            raise self._fail(message, aggregate_rows_hint(argument), argument)
        return s.Aggregate(function, argument, _alias(children))

    def pref_clause(self, children: list[Any]) -> _Clause:
        objectives = tuple(child for child in children if isinstance(child, s.Objective))
        name = children[-1].parts[0] if isinstance(children[-1], s.Name) else None
        if name is not None and name.upper() not in MERGES:
            raise self._fail(f"unknown MERGE function `{name}`", nearest(name, MERGES), children[-1])
        return _Clause("preference", s.Preference(objectives, name and name.upper()))

    def objective(self, children: list[Any]) -> s.Objective:
        *name, expression = _nodes(children)
        return s.Objective(children[0].upper() == "MAX", expression, name[0].parts[0] if name else None)

    def duration(self, children: list[Any]) -> s.Duration:
        number, unit = children
        return s.Duration(self._number(number), self._unit(unit) if unit else s.Unit.NONE)

    def _unit(self, token: Token) -> s.Unit:
        unit = UNIT_OF.get(token.lower())
        if unit is None:
            hint = nearest(token, UNIT_OF)
            if not hint.startswith("did you mean"):
                hint = "use ms, s, min, h or d, or EVENTS for a number of rows."
            raise self._fail(f"unknown unit `{token}`", hint, token)
        return unit

    def emit_clause(self, children: list[Any]) -> _Clause:
        name = children[1].parts[0]
        if name.upper() not in [mode.value for mode in s.Emit]:
            raise self._fail(f"unknown EMIT mode `{name}`", "use FINAL, EACH or CHANGES.", children[1])
        return _Clause("emit", s.EmitMode(s.Emit(name.upper())))

    def return_clause(self, children: list[Any]) -> _Clause:
        items = tuple(_nodes(children[3:]))
        limit = self._positive_integer(children[2], "RETURN TOP", "RETURN TOP 10") if children[2] is not None else None
        if limit is None and len(items) == 1 and items[0].alias is None:
            match items[0].expression:
                case s.Number(value=int() as alone) if alone >= 1:
                    limit, items = alone, ()
                case s.Number() | s.Negative(operand=s.Number()):
                    hint = "name it with AS to return it as a column."
                    raise self._fail("RETURN k requires a positive integer", hint, items[0])
        return _Clause("returns", s.Return(limit, items))

    # --- expressions ---
    def in_list(self, children: list[Any]) -> s.InList:
        operand, *items = _nodes(children)
        return s.InList(operand, tuple(items), _is_negated(children))

    def between(self, children: list[Any]) -> s.Between:
        operand, low, high = _nodes(children)
        return s.Between(operand, low, high, _is_negated(children))

    def number(self, children: list[Token]) -> s.Number:
        return s.Number(self._number(children[0]))

    def duration_literal(self, children: list[Token]) -> s.Duration:
        unit = self._unit(children[1])
        if unit is s.Unit.EVENT:
            raise self._fail("a number of events is not a value", "use EVENTS in WITHIN and UPDATE only.")
        return s.Duration(self._number(children[0]), unit)

    def function_call(self, children: list[Any]) -> s.Call:
        name, arguments = children[0], tuple(_nodes(children))
        function, functions = name.upper(), (*FUNCTIONS, *GROUP_FUNCTIONS)
        if function not in functions:
            hint = nearest(name, functions) or f"use one of {', '.join(functions)}."
            raise self._fail(f"unknown function `{name}`", hint, name)
        minimum, maximum = FUNCTIONS.get(function, (1, 1))
        if len(arguments) < minimum or (maximum is not None and len(arguments) > maximum):
            takes = f"{minimum} argument{'s' if minimum > 1 else ''}" + ("" if maximum else " or more")
            raise self._fail(f"{function} takes {takes}, not {len(arguments)}", _EXAMPLES.get(function, ""))
        return s.Call(function, arguments)

    def star_call(self, children: list[Any]) -> s.Call:
        hint = "write COUNT(b) for the events of a Kleene variable `b`, or AGG COUNT for the number of matches."
        raise self._fail(f"{children[0]}(*) is only allowed in AGG", hint)
