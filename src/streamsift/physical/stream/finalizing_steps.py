"""Mark the finalizing event of a match, so that a stream builds only matches that are newly final.

A match that is final with its last event is found from the events that are new; one that waits for the end of its
window, from the first events whose windows close. Where any of several steps may bind that event, there is an
alternative for each: in it the steps before bind other events, so that no match is found twice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from streamsift.logical import bound as b
from streamsift.physical.plan import (
    Alternative,
    DetectPlan,
    KleeneGroups,
    PlannerOptions,
    PlanShape,
    Step,
)
from streamsift.physical.stream.final import Awaited, awaited

DECIDES = "$decides"  # Column.name: the event may be the one that decides a match now
OTHER = "$other"  # it may be in such a match, but does not decide it


class FinalizedBy(Enum):
    """From which events the matches that are newly decided are found. The value is how explain spells it."""

    END = "from their last events, which are new"
    START = "from their first events, whose windows close"
    ANY = "among all of the window, as definitions have windows of their own"


@dataclass(frozen=True, slots=True)
class FinalizedAlternative:
    """One alternative of a plan, how its matches are found on a stream, and by which steps."""

    alternative: Alternative
    by: FinalizedBy
    awaited: Awaited
    steps: tuple[Step, ...]  # those that may bind the finalizing event, Kleene variables included
    variants: tuple[Alternative, ...]  # disjoint; each has all its matches decided now, and maybe others
    choices: PlannerOptions

    @property
    def is_marked(self) -> bool:
        """Whether its variants ask which events decide a match now."""
        return self.variants != (self.alternative,)


def finalized(plan: DetectPlan, alternative: Alternative) -> FinalizedAlternative:
    waits = awaited(alternative)
    by = FinalizedBy.START if waits.window else FinalizedBy.END
    if waits.definitions or waits.inside:
        by = FinalizedBy.ANY
    steps, options = last_steps(alternative), plan.choices
    variants: tuple[Alternative, ...] = (alternative,)
    if alternative.groups is None or _is_decided_by_single(alternative.groups, by):
        numbers = _candidates(alternative, by)
        steps = tuple(alternative.steps[number] for number in numbers)
        if by is not FinalizedBy.ANY:
            variants = tuple(_variant(alternative, by, numbers, number) for number in numbers)
            options = _choices(plan, alternative, by)
    return FinalizedAlternative(alternative, by, waits, steps, variants, options)


def _is_decided_by_single(groups: KleeneGroups, by: FinalizedBy) -> bool:
    """Whether the last event of a match (or its first) is always a single one: no group has none behind (before) it."""
    ends = [chosen.before if by is FinalizedBy.END else chosen.after for chosen in groups.chosen]
    for order in groups.orders:
        ends += order.before if by is FinalizedBy.END else order.after
    return by is not FinalizedBy.ANY and all(ends)


def _candidates(alternative: Alternative, by: FinalizedBy) -> tuple[int, ...]:
    """The steps whose event may be the last of a match, or its first."""
    steps = alternative.steps
    if by is FinalizedBy.END:
        followed = {earlier for step in steps for earlier in step.after}
        return tuple(number for number in range(len(steps)) if number not in followed)
    if by is FinalizedBy.START:
        return tuple(number for number, step in enumerate(steps) if not step.after)
    return tuple(range(len(steps)))


def _variant(alternative: Alternative, by: FinalizedBy, numbers: tuple[int, ...], deciding: int) -> Alternative:
    """Step `deciding` binds the deciding event; those of `numbers` before it bind others."""

    def marked(number: int, step: Step) -> Step:
        decides, other = (b.Column(step.variable, name, b.Kind.BOOLEAN) for name in (DECIDES, OTHER))
        if number == deciding:
            asked: b.Expr = decides
        elif number not in numbers:
            return step
        elif number < deciding:
            asked = other
        elif by is FinalizedBy.END:
            return step
        else:
            asked = b.truth("or", (decides, other))
        return replace(step, local=(*step.local, asked))

    return replace(alternative, steps=tuple(marked(*numbered) for numbered in enumerate(alternative.steps)))


def _choices(plan: DetectPlan, alternative: Alternative, by: FinalizedBy) -> PlannerOptions:
    """New events are few: what ends with one is found from its last step backwards, unless the caller knows better."""
    is_pair = len(alternative.steps) < 3 and not alternative.negations
    if plan.choices.plan is not PlanShape.AUTO or by is not FinalizedBy.END or is_pair or len(alternative.steps) == 1:
        return plan.choices
    return replace(plan.choices, plan=PlanShape.RIGHT)


def last_steps(alternative: Alternative) -> tuple[Step, ...]:
    """The steps whose event may be the last of a match; with Kleene variables, all."""
    if alternative.groups is not None:
        return (*alternative.steps, *alternative.groups.own_steps())
    return tuple(alternative.steps[number] for number in _candidates(alternative, FinalizedBy.END))
