"""Derive the columns in which all events of a match are equal, so that work can be split by them.

A predicate on a Kleene variable holds for each element on its own. So it makes the elements equal to each other only if
it compares them with an event that every match has: not with a negated one, with a `*` group that may be empty, or with
a variable of another branch of OR.

Contract: all events that a match binds, and all that could keep it from being one, have the same value in each derived
column (tests/physical/test_keys.py, tests/spark/batch/test_generated_on_spark.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from streamsift.language.syntax import Repeat
from streamsift.logical import bound as b
from streamsift.logical.bound import Side, column_sides
from streamsift.physical.plan import Alternative


def shared_columns(query: b.BoundQuery, alternatives: tuple[Alternative, ...]) -> tuple[str, ...]:
    """Return the columns in which all events of a match are equal, whichever alternative it is of."""
    return tuple(
        column for column in compared_columns(query) if all(_is_shared(query, a, column) for a in alternatives)
    )


def compared_columns(query: b.BoundQuery) -> tuple[str, ...]:
    """Return the columns that some predicate holds equal."""
    columns = (column for p in query.predicates for _, column in _same_column(p) if column != b.TIME)
    return tuple(dict.fromkeys(columns))


def joined(query: b.BoundQuery, alternative: Alternative, column: str, first: int) -> frozenset[int]:
    """Return the variables all of whose events have the value of the event of `first`, which every match has."""
    links = list(_links(query, alternative, column))
    uniform = list(_uniform(query, alternative, column))
    if not _is_single(query, first) and not _is_tied_to_itself(query, first, links, uniform):
        return frozenset()
    reached = {first}
    # A variable that a match may lack passes nothing on.
    while (
        more := {v for link in (*links, *uniform) for u in link & reached if not may_be_missing(query, u) for v in link}
        - reached
    ):
        reached |= more
    return frozenset(reached)


def may_be_missing(query: b.BoundQuery, variable: int) -> bool:
    """Return True if a match may have no event of this variable: it is negated, or a `*` group."""
    quantifier = query.variables[variable].quantifier
    may_be_empty = quantifier is not None and quantifier.repeat is Repeat.ANY_NUMBER
    return may_be_empty or not query.variables[variable].positive


def _is_shared(query: b.BoundQuery, alternative: Alternative, column: str) -> bool:
    """Return True if all variables of the alternative are equal in the column."""
    always = next((v for v in sorted(alternative.variables) if not may_be_missing(query, v)), None)
    if always is not None:
        return joined(query, alternative, column, always) == alternative.variables
    # Only `*` groups: any of them may be the one that is not empty, so each must be equal to all of the others.
    positive = {v for v in alternative.variables if query.variables[v].positive}
    links = list(_links(query, alternative, column))
    return any(positive <= members for members in _uniform(query, alternative, column)) and all(
        {group, negated} in links for group in positive for negated in alternative.variables - positive
    )


def _links(query: b.BoundQuery, alternative: Alternative, column: str) -> Iterator[frozenset[int]]:
    """Yield pairs of variables that are equal in the column whenever a match, or what it forbids, has both."""
    for predicate in query.predicates:
        sides = column_sides(predicate)
        if sides is not None and {name for _, name in sides} == {column}:
            pair = frozenset(variable for variable, _ in sides)
            if pair <= alternative.variables:
                yield pair


def _uniform(query: b.BoundQuery, alternative: Alternative, column: str) -> Iterator[frozenset[int]]:
    """Yield positive Kleene variables all of whose elements are equal in the column."""
    for predicate in query.predicates:
        if predicate.predicate_class is b.PredicateClass.UNIFORM and predicate.scope == b.ROOT_SCOPE:
            yield frozenset(v for v, name in _same_column(predicate) if name == column) & alternative.variables


def _is_single(query: b.BoundQuery, variable: int) -> bool:
    quantifier = query.variables[variable].quantifier
    return quantifier is None or quantifier.count == 1


def _is_tied_to_itself(
    query: b.BoundQuery, variable: int, links: list[frozenset[int]], uniform: list[frozenset[int]]
) -> bool:
    """Return True if all elements of a Kleene variable equal each other, or an event that every match has."""
    partners = {v for link in links if variable in link for v in link - {variable}}
    return any(not may_be_missing(query, v) for v in partners) or any(variable in members for members in uniform)


def _same_column(predicate: b.Predicate) -> list[Side]:
    """Return the variables that a predicate holds equal in a column of one name, with that column."""
    sides = column_sides(predicate)
    if sides is not None:
        return list(sides) if sides[0][1] == sides[1][1] else []
    match predicate:
        case b.Predicate(predicate_class=b.PredicateClass.UNIFORM, expression=b.Column(name=name), variables=members):
            return [(member, name) for member in members]
    return []
