"""The groups of an alternative in, the lines of explain that tell how they are made out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamsift.logical import bound as b
from streamsift.logical.describe import describe_class, describe_expression
from streamsift.physical.explain.words import describe_pair
from streamsift.physical.plan import Alternative, FixedGroup, KleeneGroups, MaximalGroup, Order, Step


def describe_groups(alternative: Alternative, groups: KleeneGroups) -> Iterator[str]:
    """After the lines of the single events: each group, then what decides which groups are matches."""
    names = [alternative.query.variables[step.variable].name for step in groups.steps]
    for chosen in groups.chosen:
        yield f"{_name(alternative, chosen)}: every choice of {chosen.size} of {_class(alternative, chosen)}"
        yield from _between(names, chosen.after, chosen.before)
        yield from _predicates(alternative.query, chosen.step)
    for number, growing in enumerate(groups.growing):
        least = "none or more" if growing.may_be_empty else "one or more"
        yield f"{_name(alternative, growing)}: {least} of {_class(alternative, growing)}"
        for order in groups.orders:
            yield from _place(alternative, names, groups, order, number)
        yield from _predicates(alternative.query, growing.step)
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


def _predicates(query: b.BoundQuery, step: Step) -> Iterator[str]:
    variables = query.variables
    for expression in step.local:
        yield f"   filter  {describe_expression(expression, variables)}"
    for word, pairs in (("lookup ", step.lookup), ("compare", step.pairs)):
        for pair in pairs:
            yield f"   {word} {describe_pair(pair, query)}"
    for expression in step.filters:
        yield f"   check   {describe_expression(expression, variables)}"


def group_reasons(alternatives: Sequence[Alternative]) -> Iterator[str]:
    """Why groups are made the way they are."""
    found = [alternative.groups for alternative in alternatives if alternative.groups is not None]
    if not found:
        return
    yield "Kleene: single events first, then elements between them, groups last: nothing is grouped that no match has"
    if any(groups.chosen for groups in found):
        yield "[n]: elements are tested one by one before they are combined"
    if any(groups.search.by_end for groups in found):
        yield "for each last event in turn: the window, EMIT EACH or an AND with `!` depends on where the groups end"
    if any(groups.search.compared for groups in found):
        yield "compared: a longer group may be forbidden where a shorter one is not, so the largest valid ones are kept"
    if any(groups.search.growth.name == "ELEMENTS" for groups in found):
        yield "event by event: nothing orders two groups whose classes may have rows in common"
