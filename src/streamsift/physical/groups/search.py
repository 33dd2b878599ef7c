"""Choose how groups are searched, given the order of Kleene variables and the negations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from streamsift.language.syntax import Emit
from streamsift.logical import bound as b
from streamsift.physical.groups.forms import has_conjunction, order_pairs, swapped_sides
from streamsift.physical.groups.steps import ElementSteps, Numbers
from streamsift.physical.plan import (
    Alternative,
    Decided,
    Edge,
    GroupNegation,
    GroupSearchPlan,
    Growth,
    Negation,
    Order,
    Side,
)


def order_of(steps: ElementSteps, form: b.Node, singles: Numbers, growing: list[int]) -> Order:
    """Return the positions of the growing variables in one form of the pattern."""
    pairs = set(order_pairs(form))
    fixed = [v for v in form.leaves() if v not in growing]

    def neighbors(side: int) -> tuple[tuple[int, ...], ...]:
        return tuple(steps.steps_of([p[side] for p in pairs if p[1 - side] == v], singles) for v in growing)

    def touch(one: int, other: int) -> bool:
        return (one, other) in pairs and not any((one, v) in pairs and (v, other) in pairs for v in fixed)

    def side(variables: list[int]) -> Side:
        numbers = tuple(growing.index(v) for v in variables if v in growing)
        return Side(len(numbers) < len(variables), numbers)

    return Order(
        after=neighbors(0),
        before=neighbors(1),
        preceding=tuple(tuple(growing.index(u) for u in growing if touch(u, v)) for v in growing),
        sequence=tuple(growing.index(v) for v in form.leaves() if v in growing),
        swapped=tuple((side(left), side(right)) for left, right in swapped_sides(form)),
    )


def search_of(
    query: b.BoundQuery,
    node: b.Node,
    orders: Sequence[Order],
    growing: list[int],
    decided: Sequence[Decided],
    *,
    is_root: bool,
) -> GroupSearchPlan:
    """Return the cheapest search that finds the maximal valid groups.

    Usually, adding an element never makes a negation fail: it shortens the intervals around the group, and elements are
    ignored inside an interval. There are two exceptions: the end of the match bounds a negation (AND), or an inner
    negation has the same bounds as its outer one. A negated pattern is bounded from outside and has no end of its own.
    """
    negations = [negation for choice in decided for negation in choice.all_negations]
    inside = [inner for n in negations for inner in n.walk()]
    may_end = is_root and any(not all(order.before) for order in orders)
    each = query.emit is Emit.EACH and may_end
    moves_end = may_end and any(n.upper.edge is Edge.MATCH_END for n in negations)
    # Both ends of the match may be elements of groups: the extent of one group depends on the other.
    spans = is_root and query.window is not None
    spans = spans and any(not all(order.after) and not all(order.before) for order in orders)
    classes = [query.variables[variable].event_class for variable in growing]
    negated = {query.variables[step.variable].event_class for n in inside for step in n.steps}
    crowded = has_conjunction(node) and any(one.may_overlap(other) for one in classes for other in negated)
    rivals = crowded and len(inside) > len(negations)  # a group can take events from an inner negation
    inherits = any(map(_inherits, negations))
    exhaustive = inherits or rivals
    growth = Growth.EXTENTS if inherits else Growth.RANGES
    if rivals or any(_may_share(classes, order) for order in orders):
        growth = Growth.ELEMENTS
    return GroupSearchPlan(
        growth=growth,
        by_end=not exhaustive and (each or moves_end or spans),
        keeps_end=not exhaustive and (each or moves_end),
        each=each,
        compared=exhaustive or (moves_end and not each),
        crowded=crowded,
    )


def _inherits(negation: Negation | GroupNegation) -> bool:
    """Return True if an inner negation inherits a bound from the pattern around this one."""
    limits = [limit for inner in negation.walk() if inner is not negation for limit in (inner.lower, inner.upper)]
    if isinstance(negation, GroupNegation):
        return bool(limits)
    return any(not limit.steps or min(limit.steps) < negation.first for limit in limits)


def _may_share(classes: list[b.EventClass], order: Order) -> bool:
    """Return True if two groups without a fixed order may have events in common."""

    def comes_before(one: int, other: int) -> bool:
        return one in order.preceding[other] or not {*order.before[one]}.isdisjoint(order.after[other])

    return any(
        classes[one].may_overlap(classes[other]) and not comes_before(one, other) and not comes_before(other, one)
        for one, other in combinations(range(len(classes)), 2)
    )


def group_reasons(alternatives: Sequence[Alternative]) -> Iterator[str]:
    """Yield the reasons for the way Kleene groups are built."""
    grouped = [alternative.groups for alternative in alternatives if alternative.groups is not None]
    if not grouped:
        return
    order = "bind single events, then the elements between them, then build groups"
    yield f"Kleene: {order}, so no group is built outside a match"
    if any(groups.chosen for groups in grouped):
        yield "[n]: elements are tested one by one before they are combined"
    if any(groups.search.by_end for groups in grouped):
        what = "the window, EMIT EACH or an AND with `!`"
        yield f"one search per possible last event: {what} depends on where the groups end"
    if any(groups.search.compared for groups in grouped):
        yield "maximal valid groups: groups are compared, because a negation can rule out only the longer ones"
    if any(groups.search.growth is Growth.ELEMENTS for groups in grouped):
        yield "event by event: two Kleene groups have no fixed order, and a row can belong to both classes"
