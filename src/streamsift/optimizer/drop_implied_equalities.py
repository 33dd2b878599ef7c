"""Drop implied equalities: a.id = b.id and b.id = c.id imply a.id = c.id."""

from __future__ import annotations

from dataclasses import replace

from streamsift.logical import bound as b


def drop_implied_equalities(query: b.BoundQuery) -> b.BoundQuery:
    if not _always_bound(query):
        return query
    kept: list[b.Predicate] = []
    groups: dict[b.Side, b.Side] = {}

    def root(side: b.Side) -> b.Side:
        while side in groups:
            side = groups[side]
        return side

    for predicate in query.predicates:
        sides = b.column_sides(predicate) if predicate.scope == b.ROOT_SCOPE else None
        if sides is not None:
            left, right = root(sides[0]), root(sides[1])
            if left == right:
                continue
            groups[right] = left
        kept.append(predicate)
    return replace(query, predicates=tuple(kept))


def _always_bound(query: b.BoundQuery) -> bool:
    """Return True if every match binds every variable; else a match could lack the one that links two others."""
    return all(
        query.variables[node.variable].quantifier is None
        if isinstance(node, b.Leaf)
        else isinstance(node, b.Sequence | b.Conjunction)
        for node in query.pattern.walk()
    )
