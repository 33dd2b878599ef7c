"""Recognize queries that the engine may reject as unsupported; it must evaluate all others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import naive
from strategies import COLUMNS
from streamsift.language import Script, parse
from streamsift.language import syntax as s


def _has_groups(statements: Iterable[s.Statement]) -> bool:
    return any(event.quantifier for each in statements for event in each.pattern.events())


def may_be_refused(script: Script | str) -> bool:
    """Return True if the engine may reject the query as unsupported.

    One reason is a predicate between elements of two Kleene variables, or of one and a negated variable. The other is a
    definition with a window that has Kleene groups without a single event before or after them, or groups together with
    a negation that the window may bound.
    """
    script = parse(script) if isinstance(script, str) else script
    inner = [definition.statement for definition in script.definitions]
    if _has_groups((script.statement, *inner)):
        windowed = [each.pattern for each in inner if each.window is not None]
        if any(_is_open(pattern) for pattern in windowed):
            return True
    query = naive.Query(script, naive.Stream.of([], list(COLUMNS), "t", "kind", None))
    every = list(naive.leaves(query.pattern, negated=True))
    kleene = {leaf.variable for leaf in every if leaf.quantifier}
    negated = {leaf.variable for leaf in every if query.enclosing[leaf.variable] != (naive.MATCH,)}
    return any(
        len(piece.variables & (kleene | negated)) > 1
        for piece in query.pieces
        if not kleene.isdisjoint(piece.variables)
    )


def _is_open(pattern: s.Pattern) -> bool:
    """Return True if the pattern has a negation, or a Kleene group and no single event at its ends."""
    if any(_negates(pattern)):
        return True
    if not any(event.quantifier for event in pattern.events()):
        return False
    match pattern:
        case s.Seq(operands=(first, *_, last)):
            return all(not isinstance(end, s.Event) or end.quantifier is not None for end in (first, last))
        case s.And(operands=(s.Event() as one, s.Event() as other)):
            return (one.quantifier is None) == (other.quantifier is None)
        case _:
            return True


def _negates(pattern: s.Pattern) -> Iterator[bool]:
    if isinstance(pattern, s.Not):
        yield True
    elif not isinstance(pattern, s.Event):
        for operand in pattern.operands:
            yield from _negates(operand)


def pattern_depth(pattern: s.Pattern) -> int:
    match pattern:
        case s.Event():
            return 0
        case s.Not():
            return pattern_depth(pattern.operand)
        case _:
            return 1 + max(pattern_depth(o) for o in pattern.operands)
