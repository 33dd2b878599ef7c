"""Declare how Kleene variables are bound: what their elements must be, how groups are made of them.

The single events of a match, its anchors, are found first. A `[n]` group is n more single events. A `+` or `*` group is
all valid elements from its first to its last, so those two stand for it where order, windows and bounds are at stake.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from streamsift.logical.bound import Column, Expr
from streamsift.physical.plan.plan import Limit, Negation, Step


class Growth(Enum):
    """How the groups of `+` and `*` variables are found. The value is how explain spells it."""

    RANGES = "as long as they can be"  # what is added never forbids a match: only the largest groups are made
    EXTENTS = "of every extent, then the largest that are valid"  # a longer group may forbid what a shorter one allows
    ELEMENTS = "event by event, then the largest that are valid"  # two groups may want the same event


@dataclass(frozen=True, slots=True)
class FixedGroup:
    """A `[n]` variable: every choice of `size` elements. They are the steps from `first` on.

    The single variables of a negated sub-pattern that is found by groups are choices of one.
    """

    variable: int
    size: int
    step: Step  # one element, given all steps before `first`
    first: int
    after: tuple[int, ...]  # steps that come before all its elements
    before: tuple[int, ...]  # steps that come after them
    agree: tuple[Column, ...]  # columns in which its elements are equal to each other


@dataclass(frozen=True, slots=True)
class MaximalGroup:
    """A `+` or `*` variable. Its first and its last element are the steps `first` and `first + 1`."""

    variable: int
    may_be_empty: bool
    step: Step  # one element, given all single steps
    first: int


@dataclass(frozen=True, slots=True)
class Side:
    """An operand of AND: whether it has a single event, and its growing variables."""

    has_single: bool
    growing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """One way to order what AND leaves open. Growing variables go by their number in `KleeneGroups.growing`."""

    after: tuple[tuple[int, ...], ...]  # for each growing variable the single steps before it
    before: tuple[tuple[int, ...], ...]  # and those after it
    preceding: tuple[tuple[int, ...], ...]  # and the growing variables before it, with no single step between them
    sequence: tuple[int, ...]  # the growing variables, each after those that precede it
    swapped: tuple[tuple[Side, Side], ...]  # the operands of AND that are taken in the other order


@dataclass(frozen=True, slots=True)
class Key:
    """`[attr]` where no single event tells its value: the elements of these growing variables share one."""

    members: tuple[tuple[int, Column], ...]


@dataclass(frozen=True, slots=True)
class GroupSearchPlan:
    """How assignments of the growing variables are searched, and which of them are matches."""

    growth: Growth
    by_end: bool  # groups are found for each possible last event of the match in turn
    keeps_end: bool  # what a group could add counts only if the match ends at the same time: EMIT EACH, AND with `!`
    each: bool  # EMIT EACH: matches that end at different times do not rival
    compared: bool  # valid assignments are compared with each other: the largest are matches
    crowded: bool  # a negation's interval may hold elements of a group, which do not forbid


@dataclass(frozen=True, slots=True)
class Decided:
    """What the groups decide if just these growing variables (a bit mask) are empty."""

    empty: int
    negations: tuple[Negation, ...]
    group_negations: tuple[GroupNegation, ...]


@dataclass(frozen=True, slots=True)
class KleeneGroups:
    """All Kleene variables of a pattern, and what can be decided only once they are bound.

    `steps` are all single steps, then the first and last element of each growing variable: the negations' numbering.
    """

    variables: frozenset[int]  # of the pattern, as the query numbers them, negated ones too
    steps: tuple[Step, ...]
    chosen: tuple[FixedGroup, ...]
    growing: tuple[MaximalGroup, ...]
    orders: tuple[Order, ...]
    keys: tuple[Key, ...]
    decided: tuple[Decided, ...]  # none if there is nothing to decide
    any_event: int  # a variable of the class of all rows, that no predicate names
    filters: tuple[Expr, ...]  # predicates with aggregates over a group: for finished matches
    search: GroupSearchPlan

    @property
    def count_singles(self) -> int:
        return len(self.steps) - 2 * len(self.growing)

    @property
    def independent(self) -> bool:
        """Whether no group takes elements from another: each has all that its single neighbours leave it."""
        search = self.search
        is_free = all(not others for order in self.orders for others in order.preceding)
        one_order = len(self.orders) == 1 or not any(growing.may_be_empty for growing in self.growing)
        return search.growth is Growth.RANGES and is_free and one_order and not search.by_end and not self.keys

    @property
    def least_events(self) -> int:
        return sum(c.size for c in self.chosen) + sum(not g.may_be_empty for g in self.growing)

    def own_steps(self) -> Iterator[Step]:
        """One step for each Kleene variable: what its elements must be."""
        yield from (chosen.step for chosen in self.chosen)
        yield from (growing.step for growing in self.growing)

    def negations(self) -> Iterator[Negation]:
        for decided in self.decided:
            yield from decided.negations

    def group_negations(self) -> Iterator[GroupNegation]:
        for decided in self.decided:
            yield from decided.group_negations


@dataclass(frozen=True, slots=True)
class GroupNegation:
    """A negated sub-pattern whose groups matter as a whole: its matches are found like those of the query.

    Its steps are numbered on from those of the pattern around it.
    """

    lower: Limit
    upper: Limit
    groups: KleeneGroups


def ordered_steps(steps: tuple[Step, ...], groups: KleeneGroups) -> Iterator[tuple[Step, ...]]:
    """Single events and groups as steps, each after what comes before it: once for each order that AND leaves."""
    chosen = tuple(replace(group.step, after=group.after) for group in groups.chosen)
    for order in groups.orders:
        behind: dict[int, list[int]] = {}  # by single step the groups that it comes after
        grown = []
        for number, group in enumerate(groups.growing):
            last_of = [groups.growing[other].first + 1 for other in order.preceding[number]]
            grown.append(replace(group.step, after=(*order.after[number], *last_of)))
            for step in order.before[number]:
                behind.setdefault(step, []).append(group.first + 1)
        for choice in groups.chosen:
            for step in choice.before:
                behind.setdefault(step, []).append(choice.first)
        single = tuple(replace(step, after=(*step.after, *behind.get(n, ()))) for n, step in enumerate(steps))
        yield (*single, *chosen, *grown)
