"""An alternative in, the same with its deciding event marked out: so that a stream builds only matches newly decided.

A match that is decided by its last event is found from the events that are new; one that waits for the end of its
window, from the first events whose windows close. Where any of several steps may bind that event, there is an
alternative for each: in it the steps before bind other events, so that no match is found twice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from streamsift.language.syntax import Emit
from streamsift.logical import bound as b
from streamsift.physical.plan import (
    AggregatePlan,
    Alternative,
    DetectPlan,
    KleeneGroups,
    PlannerOptions,
    PlanShape,
    RankPlan,
    Step,
)
from streamsift.physical.stream.final import awaited, is_awaited

DECIDES = "$decides"  # Column.name: the event may be the one that decides a match now
OTHER = "$other"  # it may be in such a match, but does not decide it


class Anchor(Enum):
    """From which events the matches that are newly decided are found. The value is how explain spells it."""

    END = "from their last events, which are new"
    START = "from their first events, whose windows close"
    ANY = "among all of the window, as definitions have windows of their own"


@dataclass(frozen=True, slots=True)
class Anchored:
    """One alternative of a plan, how its matches are found on a stream, and by which steps."""

    alternative: Alternative
    anchor: Anchor
    deciding: tuple[Step, ...]  # those that may bind the deciding event, Kleene variables included
    variants: tuple[Alternative, ...]  # disjoint; each has all its matches decided now, and maybe others
    choices: PlannerOptions

    @property
    def is_marked(self) -> bool:
        """Whether its variants ask which events decide a match now."""
        return self.variants != (self.alternative,)


def anchored(plan: DetectPlan, alternative: Alternative) -> Anchored:
    waits = awaited(alternative)
    if waits.definitions or waits.inside:
        anchor = Anchor.ANY
    else:
        anchor = Anchor.START if waits.window else Anchor.END
    if alternative.groups is not None and not _is_decided_by_single(alternative.groups, anchor):
        own = (*alternative.steps, *alternative.groups.own_steps())
        return Anchored(alternative, anchor, own, (alternative,), plan.choices)
    numbers = _candidates(alternative, anchor)
    deciding = tuple(alternative.steps[number] for number in numbers)
    if anchor is Anchor.ANY:
        return Anchored(alternative, anchor, deciding, (alternative,), plan.choices)
    variants = tuple(_variant(alternative, anchor, numbers, number) for number in numbers)
    return Anchored(alternative, anchor, deciding, variants, _choices(plan, alternative, anchor))


def _is_decided_by_single(groups: KleeneGroups, anchor: Anchor) -> bool:
    """Whether the last event of a match (or its first) is always a single one: no group has none behind (before) it."""
    ends = [chosen.before if anchor is Anchor.END else chosen.after for chosen in groups.chosen]
    for order in groups.orders:
        ends += order.before if anchor is Anchor.END else order.after
    return anchor is not Anchor.ANY and all(ends)


def _candidates(alternative: Alternative, anchor: Anchor) -> tuple[int, ...]:
    """The steps whose event may be the last of a match, or its first."""
    steps = alternative.steps
    if anchor is Anchor.END:
        followed = {earlier for step in steps for earlier in step.after}
        return tuple(number for number in range(len(steps)) if number not in followed)
    if anchor is Anchor.START:
        return tuple(number for number, step in enumerate(steps) if not step.after)
    return tuple(range(len(steps)))


def _variant(alternative: Alternative, anchor: Anchor, numbers: tuple[int, ...], deciding: int) -> Alternative:
    """Step `deciding` binds the deciding event; those of `numbers` before it bind others."""

    def marked(number: int, step: Step) -> Step:
        decides, other = (b.Column(step.variable, name, b.Kind.BOOLEAN) for name in (DECIDES, OTHER))
        if number == deciding:
            asked: b.Expr = decides
        elif number not in numbers:
            return step
        elif number < deciding:
            asked = other
        elif anchor is Anchor.END:
            return step
        else:
            asked = b.Operation("or", (decides, other), b.Kind.BOOLEAN)
        return replace(step, local=(*step.local, asked))

    return replace(alternative, steps=tuple(marked(*numbered) for numbered in enumerate(alternative.steps)))


def _choices(plan: DetectPlan, alternative: Alternative, anchor: Anchor) -> PlannerOptions:
    """New events are few: what ends with one is found from its last step backwards, unless the caller knows better."""
    is_pair = len(alternative.steps) < 3 and not alternative.negations
    if plan.choices.plan is not PlanShape.AUTO or anchor is not Anchor.END or is_pair or len(alternative.steps) == 1:
        return plan.choices
    return replace(plan.choices, plan=PlanShape.RIGHT)


def last_steps(alternative: Alternative) -> tuple[Step, ...]:
    """The steps whose event may be the last of a match; with Kleene variables, all."""
    if alternative.groups is not None:
        return (*alternative.steps, *alternative.groups.own_steps())
    return tuple(alternative.steps[number] for number in _candidates(alternative, Anchor.END))


def group_keys(plan: AggregatePlan | RankPlan) -> tuple[str, ...]:
    """The columns by which the rows are found that new rows of totals look at; none: all of them are looked at.

    Where every row of the result is one of a group in which a match ends, only such groups matter.
    """
    query = plan.query
    if isinstance(plan, RankPlan) or query.update is not None or query.emit is Emit.CHANGES or is_awaited(plan):
        return ()
    if query.window is not None and query.window.kind is b.WindowKind.COUNT:
        return query.partition_by if set(query.partition_by) <= set(query.group_by) else ()
    return query.group_by


def stream_keys(plan: DetectPlan) -> tuple[str, ...]:
    """The columns by which the rows of a match are found among those held; none: all of them are looked at."""
    query = plan.query
    if query.window is not None and query.window.kind is b.WindowKind.COUNT:
        return query.partition_by  # all rows of a partition have positions
    return plan.keys
