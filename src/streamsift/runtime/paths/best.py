"""Find the matches of a sequence with a linear score that can be among the k best.

Contract: all of the k best of every group and tick are among them, and few others; it gives up if that would take
reading too many paths (the comparisons hold too rarely, or too many different scores are too close together). Checked
by tests/generated/test_generated_ranking.py against the oracle and by tests/runtime/paths/test_path_ranking.py
against all matches.
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
from streamsift.runtime.paths.strata import Buckets, GaveUp, Strata, one_bucket, strata, tick_buckets, tick_roots
from streamsift.runtime.paths.thesis import k_best_by_window
from streamsift.runtime.paths.top_k_buffer import Owners, WindowedGraph, buffered_paths

SLACK = 6  # times the error of one sum: two sums, two scores and the bound between them
MAX_ASKED = 1 << 10  # paths of one window, for ties, of algorithms whose cost rises with their square
FEW_PATHS = 16  # for each that is asked for, and so many more: past them, equivalence classes of paths are read


@dataclass(frozen=True, slots=True)
class TickMatches:
    """Matches [steps, m] as places, and the tick (0 without UPDATE) of which each is one of the best."""

    places: Int32
    tick: Int64


def path_candidates(
    plan: PathPlan,
    events: Events,
    ticks: UpdateTicks | None,
    group_by: Int32,
    limit: int,
    may_start: Bool | None = None,
) -> TickMatches | GaveUp:
    """`group_by` [places] are the GROUP BY codes, or empty; matches start where they may [places], if not anywhere."""
    graph = strata(plan, events, ticks, may_start)
    if graph is None:
        return TickMatches(np.empty((len(plan.alternative.steps), 0), np.int32), np.empty(0, np.int64))
    if isinstance(graph, GaveUp):
        return graph
    matches, rule = None, next_paths(graph, limit)._replace(is_final=True)
    if plan.by is not RankBy.LAZY:
        matches = _by_window(graph, ticks, limit, dynamic=plan.by is RankBy.K_DSSP)
    elif ticks is not None and graph.has_groups:
        matches = _by_buffers(plan, events, graph, ticks, group_by, rule)
    if matches is not None:
        return matches
    buckets = _buckets(graph, group_by, rule) if ticks is None else tick_buckets(graph, ticks, group_by)
    return _read(plan, events, graph, buckets, rule)


def next_paths(found: Strata, limit: int) -> Rule:
    """How far to read for so many paths: on to all whose scores may be as good as the last one's, if sums round."""
    slack = SLACK * found.error if found.error > 0 else -1.0
    return Rule(limit, slack, MAX_PATHS, threshold=-np.inf, threshold_path=np.empty((1, 0), np.int32), is_final=False)


def _few(rule: Rule) -> Rule:
    return rule._replace(max_read=FEW_PATHS * (rule.limit + FEW_PATHS))


def _read(plan: PathPlan, events: Events, found: Strata, buckets: Buckets, rule: Rule) -> TickMatches | GaveUp:
    """Path by path; by classes where too many could be as good as the last of the best, or break a comparison."""
    paths, counts, gave_up = best_paths(found.graph, buckets.roots, buckets.starts, _few(rule))
    places, tick = found.graph.place[paths].T, np.repeat(buckets.tick, counts)
    if gave_up.any():
        is_known, left = np.repeat(~gave_up, counts), buckets.at(np.flatnonzero(gave_up))
        more = best_of_classes(plan, events, found, left, rule._replace(max_read=MAX_KINDS))
        if more is None:
            return GaveUp.TOO_MANY
        places = np.concatenate([places[:, is_known], more[0]], axis=1)
        tick = np.concatenate([tick[is_known], left.tick[more[1]]])
    return TickMatches(np.ascontiguousarray(places), tick)


# --- windows of ticks


def _by_buffers(
    plan: PathPlan, events: Events, found: Strata, ticks: UpdateTicks, group_by: Int32, rule: Rule
) -> TickMatches | None:
    """With keys every key has paths of its own, so a move reads only the keys of new events. None: too many ties."""
    owners, place = owners_of(found, group_by), found.graph.place
    owner, tick = tick_roots(owners.first_starts, place[owners.firsts], ticks.first, ticks.last)
    visits = np.searchsorted(found.tick, tick)
    starts = np.searchsorted(owner, np.arange(owners.first_starts.size))
    rule = rule._replace(slack=max(rule.slack, 0.0))
    for many in (False, True):
        # Classes cost a pass over all entries; then a buffer may hold many ties, for few of them leave it.
        classes = entry_classes(plan, events, found, by_score=True).of_entry if many else np.empty(0, np.int32)
        kept = rule if many else _few(rule)
        paths, counts, gave_up = buffered_paths(windowed(found), owners, starts, visits, kept, classes)
        if not gave_up:
            return TickMatches(np.ascontiguousarray(place[paths].T), np.repeat(tick, counts))
    return None


def windowed(found: Strata) -> WindowedGraph:
    offsets = found.graph.offsets
    groups = np.arange(offsets.shape[1] - 1, dtype=np.int32)
    group_of = np.concatenate([np.repeat(groups, np.diff(part)) for part in offsets])
    return WindowedGraph(found.graph, found.windows, group_of, stamps=np.zeros(groups.size + 1, np.int64))


def owners_of(found: Strata, group_by: Int32) -> Owners:
    """Return the first and last entries of every GROUP BY value, or of all."""
    offsets, place = found.graph.offsets, found.graph.place
    owners = int(group_by.max(initial=-1)) + 1 if group_by.size else 1
    sides = []
    for step in (0, -1):
        entries = np.arange(offsets[step, 0], offsets[step, -1], dtype=np.int32)
        owner = group_by[place[entries]] if group_by.size else np.zeros(entries.size, np.int32)
        entries = entries[np.lexsort([place[entries], owner])]
        sides += [np.searchsorted(np.sort(owner), np.arange(owners + 1)), entries]
    return Owners(*sides)


# --- one window, or one for each first event


def _buckets(found: Strata, group_by: Int32, rule: Rule) -> Buckets:
    """Return the roots that can hold one of the k best, a bucket for each GROUP BY value."""
    graph, roots = found.graph, one_bucket(found).roots
    bucket = np.zeros(roots.group.size, np.int64)
    if group_by.size:
        bucket = group_by[graph.place[graph.offsets[0, roots.group]]].astype(np.int64)
    # Where comparisons may fail, the best sum of a root is only a bound of its matches: no root can be left out.
    enough = bucket.size + 1 if found.bounds_only else rule.limit
    order, starts = _chosen(root_sums(graph, roots), bucket, enough, max(rule.slack, 0.0))
    return Buckets(roots.at(order), starts, np.zeros(starts.size - 1, np.int64))


def _chosen(sums: Float64, bucket: Int64, limit: int, slack: float) -> tuple[Int64, Int64]:
    """Return the roots that can hold one of the k best of their bucket, by bucket, and where each bucket starts."""
    order = np.lexsort([-sums, bucket])
    order = order[sums[order] > -np.inf]
    starts = np.flatnonzero(np.diff(bucket[order], prepend=-1))
    ends = np.append(starts[1:], order.size)
    worst = np.repeat(sums[order[np.minimum(starts + (limit - 1), ends - 1)]], ends - starts)
    worst = np.where(np.repeat(ends - starts, ends - starts) < limit, -np.inf, worst)
    order = order[sums[order] >= worst - slack]
    return order, np.append(np.flatnonzero(np.diff(bucket[order], prepend=-1)), order.size)


# --- by the algorithms of the thesis


def _by_window(found: Strata, ticks: UpdateTicks | None, limit: int, *, dynamic: bool) -> TickMatches | None:
    """By k-SSP or k-DSSP: the best paths of each group in each of its windows, and those that may tie with the last."""
    graph, windows = found.graph, found.windows
    groups, window = found.group, np.zeros(found.group.size, np.int64)
    if ticks is not None:
        groups, tick = tick_roots(graph.offsets[0], graph.place, ticks.first, ticks.last)
        window = np.searchsorted(found.tick, tick)
    places, of_path = [np.empty((0, graph.offsets.shape[0]), np.int32)], [np.empty(0, np.int64)]
    for group in np.unique(groups):
        inside = window[groups == group]
        offsets = np.ascontiguousarray(graph.offsets[:, group : group + 2])
        low, high, wanted = windows.low[inside], windows.high[inside], limit
        while True:
            wanted *= 2
            if wanted > max(MAX_ASKED, 4 * limit):
                return None
            sums, paths = k_best_by_window(
                graph.place, graph.rank, graph.weight, offsets, low, high, wanted, dynamic, False
            )
            # An error of 0 still asks for all that are equal to the last: their order is settled by times.
            may_count = (sums >= sums[:, limit - 1 : limit] - SLACK * found.error) & (sums > -np.inf)
            if not may_count[:, -1].any():
                break
        places.append(graph.place[paths[may_count]])
        of_path.append(np.repeat(found.tick[inside], np.count_nonzero(may_count, axis=1)))
    return TickMatches(np.ascontiguousarray(np.concatenate(places).T), np.concatenate(of_path))
