"""Choose how the groups of a pattern are searched, by the order of its Kleene variables and its negations."""

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
    GroupSearchPlan,
    Growth,
    Limit,
    Negation,
    Order,
    Side,
)


def order_of(steps: ElementSteps, form: b.Node, singles: Numbers, growing: list[int]) -> Order:
    """Where the growing variables stand in one form of the pattern."""
    pairs = set(order_pairs(form))
    fixed = [v for v in form.leaves() if v not in growing]

    def neighbours(side: int) -> tuple[tuple[int, ...], ...]:
        return tuple(steps.steps_of([p[side] for p in pairs if p[1 - side] == v], singles) for v in growing)

    def touch(one: int, other: int) -> bool:
        return (one, other) in pairs and not any((one, v) in pairs and (v, other) in pairs for v in fixed)

    def side(variables: list[int]) -> Side:
        numbers = tuple(growing.index(v) for v in variables if v in growing)
        return Side(len(numbers) < len(variables), numbers)

    return Order(
        after=neighbours(0),
        before=neighbours(1),
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
    """The cheapest search that finds the largest valid groups.

    What is added to a group never lets a negation occur that did not: it shortens the intervals around the group, and
    the elements forbid nothing. Exceptions: the end of the match bounds a negation (AND), and a negation inside a
    negation looks at the same bounds. A negated pattern is bounded from outside, and has no end of its own.
    """
    may_end = is_root and any(not steps for order in orders for steps in order.before)
    each = query.emit is Emit.EACH and may_end
    limits = [limit for limits, _ in _negations(decided) for limit in limits]
    moves_end = may_end and any(limit.edge is Edge.MATCH_END for limit in limits)
    # Both ends of the window may be elements of groups: how far one reaches depends on the other.
    spans = is_root and query.window is not None
    spans = spans and any(not all(order.after) and not all(order.before) for order in orders)
    has_inner = any(inner for _, inner in _negations(decided))
    crowded = has_conjunction(node) and _may_be_crowded(query, growing, decided)
    inherits = any(_inherits(n, n.first) for d in decided for n in d.negations)
    inherits = inherits or any(g.groups.decided for d in decided for g in d.group_negations)
    exhaustive = inherits or (crowded and has_inner)
    growth = Growth.EXTENTS if inherits else Growth.RANGES
    if (crowded and has_inner) or any(_may_share(query, order, growing) for order in orders):
        growth = Growth.ELEMENTS
    return GroupSearchPlan(
        growth=growth,
        by_end=not exhaustive and (each or moves_end or spans),
        keeps_end=not exhaustive and (each or moves_end),
        each=each,
        compared=exhaustive or (moves_end and not each),
        crowded=crowded,
    )


def _negations(decided: Sequence[Decided]) -> Iterator[tuple[tuple[Limit, Limit], bool]]:
    """The limits of each negation, and whether it has others inside."""
    for each in decided:
        yield from (((n.lower, n.upper), bool(n.negations)) for n in each.negations)
        yield from (((g.lower, g.upper), bool(g.groups.decided)) for g in each.group_negations)


def _inherits(negation: Negation, first: int) -> bool:
    """Whether a bound of a negation inside this one is one of the pattern around it."""
    return any(
        not all(limit.steps and min(limit.steps) >= first for limit in (inner.lower, inner.upper))
        or _inherits(inner, first)
        for inner in negation.negations
    )


def _may_be_crowded(query: b.BoundQuery, growing: list[int], decided: Sequence[Decided]) -> bool:
    inside: set[b.EventClass] = set()
    for each in decided:
        for negation in each.negations:
            inside |= {query.variables[step.variable].event_class for step in negation.all_steps()}
        for grouped in each.group_negations:
            inside |= {query.variables[v].event_class for v in grouped.groups.variables}
    return any(query.variables[g].event_class.may_overlap(other) for g in growing for other in inside)


def _may_share(query: b.BoundQuery, order: Order, growing: list[int]) -> bool:
    """Whether two groups that nothing orders may have events in common."""
    for one, other in combinations(range(len(growing)), 2):
        ordered = _comes_before(order, one, other) or _comes_before(order, other, one)
        first, second = (query.variables[growing[number]].event_class for number in (one, other))
        if not ordered and first.may_overlap(second):
            return True
    return False


def _comes_before(order: Order, one: int, other: int) -> bool:
    return one in order.preceding[other] or not {*order.before[one]}.isdisjoint(order.after[other])


def group_reasons(alternatives: Sequence[Alternative]) -> Iterator[str]:
    """Yield why groups are made the way they are, for explain."""
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
    if any(groups.search.growth is Growth.ELEMENTS for groups in found):
        yield "event by event: nothing orders two groups whose classes may have rows in common"
