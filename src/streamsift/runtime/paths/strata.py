"""Build the stratified graph of all windows of a sequence with a linear score, and its search roots.

Candidates without partners in their windows are dropped first, which costs less than keeping them in the graph.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numba import njit

from streamsift.physical.plan import PathPlan
from streamsift.runtime.arrays.comparing import OPERATORS
from streamsift.runtime.arrays.dtypes import UNKNOWN, Bool, Float64, Int32, Int64
from streamsift.runtime.arrays.grouping import group_entries
from streamsift.runtime.events.candidates import candidates, step_rows
from streamsift.runtime.events.events import Events, tie_levels
from streamsift.runtime.events.update_ticks import UpdateTicks
from streamsift.runtime.expressions.codes import codes, group_codes
from streamsift.runtime.expressions.evaluate import evaluate
from streamsift.runtime.paths.enumerate import Roots
from streamsift.runtime.paths.graph import PAIR_FIELDS, Graph, build_graph
from streamsift.runtime.paths.weights import path_weights
from streamsift.runtime.resources import FEWER_TICKS, reserve

ROOT_BYTES = 100  # per window: its bounds, its group and the memory of its search


class GaveUp(Enum):
    """Why the path search gave up, so that all matches are enumerated."""

    NO_SUMS = "weights are not finite"
    TOO_MANY = "too many matches would be read"


@dataclass(frozen=True, slots=True)
class WeightedEntries:
    """The candidates of all steps that have a weight, step by step, each sorted by (group, place)."""

    offsets: Int64  # [steps, groups + 1]
    place: Int32
    weight: Float64
    error: float  # upper bound for the difference of sums and scores, in units
    unit: float  # of weights


@dataclass(frozen=True, slots=True)
class Strata:
    """The graph of all windows, and its search roots."""

    graph: Graph
    tick: Int64  # [windows] 0 without ticks
    roots: Roots  # without ticks: one per first event and its window, or one per group if there is one window
    error: float  # upper bound for the difference of sums and scores, in units
    unit: float  # of weights
    bounds_only: bool  # True if the best sum of a root is only an upper bound for its matches


@dataclass(frozen=True, slots=True)
class Buckets:
    """Roots by bucket: the offsets of the buckets [buckets + 1], and the tick of each."""

    roots: Roots
    starts: Int64
    tick: Int64

    def at(self, which: Int64) -> Buckets:
        sizes = np.diff(self.starts)[which]
        starts = np.append(0, np.cumsum(sizes))
        roots = np.repeat(self.starts[which] - starts[:-1], sizes) + np.arange(starts[-1])
        return Buckets(self.roots.at(roots), starts, self.tick[which])


def build_strata(
    plan: PathPlan, events: Events, ticks: UpdateTicks | None, starts: Bool | None = None
) -> Strata | GaveUp | None:
    """Build the graph of a plan; return None if it has no path. `starts` [places] is a mask of allowed first events."""
    entries = _entries(plan, events)
    if not np.isfinite(entries.error) or not np.isfinite(entries.weight).all():
        return GaveUp.NO_SUMS
    if (entries.offsets[:, 0] == entries.offsets[:, -1]).any():
        return None
    low, high, tick, roots = _windows(events, ticks, entries, starts)
    kept = in_reach(entries.offsets, entries.place, events.rank[entries.place], low, high)
    if not kept.any():
        return None
    if not kept.all():
        offsets = np.append(0, np.cumsum(kept))[entries.offsets]
        entries = replace(entries, offsets=offsets, place=entries.place[kept], weight=entries.weight[kept])
        low, high, tick, roots = _windows(events, ticks, entries, starts)
    rank, ties, size = events.rank[entries.place], _ties(events, entries), events.rank.size
    graph = build_graph(entries.offsets, entries.place, rank, ties, entries.weight, low, high, size)
    pairs, coded = _coded(plan, events, entries)
    cut = graph.windows.cut[(graph.windows.cut > 0) & (graph.windows.cut < size)]
    bounds_only = bool(pairs.size) or bool((events.rank[cut] == events.rank[cut - 1]).any())
    return Strata(graph._replace(pairs=pairs, codes=coded), tick, roots, entries.error, entries.unit, bounds_only)


def _entries(plan: PathPlan, events: Events) -> WeightedEntries:
    places = candidates(plan.alternative, events)
    weights = path_weights(plan.score, plan.alternative, events, places)
    keep = [~np.isnan(weight) for weight in weights.steps]
    places = [part[kept] for part, kept in zip(places, keep, strict=True)]
    groups, count = [np.zeros(part.size, np.int32) for part in places], 1
    if plan.keys:
        groups, count = group_codes([[events.columns.at(key, events.rows_at(p)) for p in places] for key in plan.keys])
    offsets, place, weight, base = [], [], [], 0
    for step, group in enumerate(groups):
        starts, order = group_entries(group, count)
        offsets.append(starts + base)
        place.append(places[step][order])
        weight.append(weights.steps[step][keep[step]][order])
        base += order.size
    return WeightedEntries(
        np.stack(offsets), np.concatenate(place), np.concatenate(weight), weights.error, weights.unit
    )


def _ties(events: Events, entries: WeightedEntries) -> Int32:
    """Return the tie breakers of equal sums [levels, n]: only places if no two events of a step have the same time."""
    levels = tie_levels(events)
    if len(levels) > 1:
        times = [np.sort(levels[0][entries.place[begin:end]]) for begin, end in entries.offsets[:, [0, -1]]]
        if any((np.diff(part) == 0).any() for part in times):
            return np.stack([level[entries.place] for level in levels])
    return entries.place[np.newaxis]


def _coded(plan: PathPlan, events: Events, entries: WeightedEntries) -> tuple[Int64, Int64]:
    """Return the comparisons that keys do not cover, as Graph.pairs, and the codes of both sides."""
    pairs = np.zeros((len(plan.compared), PAIR_FIELDS), np.int64)
    coded = np.full((2 * len(plan.compared), entries.place.size), UNKNOWN, np.int64)
    for number, (this, pair) in enumerate(plan.compared):
        pairs[number] = pair.earlier, this, OPERATORS[pair.op]
        ranges = [slice(entries.offsets[step, 0], entries.offsets[step, -1]) for step in (pair.earlier, this)]
        sides = [
            evaluate(side, step_rows(plan.alternative, events, events.rows_at(entries.place[where])))
            for side, where in zip((pair.earlier_side, pair.this_side), ranges, strict=True)
        ]
        both = codes(sides, ordered=pair.op not in ("=", "!="))
        coded[2 * number, ranges[0]], coded[2 * number + 1, ranges[1]] = both
    return pairs, coded


def _windows(
    events: Events, ticks: UpdateTicks | None, entries: WeightedEntries, starts: Bool | None
) -> tuple[Int32, Int32, Int64, Roots]:
    """Return the windows (low, high) in which paths can begin, and the ticks and roots of Strata."""
    offsets, place = entries.offsets[0], entries.place[: entries.offsets[0, -1]]
    if ticks is not None:
        _, tick = tick_roots(np.array([0, place.size]), np.sort(place), ticks)
        lows, highs = tick_windows(ticks, tick)
        return lows.astype(np.int32), highs.astype(np.int32), tick, _anywhere(np.empty(0, np.int32), tick[:0])
    if starts is None and (events.window is None or entries.offsets.shape[0] == 1):
        group = np.flatnonzero(np.diff(offsets)).astype(np.int32)
        whole, zeros = np.array([0, events.rank.size], np.int32), np.zeros(group.size, np.int64)
        return whole[:1], whole[1:], np.zeros(1, np.int64), _anywhere(group, zeros)
    order = np.argsort(place, kind="stable")
    if starts is not None:
        order = order[starts[place[order]]]
    low = place[order]
    high = np.minimum(events.window_limit(low), events.rank.size - 1).astype(np.int32) + np.int32(1)
    roots = _anywhere(_groups(offsets)[order], np.arange(low.size))._replace(first=order.astype(np.int32))
    return low, high, np.zeros(low.size, np.int64), roots


def _groups(offsets: Int64) -> Int32:
    """Return the group of each entry of a step."""
    return np.repeat(np.arange(offsets.size - 1, dtype=np.int32), np.diff(offsets))


def _anywhere(group: Int32, window: Int64) -> Roots:
    nowhere = np.full(group.size, -1, np.int32)
    return Roots(group, window, first=nowhere, since=nowhere)


def tick_roots(offsets: Int64, place: Int32, ticks: UpdateTicks) -> tuple[Int32, Int64]:
    """Return all pairs (groups, ticks) such that the window of the tick contains an entry of the group, each once.

    The places of a group ascend, and so do their last ticks.
    """
    group, place = _groups(offsets), place[offsets[0] : offsets[-1]]
    begin, last = ticks.first[place], ticks.last[place]
    follows = np.flatnonzero(np.diff(group) == 0) + 1
    begin[follows] = np.maximum(begin[follows], last[follows - 1] + 1)
    counts = np.maximum(last - begin + 1, 0)
    reserve(int(counts.sum()) * ROOT_BYTES, "the windows of all ticks of UPDATE", FEWER_TICKS)
    ends = np.cumsum(counts)
    return np.repeat(group, counts), np.repeat(last - ends, counts) + np.arange(1, counts.sum() + 1)


def tick_windows(ticks: UpdateTicks, which: Int32 | Int64 | int) -> tuple[Int64, Int64]:
    """Return the places [low, high) in the windows of ticks."""
    return np.searchsorted(ticks.last, which, side="left"), np.searchsorted(ticks.first, which, side="right")


def ticks_with_events(ticks: UpdateTicks) -> Int64:
    """Return the ticks whose window contains an event."""
    everywhere = np.arange(ticks.first.size, dtype=np.int32)
    return tick_roots(np.array([0, everywhere.size]), everywhere, ticks)[1]


def buckets_of(strata: Strata, ticks: UpdateTicks | None, group_by: Int32) -> Buckets:
    """Return a bucket per window, or per GROUP BY value in a window; without ticks, one bucket with all roots."""
    if ticks is None:
        return Buckets(strata.roots, np.array([0, strata.roots.group.size]), strata.tick[:1])
    graph, tick = strata.graph, strata.tick
    group, owner = np.zeros(tick.size, np.int32), np.zeros(tick.size, np.int32)
    if graph.offsets.shape[1] > 2:
        group, tick = tick_roots(graph.offsets[0], graph.place, ticks)
        owner = group_by[graph.place[graph.offsets[0, group]]] if group_by.size else np.zeros_like(group)
        order = np.lexsort([tick, owner])
        group, tick, owner = group[order], tick[order], owner[order]
    starts = np.flatnonzero((np.diff(tick, prepend=tick[:1] - 1) != 0) | (np.diff(owner, prepend=-1) != 0))
    roots = _anywhere(group, np.searchsorted(strata.tick, tick))
    return Buckets(roots, np.append(starts, tick.size), tick[starts])


@njit(cache=True, nogil=True)
def in_reach(offsets: Int64, place: Int32, rank: Int32, low: Int32, high: Int32) -> Bool:
    """Return a mask of the entries [n] that have a chain of entries of all earlier and all later steps in a window.

    This is a semi-join reduction: if a class is rare, most candidates of other classes have none of it in their
    windows. Windows [low, high) have ascending bounds. The chain to an entry that begins last is tested with the first
    window of the entry, the chain from it that ends first with the last window. These may be different windows, so
    some entries are kept needlessly, but none is dropped wrongly.
    """
    steps, groups, n = offsets.shape[0], offsets.shape[1] - 1, place.size
    places = place.max() + 1 if n else 0
    # For each place, the first window that ends after it, and the last window that begins at or before it (or -1).
    first_window = np.cumsum(np.bincount(high, minlength=places))
    last_window = np.cumsum(np.bincount(low, minlength=places)) - 1
    begins, ends, kept = np.full(n, -1, np.int32), np.empty(n, np.int32), np.zeros(n, np.bool_)
    for step in range(steps):
        for group in range(groups):
            before, last = offsets[max(step - 1, 0), group], -1
            for entry in range(offsets[step, group], offsets[step, group + 1]):
                if step == 0:
                    last = place[entry]
                else:
                    while before < offsets[step - 1, group + 1] and rank[before] < rank[entry]:
                        last = max(last, begins[before])
                        before += 1
                window = first_window[place[entry]]
                if window < high.size and low[window] <= last:
                    begins[entry], kept[entry] = last, True
    for step in range(steps - 1, -1, -1):
        for group in range(groups):
            behind, first = offsets[min(step + 1, steps - 1), group + 1] - 1, 1 << 31
            for entry in range(offsets[step, group + 1] - 1, offsets[step, group] - 1, -1):
                if step == steps - 1:
                    first = place[entry]
                else:
                    while behind >= offsets[step + 1, group] and rank[behind] > rank[entry]:
                        if kept[behind]:
                            first = min(first, ends[behind])
                        behind -= 1
                window = last_window[place[entry]]
                kept[entry] = kept[entry] and window >= 0 and first < high[window]
                if kept[entry]:
                    ends[entry] = first
    return kept
