"""Compare events and times with the horizon, before which events are late, at both ends of a step.

The horizon is the watermark. If events with equal values in some columns arrive in order (`ordered`), the horizon of a
key is the greater of the watermark and the latest event of that key.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import BoundQuery, BoundWindow, WindowKind
from streamsift.physical.stream import Awaited
from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64, Times
from streamsift.runtime.arrays.grouping import group_entries
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.stamps import rows_later
from streamsift.runtime.expressions.codes import codes
from streamsift.runtime.matches import GroupMatches
from streamsift.runtime.stream.watermark import INT64, WatermarkStep, closing, following


@dataclass(frozen=True, slots=True)
class Latest:
    """The latest event of each place's key, before a step and after it: its rank and its time."""

    ranks: tuple[Int64, Int64]  # -1 if there is none
    ticks: tuple[Times, Times]  # the least time if there is none


@dataclass(frozen=True, slots=True)
class Horizon:
    """The horizon before and after a step, over the events that the step reads."""

    query: BoundQuery
    events: Events
    step: WatermarkStep
    is_new: Bool  # [places] the events that arrive in this step
    latest: Latest | None = None

    def reached(self, places: Int32, now: bool) -> Bool:
        """Return a mask of the events that the horizon has reached: no earlier event can arrive."""
        is_pair = self.query.binding.order is not None
        reached = self._by_watermark(self.events.ticks[places], now, reaches_next=not is_pair)
        if self.latest is not None:
            reached |= self.events.rank[places] <= self.latest.ranks[now][places]
        return reached

    def passed(self, places: Int32, now: bool) -> Bool:
        """Return a mask of the events that the horizon has passed."""
        passed = self._by_watermark(self.events.ticks[places], now)
        if self.latest is not None:
            passed |= self.events.rank[places] < self.latest.ranks[now][places]
        return passed

    def closed(self, window: BoundWindow, keys: tuple[str, ...], first: Int32, now: bool) -> Bool:
        """Return a mask of the first events whose window the horizon has passed."""
        if now and self.step.now is None and self.step.has_begun:
            return np.ones(first.shape, np.bool_)
        if window.kind is WindowKind.COUNT:
            last = _last_rows(window, keys, self.events)[first]
            return (last >= 0) & self.passed(np.maximum(last, 0).astype(np.int32), now)
        ends = closing(window, keys, self.events)[first]
        closed = self._by_watermark(ends, now)
        if self.latest is not None:
            closed |= self.latest.ticks[now][first] > ends
        return closed

    def _by_watermark(self, moments: Times, now: bool, reaches_next: bool = False) -> Bool:
        """Return a mask of the times that the watermark has passed; with `reaches_next`, also of the next one."""
        step = self.step
        if now and step.has_begun and step.now is None:
            return np.ones(moments.shape, np.bool_)
        limit = step.now if now and step.has_begun else step.passed
        if limit is None:
            return np.zeros(moments.shape, np.bool_)
        if reaches_next:
            limit = min(following(limit), INT64.max) if isinstance(limit, int) else following(limit)
        by_watermark: Bool = moments <= limit
        return by_watermark

    # --- matches ---
    def newly_final(self, awaited: Awaited, matches: GroupMatches) -> Bool:
        """Return a mask of the matches that are final after the step and were not before it."""
        final = self._is_final(awaited, matches, now=True)
        before = self._is_final(awaited, matches, now=False)
        return final & (~before | self.is_new[_all_events(matches)].any(axis=0))

    def _is_final(self, awaited: Awaited, matches: GroupMatches, now: bool) -> Bool:
        places, query = matches.events(), self.query
        final = np.ones(len(matches), np.bool_)
        for steps in awaited.starts:
            final &= self.reached(places[list(steps)].min(axis=0), now)
        for steps in awaited.ends:
            final &= self.passed(places[list(steps)].max(axis=0), now)
        if awaited.end:
            final &= self.passed(places.max(axis=0), now)
        if awaited.window:
            assert query.window is not None
            final &= self.closed(query.window, query.partition_by, places.min(axis=0), now)
        for limit in awaited.definitions:
            final &= self._definition_closed(limit.definition or "", places[list(limit.steps)].min(axis=0), now)
        for name in awaited.inside:
            # The window begins with an event of the negated pattern, before the events that the match waits for.
            final &= self._definition_closed(name, self._last_before_end(places), now)
        if awaited.groups is not None:
            final &= self._are_groups_final(awaited, matches, places, now)
        return final

    def _definition_closed(self, name: str, first: Int32, now: bool) -> Bool:
        definition = next(d for d in self.query.pattern.windowed_definitions() if d.name == name)
        assert definition.window is not None
        return self.closed(definition.window, definition.partition_by or self.query.partition_by, first, now)

    def _last_before_end(self, places: Int32) -> Int32:
        ends = self.events.ticks[places.max(axis=0)]
        return (np.searchsorted(self.events.ticks, ends, side="right") - 1).astype(np.int32)

    def _are_groups_final(self, awaited: Awaited, matches: GroupMatches, places: Int32, now: bool) -> Bool:
        groups = awaited.groups
        assert groups is not None
        final, empty = np.ones(len(matches), np.bool_), matches.empty_groups()
        for decided in groups.decided:
            having = np.flatnonzero(empty == decided.empty)
            for negation in decided.all_negations:
                if having.size and negation.upper.steps and not negation.upper.definition:
                    starts = places[list(negation.upper.steps)][:, having].min(axis=0)
                    final[having] &= self.reached(starts, now)
        if not awaited.grows:
            return final
        # A match has the order of its events; if a group is empty, several orders can apply.
        is_open = np.zeros(len(matches), np.bool_)
        for number in range(len(groups.orders)):
            fits = self._fits(awaited, number, matches, places)
            is_open |= fits & ~self._is_order_final(awaited, number, places, now)
        return final & ~is_open

    def _fits(self, awaited: Awaited, number: int, matches: GroupMatches, places: Int32) -> Bool:
        """Return a mask of the matches whose events have this order."""
        groups, rank = awaited.groups, self.events.rank
        assert groups is not None
        order, fits = groups.orders[number], np.ones(len(matches), np.bool_)
        for at, group in enumerate(groups.growing):
            has, first, last = matches.sizes[at] > 0, rank[places[group.first]], rank[places[group.first + 1]]
            for step in order.after[at]:
                fits &= ~has | (rank[places[step]] < first)
            for step in order.before[at]:
                fits &= ~has | (rank[places[step]] > last)
            for other in order.preceding[at]:
                both = has & (matches.sizes[other] > 0)
                fits &= ~both | (rank[places[groups.growing[other].first + 1]] < first)
        return fits

    def _is_order_final(self, awaited: Awaited, number: int, places: Int32, now: bool) -> Bool:
        groups, query = awaited.groups, self.query
        assert groups is not None
        assert query.window is not None
        order, final = groups.orders[number], np.ones(places.shape[1], np.bool_)
        for before in order.before:
            if before:
                final &= self.reached(places[list(before)].min(axis=0), now)
            else:
                final &= self.closed(query.window, query.partition_by, places.min(axis=0), now)
        for definition in awaited.definition_groups:
            members = definition.limit.steps
            for at in definition.growing:
                before = tuple(step for step in order.before[at] if step in members)
                if before:
                    final &= self.reached(places[list(before)].min(axis=0), now)
                else:
                    first = places[list(members)].min(axis=0)
                    final &= self._definition_closed(definition.limit.definition or "", first, now)
        return final


def _all_events(matches: GroupMatches) -> Int32:
    """Return all single events of matches, and all elements of their groups."""
    return np.vstack([matches.events(), matches.elements()]) if matches.first.shape[0] else matches.singles


def _last_rows(window: BoundWindow, keys: tuple[str, ...], events: Events) -> Int64:
    """Return for each place the last place of the count window that begins there; -1 if it has not arrived."""
    count = events.rank.size
    offsets, order = group_entries(*events.partitions(keys))
    last: Int64 = rows_later(offsets, order, count, min(int(window.length), count + 1) - 1, -1)
    return last


def latest_of_keys(events: Events, is_new: Bool, columns: tuple[str, ...]) -> Latest:
    """Return the latest event of each place's key among the old events, and among all events."""
    groups, count = events.partitions(columns)
    ranks: list[Int64] = []
    ticks: list[Times] = []
    least = -np.inf if events.ticks.dtype == np.float64 else INT64.min
    for members in (~is_new, np.ones(is_new.size, np.bool_)):
        last = np.full(count + 1, -1, np.int64)
        chosen = np.flatnonzero(members & (groups >= 0))
        np.maximum.at(last, groups[chosen], chosen)
        at = np.where(groups >= 0, last[groups], -1)
        ranks.append(np.where(at >= 0, events.rank[at], -1).astype(np.int64))
        ticks.append(np.where(at >= 0, events.ticks[at], least))
    return Latest((ranks[0], ranks[1]), (ticks[0], ticks[1]))


def latest_of_all(events: Events, order: str | None, before: pa.Table | None, now: pa.Table | None) -> Latest:
    """Return the latest event of the whole stream, which need not be among the events, for each place.

    `before` and `now` have one row with the columns time (as a number) and `order`.
    """
    size, ranks, ticks = events.rank.size, list[Int64](), list[Times]()
    least = -np.inf if events.ticks.dtype == np.float64 else INT64.min
    for row in (before, now):
        tick = least if row is None else row.column("tick")[0].as_py()
        last = int(np.searchsorted(events.ticks, tick, side="right")) - 1 if row is not None else -1
        if order is not None and last >= 0 and row is not None:
            begin = int(np.searchsorted(events.ticks, tick))
            values = events.columns.at(order, events.rows[begin : last + 1])
            values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
            (mine,) = codes([pa.concat_arrays([values, row.column("order").combine_chunks().cast(values.type)])])
            last = begin + int(np.searchsorted(mine[:-1], mine[-1], side="right")) - 1
        ranks.append(np.full(size, events.rank[last] if last >= 0 else -1, np.int64))
        # An event before the latest one of the stream is passed, even if the latest one is not here.
        if row is not None and last >= 0 and (events.ticks[last] < tick or order is not None):
            ranks[-1] = ranks[-1] + _is_behind(events, last, row, order)
        ticks.append(np.full_like(events.ticks, tick))
    return Latest((ranks[0], ranks[1]), (ticks[0], ticks[1]))


def _is_behind(events: Events, last: int, row: pa.Table, order: str | None) -> int:
    """Return 1 if the latest event of the stream comes after the event at place `last`, else 0."""
    if events.ticks[last] < row.column("tick")[0].as_py():
        return 1
    if order is None:
        return 0
    value = events.columns.at(order, events.rows[last : last + 1])[0].as_py()
    return int(value != row.column("order")[0].as_py())
