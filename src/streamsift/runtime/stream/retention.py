"""A plan and how far time has passed in, which rows of the past a later result may still look at out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamsift.logical.bound import BoundQuery, BoundWindow, WindowKind
from streamsift.physical.stream import StateWindow, StreamPlan
from streamsift.runtime.arrays.dtypes import Bool
from streamsift.runtime.arrays.grouping import positions_in_group
from streamsift.runtime.events.events import NO_LIMIT, window_width
from streamsift.runtime.events.prepare import prepare
from streamsift.runtime.expressions.codes import group_codes
from streamsift.runtime.expressions.columns import contiguous
from streamsift.runtime.state import EventStore
from streamsift.runtime.stream.watermark import INT64, Tick, after, earlier, following, is_real


@dataclass(frozen=True, slots=True)
class Retention:
    """How far results look back: so much time, or so many rows of a partition; `delay` is what they wait for."""

    widths: tuple[Tick, ...]  # of time windows, one behind the other
    rows: int  # of count windows; 0: there is none
    keys: tuple[str, ...]  # by which count windows count apart
    delay: tuple[Tick, ...]  # from the time of a row to what decides it; of count windows nothing
    is_endless: bool = False  # no window: all that came is looked at

    def needed(self, store: EventStore, bound: Tick | None) -> int | Bool:
        """The first row, or which rows, a result after the moment `bound` looks at; None: there was none yet."""
        if self.is_endless or bound is None:
            return store.first
        if not self.rows:
            horizon = earlier(bound, *self.widths)
            return store.first + int(np.searchsorted(store.ticks, store.ticks.dtype.type(horizon)))
        return self._rows_needed(store, bound)

    def _rows_needed(self, store: EventStore, bound: Tick) -> Bool:
        events = store.events.whole()
        groups, count = np.zeros(store.rows, np.int32), 1
        if self.keys:
            (groups,), count = group_codes([[contiguous(events.column(key))] for key in self.keys])
        position = positions_in_group(groups, count)
        # Rows of no partition are in no window; a tick of UPDATE does not count them either.
        known = groups >= 0
        passed = np.bincount(groups[known & (store.ticks <= bound)], minlength=max(count, 1))
        return known & (position >= passed[groups] - self.rows)

    def expiry(self, tick: Tick) -> Tick | None:
        """The first moment whose passing lets a row be dropped; None if no time does."""
        if self.is_endless or self.rows:
            return None
        last = after(np.array([tick]), *self.widths)[0].item()
        return min(following(last), INT64.max) if isinstance(last, int) else following(last)


def retention_of(stream: StreamPlan) -> Retention:
    """Return how far later results of a plan look back."""
    query = stream.plan.query
    if query.window is None:
        return Retention((), 0, (), (), is_endless=True)
    reasons, found = stream.state_windows, stream.windows
    statement, own = found[0], found[1:]
    if statement[0].kind is WindowKind.COUNT:
        length = sum(int(window.length) for window, _ in found)
        return Retention((), min((len(reasons) + 2 * bool(own)) * length, NO_LIMIT), statement[1], ())
    width = width_of(query, statement[0])
    inner = tuple(width_of(query, window) for window, _ in own)
    waits = StateWindow.WAITING in reasons
    delay = (width, *inner) if waits else ()
    return Retention((*delay, *(width,) * (len(reasons) - waits), *inner), 0, (), delay)


def width_of(query: BoundQuery, window: BoundWindow) -> Tick:
    """The width of a time window in the units of ticks."""
    found = window_width(window, prepare(query, query.schema.empty_table()))
    return float(found) if is_real(query) else int(found)
