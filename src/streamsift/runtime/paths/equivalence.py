"""Rank equivalence classes of paths if too many sums lie within the rounding error.

Two entries of a step are equivalent if they share the key, every value that the score reads and both sides of every
comparison. Paths of equivalent entries have the same score, to the last bit, and pass the same comparisons. Reading one
path per class is therefore enough. Before a cut, it has the first entries of their classes that can follow each other,
because these leave the most candidates for later steps. After the cut, where paths are chosen backward, it has the last
entries. Each class of paths is scored once, with the expression as written. Then the first matches of the best classes
are read.

Contract: the result contains the k best of every bucket; it is None if that would take reading too many classes of
paths (tests/runtime/paths/test_path_ranking.py, `test_kinds_agree`). The matches of a class are read in the order of
the ranking: by the first level of ties of all their events, then by the next
(tests/runtime/paths/test_kind_matches.py).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamsift.physical.plan import PathPlan
from streamsift.runtime.arrays.dtypes import Int32, Int64
from streamsift.runtime.arrays.growing import grown
from streamsift.runtime.arrays.hashing import hashed
from streamsift.runtime.events.candidates import step_rows
from streamsift.runtime.events.events import Events
from streamsift.runtime.expressions.codes import codes
from streamsift.runtime.expressions.evaluate import evaluate
from streamsift.runtime.matches import match_columns, objective_values, scores
from streamsift.runtime.paths.enumerate import Rule, best_paths
from streamsift.runtime.paths.graph import EARLIER, THIS, Graph
from streamsift.runtime.paths.heap import SIZE, heap_of, heap_pop, heap_push
from streamsift.runtime.paths.strata import Buckets, Strata

WHOLE = 0.5  # exact sums are integers, so sums that differ by less are equal


class EntryClasses(NamedTuple):
    """Equivalence classes of entries; entries of different steps or groups are never equivalent."""

    of_entry: Int32  # [n]
    starts: Int64  # [classes + 1] where the members of each class start
    members: Int32  # [n] entries sorted by class, in ascending order


def best_of_classes(
    plan: PathPlan, events: Events, strata: Strata, buckets: Buckets, rule: Rule
) -> tuple[Int32, Int64] | None:
    """Return the first matches of the best classes as places [L, m], and the bucket of each; None if it gives up."""
    classes, roots = entry_classes(plan, events, strata), buckets.roots
    graph = with_repeats(strata.graph, classes)
    rule = rule._replace(slack=max(rule.slack, WHOLE if strata.error == 0 else 0.0))
    paths, counts, gave_up = best_paths(graph, roots, buckets.starts, rule)
    if gave_up.any():
        return None
    bucket = np.repeat(np.arange(counts.size), counts)
    is_fixed = bool((roots.first >= 0).any())
    # A class of paths is read once per split at the cut; keep it once.
    path_class = classes.of_entry[paths]
    if is_fixed:
        path_class[:, 0] = paths[:, 0]
    _, once = np.unique(np.column_stack([bucket, path_class]), axis=0, return_index=True)
    paths, bucket = paths[once], bucket[once]
    ranking = plan.alternative.query.ranking
    assert ranking is not None
    matches = match_columns(plan.alternative, events, graph.place[paths].T)
    score = scores(ranking, objective_values(ranking, matches))
    order = np.lexsort([-score, bucket])
    order = order[~np.isnan(score[order])]
    paths, bucket, score = paths[order], bucket[order], score[order]
    ties = np.flatnonzero((np.diff(bucket, prepend=-1) != 0) | (np.diff(score, prepend=np.nan) != 0))
    root = buckets.starts[bucket]
    if is_fixed:  # the root with the first entry of the path
        by_first = np.argsort(roots.first, kind="stable")
        root = by_first[np.searchsorted(roots.first[by_first], paths[:, 0])]
    best, of_bucket = first_matches(
        graph, classes, paths, is_fixed, roots.window[root], np.append(ties, bucket.size), bucket[ties], rule.limit
    )
    return graph.place[best].T, of_bucket


def entry_classes(plan: PathPlan, events: Events, strata: Strata, *, by_score: bool = False) -> EntryClasses:
    """Return the classes of all entries; with `by_score`, only the values that the score reads are compared."""
    parts, is_first, graph = [], [], strata.graph
    for step, variable in enumerate(step.variable for step in plan.alternative.steps):
        first, last = graph.offsets[step, [0, -1]]
        rows = step_rows(plan.alternative, events, events.rows_at(graph.place[first:last]))
        columns = dict.fromkeys(term.column for term in plan.score.terms if term.column.variable == variable)
        values = [np.zeros(last - first, np.int64)]
        values += [codes([evaluate(column, rows)], ordered=False)[0] for column in columns]
        if not by_score:
            for pair, sides in enumerate(graph.pairs[:, [EARLIER, THIS]]):
                values += [graph.codes[2 * pair + side, first:last] for side in range(2) if sides[side] == step]
            values.append(graph.group[first:last])
        keys = np.stack(values)
        order = np.lexsort(keys)
        parts.append(order + first)
        is_first += [order[:1] >= 0, (np.diff(keys[:, order]) != 0).any(axis=0)]
    members, starts = np.concatenate(parts).astype(np.int32), np.flatnonzero(np.concatenate(is_first))
    of_entry = np.empty(members.size, np.int32)
    of_entry[members] = np.repeat(np.arange(starts.size), np.diff(starts, append=members.size))
    return EntryClasses(of_entry, np.append(starts, members.size), members)


def with_repeats(graph: Graph, classes: EntryClasses) -> Graph:
    """Add to the graph, for each entry, the previous equivalent entry, and the next one negated."""
    n, members = graph.place.size, classes.members
    repeats = np.empty((2, n), np.int32)
    is_repeat = classes.of_entry[members[1:]] == classes.of_entry[members[:-1]]
    repeats[0, members] = np.append(-1, np.where(is_repeat, members[:-1], -1))
    repeats[1, members] = -np.append(np.where(is_repeat, members[1:], n), n)
    return graph._replace(repeats=repeats, repeats_tree=minimum_tree(repeats))


@njit(cache=True, nogil=True)
def minimum_tree(values: Int32) -> Int32:
    """Return segment trees [2, 2n] of minima, with the layout of the trees of chains."""
    n = values.shape[1]
    tree = np.empty((2, 2 * n), np.int32)
    tree[:, n:] = values
    for node in range(n - 1, 0, -1):
        for side in range(2):
            tree[side, node] = min(tree[side, 2 * node], tree[side, 2 * node + 1])
    return tree


@njit(cache=True, nogil=True)
def first_of_classes(of_entry: Int32, paths: Int32, limit: int) -> Int32:
    """Return the first `limit` paths of each class; all paths [m, L] if of_entry [n] is empty."""
    if of_entry.size == 0 or paths.shape[0] <= limit:
        return paths
    table = np.full(1 << (int(np.log2(paths.shape[0])) + 2), -1, np.int32)  # a path of each class, at most half full
    seen = np.zeros(paths.shape[0], np.int64)  # how many paths of that path's class were read
    kept, count = np.empty_like(paths), 0
    for path in range(paths.shape[0]):
        path_class = of_entry[paths[path]]
        slot = hashed(path_class) & (table.size - 1)
        while table[slot] >= 0 and not (of_entry[paths[table[slot]]] == path_class).all():
            slot = (slot + 1) & (table.size - 1)
        if table[slot] < 0:
            table[slot] = path
        seen[table[slot]] += 1
        if seen[table[slot]] <= limit:
            kept[count] = paths[path]
            count += 1
    return kept[:count]


# --- the first matches of classes


@njit(cache=True, nogil=True)
def member_above(values: Int32, members: Int32, start: int, end: int, bound: int) -> int:
    """Return the first of the members [start, end) whose value is above a bound; values ascend."""
    while start < end:
        middle = (start + end) >> 1
        if values[members[middle]] > bound:
            end = middle
        else:
            start = middle + 1
    return start


@njit(cache=True, nogil=True)
def earliest(rank: Int32, members: Int32, spans: Int64, at: Int64) -> bool:
    """Fill at [L] with the earliest members of the spans [L, 2] that follow each other; return False if none do."""
    last = -1
    for step in range(at.size):
        at[step] = member_above(rank, members, spans[step, 0], spans[step, 1], last)
        if at[step] == spans[step, 1]:
            return False
        last = rank[members[at[step]]]
    return True


@njit(cache=True, nogil=True)
def next_match(graph: Graph, members: Int32, spans: Int64, at: Int64, tried: Int64, room: Int64) -> bool:
    """Advance at [L] to the next match of the spans [L, 2]; return False if there is none. tried and room are scratch.

    The next match agrees with the current one in all earlier levels, and in all earlier steps of one level; at that
    step it is later. Level and step are as late as possible.
    """
    for level in range(graph.ties.shape[0] - 1, -1, -1):
        for step in range(at.size - 1, -1, -1):
            for other in range(at.size):
                start, end = spans[other]
                if level > 0:
                    start, end = same(graph.ties[level - 1], members, start, end, at[other])
                if other < step:
                    start, end = same(graph.ties[level], members, start, end, at[other])
                elif other == step:
                    start = member_above(graph.ties[level], members, start, end, graph.ties[level, members[at[other]]])
                tried[other, 0], tried[other, 1] = start, end
            if earliest(graph.rank, members, tried, room):
                at[:] = room
                return True
    return False


@njit(cache=True, nogil=True)
def same(values: Int32, members: Int32, start: int, end: int, at: int) -> tuple[int, int]:
    """Return the range of the members [start, end) with the value of the member at `at`."""
    value = values[members[at]]
    return member_above(values, members, start, end, value - 1), member_above(values, members, start, end, value)


@njit(cache=True, nogil=True)
def first_matches(
    graph: Graph,
    classes: EntryClasses,
    paths: Int32,
    is_fixed: bool,
    window: Int64,
    ties: Int64,
    bucket: Int64,
    limit: int,
) -> tuple[Int32, Int64]:
    """Return the first `limit` matches of each bucket as paths [., L], and the bucket of each.

    The paths ties[i]:ties[i + 1] represent classes with equal scores in bucket[i]. Buckets ascend, and scores descend
    within each. A match lies in the window of its path; with `is_fixed`, it begins with the path's first entry.
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
            for step in range(steps):
                low, high = graph.windows.low[window[path]], graph.windows.high[window[path]]
                if step == 0 and is_fixed:
                    low, high = graph.place[paths[path, 0]], graph.place[paths[path, 0]] + 1
                of_path = classes.of_entry[paths[path, step]]
                start, end = classes.starts[of_path], classes.starts[of_path + 1]
                spans[node, step, 0] = member_above(graph.place, members, start, end, low - 1)
                spans[node, step, 1] = member_above(graph.place, members, start, end, high - 1)
            if earliest(graph.rank, members, spans[node], at[node]):
                heap.paths[node] = members[at[node]]
                heap_push(graph.ties, heap, node)
        while heap.counts[SIZE] > 0 and taken < limit:
            node = heap_pop(graph.ties, heap)
            if written == out.shape[0]:
                out, of_bucket = grown(out), grown(of_bucket)
            out[written], of_bucket[written] = heap.paths[node], bucket[which]
            written, taken = written + 1, taken + 1
            if next_match(graph, members, spans[node], at[node], tried, room):
                heap.paths[node] = members[at[node]]
                heap_push(graph.ties, heap, node)
    return out[:written], of_bucket[:written]
