"""Elements of `+` and `*` variables in, their groups out: for each match so far the assignments that may be matches.

A group is a range of its variable's elements. Order and window are the only rules between groups, and what obeys them
still does when an element is taken away; so an assignment is as large as it can be exactly if no single element can
be added to it. That is tested at its ends, without comparing assignments.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.physical.groups import Groups
from streamsift.runtime.elements import first_from
from streamsift.runtime.group_stream import Clock
from streamsift.runtime.kernels import Bool, Int32, Int64

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


def rules_of(groups: Groups) -> Rules:
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


@njit(cache=True, nogil=True)
def possible_ends(field: Field, order: int, match: int, fixed_last: int) -> Int32:
    """The places at which an assignment may end: the last bound event's, and those of later elements. Ascending."""
    total = 1
    for group in range(field.start.shape[1]):
        total += field.stop[order, group, match] - field.start[order, group, match]
    ends = np.empty(total, np.int32)
    count = 0
    if fixed_last >= 0:
        ends[0] = fixed_last
        count = 1
    for group in range(field.start.shape[1]):
        for entry in range(field.start[order, group, match], field.stop[order, group, match]):
            if field.places[entry] > fixed_last:
                ends[count] = field.places[entry]
                count += 1
    return np.unique(ends[:count])


@njit(cache=True, nogil=True)
def open_range(
    field: Field, rules: Rules, clock: Clock, order: int, match: int, group: int, end: int, first: Int64, stop: Int64
) -> tuple[int, int]:
    """The elements that a group may have after the groups before it, in a match that ends at `end` (-1: anywhere)."""
    begin, last = field.start[order, group, match], field.stop[order, group, match]
    low = low_limit(field, clock, rules.preceding[order, group], first, stop)
    if end >= 0:
        low = max(low, clock.window_low[end])
        last = first_from(field.places, begin, last, end + 1)
    begin = first_from(field.places, begin, last, low)
    if end >= 0 and clock.length > 0:
        while begin < last and clock.positions[end] - clock.positions[field.places[begin]] >= clock.length:
            begin += 1
    return begin, last


@njit(cache=True, nogil=True)
def grown(field: Field, rules: Rules, fixed: Fixed, clock: Clock) -> tuple[Int64, Int64, Int64]:
    """The assignments of each match: (the match [r], where each group starts [growing, r], where it stops).

    Depth first over the growing variables, each after those before it. A group starts with the first element that is
    open to it, and stops with the last one, or with every one in turn if another group comes after it.
    """
    orders, count, matches = field.start.shape
    capacity = max(16, matches)
    origins = np.empty(capacity, np.int64)
    firsts, stops = np.empty((count, capacity), np.int64), np.empty((count, capacity), np.int64)
    found = 0
    first, stop = np.zeros(count, np.int64), np.zeros(count, np.int64)
    begin, last = np.zeros(count, np.int64), np.zeros(count, np.int64)
    anywhere = np.full(1, -1, np.int32)
    for match in range(matches):
        for order in range(orders):
            ends = anywhere
            if rules.by_end:
                ends = possible_ends(field, order, match, fixed.last[match])
            for end in ends:
                first[:] = 0
                stop[:] = 0
                depth, fresh = 0, True
                while depth >= 0:
                    if depth == count:
                        start_place, end_place = span(field, fixed, match, first, stop)
                        if accepts(field, rules, fixed, clock, order, match, end, start_place, end_place, first, stop):
                            if found == capacity:
                                origins = np.concatenate((origins, origins))
                                firsts = np.concatenate((firsts, firsts), axis=1)
                                stops = np.concatenate((stops, stops), axis=1)
                                capacity *= 2
                            origins[found] = match
                            for group in range(count):
                                firsts[group, found] = first[group]
                                stops[group, found] = stop[group]
                            found += 1
                        depth -= 1
                        fresh = False
                        continue
                    group = rules.sequence[order, depth]
                    taken = False
                    if fresh:
                        first[group] = 0
                        stop[group] = 0
                        begin[group], last[group] = open_range(
                            field, rules, clock, order, match, group, end, first, stop
                        )
                        if fixed.closed[group, match]:
                            last[group] = begin[group]
                        if rules.may_be_empty[group]:
                            taken = True
                    if not taken:
                        taken = next_extent(rules, order, group, begin, last, first, stop)
                    if taken:
                        depth += 1
                        fresh = True
                    else:
                        first[group] = 0
                        stop[group] = 0
                        depth -= 1
                        fresh = False
    return origins[:found], firsts[:, :found], stops[:, :found]


@njit(cache=True, nogil=True)
def next_extent(rules: Rules, order: int, group: int, begin: Int64, last: Int64, first: Int64, stop: Int64) -> bool:
    """The next range of the open elements [begin, last); false if there is none left."""
    if begin[group] == last[group]:
        return False
    is_first = stop[group] == first[group]
    if rules.extents:
        if is_first:
            first[group], stop[group] = begin[group], begin[group] + 1
        elif stop[group] < last[group]:
            stop[group] += 1
        else:
            first[group] += 1
            stop[group] = first[group] + 1
        return first[group] < last[group]
    if rules.following[order, group] == 0:
        first[group], stop[group] = begin[group], last[group]
        return is_first
    first[group] = begin[group]
    stop[group] = begin[group] + 1 if is_first else stop[group] + 1
    return stop[group] <= last[group]


@njit(cache=True, nogil=True)
def span(field: Field, fixed: Fixed, match: int, first: Int64, stop: Int64) -> tuple[int, int]:
    """The places of the earliest and the latest event; (-1, -1) if there is none."""
    start, end = fixed.first[match], fixed.last[match]
    for group in range(first.size):
        if stop[group] > first[group]:
            earliest, latest = field.places[first[group]], field.places[stop[group] - 1]
            start = earliest if start < 0 else min(start, earliest)
            end = max(end, latest)
    return start, end


@njit(cache=True, nogil=True)
def accepts(
    field: Field,
    rules: Rules,
    fixed: Fixed,
    clock: Clock,
    order: int,
    match: int,
    end: int,
    start_place: int,
    end_place: int,
    first: Int64,
    stop: Int64,
) -> bool:
    """Whether an assignment is one to report: it binds an event, ends where it should, and cannot grow."""
    if start_place < 0 or (end >= 0 and end_place != end):
        return False
    if not is_apt(rules, fixed, order, match, bound_groups(first, stop)):
        return False
    if rules.extents:
        return together(clock, start_place, end_place)
    return not can_grow(field, rules, clock, order, match, first, stop, start_place, end_place)
