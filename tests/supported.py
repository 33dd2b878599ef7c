"""What this version of the engine evaluates: anything else must be refused, and this must not."""

from __future__ import annotations

import naive
from strategies import COLUMNS
from streamsift.language import Script, parse
from streamsift.language import syntax as s
from streamsift.logical.scopes import events_of


def is_evaluated(script: Script | str) -> bool:
    """Everything but Kleene with a definition that has a window or keys of its own."""
    script = parse(script) if isinstance(script, str) else script
    inner = [definition.statement for definition in script.definitions]
    has_groups = any(event.quantifier for each in (script.statement, *inner) for event in events_of(each.pattern))
    apart = any(each.window or each.partition_by for each in inner)
    return not (has_groups and apart)


def may_be_refused(script: Script | str) -> bool:
    """Whether a predicate stands between elements of two Kleene variables, or of one and a negated variable."""
    script = parse(script) if isinstance(script, str) else script
    query = naive.Query(script, naive.Stream.of([], list(COLUMNS), "t", "kind", None))
    every = list(naive.leaves(query.pattern, negated=True))
    kleene = {leaf.variable for leaf in every if leaf.quantifier}
    negated = {leaf.variable for leaf in every if query.enclosing[leaf.variable] != (naive.MATCH,)}
    return any(
        len(piece.variables & (kleene | negated)) > 1
        for piece in query.pieces
        if not kleene.isdisjoint(piece.variables)
    )


def pattern_depth(pattern: s.Pattern) -> int:
    match pattern:
        case s.Event():
            return 0
        case s.Not():
            return pattern_depth(pattern.operand)
        case _:
            return 1 + max(pattern_depth(o) for o in pattern.operands)
