"""What this version of the engine evaluates: anything else must be refused, and this must not."""

from __future__ import annotations

from streamsift.language import Script, parse
from streamsift.language import syntax as s


def is_evaluated(script: Script | str) -> bool:
    """Detection by SEQ, AND, OR, negation and Kleene; no definitions, no AGG, no PREF."""
    script = parse(script) if isinstance(script, str) else script
    statement = script.statement
    return not (script.definitions or statement.aggregates or statement.preference)


def pattern_depth(pattern: s.Pattern) -> int:
    match pattern:
        case s.Event():
            return 0
        case s.Not():
            return pattern_depth(pattern.operand)
        case _:
            return 1 + max(pattern_depth(o) for o in pattern.operands)
