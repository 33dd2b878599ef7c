"""Derive a key of some variables for a plan without one: the few events of the others are replicated.

`T1.name = T3.name AND T2.name = 'Google'`: by name, T1 and T3 of a match are in one task, and T2 is there too if every
Google event goes to every task. A match is found where its T1 is at home, so nothing is found twice.

How few events are is estimated from what is asked of them, as databases without statistics do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from streamsift.logical import bound as b
from streamsift.physical.detect.keys import compared_columns, joined, may_be_missing
from streamsift.physical.plan import Alternative, DetectPlan, Step

# Shares of all events that pass a test, where nothing is known of them.
EQUAL, IN_RANGE, LIKE, OF_TYPE, ALL = Fraction(1, 100), Fraction(1, 3), Fraction(1, 10), Fraction(1, 4), Fraction(1)


@dataclass(frozen=True, slots=True)
class PartialKey:
    """The column; for each alternative the step whose event's home owns the match (None: that of its first event) …

    … and the steps whose events are copied; `share` of all events these are, about.
    """

    column: str
    owners: tuple[int | None, ...]
    copied: tuple[tuple[Step, ...], ...]
    share: Fraction


def partial_key(plan: DetectPlan) -> PartialKey | None:
    """The key that leaves the fewest events to be copied; None where no two variables are equal in a column."""
    columns = compared_columns(plan.query)
    found = [key for column in columns if (key := _by_column(plan, column)) is not None]
    return min(found, key=lambda key: key.share, default=None)


def _by_column(plan: DetectPlan, column: str) -> PartialKey | None:
    choices: list[tuple[int | None, tuple[Step, ...]]] = []
    for alternative in plan.alternatives:
        possible = [(_share(alternative, c[1]), c) for c in _choices(plan.query, alternative, column)]
        if not possible:
            return None
        choices.append(min(possible, key=lambda choice: choice[0])[1])
    if all(owner is None for owner, _ in choices):
        return None
    shares = (_share(a, copied) for a, (_, copied) in zip(plan.alternatives, choices, strict=True))
    share = min(ALL, sum(shares, Fraction(0)))
    return PartialKey(column, tuple(owner for owner, _ in choices), tuple(copied for _, copied in choices), share)


def _choices(
    query: b.BoundQuery, alternative: Alternative, column: str
) -> Iterator[tuple[int | None, tuple[Step, ...]]]:
    """An owner and what is copied: for each single event that others are equal to; and none, with all copied.

    An owner is in every match, so no group is one. Which event of a match is its first is the same in all tasks only
    if no group has one of the same time, which each task may put in an order of its own.
    """
    for number, step in enumerate(alternative.steps):
        keyed = joined(query, alternative, column, step.variable)
        if len(keyed) > 1 and not may_be_missing(query, step.variable):
            # Elements of a group have variables of their own, called as the group is.
            names = {query.variables[variable].name for variable in keyed}
            steps = alternative.all_steps()
            yield number, tuple(s for s in steps if alternative.query.variables[s.variable].name not in names)
    if alternative.groups is None:
        yield None, tuple(alternative.all_steps())


def _share(alternative: Alternative, steps: tuple[Step, ...]) -> Fraction:
    """Of all events, those that one of the steps could bind."""
    # Steps that ask the same, each of its own variable, are of the same events.
    shares = {_asked(step, alternative.query): _passing(step, alternative.query) for step in steps}
    return sum(shares.values(), Fraction(0))


def _asked(step: Step, query: b.BoundQuery) -> tuple[object, ...]:
    event_class = query.variables[step.variable].event_class
    name = event_class.name if event_class.rule is b.ClassRule.TYPE else ""
    return name, event_class.predicate, frozenset(p.renamed({step.variable: 0}) for p in step.local)


def _passing(step: Step, query: b.BoundQuery) -> Fraction:
    event_class = query.variables[step.variable].event_class
    predicates = (*step.local, *([event_class.predicate] if event_class.predicate is not None else []))
    share = OF_TYPE if event_class.rule is b.ClassRule.TYPE else ALL
    for predicate in predicates:
        share *= _selectivity(predicate)
    return share


def _selectivity(expression: b.Expr) -> Fraction:
    match expression:
        case b.Operation(op="=", operands=(b.Column(), b.Constant())):
            return EQUAL
        case b.Operation(op="in", operands=(b.Column(), *items)):
            return min(ALL, len(items) * EQUAL)
        case b.Operation(op="like"):
            return LIKE
        case b.Operation(op="<" | "<=" | ">" | ">=", operands=(b.Column(), b.Constant())):
            return IN_RANGE
        case b.Operation(op="and", operands=operands):
            share = ALL
            for operand in operands:
                share *= _selectivity(operand)
            return share
        case b.Operation(op="or", operands=operands):
            return min(ALL, sum(map(_selectivity, operands), Fraction(0)))
        case _:
            return ALL
