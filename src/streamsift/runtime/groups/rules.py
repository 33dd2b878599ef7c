"""Groups of one match in, whether they obey order and window, and whether an element could be added, out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.physical.plan import KleeneGroups
from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64
from streamsift.runtime.arrays.searching import first_from
from streamsift.runtime.groups.stream import Clock

LEFT_SINGLE, LEFT, RIGHT_SINGLE, RIGHT, SIDE_FIELDS = range(5)


class Field(NamedTuple):
    """The elements: in order o, of growing variable g, for match m: places[start[o, g, m]:stop[o, g, m]]."""

    places: Int32
    start: Int64  # [orders, growing, matches]
    stop: Int64


class Rules(NamedTuple):
    """What holds between groups. Sets of growing variables are bit masks."""

    preceding: Int64  # [orders, growing] those before it
    following: Int64  # [orders, growing] those after it
    sequence: Int64  # [orders, growing] a sequence in which each stands after those before it
    may_be_empty: Bool  # [growing]
    swapped: Int64  # [orders, ANDs, SIDE_FIELDS] operands in the other order; LEFT_SINGLE < 0 where there is none
    by_end: bool
    keeps_end: bool
    extents: bool  # every extent, whether or not it could be longer


def rules_of(groups: KleeneGroups) -> Rules:
    count, orders, search = len(groups.growing), groups.orders, groups.search

    def bits(members: Iterable[int]) -> int:
        return sum(1 << member for member in members)

    def table(rows: list[list[int]]) -> Int64:
        return np.array(rows, np.int64).reshape(len(orders), count)

    swapped = np.full((len(orders), max(len(order.swapped) for order in orders), SIDE_FIELDS), -1, np.int64)
    for number, order in enumerate(orders):
        for place, (left, right) in enumerate(order.swapped):
            swapped[number, place] = (left.has_single, bits(left.growing), right.has_single, bits(right.growing))
    return Rules(
        table([[bits(others) for others in order.preceding] for order in orders]),
        table([[bits(g for g in range(count) if n in order.preceding[g]) for n in range(count)] for order in orders]),
        table([list(order.sequence) for order in orders]),
        np.array([growing.may_be_empty for growing in groups.growing], np.bool_),
        swapped,
        search.by_end,
        search.keeps_end,
        search.compared and not search.by_end,
    )


class Fixed(NamedTuple):
    """What is settled already about each match."""

    first: Int32  # [matches] the place of the earliest event, -1 for none
    last: Int32  # [matches] of the latest
    closed: Bool  # [growing, matches] groups that must stay empty
    some: Int64  # [keys, matches] sets of groups of which one is not empty; 0 for no such rule


@njit(cache=True, nogil=True)
def together(clock: Clock, first: int, last: int) -> bool:
    """Whether a match from `first` to `last` is inside the window."""
    if clock.length > 0 and clock.positions[last] - clock.positions[first] >= clock.length:
        return False
    return last <= clock.window_high[first]


@njit(cache=True, nogil=True)
def low_limit(field: Field, clock: Clock, mask: int, first: Int64, stop: Int64) -> int:
    """The first place after all groups of the mask."""
    low = 0
    for other in range(first.size):
        if mask >> other & 1 and stop[other] > first[other]:
            low = max(low, clock.place_after[field.places[stop[other] - 1]])
    return low


@njit(cache=True, nogil=True)
def high_limit(field: Field, clock: Clock, mask: int, first: Int64, stop: Int64) -> int:
    """The first place that is no longer before all groups of the mask."""
    high = clock.place_after.size
    for other in range(first.size):
        if mask >> other & 1 and stop[other] > first[other]:
            high = min(high, clock.place_since[field.places[first[other]]])
    return high


@njit(cache=True, nogil=True)
def fits_order(
    field: Field, rules: Rules, clock: Clock, order: int, match: int, left_out: int, first: Int64, stop: Int64
) -> bool:
    """Whether all groups but one are as another order of AND asks for."""
    for group in range(first.size):
        if group == left_out or stop[group] == first[group]:
            continue
        begin, end = field.start[order, group, match], field.stop[order, group, match]
        earliest, latest = field.places[first[group]], field.places[stop[group] - 1]
        if begin == end or earliest < field.places[begin] or latest > field.places[end - 1]:
            return False
        mask = rules.preceding[order, group] & ~(1 << left_out)
        if earliest < low_limit(field, clock, mask, first, stop):
            return False
    return True


@njit(cache=True, nogil=True)
def can_begin(
    field: Field, rules: Rules, clock: Clock, match: int, group: int, first: Int64, stop: Int64, start: int, end: int
) -> bool:
    """Whether an empty group could have an element, in any order of AND; the match spans places `start` to `end`."""
    for order in range(rules.preceding.shape[0]):
        if not fits_order(field, rules, clock, order, match, group, first, stop):
            continue
        low = max(low_limit(field, clock, rules.preceding[order, group], first, stop), clock.window_low[end])
        high = high_limit(field, clock, rules.following[order, group], first, stop)
        high = min(high, clock.window_high[start] + 1)
        if rules.keeps_end:
            high = min(high, clock.place_after[end])
        begin, last = field.start[order, group, match], field.stop[order, group, match]
        entry = first_from(field.places, begin, last, low)
        while entry < last and field.places[entry] < high:
            place = field.places[entry]
            if together(clock, min(place, start), max(place, end)):
                return True
            entry += 1
    return False


@njit(cache=True, nogil=True)
def can_grow(
    field: Field,
    rules: Rules,
    clock: Clock,
    order: int,
    match: int,
    first: Int64,
    stop: Int64,
    start: int,
    end: int,
) -> bool:
    """Whether some element can be added to an assignment that spans places `start` to `end`."""
    for group in range(first.size):
        if stop[group] == first[group]:
            if can_begin(field, rules, clock, match, group, first, stop, start, end):
                return True
            continue
        if first[group] > field.start[order, group, match]:
            place = field.places[first[group] - 1]
            low = low_limit(field, clock, rules.preceding[order, group], first, stop)
            if place >= low and together(clock, min(place, start), end):
                return True
        if stop[group] < field.stop[order, group, match]:
            place = field.places[stop[group]]
            high = high_limit(field, clock, rules.following[order, group], first, stop)
            if rules.keeps_end:
                high = min(high, clock.place_after[end])
            if place < high and together(clock, start, max(place, end)):
                return True
    return False


@njit(cache=True, nogil=True)
def bound_groups(first: Int64, stop: Int64) -> int:
    """The groups that are not empty."""
    bound = 0
    for group in range(first.size):
        if stop[group] > first[group]:
            bound |= 1 << group
    return bound


@njit(cache=True, nogil=True)
def is_apt(rules: Rules, fixed: Fixed, order: int, match: int, bound: int) -> bool:
    """Whether these groups may be the ones that are not empty.

    Of an AND one operand of which binds nothing both orders are the same: the other order does not report it again.
    """
    for number in range(rules.swapped.shape[1]):
        side = rules.swapped[order, number]
        if side[LEFT_SINGLE] < 0:
            continue
        if side[LEFT_SINGLE] + (side[LEFT] & bound) == 0 or side[RIGHT_SINGLE] + (side[RIGHT] & bound) == 0:
            return False
    for key in range(fixed.some.shape[0]):
        if fixed.some[key, match] != 0 and fixed.some[key, match] & bound == 0:
            return False
    return True
