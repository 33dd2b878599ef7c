"""Print a syntax tree as canonical query text, which parses to the same tree."""

from __future__ import annotations

import re

from streamsift.language import syntax as s
from streamsift.language.keywords import RESERVED_WORDS

_WORD = re.compile(r"[^\W\d]\w*\Z")

# Precedence of expressions: an operand of lower precedence than its position requires gets parentheses.
_ANY_OF, _ALL_OF, _NOT, _COMPARISON, _SUM, _PRODUCT, _SIGNED, _POWER, _ATOM = range(9)
_ARITHMETIC = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "%": _PRODUCT, "^": _POWER}


def print_script(script: s.Script) -> str:
    parts = [f"SEQ {_name(d.name)} = {_statement(d.statement)}" for d in script.definitions]
    return "\n".join([*parts, f"PATTERN {_statement(script.statement)}"])


def print_pattern(pattern: s.Pattern) -> str:
    match pattern:
        case s.Event():
            name = "ANY" if pattern.any_row else _name(pattern.class_name)
            variable = f" {_name(pattern.variable)}" if pattern.variable else ""
            nearest = f"{pattern.nearest.value} " if pattern.nearest else ""
            return nearest + name + print_quantifier(pattern.quantifier) + variable
        case s.Not():
            return "!" + print_pattern(pattern.operand)
        case s.Seq() | s.And() | s.Or():
            operands = [print_pattern(o) for o in pattern.operands]
            predicates = [print_expression(p) for p in pattern.predicates]
            return f"{type(pattern).__name__.upper()}({', '.join([*operands, *predicates])})"


def print_quantifier(quantifier: s.Quantifier | None) -> str:
    if quantifier is None:
        return ""
    return f"[{quantifier.count}]" if quantifier.repeat is s.Repeat.EXACTLY else quantifier.repeat.value


def print_expression(expression: s.Expression) -> str:
    return _expression(expression, _ANY_OF)


def print_duration(duration: s.Duration) -> str:
    return f"{duration.value} {duration.unit.value}".rstrip()


def print_name(parts: tuple[str, ...]) -> str:
    """Print a dotted name with quotes if needed; after a dot, keywords need none."""
    return ".".join([_name(parts[0]), *(p if _WORD.match(p) else _quoted(p) for p in parts[1:])])


def _statement(statement: s.Statement) -> str:
    preference, window, returns = statement.preference, statement.window, statement.returns
    clauses = {
        "WITH": ", ".join(f"{_name(c.name)} = ({print_expression(c.predicate)})" for c in statement.classes),
        "WHERE": print_expression(statement.where) if statement.where else "",
        "UNTIL": print_pattern(statement.until) if statement.until else "",
        "PARTITION BY": ", ".join(print_name(name.parts) for name in statement.partition_by),
        "GROUP BY": ", ".join(print_name(name.parts) for name in statement.group_by),
        "AGG": ", ".join(map(_aggregate, statement.aggregates)),
        "PREF": " AND ".join(map(_objective, preference.objectives)) if preference else "",
        "MERGE": preference.merge if preference else "",
        "WITHIN": print_duration(window.length) + " EXCLUSIVE" * window.exclusive if window else "",
        "UPDATE": print_duration(statement.update) if statement.update else "",
        "EMIT": statement.emit.mode.value if statement.emit else "",
        "RETURN": _return(returns) if returns else "",
    }
    return " ".join([print_pattern(statement.pattern), *(f"{key} {text}" for key, text in clauses.items() if text)])


def _aggregate(aggregate: s.Aggregate) -> str:
    argument = f"({print_name(aggregate.argument.parts)})" if aggregate.argument else ""
    return aggregate.function + argument + _alias(aggregate.alias)


def _objective(objective: s.Objective) -> str:
    name = f"{_name(objective.name)} = " if objective.name else ""
    return f"{'MAX' if objective.maximise else 'MIN'}[{name}{_expression(objective.expression, _SUM)}]"


def _return(returns: s.Return) -> str:
    items = ", ".join(print_expression(i.expression) + _alias(i.alias) for i in returns.items)
    if returns.limit is None:
        return items
    return f"TOP {returns.limit} {items}" if items else str(returns.limit)


def _alias(alias: str | None) -> str:
    return f" AS {_name(alias)}" if alias else ""


def _expression(expression: s.Expression, place: int) -> str:
    text, binds = _with_binding(expression)
    return f"({text})" if binds < place else text


def _with_binding(expression: s.Expression) -> tuple[str, int]:
    match expression:
        case s.Name():
            return print_name(expression.parts), _ATOM
        case s.Number():
            return str(expression.value), _ATOM
        case s.String():
            return _string(expression.value), _ATOM
        case s.Boolean():
            return str(expression.value).upper(), _ATOM
        case s.Null():
            return "NULL", _ATOM
        case s.Timestamp():
            return f"TIMESTAMP {_string(expression.text)}", _ATOM
        case s.Duration():
            return print_duration(expression), _ATOM
        case s.Call():
            return f"{expression.function}({', '.join(_expression(a, _ANY_OF) for a in expression.arguments)})", _ATOM
        case s.SameAttribute():
            return f"[{_name(expression.attribute)}]", _ATOM
        case s.Negative():
            operand = _expression(expression.operand, _SIGNED)
            return ("- " if operand.startswith("-") else "-") + operand, _SIGNED  # `--` would start a comment
        case s.Arithmetic():
            binds = _ARITHMETIC[expression.op]
            # `^` is right-associative and takes a signed exponent; the others are left-associative.
            left, right = (_ATOM, _SIGNED) if expression.op == "^" else (binds, binds + 1)
            text = f"{_expression(expression.left, left)} {expression.op} {_expression(expression.right, right)}"
            return text, binds
        case s.NotExpression():
            return f"NOT {_expression(expression.operand, _NOT)}", _NOT
        case s.AllOf():
            return " AND ".join(_expression(o, _NOT) for o in expression.operands), _ALL_OF
        case s.AnyOf():
            return " OR ".join(_expression(o, _ALL_OF) for o in expression.operands), _ANY_OF
        case _:
            return _comparison(expression), _COMPARISON


def _comparison(expression: s.Comparison | s.InList | s.Between | s.IsNull | s.Like) -> str:
    if isinstance(expression, s.Comparison):
        first, *rest = (_expression(o, _SUM) for o in expression.operands)
        return first + "".join(f" {op} {operand}" for op, operand in zip(expression.ops, rest, strict=True))
    operand, negated = _expression(expression.operand, _SUM), "NOT " * expression.negated
    match expression:
        case s.InList():
            return f"{operand} {negated}IN ({', '.join(_expression(i, _SUM) for i in expression.items)})"
        case s.Between():
            low, high = _expression(expression.low, _SUM), _expression(expression.high, _SUM)
            return f"{operand} {negated}BETWEEN {low} AND {high}"
        case s.IsNull():
            return f"{operand} IS {negated}NULL"
        case s.Like():
            return f"{operand} {negated}LIKE {_string(expression.pattern)}"


def _string(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _name(name: str) -> str:
    return name if _WORD.match(name) and name.upper() not in RESERVED_WORDS else _quoted(name)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
