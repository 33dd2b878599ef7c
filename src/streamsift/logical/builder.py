"""Build the syntax tree that the query text would give from Python calls: behind the fluent API."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from streamsift.errors import QueryError
from streamsift.language import parse_clauses, parse_expression, print_pattern
from streamsift.language import syntax as s

_Operator = TypeVar("_Operator", s.Seq, s.And, s.Or)


def event_pattern(class_name: str, variable: str | None) -> s.Event:
    any_row = class_name.upper() == "ANY"
    return s.Event("ANY" if any_row else class_name, variable, any_row=any_row)


def operator_pattern(operator: type[_Operator], operands: tuple[s.Pattern | str, ...]) -> _Operator:
    """SEQ, AND or OR: patterns are operands, strings are the operator's own predicates."""
    patterns = tuple(o for o in operands if not isinstance(o, str))
    predicates = tuple(parse_expression(o) for o in operands if isinstance(o, str))
    if not patterns:
        hint = 'give it events: ss.seq(ss.event("A", "a"), ss.event("B", "b")).'
        raise QueryError(f"{operator.__name__.lower()}() has no pattern", hint=hint)
    return operator(patterns, predicates)


def repeated(pattern: s.Pattern, repeat: s.Repeat, count: int | None = None) -> s.Event:
    if not isinstance(pattern, s.Event):
        hint = "`+`, `*` and `[n]` repeat events of one class only."
        raise QueryError(f"a quantifier on {print_pattern(pattern)}", hint=hint)
    if pattern.quantifier is not None:
        raise QueryError(f"a second quantifier on {print_pattern(pattern)}")
    if repeat is s.Repeat.EXACTLY and (count is None or count < 1):
        raise QueryError("a quantifier [n] takes a whole number of at least 1")
    return replace(pattern, quantifier=s.Quantifier(repeat, count))


def only_pattern(script: s.Script) -> s.Pattern:
    """The pattern of a script that has nothing else: what can become part of a larger pattern."""
    if script.definitions or replace(script.statement, pattern=_ANY) != s.Statement(_ANY):
        hint = "build the whole pattern first, then add where(), within(), …"
        raise QueryError("a query with clauses cannot be part of a pattern", hint=hint)
    return script.statement.pattern


def of_pattern(pattern: s.Pattern) -> s.Script:
    return s.Script((), s.Statement(pattern))


def with_clause(script: s.Script, clause: str) -> s.Script:
    """The script with one more clause, given as text; a second WHERE joins the first by AND."""
    fields = parse_clauses(clause)
    statement = script.statement
    if "where" in fields and statement.where is not None:
        fields["where"] = s.AllOf((*_conjuncts(statement.where), *_conjuncts(fields["where"])))
    elif "classes" in fields:
        fields["classes"] = (*statement.classes, *fields["classes"])
    else:
        for name in fields:
            if getattr(statement, name) not in (None, ()):
                raise QueryError(f"`{clause}`: the query has this clause already")
    return replace(script, statement=replace(statement, **fields), text="")


def with_definition(script: s.Script, name: str, definition: s.Script) -> s.Script:
    if definition.definitions:
        raise QueryError(f"the definition `{name}` has definitions of its own")
    return replace(script, definitions=(*script.definitions, s.Definition(name, definition.statement)), text="")


_ANY = s.Event("ANY", any_row=True)


def _conjuncts(expression: s.Expression) -> tuple[s.Expression, ...]:
    return expression.operands if isinstance(expression, s.AllOf) else (expression,)
