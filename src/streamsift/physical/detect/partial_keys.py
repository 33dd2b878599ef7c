"""Derive a partial key, shared by some variables, for a plan without a key. Events of the others are replicated.

Example: `T1.name = T3.name AND T2.name = 'Google'`. Partitioned by name, T1 and T3 of a match are in the same task. T2
is there too if every Google event is replicated to every task. Only the task that owns T1 finds the match.

The share of replicated events is estimated from their predicates, as databases without statistics do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import mul

from streamsift.logical import bound as b
from streamsift.physical.detect.keys import compared_columns, joined, may_be_missing
from streamsift.physical.plan import Alternative, DetectPlan, Step

# Estimated shares of events that pass a test.
EQUAL, IN_RANGE, LIKE, OF_TYPE, ALL = Fraction(1, 100), Fraction(1, 3), Fraction(1, 10), Fraction(1, 4), Fraction(1)


@dataclass(frozen=True, slots=True)
class PartialKey:
    column: str
    owners: tuple[int | None, ...]  # per alternative, the step whose event owns the match; None: its first event
    copied: tuple[tuple[Step, ...], ...]  # per alternative, the steps whose events are replicated
    share: Fraction  # estimated share of events that are replicated


def partial_key(plan: DetectPlan) -> PartialKey | None:
    """Return the key that replicates the fewest events; None if no two variables are equal in a column."""
    keys = (_by_column(plan, column) for column in compared_columns(plan.query))
    return min((key for key in keys if key is not None), key=lambda key: key.share, default=None)


def _by_column(plan: DetectPlan, column: str) -> PartialKey | None:
    cheapest: list[tuple[Fraction, int | None, tuple[Step, ...]]] = []
    for alternative in plan.alternatives:
        choices = list(_choices(plan.query, alternative, column))
        if not choices:
            return None
        cheapest.append(min(choices, key=lambda choice: choice[0]))
    shares, owners, copied = zip(*cheapest, strict=True)
    if all(owner is None for owner in owners):
        return None
    return PartialKey(column, owners, copied, min(ALL, sum(shares, Fraction(0))))


def _choices(
    query: b.BoundQuery, alternative: Alternative, column: str
) -> Iterator[tuple[Fraction, int | None, tuple[Step, ...]]]:
    """Yield the replicated share, an owner and the replicated variables.

    The owner is a single event of every match that others equal. Without an owner, all events are replicated, and the
    first event of a match owns it. That requires a pattern without Kleene groups: tasks can order events with equal
    times differently, so they would not agree on the first event of a group.
    """
    for number, step in enumerate(alternative.steps):
        keyed = joined(query, alternative, column, step.variable)
        if len(keyed) > 1 and not may_be_missing(query, step.variable):
            # Elements of a group have their own variables with the name of the group.
            names = {query.variables[variable].name for variable in keyed}
            others = [s for s in alternative.all_steps() if alternative.query.variables[s.variable].name not in names]
            yield _share(alternative, others), number, tuple(others)
    if alternative.groups is None:
        steps = tuple(alternative.all_steps())
        yield _share(alternative, steps), None, steps


def _share(alternative: Alternative, steps: Iterable[Step]) -> Fraction:
    """Return the estimated share of events that at least one of the steps can bind."""
    shares: dict[object, Fraction] = {}  # steps with equal conditions bind the same events
    for step in steps:
        event_class = alternative.query.variables[step.variable].event_class
        is_typed, of_class = event_class.rule is b.ClassRule.TYPE, event_class.predicate
        predicates = frozenset(predicate.renamed({step.variable: 0}) for predicate in step.local)
        tests = (*step.local, *([] if of_class is None else [of_class]))
        key = event_class.name if is_typed else "", of_class, predicates
        shares[key] = _of_all(tests) * (OF_TYPE if is_typed else ALL)
    return sum(shares.values(), Fraction(0))


def _of_all(predicates: Iterable[b.Expr]) -> Fraction:
    return reduce(mul, map(_selectivity, predicates), ALL)


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
            return _of_all(operands)
        case b.Operation(op="or", operands=operands):
            return min(ALL, sum(map(_selectivity, operands), Fraction(0)))
        case _:
            return ALL
