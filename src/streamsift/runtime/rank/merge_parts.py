"""A part of a pattern and events in, its matches in each window out, best first and on demand: sorted access."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from streamsift.physical.plan import JoinPlan, PathPlan
from streamsift.physical.rank import MAX_PATHS
from streamsift.runtime.arrays.dtypes import Float64, Int32, Int64
from streamsift.runtime.arrays.row_set import are_known
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.update_ticks import UpdateTicks
from streamsift.runtime.paths import (
    COMPLETE,
    COUNT,
    EMPTY,
    RESERVE,
    ROUNDING,
    SIZE,
    SLACK,
    Roots,
    Rule,
    Strata,
    cast_of,
    groups_inside,
    moved_board,
    new_board,
    new_search,
    opened_board,
    read_paths,
    strata,
    tick_roots,
    ticks_with_events,
    trimmed,
    views_of,
)
from streamsift.runtime.rank.join import RankJoin

NO_BUCKETS = np.empty(0, np.int64)  # to go on where an enumeration was left
OPERATIONS = 16  # that round while sums are scaled and merged, at most, but for those of the sums themselves


@dataclass(frozen=True, slots=True)
class Loaded:
    """The next matches [m, steps of the part] of a window, as places, best first, and whether there are no others."""

    places: Int32
    score: Float64
    complete: bool


class Part(Protocol):
    """What the merge asks of a part."""

    @property
    def ticks(self) -> Int64:
        """The windows in which it may have matches, ascending."""

    @property
    def error(self) -> float:
        """By how much its scores may differ from those as written."""

    def open(self, tick: int) -> None:
        """Begins with the best match of a window."""

    def load(self, count: int) -> Loaded | None:
        """The next matches, about so many; None if that is too much to ask."""


def part_of(plan: PathPlan | JoinPlan, events: Events, ticks: UpdateTicks | None, *, keeps: bool) -> Part | None:
    """None if sums of its weights say nothing. With `keeps`, what stays inside when the window moves is kept."""
    if isinstance(plan, JoinPlan):
        return JoinPart(plan, events, ticks)
    found = strata(plan, events, ticks)
    if isinstance(found, str):
        return NoPart() if found == EMPTY else None
    return BoardPart(found) if keeps and ticks is not None else PathPart(found, ticks)


class NoPart:
    """A part that has no match anywhere."""

    ticks = np.empty(0, np.int64)
    error = 0.0

    def open(self, tick: int) -> None:
        pass

    def load(self, count: int) -> Loaded | None:
        raise AssertionError("it has no window")


class PathPart:
    """Best paths of the graph of all windows; the enumeration in the current window stands where it was left."""

    def __init__(self, found: Strata, ticks: UpdateTicks | None) -> None:
        self.graph, self.entries = found.graph, found.entries
        self.ticks, self.starts, self.roots = _roots(found, ticks)
        self.error = path_error(found)
        self.search = new_search(found.entries.offsets.shape[0])

    def open(self, tick: int) -> None:
        window = int(np.searchsorted(self.ticks, tick))
        self.search, *_ = read_paths(
            self.graph, self.roots, self.starts[window : window + 2], _next_paths(0), self.search
        )

    def load(self, count: int) -> Loaded | None:
        rule = _next_paths(count)
        self.search, paths, sums, _, gave_up = read_paths(self.graph, self.roots, NO_BUCKETS, rule, self.search)
        if gave_up[0]:
            return None
        complete = bool(self.search.counts[SIZE] == 0)
        return Loaded(self.graph.place[paths], sums * self.entries.unit, complete)


class BoardPart:
    """Best paths of the graph of all windows; a window begins with what the one before it leaves (iNSSP)."""

    def __init__(self, found: Strata) -> None:
        self.graph, self.unit, self.ticks = found.graph, found.entries.unit, found.windows.tick
        self.cast, self.views = cast_of(found, np.empty(0, np.int32)), views_of(found)
        self.error = path_error(found)
        self.rule = _next_paths(1)._replace(slack=SLACK * found.entries.error)
        self.stamps = np.zeros(found.graph.offsets.shape[1], np.int64)
        self.search, self.board = new_search(found.graph.offsets.shape[0]), new_board(found.graph.offsets.shape[0])
        self.window, self.loaded, self.asked, self.is_open = -1, 0, 0, False

    def open(self, tick: int) -> None:
        window, before = int(np.searchsorted(self.ticks, tick)), self.window
        low, cut, high = (bound[window] for bound in self.views)
        self.asked = max(self.loaded, self.asked // 2)  # what was asked for before will be again
        self.window, self.loaded = window, 0
        if window == before:
            return
        self.is_open = self.is_open and self.views.cut[before] == cut
        if self.is_open:
            trimmed(self.graph, self.rule, self.board, max(RESERVE * self.asked, 1))
            since = self.views.high[before]
            groups = groups_inside(self.graph, self.cast, self.cast.lasts, since, high, self.stamps)
            rows = self.graph, self.cast, groups, low, cut, high, since
            self.search, self.board, gave_up = moved_board(*rows, self.rule, self.search, self.board)
            self.is_open = not gave_up

    def load(self, count: int) -> Loaded | None:
        count = max(count, self.asked - self.loaded)
        end, board = self.loaded + count, self.board
        if not self.is_open or (board.state[COUNT] < end and not board.state[COMPLETE]):
            if not self._look_at_all(RESERVE * end):
                return None
            board = self.board
        begin, self.loaded = self.loaded, min(end, int(board.state[COUNT]))
        paths, sums = board.paths[begin : self.loaded], board.sums[begin : self.loaded]
        complete = bool(board.state[COMPLETE]) and self.loaded == board.state[COUNT]
        return Loaded(self.graph.place[paths], sums * self.unit, complete)

    def _look_at_all(self, wanted: int) -> bool:
        """A board of so many paths of the window, those that were loaded first; False if that is too much to ask."""
        low, cut, high = (bound[self.window] for bound in self.views)
        groups = groups_inside(self.graph, self.cast, self.cast.firsts, low, high, self.stamps)
        rows = self.graph, self.cast, groups, low, cut, high, min(wanted, MAX_PATHS)
        self.search, board, gave_up = opened_board(*rows, self.rule, self.search)
        count = board.state[COUNT]
        given = self.board.paths[: self.loaded]
        # Sums that round may come out in another order: what was loaded is told by its events.
        others = np.flatnonzero(~are_known(board.paths[:count], given))
        board.state[COUNT] = self.loaded + others.size
        self.board = board._replace(
            paths=np.concatenate([given, board.paths[others]]),
            sums=np.concatenate([self.board.sums[: self.loaded], board.sums[others]]),
        )
        self.is_open = not gave_up
        return self.is_open


def _next_paths(count: int) -> Rule:
    return Rule(count, -1.0, MAX_PATHS, -np.inf, np.empty(0, np.int32), False)


def path_error(found: Strata) -> float:
    """By how much sums of a part's paths may differ from what they are as written."""
    entries = found.entries
    largest = float(np.abs(entries.weight).max(initial=0.0)) * entries.offsets.shape[0]
    return (entries.error + ROUNDING * OPERATIONS * largest) * entries.unit


def _roots(found: Strata, ticks: UpdateTicks | None) -> tuple[Int64, Int64, Roots]:
    """The ticks, where the roots of each begin, and the roots."""
    windows, offsets = found.windows, found.entries.offsets
    group, tick, first = windows.group, np.zeros(windows.group.size, np.int64), windows.first
    window = np.arange(group.size) if windows.low.size == group.size else np.zeros(group.size, np.int64)
    if ticks is not None:
        group, tick = tick_roots(offsets[0], found.entries.place, ticks.first, ticks.last)
        order = np.argsort(tick, kind="stable")
        group, tick, first = group[order], tick[order], np.full(tick.size, -1, np.int32)
        window = np.searchsorted(windows.tick, tick)
    low, cut, high = (bound[window] for bound in (windows.low, windows.cut, windows.high))
    own, starts = np.unique(tick, return_index=True)
    since = np.full(tick.size, -1, np.int32)
    return own, np.append(starts, tick.size), Roots(group, low, cut, high, first, since, found.pairs, found.codes)


class JoinPart:
    """The best matches by a rank join of the window's events, asked for anew when more of them are wanted (iNNLPS).

    The first question of a window is for as many matches as the one before it was asked for: one join does.
    """

    def __init__(self, plan: JoinPlan, events: Events, ticks: UpdateTicks | None) -> None:
        self.join = RankJoin(plan, events, ticks=ticks is not None)
        self.size, self.windows = events.rank.size, ticks
        self.ticks = np.zeros(1, np.int64) if ticks is None else ticks_with_events(ticks)
        self.error, self.loaded, self.asked = 0.0, 0, 0

    def open(self, tick: int) -> None:
        self.asked, self.loaded = max(self.loaded, self.asked // 2), 0
        low, high = 0, self.size
        if self.windows is not None:
            low = int(np.searchsorted(self.windows.last, tick, side="left"))
            high = int(np.searchsorted(self.windows.first, tick, side="right"))
        self.join.move(low, high)

    def load(self, count: int) -> Loaded | None:
        found, score = self.join.best(max(self.loaded + count, self.asked))
        if not np.isfinite(score).all():  # an infinite part says nothing of the sum it goes into
            return None
        order = np.lexsort([*found[::-1], -score])
        begin, self.loaded = self.loaded, score.size
        complete = self.join.is_complete and score.size == self.join.score.size
        return Loaded(found[:, order[begin:]].T, score[order[begin:]], complete)
