"""A pattern with Kleene variables and definitions in, the pattern without definitions and what they asked for out.

A definition's own window holds of a sub-match if it holds of every two of its events. Where a single event is the first
or the last of them in time, it is enough that it holds of that one and each other: a comparison with each element of a
group, by which an element is dropped or kept like by any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from streamsift.errors import UnsupportedQuery
from streamsift.language.syntax import Repeat
from streamsift.logical import bound as b
from streamsift.physical.detect import PLACE, until


def without_definitions(query: b.BoundQuery, node: b.Node) -> tuple[b.BoundQuery, b.Node]:
    """For an OR-free form of the pattern; raises UnsupportedQuery where no single event speaks for the others."""
    asked = tuple(_asked(query, node, b.ROOT_SCOPE))
    return replace(query, predicates=(*query.predicates, *asked)), _inlined(node)


def _inlined(node: b.Node) -> b.Node:
    return _inlined(node.child) if isinstance(node, b.SubPattern) else node.rebuilt(_inlined)


def _asked(query: b.BoundQuery, node: b.Node, scope: int) -> Iterator[b.Predicate]:
    match node:
        case b.SubPattern():
            if node.window is not None:
                _check_negations(query, node, node.child)
                for one, other in _pairs(query, node):
                    yield _within(node, one, other, scope)
                    yield _within(node, other, one, scope)
            yield from _asked(query, node.child, scope)
        case b.Negated():
            yield from _asked(query, node.child, node.scope)
        case b.Sequence() | b.Conjunction() | b.Disjunction():
            for child in node.children:
                yield from _asked(query, child, scope)


def _within(definition: b.SubPattern, one: int, other: int, scope: int) -> b.Predicate:
    """The second event lies no later than the window of the first reaches."""
    sides = b.Column(one, until(definition.name), b.Kind.INTEGER), b.Column(other, PLACE, b.Kind.INTEGER)
    expression = b.Operation(">=", sides, b.Kind.BOOLEAN, definition.span)
    assert definition.window is not None
    text = f"{definition.name} within {definition.window.text}"
    variables = tuple(sorted((one, other)))
    return b.Predicate(expression, variables, scope, b.PredicateClass.PAIRWISE, text, definition.span)


def _pairs(query: b.BoundQuery, definition: b.SubPattern) -> list[tuple[int, int]]:
    """The variables that a definition's window is asked of, two by two."""
    variables = definition.child.leaves()
    if not any(_is_group(query, v) for v in variables):
        return list(combinations(variables, 2))
    outermost = _outermost(query, definition.child)
    if outermost is None:
        raise UnsupportedQuery(
            f"the window of `{definition.name}` around groups cannot be evaluated:"
            " its first or its last event must be a single one",
            query.text,
            definition.span,
            "leave out the window of the definition, or put a single event before or after its groups.",
        )
    return [(outermost, other) for other in variables if other != outermost]


def _is_group(query: b.BoundQuery, variable: int) -> bool:
    return query.variables[variable].quantifier is not None


def _outermost(query: b.BoundQuery, node: b.Node) -> int | None:
    """A single variable whose event is the first, or the last, of all."""
    match node:
        case b.Conjunction():
            operands = [child for child in node.children if not isinstance(child, b.Negated)]
            leaves = [child.variable for child in operands if isinstance(child, b.Leaf)]
            singles = [variable for variable in leaves if not _is_group(query, variable)]
            # AND puts a Kleene class, as a whole, before or after the other operand.
            return singles[0] if len(leaves) == len(operands) == 2 and len(singles) == 1 else None
        case _:
            found = _end(query, node, 0)
            return _end(query, node, -1) if found is None else found


def _end(query: b.BoundQuery, node: b.Node, side: int) -> int | None:
    """The single variable at one end of a pattern."""
    match node:
        case b.Leaf(variable):
            return None if _is_group(query, variable) else variable
        case b.Sequence():
            return _end(query, [child for child in node.children if not isinstance(child, b.Negated)][side], side)
        case b.SubPattern():
            return _end(query, node.child, side)
        case _:
            return None


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
