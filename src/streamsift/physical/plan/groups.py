"""Declare how Kleene variables are bound: the conditions on elements, and how groups are built.

The single events of a match, its anchors, are found first. A `[n]` group is n more single events. A `+` or `*` group
contains all valid elements from its first to its last, so these two represent it in orders, windows and bounds. Names
call `[n]` groups chosen and `+` or `*` groups growing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from itertools import chain

from streamsift.logical.bound import Column, Expr
from streamsift.physical.plan.plan import Limit, Negation, Step


class Growth(Enum):
    """How the groups of `+` and `*` variables are found. `explain` prints the value."""

    RANGES = "maximal"  # a larger group never rules out a match, so only maximal groups are built
    EXTENTS = "every range of elements; the maximal valid ones are kept"  # a longer group can rule out a match
    ELEMENTS = "built event by event; the maximal valid ones are kept"  # two groups can compete for an event


@dataclass(frozen=True, slots=True)
class FixedGroup:
    """A `[n]` variable: every combination of `size` elements, which are the steps from `first` on.

    In a negated sub-pattern that is found by groups, a single variable is a combination of one.
    """

    variable: int
    size: int
    step: Step  # one element, given all steps before `first`
    first: int
    after: tuple[int, ...]  # steps that come before all its elements
    before: tuple[int, ...]  # steps that come after them
    agree: tuple[Column, ...]  # columns in which all its elements are equal


@dataclass(frozen=True, slots=True)
class MaximalGroup:
    """A `+` or `*` variable. Its first and last elements are the steps `first` and `first + 1`."""

    variable: int
    may_be_empty: bool
    step: Step  # one element, given all single steps
    first: int


@dataclass(frozen=True, slots=True)
class Side:
    """An operand of AND: if it has a single event, and its growing variables."""

    has_single: bool
    growing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """One order of the operands of AND. Growing variables are numbered as in `KleeneGroups.growing`."""

    after: tuple[tuple[int, ...], ...]  # for each growing variable, the single steps before it
    before: tuple[tuple[int, ...], ...]  # and those after it
    preceding: tuple[tuple[int, ...], ...]  # and the growing variables before it, with no single step between them
    sequence: tuple[int, ...]  # the growing variables, each after those that precede it
    swapped: tuple[tuple[Side, Side], ...]  # the operands of AND that are in reverse order


@dataclass(frozen=True, slots=True)
class Key:
    """`[attr]` if no single event has its value: the elements of these growing variables share one value."""

    members: tuple[tuple[int, Column], ...]


@dataclass(frozen=True, slots=True)
class GroupSearchPlan:
    """How assignments of the growing variables are searched, and which of them are matches."""

    growth: Growth
    by_end: bool  # one search per possible last event of the match
    keeps_end: bool  # a larger group replaces a smaller one only if the match ends at the same time
    each: bool  # EMIT EACH: matches that end at different times do not replace each other
    compared: bool  # valid assignments are compared with each other; only maximal ones are matches
    crowded: bool  # elements of a group may lie in the interval of a negation, and are ignored there


@dataclass(frozen=True, slots=True)
class Decided:
    """The negations that are checked after groups are built, if exactly the groups `empty` (a bit mask) are empty."""

    empty: int
    negations: tuple[Negation, ...]
    group_negations: tuple[GroupNegation, ...]

    @property
    def all_negations(self) -> tuple[Negation | GroupNegation, ...]:
        return (*self.negations, *self.group_negations)


@dataclass(frozen=True, slots=True)
class KleeneGroups:
    """All Kleene variables of a pattern, and the conditions that need all of them.

    `steps` has all single steps, then the first and last element of each growing variable. Negations use its numbers.
    """

    variables: frozenset[int]  # of the pattern, including negated ones, as numbered in the query
    steps: tuple[Step, ...]
    chosen: tuple[FixedGroup, ...]
    growing: tuple[MaximalGroup, ...]
    orders: tuple[Order, ...]
    keys: tuple[Key, ...]
    decided: tuple[Decided, ...]  # empty if there are no such negations
    any_event: int  # a variable of the class of all rows that no predicate reads
    filters: tuple[Expr, ...]  # predicates with aggregates over a group, evaluated on finished matches
    search: GroupSearchPlan

    @property
    def count_singles(self) -> int:
        return len(self.steps) - 2 * len(self.growing)

    @property
    def independent(self) -> bool:
        """Return True if groups do not compete for elements: each has all elements between its single neighbors."""
        search = self.search
        is_free = not any(others for order in self.orders for others in order.preceding)
        one_order = len(self.orders) == 1 or not any(growing.may_be_empty for growing in self.growing)
        return search.growth is Growth.RANGES and is_free and one_order and not search.by_end and not self.keys

    def own_steps(self) -> Iterator[Step]:
        """Yield one step per Kleene variable, with the conditions on its elements."""
        yield from (group.step for group in self.chosen)
        yield from (group.step for group in self.growing)

    def negations(self) -> Iterator[Negation | GroupNegation]:
        """Yield all negations that are checked after groups are built, for every choice of empty groups."""
        yield from chain.from_iterable(decided.negations for decided in self.decided)
        yield from self.group_negations()

    def group_negations(self) -> Iterator[GroupNegation]:
        return chain.from_iterable(decided.group_negations for decided in self.decided)


@dataclass(frozen=True, slots=True)
class GroupNegation:
    """A negated sub-pattern that needs whole groups: its matches are found like those of the query."""

    lower: Limit
    upper: Limit
    groups: KleeneGroups  # their steps continue the numbering of the enclosing pattern

    @property
    def steps(self) -> Iterator[Step]:
        return self.groups.own_steps()

    def walk(self) -> Iterator[Negation | GroupNegation]:
        """Yield this negation and all inner ones, outer ones first."""
        yield self
        for inner in self.groups.negations():
            yield from inner.walk()


def ordered_steps(steps: tuple[Step, ...], groups: KleeneGroups) -> Iterator[tuple[Step, ...]]:
    """Yield single events and groups as steps in order, once for each order that AND allows."""
    chosen = [replace(group.step, after=group.after) for group in groups.chosen]
    for order in groups.orders:
        grown = []
        for group, after, preceding in zip(groups.growing, order.after, order.preceding, strict=True):
            lasts = (groups.growing[other].first + 1 for other in preceding)
            grown.append(replace(group.step, after=(*after, *lasts)))
        followed = [(group.first + 1, before) for group, before in zip(groups.growing, order.before, strict=True)]
        followed += [(group.first, group.before) for group in groups.chosen]
        single = [
            replace(step, after=(*step.after, *(last for last, before in followed if number in before)))
            for number, step in enumerate(steps)
        ]
        yield (*single, *chosen, *grown)
