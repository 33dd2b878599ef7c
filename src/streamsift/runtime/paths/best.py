"""Find the matches of a sequence with a linear score that can be among the k best.

Contract: the result contains the k best of every group and tick, and few other matches. The search gives up if it would
read too many paths, because comparisons rarely hold or too many scores lie within the rounding error. Checked by
tests/generated/test_generated_ranking.py against the oracle and by tests/runtime/paths/test_path_ranking.py against all
matches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamsift.physical.plan import PathPlan, RankBy
from streamsift.physical.rank import MAX_KINDS, MAX_PATHS
from streamsift.runtime.arrays.dtypes import Bool, Float64, Int32, Int64
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.update_ticks import UpdateTicks
from streamsift.runtime.paths.enumerate import Rule, best_paths, root_sums
from streamsift.runtime.paths.equivalence import best_of_classes, entry_classes
from streamsift.runtime.paths.strata import Buckets, GaveUp, Strata, buckets_of, build_strata, tick_roots
from streamsift.runtime.paths.thesis import k_best_by_window
from streamsift.runtime.paths.top_k_buffer import Owners, buffered_paths

SLACK = 6  # multiple of a sum's error: two sums, two scores and the bound between them
MAX_WANTED = 1 << 10  # paths per window, including ties, for algorithms with quadratic cost
FEW_PATHS = 16  # after reading 16 * (k + 16) paths, read equivalence classes of paths instead


@dataclass(frozen=True, slots=True)
class TickMatches:
    """Matches as places [steps, m], and the tick for which each is among the best (0 without UPDATE)."""

    places: Int32
    tick: Int64


def path_candidates(
    plan: PathPlan, events: Events, ticks: UpdateTicks | None, group_by: Int32, limit: int, starts: Bool | None = None
) -> TickMatches | GaveUp:
    """Return the candidates; `starts` [places] masks first events, `group_by` are GROUP BY codes [places] or empty."""
    strata = build_strata(plan, events, ticks, starts)
    if strata is None:
        return TickMatches(np.empty((len(plan.alternative.steps), 0), np.int32), np.empty(0, np.int64))
    if isinstance(strata, GaveUp):
        return strata
    matches, rule = None, next_paths(strata, limit)._replace(is_final=True)
    if plan.by is not RankBy.LAZY:
        matches = _by_window(strata, ticks, limit, dynamic=plan.by is RankBy.K_DSSP)
    elif ticks is not None and strata.graph.offsets.shape[1] > 2:  # several groups
        matches = _by_buffers(plan, events, strata, ticks, group_by, rule)
    if matches is not None:
        return matches
    buckets = _buckets(strata, group_by, rule) if ticks is None else buckets_of(strata, ticks, group_by)
    return _read(plan, events, strata, buckets, rule)


def next_paths(strata: Strata, limit: int) -> Rule:
    """Return a rule that reads `limit` paths; if sums are rounded, also all that may tie with the last of them."""
    slack = SLACK * strata.error if strata.error > 0 else -1.0
    return Rule(limit, slack, MAX_PATHS, threshold=-np.inf, threshold_path=np.empty((1, 0), np.int32), is_final=False)


def _read(plan: PathPlan, events: Events, strata: Strata, buckets: Buckets, rule: Rule) -> TickMatches | GaveUp:
    """Read paths one by one, and classes of paths in buckets where too many paths may tie or fail a comparison."""
    few = rule._replace(max_read=FEW_PATHS * (rule.limit + FEW_PATHS))
    paths, counts, gave_up = best_paths(strata.graph, buckets.roots, buckets.starts, few)
    places, tick = strata.graph.place[paths].T, np.repeat(buckets.tick, counts)
    if gave_up.any():
        is_read, left = np.repeat(~gave_up, counts), buckets.at(np.flatnonzero(gave_up))
        more = best_of_classes(plan, events, strata, left, rule._replace(max_read=MAX_KINDS))
        if more is None:
            return GaveUp.TOO_MANY
        places = np.concatenate([places[:, is_read], more[0]], axis=1)
        tick = np.concatenate([tick[is_read], left.tick[more[1]]])
    return TickMatches(np.ascontiguousarray(places), tick)


# --- windows of ticks


def _by_buffers(
    plan: PathPlan, events: Events, strata: Strata, ticks: UpdateTicks, group_by: Int32, rule: Rule
) -> TickMatches | None:
    """Use top-k buffers per key, so that a window move reads only the keys of new events; None for too many ties."""
    owners, place = owners_of(strata, group_by), strata.graph.place
    owner, tick = tick_roots(owners.first_starts, place[owners.firsts], ticks)
    visits = np.searchsorted(strata.tick, tick)
    starts = np.searchsorted(owner, np.arange(owners.first_starts.size))
    for many in (False, True):
        # Try without classes first: they cost a pass over all entries. With classes, a buffer may hold many ties.
        classes = entry_classes(plan, events, strata, by_score=True).of_entry if many else np.empty(0, np.int32)
        max_read = rule.max_read if many else FEW_PATHS * (rule.limit + FEW_PATHS)
        kept = rule._replace(max_read=max_read, slack=max(rule.slack, 0.0))
        paths, counts, gave_up = buffered_paths(strata.graph, owners, starts, visits, kept, classes)
        if not gave_up:
            return TickMatches(np.ascontiguousarray(place[paths].T), np.repeat(tick, counts))
    return None


def owners_of(strata: Strata, group_by: Int32) -> Owners:
    """Return the entries of the first and the last step, by GROUP BY value if there is one."""
    offsets, place = strata.graph.offsets, strata.graph.place
    owners = int(group_by.max(initial=-1)) + 1 if group_by.size else 1
    sides = []
    for step in (0, -1):
        entries = np.arange(offsets[step, 0], offsets[step, -1], dtype=np.int32)
        owner = group_by[place[entries]] if group_by.size else np.zeros(entries.size, np.int32)
        order = np.lexsort([place[entries], owner])
        sides += [np.searchsorted(owner[order], np.arange(owners + 1)), entries[order]]
    return Owners(*sides)


# --- one window, or one per first event


def _buckets(strata: Strata, group_by: Int32, rule: Rule) -> Buckets:
    """Return the roots that can have one of the k best, with a bucket per GROUP BY value."""
    graph, roots = strata.graph, strata.roots
    bucket, sums = np.zeros(roots.group.size, np.int64), root_sums(graph, roots)
    if group_by.size:
        bucket = group_by[graph.place[graph.offsets[0, roots.group]]].astype(np.int64)
    # If comparisons can fail, the best sum of a root is only an upper bound for its matches: no root can be dropped.
    enough = bucket.size if strata.bounds_only else rule.limit
    order = not_below_kth(bucket, sums, enough, max(rule.slack, 0.0))
    order = order[sums[order] > -np.inf]
    starts = np.append(np.flatnonzero(np.diff(bucket[order], prepend=-1)), order.size)
    return Buckets(roots.at(order), starts, np.zeros(starts.size - 1, np.int64))


def not_below_kth(bucket: Int64, score: Float64, limit: int, slack: float = 0.0) -> Int64:
    """Return the matches at most `slack` below the k-th score of their bucket, sorted by bucket, best first."""
    order = np.lexsort([-score, bucket])
    bucket, score = bucket[order], score[order]
    start, end = (np.searchsorted(bucket, bucket, side=side) for side in ("left", "right"))
    return order[score >= score[np.minimum(start + limit, end) - 1] - slack]


# --- algorithms of the thesis


def _by_window(strata: Strata, ticks: UpdateTicks | None, limit: int, *, dynamic: bool) -> TickMatches | None:
    """Run k-SSP or k-DSSP: return the best paths of each group and window, and those that may tie with the last."""
    graph, groups, window = strata.graph, strata.roots.group, strata.roots.window
    if ticks is not None:
        groups, tick = tick_roots(graph.offsets[0], graph.place, ticks)
        window = np.searchsorted(strata.tick, tick)
    places, of_path = [np.empty((0, graph.offsets.shape[0]), np.int32)], [np.empty(0, np.int64)]
    for group in np.unique(groups):
        inside = window[groups == group]
        offsets = np.ascontiguousarray(graph.offsets[:, group : group + 2])
        low, high, wanted = graph.windows.low[inside], graph.windows.high[inside], limit
        while True:
            wanted *= 2
            if wanted > max(MAX_WANTED, 4 * limit):
                return None
            sums, paths = k_best_by_window(
                graph.place, graph.rank, graph.weight, offsets, low, high, wanted, dynamic, False
            )
            # Even with an error of 0, read all paths that equal the last one: their times break the tie.
            may_count = (sums >= sums[:, limit - 1 : limit] - SLACK * strata.error) & (sums > -np.inf)
            if not may_count[:, -1].any():
                break
        places.append(graph.place[paths[may_count]])
        of_path.append(np.repeat(strata.tick[inside], np.count_nonzero(may_count, axis=1)))
    return TickMatches(np.ascontiguousarray(np.concatenate(places).T), np.concatenate(of_path))
