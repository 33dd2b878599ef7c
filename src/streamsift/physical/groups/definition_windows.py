"""Replace the definitions of a pattern with Kleene variables by what their windows ask for."""

from __future__ import annotations

from dataclasses import replace

from streamsift.errors import UnsupportedQuery
from streamsift.language.syntax import Repeat
from streamsift.logical import bound as b
from streamsift.physical.detect import window_predicates


def without_definitions(query: b.BoundQuery, node: b.Node) -> tuple[b.BoundQuery, b.Node]:
    """For an OR-free form of the pattern; raises UnsupportedQuery where no single event speaks for the others."""
    asked: list[b.Predicate] = []
    for definition in node.windowed_definitions():
        _check_negations(query, definition, definition.child)
        asked += window_predicates(query, definition)
    return replace(query, predicates=(*query.predicates, *asked)), _inlined(node)


def _inlined(node: b.Node) -> b.Node:
    return _inlined(node.child) if isinstance(node, b.SubPattern) else node.rebuilt(_inlined)


def _check_negations(query: b.BoundQuery, definition: b.SubPattern, node: b.Node) -> None:
    """A negation must lie between events of its own sequence: else the definition's window would bound it."""
    match node:
        case b.SubPattern():
            _check_negations(query, definition, node.child)
        case b.Sequence() | b.Conjunction() | b.Disjunction():
            always = [isinstance(child, b.Leaf) and not _may_be_empty(query, child.variable) for child in node.children]
            for number, child in enumerate(node.children):
                if not isinstance(child, b.Negated):
                    _check_negations(query, definition, child)
                elif not isinstance(node, b.Sequence) or not any(always[:number]) or not any(always[number:]):
                    raise UnsupportedQuery(
                        f"a negation at the edge of `{definition.name}`, which has a window of its own, cannot be"
                        " evaluated beside a Kleene class",
                        query.text,
                        child.span,
                        "leave out the window of the definition, or put the negation between two of its events.",
                    )


def _may_be_empty(query: b.BoundQuery, variable: int) -> bool:
    quantifier = query.variables[variable].quantifier
    return quantifier is not None and quantifier.repeat is Repeat.ANY_NUMBER
