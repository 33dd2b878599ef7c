"""An equality that others imply (a.id = b.id and b.id = c.id imply a.id = c.id) is not tested again."""

from __future__ import annotations

from dataclasses import replace

from streamsift.logical import bound as b


def drop_implied_equalities(query: b.BoundQuery) -> b.BoundQuery:
    if not _always_bound(query):
        return query
    kept: list[b.Predicate] = []
    groups: dict[tuple[int, str], tuple[int, str]] = {}

    def root(side: tuple[int, str]) -> tuple[int, str]:
        while side in groups:
            side = groups[side]
        return side

    for predicate in query.predicates:
        sides = column_sides(predicate) if predicate.scope == b.ROOT_SCOPE else None
        if sides is not None:
            left, right = root(sides[0]), root(sides[1])
            if left == right:
                continue
            groups[right] = left
        kept.append(predicate)
    return replace(query, predicates=tuple(kept))


Side = tuple[int, str]  # a variable and a column of its event


def column_sides(predicate: b.Predicate) -> tuple[Side, Side] | None:
    """The two sides of an equality between plain columns."""
    if predicate.predicate_class is b.PredicateClass.EQUALITY:
        match predicate.expression:
            case b.Operation(operands=(b.Column() as left, b.Column() as right)):
                return (left.variable, left.name), (right.variable, right.name)
    return None


def _always_bound(query: b.BoundQuery) -> bool:
    """Whether every match binds every variable: otherwise a pair implies nothing in a match that lacks one of it."""

    def bound(node: b.Node) -> bool:
        match node:
            case b.Leaf():
                return query.variables[node.variable].quantifier is None
            case b.Sequence() | b.Conjunction():
                return all(bound(child) for child in node.children)
            case _:
                return False

    return bound(query.pattern)
