"""Compare texts with golden files, and dump syntax trees and bound queries as readable text.

`STREAMSIFT_GOLDENS=rewrite pytest` writes the current output; review the diff.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from streamsift.language import syntax as s
from streamsift.logical import bound as b
from streamsift.logical.describe import describe_merges

GOLDENS = Path(__file__).parents[1] / "goldens"


def check_golden(name: str, actual: str) -> None:
    """Check that `actual` equals the golden file, or rewrite the file. A missing file is a failure."""
    path = GOLDENS / name
    actual = actual.rstrip("\n") + "\n"
    if os.environ.get("STREAMSIFT_GOLDENS") == "rewrite":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(actual, encoding="utf-8")
        return
    assert path.exists(), f"no golden {name}: run with STREAMSIFT_GOLDENS=rewrite and review the file"
    assert actual == path.read_text(encoding="utf-8")


# --- syntax trees --------------------------------------------------------------------------------------------------


def dump_syntax(script: s.Script) -> str:
    return "\n".join(_syntax_lines(script, 0))


def _syntax_lines(node: Any, depth: int, label: str = "") -> Iterator[str]:
    indent = "  " * depth
    if isinstance(node, s.Name):
        yield f"{indent}{label}Name {'.'.join(node.parts)}"
        return
    values = {f.name: getattr(node, f.name) for f in fields(node) if f.name not in ("span", "variable_span", "text")}
    children = {name: value for name, value in values.items() if _has_nodes(value)}
    scalars = [
        f"{name}={_scalar(v)}" for name, v in values.items() if name not in children and v not in (None, (), False)
    ]
    yield " ".join([f"{indent}{label}{type(node).__name__}", *scalars])
    for name, value in children.items():
        if isinstance(value, tuple):
            yield f"{indent}  {name}:"
            for item in value:
                yield from _syntax_lines(item, depth + 2)
        else:
            yield from _syntax_lines(value, depth + 1, f"{name}: ")


def _has_nodes(value: object) -> bool:
    return is_dataclass(value) or (isinstance(value, tuple) and bool(value) and is_dataclass(value[0]))


def _scalar(value: object) -> str:
    return value.name if isinstance(value, Enum) else repr(value)


# --- bound queries -------------------------------------------------------------------------------------------------


def dump_bound(query: b.BoundQuery) -> str:
    return "\n".join(_bound_lines(query))


def _bound_lines(query: b.BoundQuery) -> Iterator[str]:
    names = [v.name for v in query.variables]
    yield "pattern:"
    yield from _node_lines(query.pattern, names, 1)
    yield "variables:"
    for v in query.variables:
        predicate = f" {dump_expression(v.event_class.predicate, names)}" if v.event_class.predicate else ""
        quantifier = f", {v.quantifier.repeat.value} {v.quantifier.count or ''}".rstrip() if v.quantifier else ""
        negated = "" if v.positive else f", negated by !{v.scope}"
        rule = f"{v.event_class.name} by {v.event_class.rule.value}{predicate}"
        yield f"  {v.index} {v.name}: {rule}{quantifier}{negated}"
    if query.predicates:
        yield "predicates:"
    for p in query.predicates:
        owner = "" if p.scope == b.ROOT_SCOPE else f" owned by !{p.scope}"
        yield f"  {p.predicate_class.value}{owner}: {p.text}"
        yield f"    {dump_expression(p.expression, names)}"
    yield from _clause_lines(query, names)


def _clause_lines(query: b.BoundQuery, names: list[str]) -> Iterator[str]:
    for clause, window in (("within", query.window), ("update", query.update)):
        if window:
            yield f"{clause}: {dump_window(window)}"
    for clause, columns in (("partition by", query.partition_by), ("group by", query.group_by)):
        if columns:
            yield f"{clause}: {', '.join(columns)}"
    for a in query.aggregates:
        argument = "" if a.variable is None else f" of {names[a.variable]}.{a.column}"
        yield f"aggregate {a.name}: {a.function}{argument}"
    if query.ranking:
        yield f"best {query.ranking.limit}, merged {describe_merges(query.ranking)}"
        for o in query.ranking.objectives:
            direction = "MAX" if o.maximise else "MIN"
            yield f"  {o.name} ({o.preference_class.value}): {direction} {dump_expression(o.expression, names)}"
    if query.output:
        yield "output:"
    for item in query.output:
        if isinstance(item, b.WholeEvent):
            yield f"  {item.name}: event of {names[item.variable]}"
        else:
            yield f"  {item.name}: {dump_expression(item.expression, names)}"
    if query.show_bounds:
        yield "  match_start, match_end"
    if query.emit is not s.Emit.FINAL:
        yield f"emit: {query.emit.value}"
    order = f", order {query.binding.order}" if query.binding.order else ""
    yield f"binding: time {query.binding.time} ({query.binding.time_kind.value}), type {query.binding.type}{order}"


def _node_lines(node: b.Node, names: list[str], depth: int) -> Iterator[str]:
    indent = "  " * depth
    match node:
        case b.Leaf():
            yield f"{indent}{names[node.variable]}"
        case b.Negated():
            yield f"{indent}!{node.scope}"
            yield from _node_lines(node.child, names, depth + 1)
        case b.SubPattern():
            window = f" within {dump_window(node.window)}" if node.window else ""
            keys = f" partition by {', '.join(node.partition_by)}" if node.partition_by else ""
            yield f"{indent}SubPattern {node.name}{window}{keys}"
            yield from _node_lines(node.child, names, depth + 1)
        case _:
            yield f"{indent}{type(node).__name__}"
            for child in node.children:
                yield from _node_lines(child, names, depth + 1)


def dump_window(window: b.BoundWindow) -> str:
    return f"{window.kind.value} {window.length}{' exclusive' if window.exclusive else ''} ({window.text})"


def dump_expression(expression: b.Expr, names: list[str]) -> str:
    """Return the expression in prefix notation, with the type of each column and constant."""
    match expression:
        case b.Column():
            variable = "" if expression.variable == b.THIS_ROW else f"{names[expression.variable]}."
            return f"{variable}{expression.name}:{expression.kind.value}"
        case b.Constant():
            return f"{expression.value!r}:{expression.kind.value}"
        case b.GroupAggregate():
            column = f".{expression.column}" if expression.column else ""
            return f"{expression.function}({names[expression.variable]}{column}):{expression.kind.value}"
        case b.Operation():
            operands = " ".join(dump_expression(o, names) for o in expression.operands)
            kind = "" if expression.kind is b.Kind.BOOLEAN else f":{expression.kind.value}"
            return f"({expression.op} {operands}){kind}"
