"""List the words of the query language: the one source for parser, printer, error messages and highlighters."""

from __future__ import annotations

from streamsift.language.syntax import Emit, Nearest, Unit

CLAUSE_WORDS = frozenset("PATTERN WITH WHERE UNTIL PARTITION GROUP AGG PREF WITHIN UPDATE EMIT RETURN".split())
OPERATOR_WORDS = frozenset("AND OR NOT IN BETWEEN IS LIKE AS".split())
CONSTANT_WORDS = frozenset("NULL TRUE FALSE".split())
EVERYWHERE_WORDS = OPERATOR_WORDS | CONSTANT_WORDS
MODIFIER_WORDS = frozenset("BY TOP MERGE EXCLUSIVE".split())  # keywords of one clause, names anywhere else
EVENT_WORDS = frozenset(each.value for each in Nearest)  # keywords before a class in a pattern, names anywhere else
GRAMMAR_WORDS = (
    CLAUSE_WORDS | EVERYWHERE_WORDS | MODIFIER_WORDS | EVENT_WORDS | {"TIMESTAMP"}
)  # the grammar's terminals
RESERVED_WORDS = GRAMMAR_WORDS | {"SEQ", "ANY"}  # the printer quotes names that are keywords somewhere
PATTERN_CALLS = ("SEQ", "AND", "OR")
OBJECTIVES = ("MIN", "MAX")
EMIT_MODES = tuple(mode.value for mode in Emit)
FUNCTIONS = {  # name: (minimum, maximum) number of arguments
    "ABS": (1, 1),
    "SQRT": (1, 1),
    "POW": (2, 2),
    "LOG": (1, 1),
    "EXP": (1, 1),
    "LEAST": (1, None),
    "GREATEST": (1, None),
    "COALESCE": (1, None),
    "LOWER": (1, 1),
    "UPPER": (1, 1),
}
GROUP_FUNCTIONS = ("COUNT", "SUM", "AVG", "MIN", "MAX", "FIRST", "LAST")
AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX")
MERGES = ("SUM", "AVG", "MIN", "MAX", "PRODUCT")
UNITS = {
    Unit.MILLISECOND: ("ms", "msec", "millisecond", "milliseconds"),
    Unit.SECOND: ("s", "sec", "secs", "second", "seconds"),
    Unit.MINUTE: ("min", "mins", "minute", "minutes"),
    Unit.HOUR: ("h", "hour", "hours"),
    Unit.DAY: ("d", "day", "days"),
    Unit.EVENT: ("event", "events", "unit", "units"),
}
UNIT_OF = {spelling: unit for unit, spellings in UNITS.items() for spelling in spellings}
