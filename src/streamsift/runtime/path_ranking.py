"""A sequence with a linear score and its events in, the matches that can be among the k best out.

Contract: all of the k best of every group and tick are among them, ties included, and few others; None if that would
take looking at too many (the comparisons hold too rarely, or too many scores are too close together). Checked by
tests/test_generated_ranking.py against the oracle and by tests/runtime/test_path_ranking.py against all matches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from streamsift.physical.choices import RankBy
from streamsift.physical.plan import PathPlan
from streamsift.physical.ranking import MOST_PATHS
from streamsift.runtime.buffers import OPERATORS
from streamsift.runtime.candidates import candidates, step_rows
from streamsift.runtime.codes import codes, group_codes
from streamsift.runtime.evaluate import evaluate
from streamsift.runtime.events import Events
from streamsift.runtime.kernels import UNKNOWN, Bool, Float64, Int32, Int64, group_entries
from streamsift.runtime.path_graph import Graph, build_graph, cut_windows
from streamsift.runtime.path_queue import best_paths
from streamsift.runtime.path_search import PAIR_FIELDS, Roots, Rule, root_sums
from streamsift.runtime.path_weights import path_weights
from streamsift.runtime.pq_array import k_best_by_window
from streamsift.runtime.ticks import Ticks

SLACK = 6  # times the error of one sum: two sums, two scores and the bound between them
CHUNK_BUCKETS = 1 << 14
MOST_ASKED = 1 << 10  # paths of one window, for ties, of algorithms whose cost rises with their square
EMPTY, TOO_LARGE = "empty", "too large"  # no graph: a step has no event, or weights that do not add up


@dataclass(frozen=True, slots=True)
class Paths:
    """Matches [steps, m] as places, and the tick (0 without UPDATE) of which each is one of the best."""

    places: Int32
    tick: Int64


@dataclass(frozen=True, slots=True)
class Entries:
    """The candidates of all steps that have a weight, step by step, each by (group, place)."""

    offsets: Int64  # [steps, groups + 1]
    place: Int32
    weight: Float64
    error: float  # by which sums may differ from scores, in units
    unit: float  # of weights


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows [low, high) of ascending bounds with their ticks, and the roots: a group in a window."""

    low: Int32
    high: Int32
    tick: Int64
    root_window: Int64
    root_group: Int32
    root_first: Int32  # the entry that paths begin with, -1 for any


@dataclass(frozen=True, slots=True)
class Strata:
    """The graph of all windows, and where paths are looked for in it. A root is of the window `windows.root_window`."""

    graph: Graph
    roots: Roots
    windows: Windows
    entries: Entries
    bounds_only: bool  # whether the best sum of a root may be no match's


def strata(plan: PathPlan, events: Events, ticks: Ticks | None, starts: Bool | None = None) -> Strata | str:
    """The graph of a plan; EMPTY or TOO_LARGE where there is none. `starts` [places]: where matches may start."""
    entries = _entries(plan, events)
    if not np.isfinite(entries.error) or not np.isfinite(entries.weight).all():
        return TOO_LARGE
    if (entries.offsets[:, 0] == entries.offsets[:, -1]).any():
        return EMPTY
    windows = _windows(events, ticks, entries, starts)
    cut, front, back = cut_windows(windows.low, windows.high, events.rank.size)
    places = entries.place
    graph = build_graph(entries.offsets, places, events.rank[places], entries.weight, front[places], back[places])
    pairs, coded = _coded(plan, events, entries)
    of = windows.root_window
    roots = Roots(windows.root_group, windows.low[of], cut[of], windows.high[of], windows.root_first, pairs, coded)
    return Strata(graph, roots, windows, entries, bool(pairs.size) or _cut_in_ties(cut, events))


def path_candidates(
    plan: PathPlan, events: Events, ticks: Ticks | None, group_by: Int32, limit: int, may_start: Bool | None = None
) -> Paths | None:
    """`group_by` [places] are the GROUP BY codes, or empty; matches start where they may [places], if not anywhere."""
    found = strata(plan, events, ticks, may_start)
    if isinstance(found, str):
        none = np.empty((len(plan.alternative.steps), 0), np.int32)
        return Paths(none, np.empty(0, np.int64)) if found == EMPTY else None
    if plan.by is not RankBy.LAZY:
        return window_paths(found, limit, dynamic=plan.by is RankBy.K_DSSP)
    entries, windows, roots = found.entries, found.windows, found.roots
    of = windows.root_window
    group = np.zeros(of.size, np.int32)
    if group_by.size:
        group = group_by[entries.place[entries.offsets[0, roots.group]]]
    # Where comparisons may fail, the best sum of a root is only a bound of its matches: no root can be left out.
    enough = of.size + 1 if found.bounds_only else limit
    slack = SLACK * entries.error
    bucket = group.astype(np.int64) * windows.low.size + (of if ticks is not None else 0)
    order, starts = _chosen(root_sums(found.graph, roots), bucket, enough, slack)
    rule = Rule(limit, slack, _order_matters(events), MOST_PATHS)
    return _found(found.graph, roots_at(roots, order), starts, windows.tick[of[order]], rule)


def window_paths(found: Strata, limit: int, *, dynamic: bool) -> Paths | None:
    """By k-SSP or k-DSSP: the best paths of each group in each of its windows, and those that may tie with the last."""
    entries, roots, windows = found.entries, found.roots, found.windows
    places, ticks = [np.empty((0, entries.offsets.shape[0]), np.int32)], [np.empty(0, np.int64)]
    rank = found.graph.rank
    for group in np.unique(roots.group):
        own = np.flatnonzero(roots.group == group)
        offsets = np.ascontiguousarray(entries.offsets[:, group : group + 2])
        asked = limit
        while True:
            asked *= 2
            if asked > max(MOST_ASKED, 4 * limit):
                return None
            sums, paths = k_best_by_window(
                entries.place, rank, entries.weight, offsets, roots.low[own], roots.high[own], asked, dynamic, False
            )
            # An error of 0 still asks for all that are equal to the last: their order is settled by times.
            may_count = sums >= sums[:, limit - 1 : limit] - SLACK * entries.error
            may_count &= sums > -np.inf
            if not may_count[:, -1].any():
                break
        places.append(entries.place[paths[may_count]])
        ticks.append(np.repeat(windows.tick[windows.root_window[own]], np.count_nonzero(may_count, axis=1)))
    return Paths(np.ascontiguousarray(np.concatenate(places).T), np.concatenate(ticks))


# --- entries -----------------------------------------------------------------------------------------------------


def _entries(plan: PathPlan, events: Events) -> Entries:
    places = candidates(plan.alternative, events)
    weights = path_weights(plan.score, plan.alternative, events, places)
    keep = [~np.isnan(weight) for weight in weights.steps]
    places = [part[kept] for part, kept in zip(places, keep, strict=True)]
    if plan.keys:
        columns = [[events.columns.at(key, events.rows_at(part)) for part in places] for key in plan.keys]
        parts, count = group_codes(columns)
    else:
        parts, count = [np.zeros(part.size, np.int32) for part in places], 1
    offsets, ordered, base = [], [], 0
    for group in parts:
        starts, order = group_entries(group, count)
        offsets.append(starts + base)
        ordered.append(order)
        base += order.size
    weight = [part[kept][order] for part, kept, order in zip(weights.steps, keep, ordered, strict=True)]
    place = [part[order] for part, order in zip(places, ordered, strict=True)]
    return Entries(np.stack(offsets), np.concatenate(place), np.concatenate(weight), weights.error, weights.unit)


def _coded(plan: PathPlan, events: Events, entries: Entries) -> tuple[Int64, Int64]:
    """The comparisons that no key stands for: their rows of Roots.pairs, and the codes of both sides."""
    pairs = np.zeros((len(plan.compared), PAIR_FIELDS), np.int64)
    coded = np.full((2 * len(plan.compared), entries.place.size), UNKNOWN, np.int64)
    for number, (this, pair) in enumerate(plan.compared):
        pairs[number] = pair.earlier, this, OPERATORS[pair.op]
        ranges = [slice(entries.offsets[step, 0], entries.offsets[step, -1]) for step in (pair.earlier, this)]
        sides = [
            evaluate(side, step_rows(plan.alternative, events, events.rows_at(entries.place[where])))
            for side, where in zip((pair.earlier_side, pair.this_side), ranges, strict=True)
        ]
        for row, (where, values) in enumerate(
            zip(ranges, codes(sides, ordered=pair.op not in ("=", "!=")), strict=True)
        ):
            coded[2 * number + row, where] = values
    return pairs, coded


# --- windows and roots -------------------------------------------------------------------------------------------


def _windows(events: Events, ticks: Ticks | None, entries: Entries, starts: Bool | None) -> Windows:
    steps, count = entries.offsets.shape[0], events.rank.size
    first, last = entries.offsets[0, 0], entries.offsets[0, -1]
    if ticks is not None:
        group, tick = tick_roots(entries.offsets[0], entries.place, ticks.first, ticks.last)
        distinct, of = np.unique(tick, return_inverse=True)
        low = np.searchsorted(ticks.last, distinct, side="left").astype(np.int32)
        high = np.searchsorted(ticks.first, distinct, side="right").astype(np.int32)
        return Windows(low, high, distinct, of.astype(np.int64), group, np.full(group.size, -1, np.int32))
    if starts is None and (events.window is None or steps == 1):
        group = np.flatnonzero(np.diff(entries.offsets[0])).astype(np.int32)
        whole, none = np.array([0, count], np.int32), np.full(group.size, -1, np.int32)
        return Windows(whole[:1], whole[1:], np.zeros(1, np.int64), np.zeros(group.size, np.int64), group, none)
    order = np.argsort(entries.place[first:last], kind="stable")
    if starts is not None:
        order = order[starts[entries.place[first:last][order]]]
    low = entries.place[first:last][order]
    high = np.minimum(events.window_limit(low), count - 1).astype(np.int32) + np.int32(1)
    group = np.repeat(np.arange(entries.offsets.shape[1] - 1, dtype=np.int32), np.diff(entries.offsets[0]))[order]
    return Windows(
        low, high, np.zeros(low.size, np.int64), np.arange(low.size), group, (order + first).astype(np.int32)
    )


@njit(cache=True, nogil=True)
def tick_roots(offsets: Int64, place: Int32, first: Int64, last: Int64) -> tuple[Int32, Int64]:
    """Each group with each tick whose window holds an entry of it: (groups, ticks), without repetition."""
    count = 0
    for filling in range(2):
        if filling == 1:
            groups, ticks = np.empty(count, np.int32), np.empty(count, np.int64)
            count = 0
        for group in range(offsets.size - 1):
            done = first[0] - 1
            for entry in range(offsets[group], offsets[group + 1]):
                for tick in range(max(done + 1, first[place[entry]]), last[place[entry]] + 1):
                    if filling == 1:
                        groups[count] = group
                        ticks[count] = tick
                    count += 1
                done = max(done, last[place[entry]])
    return groups, ticks


def ticks_with_events(ticks: Ticks) -> Int64:
    """The ticks whose window holds any event."""
    everywhere = np.arange(ticks.first.size, dtype=np.int32)
    return tick_roots(np.array([0, everywhere.size], np.int64), everywhere, ticks.first, ticks.last)[1]


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


def roots_at(roots: Roots, which: Int64) -> Roots:
    group, low, cut, high, first = (column[which] for column in roots[:5])
    return Roots(group, low, cut, high, first, roots.pairs, roots.codes)


def _cut_in_ties(cut: Int32, events: Events) -> bool:
    inner = cut[(cut > 0) & (cut < events.rank.size)]
    return bool((events.rank[inner] == events.rank[inner - 1]).any())


def _order_matters(events: Events) -> bool:
    """Whether rows of equal time are told apart by `order`: then ties go by times of all variables, order last."""
    return bool(((np.diff(events.ticks) == 0) & (np.diff(events.rank) > 0)).any())


# --- paths -------------------------------------------------------------------------------------------------------


def _found(graph: Graph, roots: Roots, starts: Int64, tick: Int64, rule: Rule) -> Paths | None:
    parts, ticks = [np.empty((0, graph.offsets.shape[0]), np.int32)], [np.empty(0, np.int64)]
    for begin in range(0, starts.size - 1, CHUNK_BUCKETS):
        some = starts[begin : begin + CHUNK_BUCKETS + 1]
        paths, counts, gave_up = best_paths(graph, roots, some, rule)
        if gave_up.any():
            return None
        parts.append(graph.place[paths])
        ticks.append(np.repeat(tick[some[:-1]], counts))
    return Paths(np.ascontiguousarray(np.concatenate(parts).T), np.concatenate(ticks))
