"""Build the stratified graph of all windows of a sequence with a linear score, and the roots to search it from."""

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
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.ties import tie_levels
from streamsift.runtime.events.update_ticks import UpdateTicks
from streamsift.runtime.expressions.codes import codes, group_codes
from streamsift.runtime.expressions.evaluate import evaluate
from streamsift.runtime.paths.enumerate import Roots
from streamsift.runtime.paths.graph import PAIR_FIELDS, Graph, Windows, build_graph, cut_windows
from streamsift.runtime.paths.reachable import in_reach, offsets_of
from streamsift.runtime.paths.weights import path_weights
from streamsift.runtime.resources import FEWER_TICKS, reserve

ROOT_BYTES = 100  # for each window: its bounds, its group and what the search for its best paths takes


class GaveUp(Enum):
    """Why the best matches are not known: then all matches are enumerated."""

    NO_SUMS = "weights do not add up"
    TOO_MANY = "too many matches would be read"


@dataclass(frozen=True, slots=True)
class WeightedEntries:
    """The candidates of all steps that have a weight, step by step, each by (group, place)."""

    offsets: Int64  # [steps, groups + 1]
    place: Int32
    weight: Float64
    error: float  # by which sums may differ from scores, in units
    unit: float  # of weights


@dataclass(frozen=True, slots=True)
class Strata:
    """The graph of all windows, and where paths are searched for in it.

    With ticks, `tick` is that of each window. Without, there is a window for each first event, whose group and entry
    are given; or one for all, and groups.
    """

    graph: Graph
    windows: Windows
    tick: Int64
    group: Int32
    first: Int32  # the entry that paths begin with, -1 for any
    error: float  # by which sums may differ from scores, in units
    unit: float  # of weights
    bounds_only: bool  # True if the best sum of a root may be no match's

    @property
    def has_groups(self) -> bool:
        return bool(self.graph.offsets.shape[1] > 2)


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
        return Buckets(self.roots.at(roots), starts, self.tick[which])


def strata(
    plan: PathPlan, events: Events, ticks: UpdateTicks | None, starts: Bool | None = None
) -> Strata | GaveUp | None:
    """Build the graph of a plan; None if it has no path. `starts` [places]: where matches may start."""
    entries = _entries(plan, events)
    if not np.isfinite(entries.error) or not np.isfinite(entries.weight).all():
        return GaveUp.NO_SUMS
    if (entries.offsets[:, 0] == entries.offsets[:, -1]).any():
        return None
    bounds = _windows(events, ticks, entries, starts)
    kept = in_reach(entries.offsets, entries.place, events.rank[entries.place], *bounds[:2])
    if not kept.any():
        return None
    if not kept.all():
        offsets = offsets_of(entries.offsets, kept)
        entries = replace(entries, offsets=offsets, place=entries.place[kept], weight=entries.weight[kept])
        bounds = _windows(events, ticks, entries, starts)
    low, high, tick, group, first = bounds
    windows, front, back = cut_windows(low, high, events.rank.size)
    places = entries.place
    rank, ties = events.rank[places], _ties(events, entries)
    graph = build_graph(entries.offsets, places, rank, ties, entries.weight, front[places], back[places])
    pairs, coded = _coded(plan, events, entries)
    bounds_only = bool(pairs.size) or _cut_in_ties(windows.cut, events)
    graph = graph._replace(pairs=pairs, codes=coded)
    return Strata(graph, windows, tick, group, first, entries.error, entries.unit, bounds_only)


def _entries(plan: PathPlan, events: Events) -> WeightedEntries:
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
    return WeightedEntries(
        offsets=np.stack(offsets),
        place=np.concatenate(place),
        weight=np.concatenate(weight),
        error=weights.error,
        unit=weights.unit,
    )


def _ties(events: Events, entries: WeightedEntries) -> Int32:
    """Return what orders equal sums, [levels, n]: places alone where no two events of a step have the same time."""
    levels = tie_levels(events)
    if len(levels) > 1:
        times = [np.sort(levels[0][entries.place[begin:end]]) for begin, end in entries.offsets[:, [0, -1]]]
        if any((np.diff(part) == 0).any() for part in times):
            return np.stack([level[entries.place] for level in levels])
    return entries.place[np.newaxis]


def _coded(plan: PathPlan, events: Events, entries: WeightedEntries) -> tuple[Int64, Int64]:
    """Return the comparisons that no key stands for as Graph.pairs, and the codes of both sides."""
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
) -> tuple[Int32, Int32, Int64, Int32, Int32]:
    """Return (low, high, tick, group, first) as Strata has them."""
    steps, count, nothing = entries.offsets.shape[0], events.rank.size, np.empty(0, np.int32)
    first, last = entries.offsets[0, 0], entries.offsets[0, -1]
    if ticks is not None:
        _, tick = tick_roots(np.array([0, last - first]), np.sort(entries.place[first:last]), ticks.first, ticks.last)
        low = np.searchsorted(ticks.last, tick, side="left").astype(np.int32)
        high = np.searchsorted(ticks.first, tick, side="right").astype(np.int32)
        return low, high, tick, nothing, nothing
    if starts is None and (events.window is None or steps == 1):
        group = np.flatnonzero(np.diff(entries.offsets[0])).astype(np.int32)
        whole, none = np.array([0, count], np.int32), np.full(group.size, -1, np.int32)
        return whole[:1], whole[1:], np.zeros(1, np.int64), group, none
    order = np.argsort(entries.place[first:last], kind="stable")
    if starts is not None:
        order = order[starts[entries.place[first:last][order]]]
    low = entries.place[first:last][order]
    high = np.minimum(events.window_limit(low), count - 1).astype(np.int32) + np.int32(1)
    group = np.repeat(np.arange(entries.offsets.shape[1] - 1, dtype=np.int32), np.diff(entries.offsets[0]))[order]
    return low, high, np.zeros(low.size, np.int64), group, (order + first).astype(np.int32)


def tick_roots(offsets: Int64, place: Int32, first: Int64, last: Int64) -> tuple[Int32, Int64]:
    """Return each group with each tick whose window holds an entry of it: (groups, ticks), without repetition."""
    count = list_roots(offsets, place, first, last, np.empty(0, np.int32), np.empty(0, np.int64))
    reserve(count * ROOT_BYTES, "the windows of all ticks of UPDATE", FEWER_TICKS)
    groups, ticks = np.empty(count, np.int32), np.empty(count, np.int64)
    list_roots(offsets, place, first, last, groups, ticks)
    return groups, ticks


@njit(cache=True, nogil=True)
def list_roots(offsets: Int64, place: Int32, first: Int64, last: Int64, groups: Int32, ticks: Int64) -> int:
    """Write what `tick_roots` gives, if there is room, and return how many there are."""
    count = 0
    for group in range(offsets.size - 1):
        done = first[0] - 1
        for entry in range(offsets[group], offsets[group + 1]):
            begin, end = max(done + 1, first[place[entry]]), last[place[entry]] + 1
            if groups.size:
                for tick in range(begin, end):
                    groups[count + tick - begin] = group
                    ticks[count + tick - begin] = tick
            count += max(0, end - begin)
            done = max(done, last[place[entry]])
    return count


def ticks_with_events(ticks: UpdateTicks) -> Int64:
    """Return the ticks whose window holds any event."""
    everywhere = np.arange(ticks.first.size, dtype=np.int32)
    return tick_roots(np.array([0, everywhere.size], np.int64), everywhere, ticks.first, ticks.last)[1]


def _cut_in_ties(cut: Int32, events: Events) -> bool:
    inner = cut[(cut > 0) & (cut < events.rank.size)]
    return bool((events.rank[inner] == events.rank[inner - 1]).any())


def tick_buckets(found: Strata, ticks: UpdateTicks, group_by: Int32) -> Buckets:
    """Return a bucket for each window, or each GROUP BY value in it, with the groups that may have a match there."""
    graph, tick = found.graph, found.tick
    group, owner = np.zeros(tick.size, np.int32), np.zeros(tick.size, np.int32)
    if found.has_groups:
        group, tick = tick_roots(graph.offsets[0], graph.place, ticks.first, ticks.last)
        owner = group_by[graph.place[graph.offsets[0, group]]] if group_by.size else np.zeros_like(group)
        order = np.lexsort([tick, owner])
        group, tick, owner = group[order], tick[order], owner[order]
    roots = _roots(found, group, np.searchsorted(found.tick, tick), np.full(tick.size, -1, np.int32))
    starts = np.flatnonzero((np.diff(tick, prepend=tick[:1] - 1) != 0) | (np.diff(owner, prepend=-1) != 0))
    return Buckets(roots, np.append(starts, tick.size), tick[starts])


def one_bucket(found: Strata) -> Buckets:
    """Return all roots of a graph without ticks."""
    count = found.group.size
    window = np.arange(count) if found.windows.low.size == count else np.zeros(count, np.int64)
    return Buckets(_roots(found, found.group, window, found.first), np.array([0, count]), np.zeros(1, np.int64))


def _roots(found: Strata, group: Int32, window: Int64, first: Int32) -> Roots:
    low, cut, high = (bound[window] for bound in found.windows)
    return Roots(group, low, cut, high, first, since=np.full(group.size, -1, np.int32))
