"""Derive the columns that are equal in all events of a match, so that work can be split by them.

A predicate on a Kleene variable applies to each element separately. It makes the elements equal to each other only if
it compares them with an event that every match has. A negated event, a `*` group that may be empty and a variable of
another branch of OR are not such events.

Contract: all events that a match binds, and all events that could rule it out, have the same value in each derived
column (tests/physical/test_keys.py, tests/spark/batch/test_generated_on_spark.py).
"""

from __future__ import annotations

from streamsift.logical import bound as b
from streamsift.logical.bound import Side, column_sides
from streamsift.physical.plan import Alternative

Sets = list[frozenset[int]]


def shared_columns(query: b.BoundQuery, alternatives: tuple[Alternative, ...]) -> tuple[str, ...]:
    """Return the columns that are equal in all events of a match, in every alternative."""
    return tuple(
        column for column in compared_columns(query) if all(_is_shared(query, a, column) for a in alternatives)
    )


def compared_columns(query: b.BoundQuery) -> tuple[str, ...]:
    """Return the columns that some predicate requires to be equal."""
    columns = (column for p in query.predicates for _, column in _same_column(p) if column != b.TIME)
    return tuple(dict.fromkeys(columns))


def joined(query: b.BoundQuery, alternative: Alternative, column: str, first: int) -> frozenset[int]:
    """Return the variables whose events all equal the event of `first` in the column. Every match has that event."""
    links, uniform = _ties(query, alternative, column)
    quantifier = query.variables[first].quantifier
    if quantifier is not None and quantifier.count != 1:
        # The elements of a group equal each other, or an event that every match has.
        partners = {v for link in links if first in link for v in link - {first}}
        if all(may_be_missing(query, v) for v in partners) and all(first not in members for members in uniform):
            return frozenset()
    reached = {first}
    # Equality does not propagate through a variable that a match may lack.
    while (
        more := {v for link in (*links, *uniform) for u in link & reached if not may_be_missing(query, u) for v in link}
        - reached
    ):
        reached |= more
    return frozenset(reached)


def may_be_missing(query: b.BoundQuery, variable: int) -> bool:
    """Return True if a match may have no event of this variable: it is negated, or a `*` group."""
    return query.variables[variable].may_be_empty or not query.variables[variable].positive


def _is_shared(query: b.BoundQuery, alternative: Alternative, column: str) -> bool:
    """Return True if all variables of the alternative are equal in the column."""
    always = next((v for v in sorted(alternative.variables) if not may_be_missing(query, v)), None)
    if always is not None:
        return joined(query, alternative, column, always) == alternative.variables
    # Only `*` groups: any of them may be the one that is not empty, so each must be equal to all of the others.
    positive = {v for v in alternative.variables if query.variables[v].positive}
    links, uniform = _ties(query, alternative, column)
    return any(positive <= members for members in uniform) and all(
        {group, negated} in links for group in positive for negated in alternative.variables - positive
    )


def _ties(query: b.BoundQuery, alternative: Alternative, column: str) -> tuple[Sets, Sets]:
    """Return pairs of variables that are equal in the column if both are bound, and uniform sets.

    A uniform set has positive Kleene variables whose elements are all equal in the column.
    """
    links, uniform = [], []
    for predicate in query.predicates:
        equal = frozenset(variable for variable, name in _same_column(predicate) if name == column)
        if predicate.predicate_class is not b.PredicateClass.UNIFORM:
            links += [equal] if equal and equal <= alternative.variables else []
        elif predicate.scope == b.ROOT_SCOPE:
            uniform.append(equal & alternative.variables)
    return links, uniform


def _same_column(predicate: b.Predicate) -> list[Side]:
    """Return the variables that a predicate requires to be equal in the same column, with that column."""
    sides = column_sides(predicate)
    if sides is not None:
        return list(sides) if sides[0][1] == sides[1][1] else []
    match predicate:
        case b.Predicate(predicate_class=b.PredicateClass.UNIFORM, expression=b.Column(name=name), variables=members):
            return [(member, name) for member in members]
    return []
