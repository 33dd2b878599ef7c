"""A sequence with a linear score and its events in, the matches that can be among the k best out.

Contract: all of the k best of every group and tick are among them, and few others; None if that would take looking at
too many (the comparisons hold too rarely, or too many different scores are too close together). Checked by
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
from streamsift.runtime.paths.board import Cast, Views, board_paths
from streamsift.runtime.paths.by_kinds import by_kinds, kinds_of
from streamsift.runtime.paths.enumerate import best_paths
from streamsift.runtime.paths.sets import Roots, Rule, root_sums, roots_at
from streamsift.runtime.paths.strata import EMPTY, Strata, strata, tick_roots
from streamsift.runtime.paths.thesis import k_best_by_window

SLACK = 6  # times the error of one sum: two sums, two scores and the bound between them
MOST_ASKED = 1 << 10  # paths of one window, for ties, of algorithms whose cost rises with their square
FEW_PATHS = 16  # for each that is asked for, and so many more: past them, kinds of paths are read


@dataclass(frozen=True, slots=True)
class Paths:
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
) -> Paths | None:
    """`group_by` [places] are the GROUP BY codes, or empty; matches start where they may [places], if not anywhere."""
    found = strata(plan, events, ticks, may_start)
    if isinstance(found, str):
        none = np.empty((len(plan.alternative.steps), 0), np.int32)
        return Paths(none, np.empty(0, np.int64)) if found == EMPTY else None
    known, rule = None, rule_of(found, limit)
    if plan.by is not RankBy.LAZY:
        known = _by_window(found, ticks, limit, dynamic=plan.by is RankBy.K_DSSP)
    elif ticks is not None and has_groups(found):
        known = _by_boards(plan, events, found, ticks, group_by, rule)
    if known is not None:
        return known
    buckets = _of_all(found, group_by, rule) if ticks is None else _of_ticks(found, ticks, group_by)
    return _read(plan, events, found, buckets, rule)


@dataclass(frozen=True, slots=True)
class Buckets:
    """Roots, bucket by bucket: where each bucket starts [buckets + 1], and its tick."""

    roots: Roots
    starts: Int64
    tick: Int64

    def at(self, which: Int64) -> Buckets:
        sizes = np.diff(self.starts)[which]
        starts = np.append(0, np.cumsum(sizes))
        roots = np.repeat(self.starts[which] - starts[:-1], sizes) + np.arange(starts[-1])
        return Buckets(roots_at(self.roots, roots), starts, self.tick[which])


def rule_of(found: Strata, limit: int) -> Rule:
    """How far to read for so many paths: on to all whose scores may be as good as the last one's, if sums round."""
    slack = SLACK * found.entries.error if found.entries.error > 0 else -1.0
    return Rule(limit, slack, MAX_PATHS, -np.inf, np.empty(0, np.int32), True)


def _few(rule: Rule) -> Rule:
    return rule._replace(most=FEW_PATHS * (rule.limit + FEW_PATHS))


def _read(plan: PathPlan, events: Events, found: Strata, buckets: Buckets, rule: Rule) -> Paths | None:
    """Path by path; by kinds where too many could be as good as the last of the best, or break a comparison."""
    paths, counts, gave_up = best_paths(found.graph, buckets.roots, buckets.starts, _few(rule))
    places, tick = found.graph.place[paths].T, np.repeat(buckets.tick, counts)
    if gave_up.any():
        is_known, left = np.repeat(~gave_up, counts), buckets.at(np.flatnonzero(gave_up))
        more = by_kinds(plan, events, found, left.roots, left.starts, rule._replace(most=MAX_KINDS))
        if more is None:
            return None
        places = np.concatenate([places[:, is_known], more[0]], axis=1)
        tick = np.concatenate([tick[is_known], left.tick[more[1]]])
    return Paths(np.ascontiguousarray(places), tick)


# --- windows of ticks --------------------------------------------------------------------------------------------


def has_groups(found: Strata) -> bool:
    return bool(found.entries.offsets.shape[1] > 2)


def _by_boards(
    plan: PathPlan, events: Events, found: Strata, ticks: UpdateTicks, group_by: Int32, rule: Rule
) -> Paths | None:
    """With keys every key has paths of its own, so a move looks only at the keys of new events. None: too many ties."""
    cast = cast_of(found, group_by)
    owner, tick = tick_roots(cast.first_starts, found.graph.place[cast.firsts], ticks.first, ticks.last)
    visits = np.searchsorted(found.windows.tick, tick)
    starts = np.searchsorted(owner, np.arange(cast.first_starts.size))
    rule = rule._replace(slack=max(rule.slack, 0.0))
    for many in (False, True):
        # Kinds cost a pass over all entries; then a board may hold many ties, for few of them leave it.
        kind = kinds_of(plan, events, found, by_score=True).kind if many else np.empty(0, np.int32)
        kept = rule if many else _few(rule)
        paths, counts, gave_up = board_paths(found.graph, cast, views_of(found), starts, visits, kept, kind)
        if not gave_up:
            return Paths(np.ascontiguousarray(found.graph.place[paths].T), np.repeat(tick, counts))
    return None


def _of_ticks(found: Strata, ticks: UpdateTicks, group_by: Int32) -> Buckets:
    """A bucket for each window, or for each GROUP BY value in it, with the groups that may have a match there."""
    windows, offsets = found.windows, found.entries.offsets
    group, tick, owner = np.zeros(windows.tick.size, np.int32), windows.tick, np.zeros(windows.tick.size, np.int32)
    if has_groups(found):
        group, tick = tick_roots(offsets[0], found.entries.place, ticks.first, ticks.last)
        owner = group_by[found.entries.place[offsets[0, group]]] if group_by.size else np.zeros_like(group)
        order = np.lexsort([tick, owner])
        group, tick, owner = group[order], tick[order], owner[order]
    window, anywhere = np.searchsorted(windows.tick, tick), np.full(tick.size, -1, np.int32)
    low, cut, high = (bound[window] for bound in views_of(found))
    roots = Roots(group, low, cut, high, anywhere, anywhere, found.pairs, found.codes)
    starts = np.flatnonzero((np.diff(tick, prepend=tick[:1] - 1) != 0) | (np.diff(owner, prepend=-1) != 0))
    return Buckets(roots, np.append(starts, tick.size), tick[starts])


def views_of(found: Strata) -> Views:
    return Views(found.windows.low, found.windows.cut, found.windows.high)


def cast_of(found: Strata, group_by: Int32) -> Cast:
    """The first and last entries of every GROUP BY value, or of all."""
    offsets, place = found.entries.offsets, found.entries.place
    owners = int(group_by.max(initial=-1)) + 1 if group_by.size else 1
    sides = []
    for step in (0, -1):
        entries = np.arange(offsets[step, 0], offsets[step, -1], dtype=np.int32)
        owner = group_by[place[entries]] if group_by.size else np.zeros(entries.size, np.int32)
        entries = entries[np.lexsort([place[entries], owner])]
        sides += [np.searchsorted(np.sort(owner), np.arange(owners + 1)), entries]
    groups = np.arange(offsets.shape[1] - 1, dtype=np.int32)
    group_of = np.concatenate([np.repeat(groups, np.diff(part)) for part in offsets])
    return Cast(sides[0], sides[1], sides[2], sides[3], group_of, found.pairs, found.codes)


# --- one window, or one for each first event ---------------------------------------------------------------------


def _of_all(found: Strata, group_by: Int32, rule: Rule) -> Buckets:
    graph, windows = found.graph, found.windows
    low, cut, high = (np.broadcast_to(bound, windows.group.shape) for bound in views_of(found))
    since = np.full(low.size, -1, np.int32)
    roots = Roots(windows.group, low.copy(), cut.copy(), high.copy(), windows.first, since, found.pairs, found.codes)
    bucket = np.zeros(low.size, np.int64)
    if group_by.size:
        bucket = group_by[graph.place[graph.offsets[0, windows.group]]].astype(np.int64)
    # Where comparisons may fail, the best sum of a root is only a bound of its matches: no root can be left out.
    enough = low.size + 1 if found.bounds_only else rule.limit
    order, starts = _chosen(root_sums(graph, roots), bucket, enough, max(rule.slack, 0.0))
    return Buckets(roots_at(roots, order), starts, np.zeros(starts.size - 1, np.int64))


def _chosen(sums: Float64, bucket: Int64, limit: int, slack: float) -> tuple[Int64, Int64]:
    """The roots that can hold one of the k best of their bucket, bucket by bucket, and where each bucket starts."""
    order = np.lexsort([-sums, bucket])
    order = order[sums[order] > -np.inf]
    starts = np.flatnonzero(np.diff(bucket[order], prepend=-1))
    ends = np.append(starts[1:], order.size)
    worst = np.repeat(sums[order[np.minimum(starts + (limit - 1), ends - 1)]], ends - starts)
    worst = np.where(np.repeat(ends - starts, ends - starts) < limit, -np.inf, worst)
    order = order[sums[order] >= worst - slack]
    return order, np.append(np.flatnonzero(np.diff(bucket[order], prepend=-1)), order.size)


# --- by the algorithms of the thesis -----------------------------------------------------------------------------


def _by_window(found: Strata, ticks: UpdateTicks | None, limit: int, *, dynamic: bool) -> Paths | None:
    """By k-SSP or k-DSSP: the best paths of each group in each of its windows, and those that may tie with the last."""
    entries, windows = found.entries, found.windows
    groups, window = windows.group, np.zeros(windows.group.size, np.int64)
    if ticks is not None:
        groups, tick = tick_roots(entries.offsets[0], entries.place, ticks.first, ticks.last)
        window = np.searchsorted(windows.tick, tick)
    places, of_path = [np.empty((0, entries.offsets.shape[0]), np.int32)], [np.empty(0, np.int64)]
    rank = found.graph.rank
    for group in np.unique(groups):
        own = window[groups == group]
        offsets = np.ascontiguousarray(entries.offsets[:, group : group + 2])
        asked = limit
        while True:
            asked *= 2
            if asked > max(MOST_ASKED, 4 * limit):
                return None
            sums, paths = k_best_by_window(
                entries.place, rank, entries.weight, offsets, windows.low[own], windows.high[own], asked, dynamic, False
            )
            # An error of 0 still asks for all that are equal to the last: their order is settled by times.
            may_count = sums >= sums[:, limit - 1 : limit] - SLACK * entries.error
            may_count &= sums > -np.inf
            if not may_count[:, -1].any():
                break
        places.append(entries.place[paths[may_count]])
        of_path.append(np.repeat(windows.tick[own], np.count_nonzero(may_count, axis=1)))
    return Paths(np.ascontiguousarray(np.concatenate(places).T), np.concatenate(of_path))
