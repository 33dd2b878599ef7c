"""Paths of kinds with their scores in, the first matches of the best of them out, in the order of the ranking.

Contract: the matches of a kind path come out by the first level of ties of all their events, then by the next, as
`best.in_order` sorts them; tests/runtime/paths/test_kind_matches.py compares both.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Int32, Int64
from streamsift.runtime.arrays.growing import grown, longer
from streamsift.runtime.paths.graph import Graph
from streamsift.runtime.paths.heap import heap_pop, heap_push
from streamsift.runtime.paths.kinds import Kinds


@njit(cache=True, nogil=True)
def member_above(values: Int32, members: Int32, start: int, stop: int, bound: int) -> int:
    """The first of the members [start, stop) whose value is above a bound; values rise."""
    while start < stop:
        middle = (start + stop) >> 1
        if values[members[middle]] > bound:
            stop = middle
        else:
            start = middle + 1
    return start


@njit(cache=True, nogil=True)
def earliest(rank: Int32, members: Int32, spans: Int64, found: Int64) -> bool:
    """Fills found [L] with the earliest members of the spans [L, 2] that follow each other, if any do."""
    last = -1
    for step in range(found.size):
        found[step] = member_above(rank, members, spans[step, 0], spans[step, 1], last)
        if found[step] == spans[step, 1]:
            return False
        last = rank[members[found[step]]]
    return True


@njit(cache=True, nogil=True)
def next_match(graph: Graph, members: Int32, spans: Int64, at: Int64, tried: Int64, found: Int64) -> bool:
    """Moves at [L] to the match of the spans [L, 2] that comes next, if there is one; tried and found are room.

    It agrees with this one in the levels before some level, and at that level in the steps before some step, which is
    as late as can be; there it is later.
    """
    for level in range(graph.ties.shape[0] - 1, -1, -1):
        for step in range(at.size - 1, -1, -1):
            for other in range(at.size):
                start, stop = spans[other]
                if level > 0:
                    start, stop = same(graph.ties[level - 1], members, start, stop, at[other])
                if other < step:
                    start, stop = same(graph.ties[level], members, start, stop, at[other])
                elif other == step:
                    start = member_above(graph.ties[level], members, start, stop, graph.ties[level, members[at[other]]])
                tried[other, 0], tried[other, 1] = start, stop
            if earliest(graph.rank, members, tried, found):
                at[:] = found
                return True
    return False


@njit(cache=True, nogil=True)
def same(values: Int32, members: Int32, start: int, stop: int, at: int) -> tuple[int, int]:
    """The members of [start, stop) that have the value of the one at `at`."""
    value = values[members[at]]
    return member_above(values, members, start, stop, value - 1), member_above(values, members, start, stop, value)


@njit(cache=True, nogil=True)
def set_spans(graph: Graph, kinds: Kinds, path: Int32, is_fixed: bool, low: int, high: int, spans: Int64) -> None:
    """The members of a path's kinds in the window [low, high): spans [L, 2]."""
    for step in range(path.size):
        begin, end = low, high
        if step == 0 and is_fixed:
            begin, end = graph.place[path[0]], graph.place[path[0]] + 1
        kind = kinds.kind[path[step]]
        start, stop = kinds.starts[kind], kinds.starts[kind + 1]
        spans[step, 0] = member_above(graph.place, kinds.members, start, stop, begin - 1)
        spans[step, 1] = member_above(graph.place, kinds.members, start, stop, end - 1)


@njit(cache=True, nogil=True)
def first_matches(
    graph: Graph, kinds: Kinds, paths: Int32, is_fixed: bool, views: Int32, ties: Int64, bucket: Int64, limit: int
) -> tuple[Int32, Int64]:
    """The first `limit` matches of each bucket: paths [., L], and the bucket of each.

    The kind paths ties[i]:ties[i + 1] have equal scores, and are of bucket[i]; buckets rise, scores fall inside each. A
    match lies in its path's window [views[0], views[1]); where it is fixed, it begins with the path's own first entry.
    """
    steps, most = paths.shape[1], 0
    for which in range(bucket.size):
        most = max(most, ties[which + 1] - ties[which])
    out, of_bucket, written, taken = np.empty((1024, steps), np.int32), np.empty(1024, np.int64), 0, 0
    spans, at = np.empty((most, steps, 2), np.int64), np.empty((most, steps), np.int64)
    waiting, sums, order = np.empty((most, steps), np.int32), np.zeros(most), np.empty(most, np.int32)
    tried, found = np.empty((steps, 2), np.int64), np.empty(steps, np.int64)
    for which in range(bucket.size):
        taken = taken if which > 0 and bucket[which] == bucket[which - 1] else 0
        size = 0
        for number in range(ties[which + 1] - ties[which] if taken < limit else 0):
            path = ties[which] + number
            set_spans(graph, kinds, paths[path], is_fixed, views[0, path], views[1, path], spans[number])
            if earliest(graph.rank, kinds.members, spans[number], at[number]):
                waiting[number] = kinds.members[at[number]]
                heap_push(graph.ties, sums, waiting, order, size, number)
                size += 1
        while size > 0 and taken < limit:
            number = heap_pop(graph.ties, sums, waiting, order, size)
            size -= 1
            if written == out.shape[0]:
                out, of_bucket = grown(out), longer(of_bucket)
            out[written], of_bucket[written] = waiting[number], bucket[which]
            written, taken = written + 1, taken + 1
            if next_match(graph, kinds.members, spans[number], at[number], tried, found):
                waiting[number] = kinds.members[at[number]]
                heap_push(graph.ties, sums, waiting, order, size, number)
                size += 1
    return out[:written], of_bucket[:written]
