"""Describe bound queries as text, for explain and error messages. Checkpoints store the output of `describe_query`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from streamsift.language.printer import print_quantifier
from streamsift.logical import bound as b

_PRECEDENCE = {"or": 0, "and": 1, "not": 2, "+": 4, "-": 4, "*": 5, "/": 5, "%": 5, "negative": 6, "^": 7}
_COMPARISON, _ATOM = 3, 8
OPERATOR_NAMES: dict[type[b.Node], str] = {b.Sequence: "SEQ", b.Conjunction: "AND", b.Disjunction: "OR"}


def describe_expression(expression: b.Expr, variables: tuple[b.Variable, ...]) -> str:
    return _describe(expression, variables)[0]


def _describe(expression: b.Expr, variables: tuple[b.Variable, ...]) -> tuple[str, int]:
    match expression:
        case b.Column():
            name = "time" if expression.name == b.TIME else expression.name
            owner = "" if expression.variable == b.THIS_ROW else f"{variables[expression.variable].name}."
            return owner + name, _ATOM
        case b.Constant():
            return _constant(expression), _ATOM
        case b.GroupAggregate():
            column = f".{expression.column}" if expression.column else ""
            return f"{expression.function}({variables[expression.variable].name}{column})", _ATOM
        case b.Operation():
            return _operation(expression, variables)


def _operation(expression: b.Operation, variables: tuple[b.Variable, ...]) -> tuple[str, int]:
    op, operands = expression.op, expression.operands
    binds = _PRECEDENCE.get(op, _COMPARISON)

    def operand(index: int, place: int) -> str:
        text, inner = _describe(operands[index], variables)
        return text if inner >= place else f"({text})"

    match op:
        case "and" | "or":
            return f" {op.upper()} ".join(operand(i, binds + 1) for i in range(len(operands))), binds
        case "not" if isinstance(operands[0], b.Operation) and operands[0].op == "is_null":
            return f"{operand(0, binds).removesuffix('NULL')}NOT NULL", _COMPARISON
        case "not":
            return f"NOT {operand(0, binds)}", binds
        case "negative":
            return f"-{operand(0, binds + 1)}", binds
        case "is_null":
            return f"{operand(0, _COMPARISON + 1)} IS NULL", binds
        case "in":
            items = ", ".join(operand(i, _COMPARISON + 1) for i in range(1, len(operands)))
            return f"{operand(0, _COMPARISON + 1)} IN ({items})", binds
        case "like":
            return f"{operand(0, _COMPARISON + 1)} LIKE {operand(1, _ATOM)}", binds
        case "+" | "-" | "*" | "/" | "%" | "^" | "=" | "!=" | "<" | "<=" | ">" | ">=":
            return f"{operand(0, binds)} {op} {operand(1, binds + 1)}", binds
        case _:
            return f"{op.upper()}({', '.join(operand(i, 0) for i in range(len(operands)))})", _ATOM


def _constant(constant: b.Constant) -> str:
    match constant.value:
        case None:
            return "NULL"
        case bool():
            return str(constant.value).upper()
        case str():
            return "'" + constant.value.replace("'", "''") + "'"
        case datetime():
            return f"TIMESTAMP '{constant.value.isoformat(sep=' ')}'"
        case timedelta():
            return f"{constant.value.total_seconds():g} s"
        case _:
            return str(constant.value)


def describe_class(event_class: b.EventClass, binding: b.Binding) -> str:
    """Describe the rows that belong to a class."""
    match event_class.rule:
        case b.ClassRule.WITH:
            assert event_class.predicate is not None
            return f"rows with {describe_expression(event_class.predicate, ())}"
        case b.ClassRule.ANY:
            return "every row"
        case b.ClassRule.TYPE:
            return f"rows with {binding.type} = '{event_class.name}'"
        case b.ClassRule.ALL:
            return "every row (no type column is bound)"


def describe_pattern(query: b.BoundQuery) -> Iterator[str]:
    """Yield the pattern as an indented tree, one node per line."""

    def lines(node: b.Node, indent: str) -> Iterator[str]:
        match node:
            case b.Leaf():
                variable = query.variables[node.variable]
                rows = describe_class(variable.event_class, query.binding)
                text = f"{variable.name}: {variable.event_class.name}{print_quantifier(variable.quantifier)}, {rows}"
            case b.Negated():
                text = f"NOT, scope {node.scope}"
            case b.SubPattern():
                text = f"definition {node.name}" + (f" within {node.window.text}" if node.window else "")
            case _:
                text = OPERATOR_NAMES[type(node)]
        yield indent + text
        for child in node.children:
            yield from lines(child, indent + "  ")

    yield from lines(query.pattern, "")


def describe_merges(ranking: b.Ranking) -> str:
    """Return `by SUM`, or `2 by SUM, 1 by MIN, then by MIN` for the objectives of several definitions."""
    if len(ranking.merges) == 1:
        return f"by {ranking.merges[0].function}"
    return ", ".join(f"{merge.count} by {merge.function}" for merge in ranking.merges) + ", then by MIN"


def describe_query(query: b.BoundQuery) -> Iterator[str]:
    """Yield lines for the pattern, the window, the predicates with scope and class, and the output."""
    yield from describe_pattern(query)
    yield f"within {query.window.text} ({query.window.kind.value} window)" if query.window else "no window"
    for clause, keys in (("partition by", query.partition_by), ("group by", query.group_by)):
        if keys:
            yield f"{clause} {', '.join(keys)}"
    for predicate in query.predicates:
        owner = f", inside scope {predicate.scope}" if predicate.scope != b.ROOT_SCOPE else ""
        text = describe_expression(predicate.expression, query.variables)
        if predicate.predicate_class is b.PredicateClass.UNIFORM and isinstance(predicate.expression, b.Column):
            groups = ", ".join(query.variables[v].name for v in predicate.variables)
            text = f"one {predicate.expression.name} in {groups}"
        yield f"where {text}  ({predicate.predicate_class.value}{owner})"
    if query.aggregates:
        yield "aggregate " + ", ".join(a.name for a in query.aggregates)
    if query.ranking:
        for objective in query.ranking.objectives:
            direction = "max" if objective.maximise else "min"
            text = describe_expression(objective.expression, query.variables)
            yield f"prefer {direction} {objective.name} = {text}  ({objective.preference_class.value})"
        yield f"merge {describe_merges(query.ranking)}, best {query.ranking.limit}"
    if query.update:
        yield f"update every {query.update.text}"
    if query.output:
        yield "return " + ", ".join([o.name for o in query.output] + ["match_start", "match_end"] * query.show_bounds)
    yield f"read {', '.join(query.schema.names)}"
