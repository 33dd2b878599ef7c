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
LAST_TICK = INT64.max - 2  # so that the numbers next to it are 64 bits wide


@dataclass(frozen=True, slots=True)
class WatermarkStep:
    """The watermark advances from `passed` (None: the beginning of time) to `now` (None: its end), both included."""

    passed: Tick | None
    now: Tick | None

    def covers(self, when: Times) -> Bool:
        """Return True for moments that this step passes: after the previous watermark, not after this one."""
        covered = np.ones(when.size, np.bool_)
        if self.passed is not None:
            covered &= when > self.passed
        if self.now is not None:
            covered &= when <= self.now
        return covered


def closing(window: BoundWindow, keys: tuple[str, ...], events: Events) -> Times:
    """Return for each place the moment whose passing closes the window that begins there."""
    if window.kind is WindowKind.TIME:
        return after(events.ticks, window_width(window, events.unit))
    count = events.rank.size
    offsets, order = group_entries(*events.partitions(keys))
    last = rows_later(offsets, order, count, min(int(window.length), count + 1) - 1, -1)
    end = np.inf if events.ticks.dtype == np.float64 else INT64.max
    return np.where(last >= 0, events.ticks[last], end) if count else events.ticks


def after(ticks: Times, *widths: Tick) -> Times:
    """Return the last moments in one window with these, or in windows one behind the other; at most the end of time."""
    for width in widths:
        if ticks.dtype == np.float64:
            with np.errstate(over="ignore"):
                ticks = last_within(ticks.view(np.float64), max(float(width), 0.0))
        else:
            ticks = saturating_sum(ticks.view(np.int64), max(int(width), 0))
    return ticks


def earlier(moment: Tick, *widths: Tick) -> Tick:
    """Return the first moment whose windows, one behind the other, reach this one."""
    if isinstance(moment, int):
        return max(moment - sum(max(int(width), 0) for width in widths), INT64.min)
    # y is within w of x exactly if -x is within w of -y.
    return -after(np.array([-moment]), *reversed(widths))[0].item()


def following(moment: Tick) -> Tick:
    return moment + 1 if isinstance(moment, int) else math.nextafter(moment, math.inf)


def first_open(passed: Tick, *widths: Tick) -> Tick:
    """Return the first moment whose windows, one behind the other, are not closed when time has passed."""
    return earlier(following(passed), *widths)


def next_closing(ticks: Times, passed: Tick, *widths: Tick) -> Tick | None:
    """Return the first moment after `passed` that closes windows that begin at one of these; None if all are closed."""
    first = ticks[np.searchsorted(ticks, first_open(passed, *widths)) :][:1]
    return after(first, *widths)[0].item() if first.size else None


def is_real(query: BoundQuery) -> bool:
    return bool(pa.types.is_floating(unit_of(query)))


# --- the ticks of UPDATE --------------------------------------------------------------------------------------------


def last_tick(query: BoundQuery, now: Tick, *delays: Tick) -> int:
    """Return the number of the last tick before which, and for some time after it, no event will come any more."""
    assert query.update is not None
    unit = unit_of(query)
    step = in_units(query.update.length, unit)
    # A tick becomes final with the moment before it: all of its window, and what that waits for, has arrived.
    moment = first_open(now, *delays)
    if isinstance(moment, int):
        number = (moment - zero_of(unit)) // step
    elif math.isinf(moment):
        number = LAST_TICK if moment > 0 else -LAST_TICK
    else:
        number = last_multiple(moment, step, Fraction(0))
    return max(min(int(number), LAST_TICK), -LAST_TICK)  # an event has no tick beyond, or is an error


def time_of_tick(query: BoundQuery, number: int, *delays: Tick) -> Tick:
    """Return the first moment whose passing makes a tick final."""
    assert query.update is not None
    unit = unit_of(query)
    at = number * in_units(query.update.length, unit)
    if is_real(query):
        before = np.array([math.nextafter(nearest_double(at), -math.inf)])
    else:
        before = np.array([max(min(math.ceil(at) - 1 + zero_of(unit), INT64.max), INT64.min)])
    return after(before, *delays)[0].item()
