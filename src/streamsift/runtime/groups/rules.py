"""Test assignments of elements to maximal groups: order, window, and whether an element can be added.

An assignment is given by the places `earliest` and `latest` [groups] of each group's first and last element, -1 for an
empty group. A match is a column of the problem.
"""

from __future__ import annotations

from numba import njit

from streamsift.runtime.arrays.comparing import first_from
from streamsift.runtime.arrays.dtypes import Int32, Int64
from streamsift.runtime.groups.problem import LEFT, LEFT_SINGLE, RIGHT, RIGHT_SINGLE, Problem


@njit(cache=True, nogil=True, inline="always")
def low_limit(problem: Problem, order: int, group: int, latest: Int32) -> int:
    """Return the first place after all groups that must precede this one."""
    preceding, low = problem.rules.preceding[order, group], 0
    for other in range(latest.size):
        if preceding >> other & 1 and latest[other] >= 0:
            low = max(low, problem.reach.place_after[latest[other]])
    return low


@njit(cache=True, nogil=True, inline="always")
def high_limit(problem: Problem, order: int, group: int, earliest: Int32) -> int:
    """Return the end of the places before all groups that must follow this one."""
    following, high = problem.rules.following[order, group], problem.reach.place_after.size
    for other in range(earliest.size):
        if following >> other & 1 and earliest[other] >= 0:
            high = min(high, problem.reach.place_since[earliest[other]])
    return high


@njit(cache=True, nogil=True, inline="always")
def valid_span(problem: Problem, order: int, match: int, end: int, earliest: Int32, latest: Int32) -> tuple[int, int]:
    """Return the places of the first and last event; (-1, -1) if invalid, or not ending at `end` (-1: anywhere)."""
    bound, start_place, end_place = 0, int(problem.first[match]), int(problem.last[match])
    for group in range(earliest.size):
        if earliest[group] >= 0:
            bound |= 1 << group
            start_place = earliest[group] if start_place < 0 else min(start_place, earliest[group])
            end_place = max(end_place, latest[group])
        elif not problem.rules.may_be_empty[group]:
            return -1, -1
    if start_place < 0 or (end >= 0 and end_place != end) or not may_be_bound(problem, order, match, bound):
        return -1, -1
    if end_place > problem.reach.window_high[start_place]:
        return -1, -1
    return start_place, end_place


@njit(cache=True, nogil=True, inline="always")
def may_be_bound(problem: Problem, order: int, match: int, bound: int) -> bool:
    """Return True if exactly these groups may be non-empty.

    If an operand of AND binds nothing, both orders of the AND are the same; only one of them reports the match.
    """
    for number in range(problem.rules.swapped.shape[1]):
        side = problem.rules.swapped[order, number]
        if side[LEFT_SINGLE] < 0:
            continue
        if side[LEFT_SINGLE] + (side[LEFT] & bound) == 0 or side[RIGHT_SINGLE] + (side[RIGHT] & bound) == 0:
            return False
    for key in range(problem.some.shape[0]):
        if problem.some[key, match] != 0 and problem.some[key, match] & bound == 0:
            return False
    return True


@njit(cache=True, nogil=True, inline="always")
def fits_order(problem: Problem, order: int, match: int, earliest: Int32, latest: Int32) -> bool:
    """Return True if the groups satisfy this order of AND.

    Orders differ in where the elements of a group may lie, not in which events can be elements.
    """
    for group in range(earliest.size):
        if earliest[group] >= 0:
            begin, end = problem.start[order, group, match], problem.stop[order, group, match]
            if begin == end or earliest[group] < problem.places[begin] or latest[group] > problem.places[end - 1]:
                return False
            if earliest[group] < low_limit(problem, order, group, latest):
                return False
    return True


@njit(cache=True, nogil=True)
def can_begin(problem: Problem, match: int, group: int, earliest: Int32, latest: Int32, span: tuple[int, int]) -> bool:
    """Return True if an element can be added to an empty group of an assignment with this span, in any order of AND."""
    start, end = span
    for order in range(problem.start.shape[0]):
        if not fits_order(problem, order, match, earliest, latest):
            continue
        low = max(low_limit(problem, order, group, latest), problem.reach.window_low[end])
        high = min(high_limit(problem, order, group, earliest), problem.reach.window_high[start] + 1)
        if problem.rules.keeps_end:
            high = min(high, problem.reach.place_after[end])
        last = problem.stop[order, group, match]
        entry = first_from(problem.places, problem.start[order, group, match], last, low)
        while entry < last and problem.places[entry] < high:
            place = problem.places[entry]
            if max(place, end) <= problem.reach.window_high[min(place, start)]:
                return True
            entry += 1
    return False


@njit(cache=True, nogil=True)
def can_grow(
    problem: Problem,
    order: int,
    match: int,
    first: Int64,
    stop: Int64,
    earliest: Int32,
    latest: Int32,
    span: tuple[int, int],
) -> bool:
    """Return True if an element can be added to an assignment of ranges places[first:stop] with this span."""
    start, end = span
    for group in range(first.size):
        if stop[group] == first[group]:
            if can_begin(problem, match, group, earliest, latest, span):
                return True
            continue
        if first[group] > problem.start[order, group, match]:
            place = problem.places[first[group] - 1]
            low = low_limit(problem, order, group, latest)
            if place >= low and end <= problem.reach.window_high[min(place, start)]:
                return True
        if stop[group] < problem.stop[order, group, match]:
            place = problem.places[stop[group]]
            high = high_limit(problem, order, group, earliest)
            if problem.rules.keeps_end:
                high = min(high, problem.reach.place_after[end])
            if place < high and max(place, end) <= problem.reach.window_high[start]:
                return True
    return False
