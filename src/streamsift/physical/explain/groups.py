"""Describe how the groups of an alternative are made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamsift.logical.describe import describe_class, describe_expression
from streamsift.physical.explain.words import predicate_lines
from streamsift.physical.plan import Alternative, FixedGroup, KleeneGroups, MaximalGroup, Order


def describe_groups(alternative: Alternative, groups: KleeneGroups) -> Iterator[str]:
    """After the lines of the single events: each group, then what decides which groups are matches."""
    names = [alternative.query.variables[step.variable].name for step in groups.steps]
    for chosen in groups.chosen:
        yield f"{_name(alternative, chosen)}: every choice of {chosen.size} of {_class(alternative, chosen)}"
        yield from _between(names, chosen.after, chosen.before)
        yield from predicate_lines(chosen.step, alternative.query)
    for number, growing in enumerate(groups.growing):
        least = "none or more" if growing.may_be_empty else "one or more"
        yield f"{_name(alternative, growing)}: {least} of {_class(alternative, growing)}"
        for order in groups.orders:
            yield from _place(alternative, names, groups, order, number)
        yield from predicate_lines(growing.step, alternative.query)
    for key in groups.keys:
        members = ", ".join(_name(alternative, groups.growing[number]) for number, _ in key.members)
        yield f"groups for each {key.members[0][1].name} of {members}"
    if groups.growing:
        turn = ", for each last event in turn" if groups.search.by_end else ""
        yield f"groups {groups.search.growth.value}{turn}"
    for expression in groups.filters:
        yield f"check   {describe_expression(expression, alternative.query.variables)}, of whole groups"


def _name(alternative: Alternative, group: FixedGroup | MaximalGroup) -> str:
    return alternative.query.variables[group.variable].name


def _class(alternative: Alternative, group: FixedGroup | MaximalGroup) -> str:
    event_class = alternative.query.variables[group.variable].event_class
    return describe_class(event_class, alternative.query.binding).replace("every row", "all rows")


def _place(
    alternative: Alternative, names: list[str], groups: KleeneGroups, order: Order, number: int
) -> Iterator[str]:
    def others(numbers: Sequence[int]) -> list[str]:
        return [_name(alternative, groups.growing[other]) for other in numbers]

    followers = [other for other in range(len(groups.growing)) if number in order.preceding[other]]
    yield from _between(
        names, order.after[number], order.before[number], others(order.preceding[number]), others(followers)
    )


def _between(
    names: list[str],
    after: Sequence[int],
    before: Sequence[int],
    preceding: Sequence[str] = (),
    following: Sequence[str] = (),
) -> Iterator[str]:
    low = dict.fromkeys([*(names[step] for step in after), *preceding])
    high = dict.fromkeys([*(names[step] for step in before), *following])
    parts = [f"{word} {', '.join(some)}" for word, some in (("after", low), ("before", high)) if some]
    yield f"   {', '.join(parts) or 'in any order'}"
