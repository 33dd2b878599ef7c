"""Decide which negations' results can be cached, and on which values a result depends.

Whether a sub-pattern occurs in an interval depends on the interval and on the outer values that its predicates read.
Kept by the start of the interval and these values, an answer serves every later question with the same start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from streamsift.logical import bound as b
from streamsift.physical.plan import Alternative, Negation, Step


def with_caching(alternative: Alternative) -> Alternative:
    """The same, with the reason at each negation whose answers cannot be kept."""
    marked = (_marked(alternative.query, n, alternative.steps, 0, ()) for n in alternative.negations)
    return replace(alternative, negations=tuple(marked))


def _marked(
    query: b.BoundQuery, negation: Negation, around: Sequence[Step], first: int, crossed: tuple[Step, ...]
) -> Negation:
    """`around`: the steps of the pattern right around; `crossed`: outer ones whose events may lie in its interval."""
    crossed = (*crossed, *(around[number - first] for number in negation.crossed(around, first)))
    inner = (_marked(query, n, negation.steps, negation.first, crossed) for n in negation.negations)
    return replace(negation, never_cached=_why_not(query, negation, crossed), negations=tuple(inner))


def _why_not(query: b.BoundQuery, negation: Negation, crossed: tuple[Step, ...]) -> str:
    if negation.needs_arrow:
        return "its predicates are evaluated for many partial matches at a time"
    if negation.lower.definition or negation.upper.definition:
        return "its edge is that of a definition's own window"
    if any(inner.upper == negation.upper for inner in _inside(negation)):
        return "a negation inside ends where it ends"
    classes = [query.variables[step.variable].event_class for step in negation.all_steps()]
    for step in crossed:
        variable = query.variables[step.variable]
        if any(variable.event_class.may_overlap(other) for other in classes):
            return f"{variable.name} may lie in its interval, and does not count there"
    return ""


def _inside(negation: Negation) -> Iterator[Negation]:
    for inner in negation.negations:
        yield inner
        yield from _inside(inner)


def value_reads(negation: Negation) -> dict[int, tuple[b.Expr, ...]]:
    """By outer step the expressions on whose values the answer depends."""
    found: dict[int, tuple[b.Expr, ...]] = {}
    for step in negation.all_steps():
        for pair in step.compared:
            sides = found.get(pair.earlier, ())
            if pair.earlier < negation.first and pair.earlier_side not in sides:
                found[pair.earlier] = (*sides, pair.earlier_side)
    return found
