"""Build the maximal groups of `+` and `*` variables as ranges of their elements.

Order and window are the only rules between groups, and an assignment that satisfies them still does when an element is
removed. An assignment is therefore maximal exactly if no single element can be added to it. This is tested at the ends
of its groups, without comparing assignments. Only assignments that a negation may forbid are compared afterwards.

A table of assignments has one row per assignment: the match, the start of each group, the end of each group.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from streamsift.runtime.arrays.comparing import first_from
from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64
from streamsift.runtime.arrays.growing import grown
from streamsift.runtime.groups.problem import GroupRules, Problem
from streamsift.runtime.groups.rules import can_grow, low_limit, valid_span


@njit(cache=True, nogil=True, inline="always")
def open_range(problem: Problem, order: int, match: int, group: int, end: int, latest: Int32) -> tuple[int, int]:
    """Return the possible elements of a group after the preceding groups, if the match ends at `end` (-1: anywhere)."""
    begin, last = problem.start[order, group, match], problem.stop[order, group, match]
    low = low_limit(problem, order, group, latest)
    if end >= 0:
        low = max(low, problem.reach.window_low[end])
        last = first_from(problem.places, begin, last, end + 1)
    return first_from(problem.places, begin, last, low), last


@njit(cache=True, nogil=True)
def open_places(problem: Problem, order: int, match: int, end: int, none: Int32) -> Int32:
    """Return the places of all possible elements of a match with this end, ascending; `none` is an empty `latest`."""
    places = np.empty(0, np.int32)
    for group in range(none.size):
        begin, last = open_range(problem, order, match, group, end, none)
        places = np.concatenate((places, problem.places[begin:last]))
    return np.unique(places)


@njit(cache=True, nogil=True)
def possible_ends(problem: Problem, order: int, match: int, none: Int32) -> Int32:
    """Return the places at which an assignment can end, ascending; only -1 if the end is irrelevant."""
    last = problem.last[match : match + 1]
    if not problem.rules.by_end:
        return np.full(1, -1, np.int32)
    places = open_places(problem, order, match, -1, none)
    later = places[first_from(places, 0, places.size, last[0] + 1) :]
    return later if last[0] < 0 else np.concatenate((last, later))


@njit(cache=True, nogil=True)
def assignment_bytes(groups: int) -> int:
    """Return the memory of an assignment in bytes, including copies while tables grow and are sorted."""
    return 6 * 8 * (1 + 2 * groups)


@njit(cache=True, nogil=True)
def range_assignments(problem: Problem, begin_at: int, enough: int, most_bytes: int) -> tuple[int, Int64]:
    """Return the next match and a table of assignments, from match `begin_at` on.

    Search depth first over the groups in topological order. A group starts with its first possible element. It ends
    with the last one, or with each one in turn if another group must follow.
    Stop after `enough` assignments, once all assignments of the same origin are complete. The next match is -1 if they
    would take more than `most_bytes`.
    """
    orders, count, matches = problem.start.shape
    most = most_bytes // assignment_bytes(count)
    table = np.empty((max(16, min(matches - begin_at, enough)), 1 + 2 * count), np.int64)
    rows = 0
    first, stop = np.zeros(count, np.int64), np.zeros(count, np.int64)
    earliest, latest = np.full(count, -1, np.int32), np.full(count, -1, np.int32)
    begin, last = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for match in range(begin_at, matches):
        if rows >= enough and problem.origins[match] != problem.origins[match - 1]:
            return match, table[:rows]
        for order in range(orders):
            for last_place in possible_ends(problem, order, match, latest):
                end = int(last_place)
                depth, is_new = 0, True
                while depth >= 0:
                    if depth == count:
                        span = valid_span(problem, order, match, end, earliest, latest)
                        if span[0] >= 0 and (
                            problem.rules.extents
                            or not can_grow(problem, order, match, first, stop, earliest, latest, span)
                        ):
                            if rows >= most:
                                return -1, table[:0]
                            if rows == table.shape[0]:
                                table = grown(table)
                            table[rows, 0] = match
                            for group in range(count):
                                table[rows, 1 + group] = first[group]
                                table[rows, 1 + count + group] = stop[group]
                            rows += 1
                        depth -= 1
                        is_new = False
                        continue
                    group = problem.rules.sequence[order, depth]
                    taken = False
                    if is_new:
                        begin[group], last[group] = open_range(problem, order, match, group, end, latest)
                        if problem.closed[group, match]:
                            last[group] = begin[group]
                        taken = problem.rules.may_be_empty[group]
                    if not taken:
                        taken = next_extent(problem.rules, order, group, begin, last, first, stop)
                        if not taken:
                            first[group] = stop[group] = 0
                        earliest[group] = problem.places[first[group]] if taken else -1
                        latest[group] = problem.places[stop[group] - 1] if taken else -1
                    depth += 1 if taken else -1
                    is_new = taken
    return matches, table[:rows]


@njit(cache=True, nogil=True, inline="always")
def next_extent(
    rules: GroupRules, order: int, group: int, begin: Int64, last: Int64, first: Int64, stop: Int64
) -> bool:
    """Set the next range of the possible elements [begin, last); return False if there is none left."""
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
def holds_all(places: Int32, first: int, stop: int, other_first: int, other_stop: int) -> bool:
    """Return True if this range contains every place of the other range; both ascend."""
    if other_stop - other_first > stop - first:
        return False
    while other_first < other_stop:
        while first < stop and places[first] < places[other_first]:
            first += 1
        if first == stop or places[first] != places[other_first]:
            return False
        other_first += 1
    return True


@njit(cache=True, nogil=True)
def are_maximal(origins: Int64, ends: Int32, places: Int32, first: Int64, stop: Int64) -> Bool:
    """Return a mask of the assignments that no other one with the same origin and end contains; origins ascend."""
    kept = np.ones(origins.size, np.bool_)
    begin = 0
    for one in range(origins.size):
        if origins[one] != origins[begin]:
            begin = one
        other = begin
        while kept[one] and other < origins.size and origins[other] == origins[one]:
            if other != one and ends[other] == ends[one]:
                contains, larger = True, False
                for group in range(first.shape[0]):
                    size, others = stop[group, one] - first[group, one], stop[group, other] - first[group, other]
                    larger = larger or others > size
                    contains = contains and holds_all(
                        places, first[group, other], stop[group, other], first[group, one], stop[group, one]
                    )
                kept[one] = not (contains and larger)
            other += 1
    return kept
