"""Mark the finalizing event of a match, so that a stream builds only matches that are newly final.

A match that is final on arrival is found from new events. A match that waits for the horizon is found from the events
that the horizon reaches or passes, or from first events whose windows close. If several steps can bind that event,
there is one variant of the alternative per step. In each variant, the steps before that one bind other events, so no
match is found twice.
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

    ARRIVAL = "starting from events that arrive"
    REACHED = "starting from events that arrive or are reached"
    END = "starting from last events that are passed"
    START = "starting from first events whose windows close"
    ANY = "all rows read"


@dataclass(frozen=True, slots=True)
class FinalizedAlternative:
    """One alternative of a plan, and how its newly final matches are found."""

    alternative: Alternative
    by: FinalizedBy
    awaited: Awaited
    steps: tuple[Step, ...]  # those that can bind the finalizing event, including Kleene variables
    last_steps: tuple[Step, ...]  # those whose event can be the last of a match, including Kleene variables
    variants: tuple[Alternative, ...]  # disjoint; together they find all newly final matches, and maybe others
    in_order: tuple[Alternative, ...]  # the same, if all new events come after all others
    choices: PlannerOptions

    @property
    def is_marked(self) -> bool:
        """Return True if its variants test which events make a match final now."""
        return self.variants != (self.alternative,)

    @property
    def is_exact(self) -> bool:
        """Return True if the variants find no other matches."""
        return self.is_marked and self.alternative.groups is None and self.by is not FinalizedBy.REACHED


def finalized(plan: DetectPlan, alternative: Alternative) -> FinalizedAlternative:
    waits = awaited(alternative)
    by = _finalized_by(waits)
    steps, choices = (*alternative.steps, *_group_steps(alternative)), plan.choices
    variants: tuple[Alternative, ...] = (alternative,)
    in_order = variants
    if by is not FinalizedBy.ANY and (alternative.groups is None or _is_finalized_by_single(alternative.groups, by)):
        numbers = _candidates(alternative, by)
        variants = tuple(_variant(alternative, by, numbers, number) for number in numbers)
        in_order = variants
        if by in (FinalizedBy.ARRIVAL, FinalizedBy.REACHED):
            last = _candidates(alternative, FinalizedBy.END)
            in_order = tuple(_variant(alternative, by, last, number) for number in last)
        steps = tuple(alternative.steps[number] for number in numbers)
        # New events are few, so a match that ends with one is found from its last step backwards.
        is_long = len(alternative.steps) > (1 if alternative.negations else 2)
        if by is not FinalizedBy.START and is_long and choices.plan is PlanShape.AUTO:
            choices = replace(choices, plan=PlanShape.RIGHT)
    return FinalizedAlternative(alternative, by, waits, steps, last_steps(alternative), variants, in_order, choices)


def _finalized_by(waits: Awaited) -> FinalizedBy:
    if waits.definitions or waits.inside or waits.ends or waits.definition_groups or waits.depends_on_order:
        return FinalizedBy.ANY
    if waits.window:
        return FinalizedBy.START
    if waits.end:
        return FinalizedBy.END
    return FinalizedBy.ARRIVAL if waits.is_arrival else FinalizedBy.REACHED


def _group_steps(alternative: Alternative) -> tuple[Step, ...]:
    return () if alternative.groups is None else tuple(alternative.groups.own_steps())


def _is_finalized_by_single(groups: KleeneGroups, by: FinalizedBy) -> bool:
    """Return True if the finalizing event is always a single event.

    The horizon has not passed a new element of a group that waits for a single event, so it has not reached that one
    either. Elements of `[n]` groups wait for nothing.
    """
    if by in (FinalizedBy.ARRIVAL, FinalizedBy.REACHED):
        return not groups.chosen
    ends = [chosen.before if by is FinalizedBy.END else chosen.after for chosen in groups.chosen]
    for order in groups.orders:
        ends += order.before if by is FinalizedBy.END else order.after
    return all(ends)


def _candidates(alternative: Alternative, by: FinalizedBy) -> tuple[int, ...]:
    """Return the steps whose event can be the finalizing one: the last or the first of a match, or any."""
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
        if number in numbers and by in (FinalizedBy.START, FinalizedBy.END):
            return replace(step, local=(*step.local, b.truth("or", (decides, other))))
        return step

    return replace(alternative, steps=tuple(marked(*numbered) for numbered in enumerate(alternative.steps)))


def last_steps(alternative: Alternative) -> tuple[Step, ...]:
    """Return the steps whose event can be the last of a match; with Kleene variables, all steps."""
    if alternative.groups is not None:
        return (*alternative.steps, *alternative.groups.own_steps())
    return tuple(alternative.steps[number] for number in _candidates(alternative, FinalizedBy.END))
