"""Build maximal groups element by element, for `+` or `*` variables that can bind the same event.

If two variables are unordered and a row can belong to both classes, every way to divide such events between them is an
assignment.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from streamsift.runtime.arrays.comparing import first_from
from streamsift.runtime.arrays.dtypes import Int32, Int64
from streamsift.runtime.arrays.growing import grown
from streamsift.runtime.groups.growing import assignment_bytes, open_places, possible_ends
from streamsift.runtime.groups.problem import Problem
from streamsift.runtime.groups.rules import fits_order, high_limit, low_limit, valid_span

NOBODY = -1


@njit(cache=True, nogil=True)
def may_have(problem: Problem, order: int, match: int, group: int, place: int, earliest: Int32, latest: Int32) -> bool:
    """Return True if a place is a possible element of a group and can be added to it."""
    begin, end = problem.start[order, group, match], problem.stop[order, group, match]
    entry = first_from(problem.places, begin, end, place)
    if problem.closed[group, match] or entry == end or problem.places[entry] != place:
        return False
    return low_limit(problem, order, group, latest) <= place < high_limit(problem, order, group, earliest)


@njit(cache=True, nogil=True)
def can_take(
    problem: Problem, match: int, open_: Int32, owner: Int64, earliest: Int32, latest: Int32, span: tuple[int, int]
) -> bool:
    """Return True if an element that belongs to no group can be added to an assignment with this span."""
    start, end = span
    for order in range(problem.start.shape[0]):
        if not fits_order(problem, order, match, earliest, latest):
            continue
        for group in range(earliest.size):
            low, high = low_limit(problem, order, group, latest), high_limit(problem, order, group, earliest)
            for entry in range(problem.start[order, group, match], problem.stop[order, group, match]):
                place = problem.places[entry]
                number = first_from(open_, 0, open_.size, place)
                if number < open_.size and open_[number] == place and owner[number] >= 0:
                    continue
                if problem.rules.keeps_end and place >= problem.reach.place_after[end]:
                    continue
                if low <= place < high and max(place, end) <= problem.reach.window_high[min(place, start)]:
                    return True
    return False


@njit(cache=True, nogil=True)
def element_assignments(problem: Problem, begin_at: int, enough: int, most_bytes: int) -> tuple[int, Int64, Int32]:
    """Return the next match, a table of assignments, and the places that their ranges refer to.

    Search depth first over the elements: each joins a group, or none if it might exclude other elements. The arguments
    are those of `range_assignments`. This is one function because its table and places grow during the search.
    """
    orders, count, matches = problem.start.shape
    earliest, latest = np.full(count, -1, np.int32), np.full(count, -1, np.int32)
    table, places = np.empty((16, 1 + 2 * count), np.int64), np.empty(64, np.int32)
    rows, used = 0, 0
    for match in range(begin_at, matches):
        if rows >= enough and problem.origins[match] != problem.origins[match - 1]:
            return match, table[:rows], places[:used]
        for order in range(orders):
            may_skip = problem.rules.extents or problem.rules.preceding[order].any()
            earliest[:] = -1
            latest[:] = -1
            for last_place in possible_ends(problem, order, match, latest):
                end = int(last_place)
                open_ = open_places(problem, order, match, end, latest)
                owner = np.full(open_.size, NOBODY - 1, np.int64)
                before = np.full(open_.size, -1, np.int32)
                depth = 0
                while depth >= 0:
                    if depth == open_.size:
                        span = valid_span(problem, order, match, end, earliest, latest)
                        if span[0] >= 0 and (
                            problem.rules.extents or not can_take(problem, match, open_, owner, earliest, latest, span)
                        ):
                            if rows * assignment_bytes(count) + 3 * 4 * (used + open_.size) > most_bytes:
                                return -1, table[:0], places[:0]
                            while used + open_.size > places.size:
                                places = grown(places)
                            if rows == table.shape[0]:
                                table = grown(table)
                            table[rows, 0] = match
                            for group in range(count):
                                table[rows, 1 + group] = used
                                for number in range(open_.size):
                                    if owner[number] == group:
                                        places[used] = open_[number]
                                        used += 1
                                table[rows, 1 + count + group] = used
                            rows += 1
                        depth -= 1
                        continue
                    place = open_[depth]
                    group = owner[depth]
                    if group >= 0:  # remove it from its group
                        if earliest[group] == place:
                            earliest[group] = -1
                        latest[group] = before[depth]
                    group += 1
                    if group == NOBODY and not may_skip:
                        for other in range(count):
                            if may_have(problem, order, match, other, place, earliest, latest):
                                group = 0
                                break
                    while 0 <= group < count and not may_have(problem, order, match, group, place, earliest, latest):
                        group += 1
                    if group >= count:
                        owner[depth] = NOBODY - 1
                        depth -= 1
                        continue
                    owner[depth] = group
                    if group >= 0:
                        before[depth] = latest[group]
                        latest[group] = place
                        if earliest[group] < 0:
                            earliest[group] = place
                    depth += 1
    return matches, table[:rows], places[:used]
