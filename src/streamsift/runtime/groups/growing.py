"""Elements of `+` and `*` variables in, their groups out: for each match so far the assignments that may be matches.

A group is a range of its variable's elements. Order and window are the only rules between groups, and what obeys them
still does when an element is taken away; so an assignment is as large as it can be exactly if no single element can
be added to it. That is tested at its ends, without comparing assignments.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Int32, Int64
from streamsift.runtime.arrays.searching import first_from
from streamsift.runtime.groups.rules import Field, Fixed, Rules, bound_groups, can_grow, is_apt, low_limit, together
from streamsift.runtime.groups.stream import Clock


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
def assignment_bytes(groups: int) -> int:
    """What an assignment takes: its numbers, and copies of them while arrays grow and are put in order."""
    return 6 * 8 * (1 + 2 * groups)


@njit(cache=True, nogil=True)
def grown(
    field: Field, rules: Rules, fixed: Fixed, clock: Clock, anchors: Int64, begin_at: int, enough: int, most_bytes: int
) -> tuple[int, Int64, Int64, Int64]:
    """The assignments of each match: (the next match, the match [r], where each group starts [growing, r], and stops).

    Depth first over the growing variables, each after those before it. A group starts with the first element that is
    open to it, and stops with the last one, or with every one in turn if another group comes after it.

    Begins with match `begin_at` and ends with one that leaves `enough` assignments, when all that have the same anchor
    [matches] are there; anchors ascend. The next match is -1 if they would take more than `most_bytes`.
    """
    orders, count, matches = field.start.shape
    capacity = max(16, min(matches - begin_at, enough))
    most = most_bytes // assignment_bytes(count)
    origins = np.empty(capacity, np.int64)
    firsts, stops = np.empty((count, capacity), np.int64), np.empty((count, capacity), np.int64)
    found = 0
    first, stop = np.zeros(count, np.int64), np.zeros(count, np.int64)
    begin, last = np.zeros(count, np.int64), np.zeros(count, np.int64)
    anywhere = np.full(1, -1, np.int32)
    for match in range(begin_at, matches):
        if found >= enough and anchors[match] != anchors[match - 1]:
            return match, origins[:found], firsts[:, :found], stops[:, :found]
        for order in range(orders):
            ends = anywhere
            if rules.by_end:
                ends = possible_ends(field, order, match, fixed.last[match])
            for last_place in ends:
                end = int(last_place)
                first[:] = 0
                stop[:] = 0
                depth, fresh = 0, True
                while depth >= 0:
                    if depth == count:
                        start_place, end_place = span(field, fixed, match, first, stop)
                        if accepts(field, rules, fixed, clock, order, match, end, start_place, end_place, first, stop):
                            if found >= most:
                                return -1, origins[:0], firsts[:, :0], stops[:, :0]
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
    return matches, origins[:found], firsts[:, :found], stops[:, :found]


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
