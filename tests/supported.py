"""What this version of the engine evaluates: anything else must be refused, and this must not."""

from __future__ import annotations

from streamsift.language import Script, parse
from streamsift.language import syntax as s
from streamsift.logical.scopes import events_of


def is_evaluated(script: Script | str) -> bool:
    """Detection of single events by SEQ, AND, OR and negation, with definitions; no Kleene, no AGG."""
    script = parse(script) if isinstance(script, str) else script
    statement = script.statement
    statements = [statement, *(definition.statement for definition in script.definitions)]
    return not statement.aggregates and not any(
        event.quantifier for each in statements for event in events_of(each.pattern)
    )


def pattern_depth(pattern: s.Pattern) -> int:
    match pattern:
        case s.Event():
            return 0
        case s.Not():
            return pattern_depth(pattern.operand)
        case _:
            return 1 + max(pattern_depth(o) for o in pattern.operands)
