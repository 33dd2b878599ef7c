"""Read the first matches of the best equivalence classes of paths, in the order of the ranking.

Contract: the matches of a class come out by the first level of ties of all their events, then by the next, as
`best.in_order` sorts them; tests/runtime/paths/test_kind_matches.py compares both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.runtime.arrays.dtypes import Int32, Int64
from streamsift.runtime.arrays.growing import grown, longer
from streamsift.runtime.paths.graph import Graph
from streamsift.runtime.paths.heap import SIZE, heap_of, heap_pop, heap_push


class EntryClasses(NamedTuple):
    """Equivalence classes of entries; those of different steps or groups are different."""

    of_entry: Int32  # [n]
    starts: Int64  # [classes + 1] where the members of each begin
    members: Int32  # [n] entries, class by class, each in order


@njit(cache=True, nogil=True)
def member_above(values: Int32, members: Int32, start: int, stop: int, bound: int) -> int:
    """Return the first of the members [start, stop) whose value is above a bound; values rise."""
    while start < stop:
        middle = (start + stop) >> 1
        if values[members[middle]] > bound:
            stop = middle
        else:
            start = middle + 1
    return start


@njit(cache=True, nogil=True)
def earliest(rank: Int32, members: Int32, spans: Int64, at: Int64) -> bool:
    """Fill at [L] with the earliest members of the spans [L, 2] that follow each other, if any do."""
    last = -1
    for step in range(at.size):
        at[step] = member_above(rank, members, spans[step, 0], spans[step, 1], last)
        if at[step] == spans[step, 1]:
            return False
        last = rank[members[at[step]]]
    return True


@njit(cache=True, nogil=True)
def next_match(graph: Graph, members: Int32, spans: Int64, at: Int64, tried: Int64, room: Int64) -> bool:
    """Move at [L] to the match of the spans [L, 2] that comes next, if there is one; tried and room are scratch.

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
            if earliest(graph.rank, members, tried, room):
                at[:] = room
                return True
    return False


@njit(cache=True, nogil=True)
def same(values: Int32, members: Int32, start: int, stop: int, at: int) -> tuple[int, int]:
    """Return the members of [start, stop) that have the value of the one at `at`."""
    value = values[members[at]]
    return member_above(values, members, start, stop, value - 1), member_above(values, members, start, stop, value)


@njit(cache=True, nogil=True)
def set_spans(
    graph: Graph, classes: EntryClasses, path: Int32, is_fixed: bool, low: int, high: int, spans: Int64
) -> None:
    """Write the members of a path's classes in the window [low, high): spans [L, 2]."""
    for step in range(path.size):
        begin, end = low, high
        if step == 0 and is_fixed:
            begin, end = graph.place[path[0]], graph.place[path[0]] + 1
        which = classes.of_entry[path[step]]
        start, stop = classes.starts[which], classes.starts[which + 1]
        spans[step, 0] = member_above(graph.place, classes.members, start, stop, begin - 1)
        spans[step, 1] = member_above(graph.place, classes.members, start, stop, end - 1)


@njit(cache=True, nogil=True)
def first_matches(
    graph: Graph,
    classes: EntryClasses,
    paths: Int32,
    is_fixed: bool,
    bounds: Int32,
    ties: Int64,
    bucket: Int64,
    limit: int,
) -> tuple[Int32, Int64]:
    """Return the first `limit` matches of each bucket: paths [., L], and the bucket of each.

    The paths ties[i]:ties[i + 1] stand for classes of equal scores, and are of bucket[i]; buckets rise, scores fall
    inside each. A match lies in its path's window [bounds[0], bounds[1]); where it is fixed, it begins with the path's
    own first entry.
    """
    steps, most, members = paths.shape[1], 0, classes.members
    for which in range(bucket.size):
        most = max(most, ties[which + 1] - ties[which])
    out, of_bucket, written, taken = np.empty((1024, steps), np.int32), np.empty(1024, np.int64), 0, 0
    spans, at = np.empty((most, steps, 2), np.int64), np.empty((most, steps), np.int64)
    heap = heap_of(np.empty((most, steps), np.int32), np.zeros(most))
    tried, room = np.empty((steps, 2), np.int64), np.empty(steps, np.int64)
    for which in range(bucket.size):
        taken = taken if which > 0 and bucket[which] == bucket[which - 1] else 0
        heap.counts[SIZE] = 0
        for node in range(ties[which + 1] - ties[which] if taken < limit else 0):
            path = ties[which] + node
            set_spans(graph, classes, paths[path], is_fixed, bounds[0, path], bounds[1, path], spans[node])
            if earliest(graph.rank, members, spans[node], at[node]):
                heap.paths[node] = members[at[node]]
                heap_push(graph.ties, heap, node)
        while heap.counts[SIZE] > 0 and taken < limit:
            node = heap_pop(graph.ties, heap)
            if written == out.shape[0]:
                out, of_bucket = grown(out), longer(of_bucket)
            out[written], of_bucket[written] = heap.paths[node], bucket[which]
            written, taken = written + 1, taken + 1
            if next_match(graph, members, spans[node], at[node], tried, room):
                heap.paths[node] = members[at[node]]
                heap_push(graph.ties, heap, node)
    return out[:written], of_bucket[:written]
