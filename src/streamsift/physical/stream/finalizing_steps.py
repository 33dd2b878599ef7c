"""Mark the finalizing event of a match, so that a stream builds only matches that are newly final.

A match that is final with its last event is found from new events. A match that waits for the end of its window is
found from first events whose windows close. If several steps can bind that event, there is one variant of the
alternative per step. In each variant, the steps before that one bind other events, so no match is found twice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from streamsift.logical import bound as b
from streamsift.physical.plan import Alternative, DetectPlan, KleeneGroups, PlannerOptions, PlanShape, Step
from streamsift.physical.stream.final import Awaited, awaited

DECIDES = "$decides"  # Column.name: the event can make a match final now
OTHER = "$other"  # Column.name: the event can be in such a match, but does not make it final


class FinalizedBy(Enum):
    """The events from which a search for newly final matches starts. `explain` prints the value."""

    END = "starting from their last events, which are new"
    START = "starting from their first events, whose windows close"
    ANY = "the whole window, because definitions have their own windows,"


@dataclass(frozen=True, slots=True)
class FinalizedAlternative:
    """One alternative of a plan, and how its newly final matches are found."""

    alternative: Alternative
    by: FinalizedBy
    awaited: Awaited
    steps: tuple[Step, ...]  # those that can bind the finalizing event, including Kleene variables
    variants: tuple[Alternative, ...]  # disjoint; together they find all newly final matches, and maybe others
    choices: PlannerOptions

    @property
    def is_marked(self) -> bool:
        """Return True if its variants test which events make a match final now."""
        return self.variants != (self.alternative,)


def finalized(plan: DetectPlan, alternative: Alternative) -> FinalizedAlternative:
    waits = awaited(alternative)
    by = FinalizedBy.START if waits.window else FinalizedBy.END
    if waits.definitions or waits.inside:
        by = FinalizedBy.ANY
    steps, choices = last_steps(alternative), plan.choices
    variants: tuple[Alternative, ...] = (alternative,)
    if alternative.groups is None or _is_finalized_by_single(alternative.groups, by):
        numbers = _candidates(alternative, by)
        steps = tuple(alternative.steps[number] for number in numbers)
        if by is not FinalizedBy.ANY:
            variants = tuple(_variant(alternative, by, numbers, number) for number in numbers)
        # New events are few, so a match that ends with one is found from its last step backwards.
        is_long = len(alternative.steps) > (1 if alternative.negations else 2)
        if by is FinalizedBy.END and is_long and choices.plan is PlanShape.AUTO:
            choices = replace(choices, plan=PlanShape.RIGHT)
    return FinalizedAlternative(alternative, by, waits, steps, variants, choices)


def _is_finalized_by_single(groups: KleeneGroups, by: FinalizedBy) -> bool:
    """Return True if the last (or first) event of a match is always a single event, because one follows each group."""
    ends = [chosen.before if by is FinalizedBy.END else chosen.after for chosen in groups.chosen]
    for order in groups.orders:
        ends += order.before if by is FinalizedBy.END else order.after
    return by is not FinalizedBy.ANY and all(ends)


def _candidates(alternative: Alternative, by: FinalizedBy) -> tuple[int, ...]:
    """Return the steps whose event can be the last (or the first) of a match."""
    steps = alternative.steps
    followed = {earlier for step in steps for earlier in step.after} if by is FinalizedBy.END else set()
    following = {number for number, step in enumerate(steps) if step.after} if by is FinalizedBy.START else set()
    return tuple(number for number in range(len(steps)) if number not in followed | following)


def _variant(alternative: Alternative, by: FinalizedBy, numbers: tuple[int, ...], finalizing: int) -> Alternative:
    """Let step `finalizing` bind the finalizing event, and the steps in `numbers` before it other events."""

    def marked(number: int, step: Step) -> Step:
        decides, other = (b.Column(step.variable, name, b.Kind.BOOLEAN) for name in (DECIDES, OTHER))
        if number == finalizing:
            return replace(step, local=(*step.local, decides))
        if number in numbers and number < finalizing:
            return replace(step, local=(*step.local, other))
        if number in numbers and by is FinalizedBy.START:
            return replace(step, local=(*step.local, b.truth("or", (decides, other))))
        return step

    return replace(alternative, steps=tuple(marked(*numbered) for numbered in enumerate(alternative.steps)))


def last_steps(alternative: Alternative) -> tuple[Step, ...]:
    """Return the steps whose event can be the last of a match; with Kleene variables, all steps."""
    if alternative.groups is not None:
        return (*alternative.steps, *alternative.groups.own_steps())
    return tuple(alternative.steps[number] for number in _candidates(alternative, FinalizedBy.END))
