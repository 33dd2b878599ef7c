"""Find the labels of a clause, and mark the names that begin with one."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from streamsift.language import syntax as s
from streamsift.language.row_match import syntax as r


class DottedName(s.Name):
    """A name whose first part may be a label."""

    label: str = ""


def row_labels(tree: r.MatchRecognize) -> frozenset[str]:
    """Return the labels of the pattern and of SUBSET."""
    return frozenset({variable.label for variable in pattern_variables(tree.pattern)} | {u.label for u in tree.subsets})


def pattern_variables(pattern: r.RowPattern) -> list[r.RowVariable]:
    """Return the uses of variables in a pattern, in order of appearance."""
    if isinstance(pattern, r.RowVariable):
        return [pattern]
    parts: list[Any] = []
    for value in (getattr(pattern, each.name) for each in fields(pattern)):
        parts += value if isinstance(value, tuple) else [value]
    return [inner for part in parts if isinstance(part, r.RowPattern) for inner in pattern_variables(part)]


def with_labels(node: Any, labels: frozenset[str]) -> Any:
    """Replace the first part of each name that is a label by the label, and forget how names were written."""
    match node:
        case tuple():
            return tuple(with_labels(each, labels) for each in node)
        case DottedName():
            is_label = len(node.parts) > 1 and node.label in labels
            return s.Name((node.label, *node.parts[1:]) if is_label else node.parts, span=node.span)
        case s.Call(function="CLASSIFIER", arguments=(DottedName(parts=(_,)) as name,)):
            return replace(node, arguments=(s.Name((name.label,), span=name.span),))
        case s.Written():
            changes = {
                each.name: with_labels(value, labels)
                for each in fields(node)
                if isinstance(value := getattr(node, each.name), tuple | s.Written)
            }
            return replace(node, **changes) if changes else node
        case _:
            return node
