"""A query and its alternatives in, the columns that variables of a match share out: work can be split by them."""

from __future__ import annotations

from streamsift.language.syntax import Repeat
from streamsift.logical import bound as b
from streamsift.optimizer.drop_implied_equalities import Side, column_sides
from streamsift.physical.plan import Alternative


def shared_columns(query: b.BoundQuery, alternatives: tuple[Alternative, ...]) -> tuple[str, ...]:
    """The columns whose equality joins all variables of every alternative."""
    return tuple(
        column
        for column in compared_columns(query)
        if all(joined(query, a, column, _first(query, a)) == a.variables for a in alternatives)
    )


def compared_columns(query: b.BoundQuery) -> tuple[str, ...]:
    """The columns in which some variables are equal."""
    columns = (column for p in query.predicates for _, column in _same_column(p) if column != b.TIME)
    return tuple(dict.fromkeys(columns))


def joined(query: b.BoundQuery, alternative: Alternative, column: str, first: int) -> frozenset[int]:
    """The variables that have the value of `first` in this column.

    What equals a negated event, or one of a `*` variable that is empty, says nothing: only a key of all goes on.
    """
    sides = {(v, column) for v in alternative.variables}
    links = [{v for v, _ in found} for p in query.predicates if (found := {*_same_column(p)} & sides)]
    always = [link - {v for v in link if may_be_missing(query, v)} for link in links]
    uniform = [
        {v for v, _ in found}
        for p in query.predicates
        if p.predicate_class is b.PredicateClass.UNIFORM and (found := {*_same_column(p)} & sides)
    ]
    reached = {first}
    while more := {v for link in (*always, *uniform) if reached & link for v in link} - reached:
        reached |= more
    return frozenset(reached | {v for link in links if reached & link for v in link})


def may_be_missing(query: b.BoundQuery, variable: int) -> bool:
    """Whether a match may have no event of this variable: it is negated, or a `*` group."""
    quantifier = query.variables[variable].quantifier
    may_be_empty = quantifier is not None and quantifier.repeat is Repeat.ANY_NUMBER
    return may_be_empty or not query.variables[variable].positive


def _first(query: b.BoundQuery, alternative: Alternative) -> int:
    return min(alternative.variables, key=lambda v: (may_be_missing(query, v), v))


def _same_column(predicate: b.Predicate) -> list[Side]:
    """The variables that a predicate holds equal in a column of one name, with that column."""
    sides = column_sides(predicate)
    if sides is not None:
        return list(sides) if sides[0][1] == sides[1][1] else []
    match predicate:
        case b.Predicate(predicate_class=b.PredicateClass.UNIFORM, expression=b.Column(name=name), variables=members):
            return [(member, name) for member in members]
    return []
