"""Rank equivalence classes of paths where too many sums are too close to call.

Two entries of a step are equivalent if they share the key, every value that the score reads and both sides of every
comparison. Paths of equivalent entries have the same score, to the last bit, and the same comparisons hold. So it is
enough to read one path of each class: in front of a cut the one whose entries are the first of their classes to follow
each other, for they leave most to follow; behind it, where paths are chosen backwards, the one whose entries are the
last. Each class of paths is scored once, as written; of the best, `equivalent_matches` reads the first matches.

Contract: the k best of every bucket are among them; None if that would take reading too many classes of paths
(tests/runtime/paths/test_path_ranking.py, `test_kinds_agree`).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from streamsift.physical.plan import PathPlan
from streamsift.runtime.arrays.dtypes import Int32, Int64
from streamsift.runtime.arrays.row_set import hashed
from streamsift.runtime.events.candidates import step_rows
from streamsift.runtime.events.events import Events
from streamsift.runtime.expressions.codes import codes
from streamsift.runtime.expressions.evaluate import evaluate
from streamsift.runtime.matches import match_columns, objective_values, scores
from streamsift.runtime.paths.enumerate import Roots, Rule, best_paths
from streamsift.runtime.paths.equivalent_matches import EntryClasses, first_matches
from streamsift.runtime.paths.graph import EARLIER, THIS, Graph
from streamsift.runtime.paths.strata import Buckets, Strata

WHOLE = 0.5  # sums that do not round are whole numbers: what differs by less is equal


def best_of_classes(
    plan: PathPlan, events: Events, strata: Strata, buckets: Buckets, rule: Rule
) -> tuple[Int32, Int64] | None:
    """Return matches as places [L, m], and the bucket of each."""
    classes, roots = entry_classes(plan, events, strata), buckets.roots
    graph = with_repeats(strata.graph, classes)
    rule = rule._replace(slack=max(rule.slack, WHOLE if strata.error == 0 else 0.0))
    paths, counts, gave_up = best_paths(graph, roots, buckets.starts, rule)
    if gave_up.any():
        return None
    bucket = np.repeat(np.arange(counts.size), counts)
    is_fixed = bool((roots.first >= 0).any())
    # A class of paths that has matches on both sides of a cut comes once for each way to lie there.
    path_class = classes.of_entry[paths]
    if is_fixed:
        path_class[:, 0] = paths[:, 0]
    _, once = np.unique(np.column_stack([bucket, path_class]), axis=0, return_index=True)
    paths, bucket = paths[once], bucket[once]
    ranking = plan.alternative.query.ranking
    assert ranking is not None
    seen = match_columns(plan.alternative, events, graph.place[paths].T)
    score = scores(ranking, objective_values(ranking, seen))
    order = np.lexsort([-score, bucket])
    order = order[~np.isnan(score[order])]
    paths, bucket, score = paths[order], bucket[order], score[order]
    ties = np.flatnonzero((np.diff(bucket, prepend=-1) != 0) | (np.diff(score, prepend=np.nan) != 0))
    bounds = _windows_of(roots, buckets.starts[bucket], paths, is_fixed=is_fixed)
    best, of_bucket = first_matches(
        graph, classes, paths, is_fixed, bounds, np.append(ties, bucket.size), bucket[ties], rule.limit
    )
    return graph.place[best].T, of_bucket


def _windows_of(roots: Roots, root: Int64, paths: Int32, *, is_fixed: bool) -> Int32:
    """Return the window [2, m] of each path: that of its bucket's root, or of the root that has its first entry."""
    if is_fixed:
        by_first = np.argsort(roots.first, kind="stable")
        root = by_first[np.searchsorted(roots.first[by_first], paths[:, 0])]
    return np.stack([roots.low[root], roots.high[root]])


def entry_classes(plan: PathPlan, events: Events, strata: Strata, *, by_score: bool = False) -> EntryClasses:
    """Return the classes of all entries; `by_score`: only what the score reads of them distinguishes them."""
    parts, is_first, graph = [], [], strata.graph
    for step, variable in enumerate(step.variable for step in plan.alternative.steps):
        first, last = graph.offsets[step, [0, -1]]
        rows = step_rows(plan.alternative, events, events.rows_at(graph.place[first:last]))
        columns = dict.fromkeys(term.column for term in plan.score.terms if term.column.variable == variable)
        values = [codes([evaluate(column, rows)], ordered=False)[0] for column in columns]
        if not by_score:
            for pair, sides in enumerate(graph.pairs[:, [EARLIER, THIS]]):
                values += [graph.codes[2 * pair + side, first:last] for side in range(2) if sides[side] == step]
            values.append(np.repeat(np.arange(graph.offsets.shape[1] - 1), np.diff(graph.offsets[step])))
        order = np.lexsort([*values, np.zeros(last - first)])
        is_new = np.zeros(order.size, np.bool_)
        is_new[:1] = True
        for column in values:
            is_new[1:] |= np.diff(column[order]) != 0
        parts.append(order + first)
        is_first.append(is_new)
    members, starts = np.concatenate(parts).astype(np.int32), np.flatnonzero(np.concatenate(is_first))
    of_entry = np.empty(members.size, np.int32)
    of_entry[members] = np.repeat(np.arange(starts.size), np.diff(starts, append=members.size))
    return EntryClasses(of_entry, np.append(starts, members.size), members)


def with_repeats(graph: Graph, classes: EntryClasses) -> Graph:
    """Add the last equivalent entry before each, and the next one behind it, negated."""
    n, members = graph.place.size, classes.members
    repeats = np.empty((2, n), np.int32)
    is_repeat = classes.of_entry[members[1:]] == classes.of_entry[members[:-1]]
    repeats[0, members] = np.append(-1, np.where(is_repeat, members[:-1], -1))
    repeats[1, members] = -np.append(np.where(is_repeat, members[1:], n), n)
    return graph._replace(repeats=repeats, repeats_tree=minimum_tree(repeats))


@njit(cache=True, nogil=True)
def minimum_tree(values: Int32) -> Int32:
    """Return segment trees [2, 2n] of minima, laid out as those of the graph's chains."""
    n = values.shape[1]
    tree = np.empty((2, 2 * n), np.int32)
    tree[:, n:] = values
    for node in range(n - 1, 0, -1):
        for side in range(2):
            tree[side, node] = min(tree[side, 2 * node], tree[side, 2 * node + 1])
    return tree


@njit(cache=True, nogil=True)
def first_of_classes(of_entry: Int32, paths: Int32, limit: int) -> Int32:
    """Return the paths [m, L] that are among the first `limit` of their class; all if of_entry [n] is empty."""
    if of_entry.size == 0 or paths.shape[0] <= limit:
        return paths
    room = 1
    while room < 2 * paths.shape[0]:
        room *= 2
    table = np.full(room, -1, np.int32)  # a path of each class
    seen = np.zeros(paths.shape[0], np.int64)  # how many there were of that path's class
    kept, count = np.empty_like(paths), 0
    for path in range(paths.shape[0]):
        path_class = of_entry[paths[path]]
        slot = hashed(path_class) & (room - 1)
        while table[slot] >= 0 and not (of_entry[paths[table[slot]]] == path_class).all():
            slot = (slot + 1) & (room - 1)
        if table[slot] < 0:
            table[slot] = path
        seen[table[slot]] += 1
        if seen[table[slot]] <= limit:
            kept[count] = paths[path]
            count += 1
    return kept[:count]
