"""A sequence with a linear score and its events in, the stratified graph of all its windows out."""

from __future__ import annotations

from dataclasses import dataclass, replace

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
from streamsift.runtime.paths.graph import Graph, build_graph, cut_windows
from streamsift.runtime.paths.reachable import in_reach, offsets_of
from streamsift.runtime.paths.sets import PAIR_FIELDS
from streamsift.runtime.paths.weights import path_weights
from streamsift.runtime.resources import FEWER_TICKS, reserve

ROOT_BYTES = 100  # for each window: its bounds, its group and what the search for its best paths takes
EMPTY, TOO_LARGE = "empty", "too large"  # no graph: a step has no event, or weights that do not add up


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
    """Windows [low, high) of ascending bounds with their cuts and ticks.

    Without ticks there is a window for each first event, whose group and entry are given; or one for all, and groups.
    """

    low: Int32
    cut: Int32
    high: Int32
    tick: Int64
    group: Int32
    first: Int32  # the entry that paths begin with, -1 for any


@dataclass(frozen=True, slots=True)
class Strata:
    """The graph of all windows, and where paths are looked for in it."""

    graph: Graph
    entries: Entries
    windows: Windows
    pairs: Int64  # as those of Roots
    codes: Int64
    bounds_only: bool  # whether the best sum of a root may be no match's


def strata(plan: PathPlan, events: Events, ticks: UpdateTicks | None, starts: Bool | None = None) -> Strata | str:
    """The graph of a plan; EMPTY or TOO_LARGE where there is none. `starts` [places]: where matches may start."""
    entries = _entries(plan, events)
    if not np.isfinite(entries.error) or not np.isfinite(entries.weight).all():
        return TOO_LARGE
    if (entries.offsets[:, 0] == entries.offsets[:, -1]).any():
        return EMPTY
    low, high, tick, group, first = _windows(events, ticks, entries, starts)
    entries, has_changed = _in_reach(entries, events, low, high)
    if not entries.place.size:
        return EMPTY
    if has_changed:
        low, high, tick, group, first = _windows(events, ticks, entries, starts)
    cut, front, back = cut_windows(low, high, events.rank.size)
    places = entries.place
    rank, ties = events.rank[places], _ties(events, entries)
    graph = build_graph(entries.offsets, places, rank, ties, entries.weight, front[places], back[places])
    pairs, coded = _coded(plan, events, entries)
    windows = Windows(low, cut, high, tick, group, first)
    return Strata(graph, entries, windows, pairs, coded, bool(pairs.size) or _cut_in_ties(cut, events))


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


def _in_reach(entries: Entries, events: Events, low: Int32, high: Int32) -> tuple[Entries, bool]:
    """The entries that can be part of a match, and whether others were left out."""
    kept = in_reach(entries.offsets, entries.place, events.rank[entries.place], low, high)
    if kept.all():
        return entries, False
    offsets = offsets_of(entries.offsets, kept)
    return replace(entries, offsets=offsets, place=entries.place[kept], weight=entries.weight[kept]), True


def _ties(events: Events, entries: Entries) -> Int32:
    """What orders paths of equal sums, [levels, n]: places alone where no two events of a step have the same time."""
    levels = tie_levels(events)
    if len(levels) > 1:
        times = [np.sort(levels[0][entries.place[begin:end]]) for begin, end in entries.offsets[:, [0, -1]]]
        if any((np.diff(part) == 0).any() for part in times):
            return np.stack([level[entries.place] for level in levels])
    return entries.place[np.newaxis]


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


def _windows(
    events: Events, ticks: UpdateTicks | None, entries: Entries, starts: Bool | None
) -> tuple[Int32, Int32, Int64, Int32, Int32]:
    """The fields of Windows, without cuts."""
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
    """Each group with each tick whose window holds an entry of it: (groups, ticks), without repetition."""
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
    """The ticks whose window holds any event."""
    everywhere = np.arange(ticks.first.size, dtype=np.int32)
    return tick_roots(np.array([0, everywhere.size], np.int64), everywhere, ticks.first, ticks.last)[1]


def _cut_in_ties(cut: Int32, events: Events) -> bool:
    inner = cut[(cut > 0) & (cut < events.rank.size)]
    return bool((events.rank[inner] == events.rank[inner - 1]).any())
