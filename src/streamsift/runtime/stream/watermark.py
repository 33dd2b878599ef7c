"""Find the matches, rows and ticks that become final as the watermark advances."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import BoundQuery, BoundWindow, WindowKind
from streamsift.logical.durations import in_units, nearest_double, unit_of, zero_of
from streamsift.runtime.arrays.doubles import last_multiple, last_within
from streamsift.runtime.arrays.dtypes import Bool, Times
from streamsift.runtime.arrays.grouping import group_entries
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.stamps import rows_later
from streamsift.runtime.events.times import saturating_sum, window_width

Tick = int | float
INT64 = np.iinfo(np.int64)
LAST_TICK = INT64.max - 2  # leaves room for the adjacent 64-bit numbers


@dataclass(frozen=True, slots=True)
class WatermarkStep:
    """An advance of the watermark from `passed` (None: the start of time) to `now`, included (None: the end).

    If there is no watermark yet (`has_begun` is False), only arriving events make rows final.
    """

    passed: Tick | None
    now: Tick | None
    has_begun: bool = True

    @property
    def moves(self) -> bool:
        """Return True if the watermark advances."""
        return self.has_begun and (self.now is None or self.passed != self.now)

    def covers(self, when: Times) -> Bool:
        """Return a mask of the times that this step passes: after the previous watermark, not after this one."""
        covered = np.ones(when.size, np.bool_)
        if self.passed is not None:
            covered &= when > self.passed
        if self.now is not None:
            covered &= when <= self.now
        return covered


def closing(window: BoundWindow, keys: tuple[str, ...], events: Events) -> Times:
    """Return for each place the last time of the window that begins there."""
    if window.kind is WindowKind.TIME:
        return after(events.ticks, window_width(window, events.unit))
    count = events.rank.size
    offsets, order = group_entries(*events.partitions(keys))
    last = rows_later(offsets, order, count, min(int(window.length), count + 1) - 1, -1)
    end = np.inf if events.ticks.dtype == np.float64 else INT64.max
    return np.where(last >= 0, events.ticks[last], end) if count else events.ticks


def after(ticks: Times, *widths: Tick) -> Times:
    """Return the last times within consecutive windows that begin at `ticks`, capped at the end of time."""
    for width in widths:
        if ticks.dtype == np.float64:
            with np.errstate(over="ignore"):
                ticks = last_within(ticks.view(np.float64), max(float(width), 0.0))
        else:
            ticks = saturating_sum(ticks.view(np.int64), max(int(width), 0))
    return ticks


def earlier(moment: Tick, *widths: Tick) -> Tick:
    """Return the first time whose consecutive windows reach `moment`."""
    if isinstance(moment, int):
        return max(moment - sum(max(int(width), 0) for width in widths), INT64.min)
    # y is within w of x exactly if -x is within w of -y.
    return -after(np.array([-moment]), *reversed(widths))[0].item()


def following(moment: Tick) -> Tick:
    return moment + 1 if isinstance(moment, int) else math.nextafter(moment, math.inf)


def before(moment: Tick) -> Tick:
    return max(moment - 1, INT64.min) if isinstance(moment, int) else math.nextafter(moment, -math.inf)


def first_open(passed: Tick, *widths: Tick) -> Tick:
    """Return the first time whose consecutive windows are still open once `passed` has passed."""
    return earlier(following(passed), *widths)


def next_closing(ticks: Times, passed: Tick, *widths: Tick) -> Tick | None:
    """Return the first time after `passed` that closes a window begun at one of `ticks`; None if all are closed."""
    first = ticks[np.searchsorted(ticks, first_open(passed, *widths)) :][:1]
    return after(first, *widths)[0].item() if first.size else None


def is_real(query: BoundQuery) -> bool:
    return bool(pa.types.is_floating(unit_of(query)))


# --- the ticks of UPDATE --------------------------------------------------------------------------------------------


def last_tick(query: BoundQuery, now: Tick, *delays: Tick) -> int:
    """Return the number of the last final tick: its window, and the delays after it, have passed."""
    assert query.update is not None
    unit = unit_of(query)
    step = in_units(query.update.length, unit)
    # A tick becomes final with the time just before it: by then its whole window has arrived.
    moment = first_open(now, *delays)
    if isinstance(moment, int):
        number = (moment - zero_of(unit)) // step
    elif math.isinf(moment):
        number = LAST_TICK if moment > 0 else -LAST_TICK
    else:
        number = last_multiple(moment, step, Fraction(0))
    return max(min(int(number), LAST_TICK), -LAST_TICK)  # events beyond have no tick, or raise an error


def time_of_tick(query: BoundQuery, number: int, *delays: Tick) -> Tick:
    """Return the first time at which a tick becomes final."""
    assert query.update is not None
    unit = unit_of(query)
    at = number * in_units(query.update.length, unit)
    if is_real(query):
        before = np.array([math.nextafter(nearest_double(at), -math.inf)])
    else:
        before = np.array([max(min(math.ceil(at) - 1 + zero_of(unit), INT64.max), INT64.min)])
    return after(before, *delays)[0].item()
