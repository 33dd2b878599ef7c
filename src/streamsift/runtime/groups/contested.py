"""Elements that two groups may want in, the assignments of single elements out.

Where nothing orders two `+` or `*` variables and a row may be of both classes, each of its events goes to one of them:
every way to share them is an assignment of its own.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Int32, Int64
from streamsift.runtime.arrays.searching import first_from
from streamsift.runtime.groups.growing import assignment_bytes, open_range, possible_ends
from streamsift.runtime.groups.rules import Field, Fixed, Rules, is_apt, together
from streamsift.runtime.groups.stream import Clock

NOBODY = -1


@njit(cache=True, nogil=True)
def has_element(field: Field, order: int, match: int, group: int, place: int) -> bool:
    begin, end = field.start[order, group, match], field.stop[order, group, match]
    entry = first_from(field.places, begin, end, place)
    return entry < end and field.places[entry] == place


@njit(cache=True, nogil=True)
def fits(clock: Clock, preceding: int, following: int, place: int, first: Int32, last: Int32) -> bool:
    """Whether a place is after all groups that precede it and before all that follow. Empty groups have first -1."""
    for group in range(first.size):
        if first[group] < 0:
            continue
        if preceding >> group & 1 and place < clock.place_after[last[group]]:
            return False
        if following >> group & 1 and place >= clock.place_since[first[group]]:
            return False
    return True


@njit(cache=True, nogil=True)
def suits(
    field: Field,
    rules: Rules,
    clock: Clock,
    order: int,
    match: int,
    open_: Int32,
    owner: Int64,
    first: Int32,
    last: Int32,
) -> bool:
    """Whether an assignment is one of this order of AND too."""
    for group in range(first.size):
        if first[group] >= 0:
            preceding = rules.preceding[order, group]
            if not fits(clock, preceding, 0, first[group], first, last):
                return False
    for number in range(open_.size):
        if owner[number] >= 0 and not has_element(field, order, match, owner[number], open_[number]):
            return False
    return True


@njit(cache=True, nogil=True)
def can_take(
    field: Field,
    rules: Rules,
    clock: Clock,
    match: int,
    open_: Int32,
    owner: Int64,
    first: Int32,
    last: Int32,
    start: int,
    end: int,
) -> bool:
    """Whether some element that nobody has can be added to an assignment that spans `start` to `end`."""
    for order in range(rules.preceding.shape[0]):
        if not suits(field, rules, clock, order, match, open_, owner, first, last):
            continue
        for group in range(first.size):
            for entry in range(field.start[order, group, match], field.stop[order, group, match]):
                place = field.places[entry]
                number = first_from(open_, 0, open_.size, place)
                if number < open_.size and open_[number] == place and owner[number] >= 0:
                    continue
                if rules.keeps_end and place >= clock.place_after[end]:
                    continue
                preceding, following = rules.preceding[order, group], rules.following[order, group]
                if fits(clock, preceding, following, place, first, last) and together(
                    clock, min(place, start), max(place, end)
                ):
                    return True
    return False


@njit(cache=True, nogil=True)
def open_places(field: Field, rules: Rules, clock: Clock, order: int, match: int, end: int, none: Int64) -> Int32:
    """The places of all elements that a match with this end may have, ascending."""
    total = 0
    for group in range(none.size):
        total += field.stop[order, group, match] - field.start[order, group, match]
    places = np.empty(total, np.int32)
    count = 0
    for group in range(none.size):
        begin, last = open_range(field, rules, clock, order, match, group, end, none, none)
        for entry in range(begin, last):
            places[count] = field.places[entry]
            count += 1
    return np.unique(places[:count])


@njit(cache=True, nogil=True)
def shared_out(
    field: Field, rules: Rules, fixed: Fixed, clock: Clock, anchors: Int64, begin_at: int, enough: int, most_bytes: int
) -> tuple[int, Int64, Int32, Int64, Int64]:
    """The assignments of each match: (the next match, the match [r], places of the elements, where each group starts
    in them [growing, r], where it stops). Depth first over the elements: each goes to a group, or to nobody where it
    may be in the way of others. Begins and ends as `grown` does.
    """
    orders, count, matches = field.start.shape
    none = np.zeros(count, np.int64)
    anywhere = np.full(1, -1, np.int32)
    first, last = np.full(count, -1, np.int32), np.full(count, -1, np.int32)
    capacity, room = 16, 64
    origins = np.empty(capacity, np.int64)
    firsts, stops = np.empty((count, capacity), np.int64), np.empty((count, capacity), np.int64)
    places = np.empty(room, np.int32)
    found, used = 0, 0
    for match in range(begin_at, matches):
        if found >= enough and anchors[match] != anchors[match - 1]:
            return match, origins[:found], places[:used], firsts[:, :found], stops[:, :found]
        for order in range(orders):
            leaves_out = rules.extents or rules.preceding[order].any()
            ends = anywhere
            if rules.by_end:
                ends = possible_ends(field, order, match, fixed.last[match])
            for last_place in ends:
                end = int(last_place)
                open_ = open_places(field, rules, clock, order, match, end, none)
                owner = np.full(open_.size, NOBODY - 1, np.int64)
                before = np.full(open_.size, -1, np.int32)
                first[:] = -1
                last[:] = -1
                depth = 0
                while depth >= 0:
                    if depth == open_.size:
                        if is_complete(field, rules, fixed, clock, order, match, end, open_, owner, first, last):
                            if found * assignment_bytes(count) + 3 * 4 * (used + open_.size) > most_bytes:
                                return -1, origins[:0], places[:0], firsts[:, :0], stops[:, :0]
                            while used + open_.size > room:
                                places = np.concatenate((places, places))
                                room *= 2
                            if found == capacity:
                                origins = np.concatenate((origins, origins))
                                firsts = np.concatenate((firsts, firsts), axis=1)
                                stops = np.concatenate((stops, stops), axis=1)
                                capacity *= 2
                            origins[found] = match
                            for group in range(count):
                                firsts[group, found] = used
                                for number in range(open_.size):
                                    if owner[number] == group:
                                        places[used] = open_[number]
                                        used += 1
                                stops[group, found] = used
                            found += 1
                        depth -= 1
                        continue
                    place = open_[depth]
                    group = owner[depth]
                    if group >= 0:  # take it back
                        if first[group] == place:
                            first[group] = -1
                        last[group] = before[depth]
                    group += 1
                    if (
                        group == NOBODY
                        and not leaves_out
                        and is_wanted(field, rules, fixed, clock, order, match, place, first, last)
                    ):
                        group += 1
                    while 0 <= group < count and not may_have(
                        field, rules, fixed, clock, order, match, group, place, first, last
                    ):
                        group += 1
                    if group >= count:
                        owner[depth] = NOBODY - 1
                        depth -= 1
                        continue
                    owner[depth] = group
                    if group >= 0:
                        before[depth] = last[group]
                        last[group] = place
                        if first[group] < 0:
                            first[group] = place
                    depth += 1
    return matches, origins[:found], places[:used], firsts[:, :found], stops[:, :found]


@njit(cache=True, nogil=True)
def may_have(
    field: Field,
    rules: Rules,
    fixed: Fixed,
    clock: Clock,
    order: int,
    match: int,
    group: int,
    place: int,
    first: Int32,
    last: Int32,
) -> bool:
    if fixed.closed[group, match] or not has_element(field, order, match, group, place):
        return False
    return fits(clock, rules.preceding[order, group], rules.following[order, group], place, first, last)


@njit(cache=True, nogil=True)
def is_wanted(
    field: Field,
    rules: Rules,
    fixed: Fixed,
    clock: Clock,
    order: int,
    match: int,
    place: int,
    first: Int32,
    last: Int32,
) -> bool:
    for group in range(first.size):
        if may_have(field, rules, fixed, clock, order, match, group, place, first, last):
            return True
    return False


@njit(cache=True, nogil=True)
def is_complete(
    field: Field,
    rules: Rules,
    fixed: Fixed,
    clock: Clock,
    order: int,
    match: int,
    end: int,
    open_: Int32,
    owner: Int64,
    first: Int32,
    last: Int32,
) -> bool:
    """Whether an assignment is one to report: no group lacks an element, it ends where it should, and cannot grow."""
    bound = 0
    start_place, end_place = fixed.first[match], fixed.last[match]
    for group in range(first.size):
        if first[group] >= 0:
            bound |= 1 << group
            start_place = first[group] if start_place < 0 else min(start_place, first[group])
            end_place = max(end_place, last[group])
        elif not rules.may_be_empty[group]:
            return False
    if start_place < 0 or (end >= 0 and end_place != end) or not is_apt(rules, fixed, order, match, bound):
        return False
    if not together(clock, start_place, end_place):
        return False
    return rules.extents or not can_take(field, rules, clock, match, open_, owner, first, last, start_place, end_place)
