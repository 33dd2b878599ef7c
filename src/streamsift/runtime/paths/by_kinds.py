"""A stratified graph and buckets of roots in, the best matches of each out: the first of the best kinds of paths.

Contract: the k best of every bucket are among them; None if that would take looking at too many kinds of paths
(tests/runtime/paths/test_path_ranking.py, `test_kinds_agree`).
"""

from __future__ import annotations

import numpy as np

from streamsift.physical.plan import PathPlan
from streamsift.runtime.arrays.dtypes import Float64, Int32, Int64
from streamsift.runtime.events.candidates import step_rows
from streamsift.runtime.events.events import Events
from streamsift.runtime.expressions.codes import codes
from streamsift.runtime.expressions.evaluate import evaluate
from streamsift.runtime.matches import match_columns, objective_values, scores
from streamsift.runtime.paths.enumerate import best_paths
from streamsift.runtime.paths.kind_matches import first_matches
from streamsift.runtime.paths.kinds import Kinds, told_by_kinds
from streamsift.runtime.paths.sets import EARLIER, THIS, Roots, Rule
from streamsift.runtime.paths.strata import Strata

SIDES = (EARLIER, THIS)  # columns of Roots.pairs
WHOLE = 0.5  # sums that do not round are whole numbers: what differs by less is equal


def by_kinds(
    plan: PathPlan, events: Events, found: Strata, roots: Roots, starts: Int64, rule: Rule
) -> tuple[Int32, Int64] | None:
    """Matches as places [L, m], and the bucket of each; the roots of a bucket are starts[i]:starts[i + 1]."""
    kinds = kinds_of(plan, events, found)
    graph = told_by_kinds(found.graph, kinds)
    rule = rule._replace(slack=max(rule.slack, WHOLE if found.entries.error == 0 else 0.0))
    paths, counts, gave_up = best_paths(graph, roots, starts, rule)
    if gave_up.any():
        return None
    bucket = np.repeat(np.arange(counts.size), counts)
    is_fixed = bool((roots.first >= 0).any())
    # A kind path that has matches on both sides of a cut comes once for each way to lie there.
    told_by = kinds.kind[paths]
    if is_fixed:
        told_by[:, 0] = paths[:, 0]
    _, once = np.unique(np.column_stack([bucket, told_by]), axis=0, return_index=True)
    paths, bucket = paths[once], bucket[once]
    score = _scores(plan, events, graph.place[paths].T)
    order = np.lexsort([-score, bucket])
    order = order[~np.isnan(score[order])]
    paths, bucket, score = paths[order], bucket[order], score[order]
    is_next = (np.diff(bucket, prepend=-1) != 0) | (np.diff(score, prepend=np.nan) != 0)
    ties = np.flatnonzero(is_next)
    views = _views(roots, starts, paths, bucket, is_fixed=is_fixed)
    best, of_bucket = first_matches(
        graph, kinds, paths, is_fixed, views, np.append(ties, bucket.size), bucket[ties], rule.limit
    )
    return graph.place[best].T, of_bucket


def kinds_of(plan: PathPlan, events: Events, found: Strata, *, by_score: bool = False) -> Kinds:
    """The kinds of all entries; `by_score`: only what the score sees of them tells them apart."""
    parts, is_first, graph = [], [], found.graph
    for step, variable in enumerate(step.variable for step in plan.alternative.steps):
        first, last = graph.offsets[step, [0, -1]]
        rows = step_rows(plan.alternative, events, events.rows_at(graph.place[first:last]))
        terms = {term.column: None for term in plan.score.terms if term.column.variable == variable}
        apart = [codes([evaluate(column, rows)], ordered=False)[0] for column in terms]
        for number, sides in enumerate(found.pairs[:0] if by_score else found.pairs):
            apart += [found.codes[2 * number + side, first:last] for side in range(2) if sides[SIDES[side]] == step]
        group = np.repeat(np.arange(graph.offsets.shape[1] - 1), np.diff(graph.offsets[step]))
        apart.append(np.zeros_like(group) if by_score else group)
        order = np.lexsort(apart)
        is_new = np.zeros(order.size, np.bool_)
        is_new[:1] = True
        for column in apart:
            is_new[1:] |= np.diff(column[order]) != 0
        parts.append(order + first)
        is_first.append(is_new)
    members, starts = np.concatenate(parts).astype(np.int32), np.flatnonzero(np.concatenate(is_first))
    kind = np.empty(members.size, np.int32)
    kind[members] = np.repeat(np.arange(starts.size), np.diff(starts, append=members.size))
    return Kinds(kind, np.append(starts, members.size), members)


def _scores(plan: PathPlan, events: Events, places: Int32) -> Float64:
    ranking = plan.alternative.query.ranking
    assert ranking is not None
    return scores(ranking, objective_values(ranking, match_columns(plan.alternative, events, events.rows_at(places))))


def _views(roots: Roots, starts: Int64, paths: Int32, bucket: Int64, *, is_fixed: bool) -> Int32:
    """The window [2, m] of each path: that of its bucket, or of the root that has its first entry."""
    root = starts[bucket]
    if is_fixed:
        by_first = np.argsort(roots.first, kind="stable")
        root = by_first[np.searchsorted(roots.first[by_first], paths[:, 0])]
    return np.stack([roots.low[root], roots.high[root]])
