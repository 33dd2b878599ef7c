"""A stretch of time that passes in, what it decides out: of matches, of rows and of ticks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import Binding, BoundQuery, TimeKind, Window, WindowKind
from streamsift.runtime.clock import rows_later
from streamsift.runtime.codes import group_codes
from streamsift.runtime.columns import plain
from streamsift.runtime.events import TEXT_TIME, Events, in_units, saturating_sum, window_width
from streamsift.runtime.kernels import Bool, Int64, Ticks, group_entries
from streamsift.runtime.quotients import floor_quotients

Tick = int | float
INT64 = np.iinfo(np.int64)
ROUNDING = 1e-12  # more than any rounding of sums and differences of two times, as a share of them


@dataclass(frozen=True, slots=True)
class Passing:
    """Time that goes from `passed` (None: from the beginning of time) to `now` (None: to its end), both included."""

    passed: Tick | None
    now: Tick | None

    def covers(self, when: Ticks) -> Bool:
        """Which of these moments lie after what had passed before, and not after now."""
        found = np.ones(when.size, np.bool_)
        if self.passed is not None:
            found &= when > self.passed
        if self.now is not None:
            found &= when <= self.now
        return found


def closing(window: Window, keys: tuple[str, ...], events: Events) -> Ticks:
    """For each place the moment whose passing closes the window that begins there; the end of time if none does yet."""
    if window.kind is WindowKind.TIME:
        return _after(events.ticks, window_width(window, events))
    count = events.rank.size
    groups, number = np.zeros(count, np.int32), 1
    if keys:
        (groups,), number = group_codes([[events.columns.at(key, events.rows)] for key in keys])
    offsets, order = group_entries(groups, number)
    last = rows_later(offsets, order, count, min(int(window.length), count + 1) - 1, -1)
    end = np.inf if events.ticks.dtype == np.float64 else INT64.max
    return np.where(last >= 0, events.ticks[last], end) if count else events.ticks


def _after(ticks: Ticks, width: Tick) -> Ticks:
    """The last moments in one window with these; the end of time where that is later than any."""
    if ticks.dtype != np.float64:
        return saturating_sum(ticks.view(np.int64), max(int(width), 0))
    starts = ticks.view(np.float64)
    with np.errstate(invalid="ignore"):
        found = starts + float(width)
        found[np.isnan(found)] = np.inf
        # Windows compare differences, which are rounded: a moment just after the sum may still be inside.
        for _ in range(4):
            following = np.nextafter(found, np.inf)
            found = np.where(following - starts <= width, following, found)
    return found


def earlier(moment: Tick, *widths: Tick) -> Tick:
    """A moment that is so much earlier; with doubles a little more, so that no rounding makes it too late."""
    if isinstance(moment, int) and all(isinstance(width, int) for width in widths):
        return max(moment - sum(max(width, 0) for width in widths), INT64.min)
    total = math.fsum(max(float(width), 0.0) for width in widths)
    found = float(moment) - total - ROUNDING * (abs(float(moment)) + total)
    return -math.inf if math.isnan(found) else found


def not_before(moment: Tick, width: Tick) -> Tick:
    """A moment that is so much earlier; with doubles a little less, so that no rounding makes it too early."""
    if isinstance(moment, int) and isinstance(width, int):
        return max(moment - width, INT64.min)
    found = float(moment) - float(width)
    return math.inf if math.isnan(found) else found + ROUNDING * (abs(float(moment)) + abs(float(width)))


def unit_of(query: BoundQuery) -> pa.DataType:
    """What ticks count."""
    return TEXT_TIME if query.binding.time_kind is TimeKind.TEXT else plain_type(query.schema, query.binding)


def plain_type(schema: pa.Schema, binding: Binding) -> pa.DataType:
    return plain(pa.array([], schema.field(binding.time).type)).type


def is_real(query: BoundQuery) -> bool:
    return bool(pa.types.is_floating(unit_of(query)))


# --- the ticks of UPDATE --------------------------------------------------------------------------------------------


def last_tick(query: BoundQuery, now: Tick, *delays: Tick) -> int:
    """The number of the last tick before which, and for some time after it, no event will come any more."""
    assert query.update is not None
    step = in_units(query.update.length, unit_of(query))
    if not is_real(query):
        # All events before tick T are known once T - 1 has passed.
        return math.floor(Fraction(int(now) + 1 - sum(int(delay) for delay in delays)) / step)
    moment = np.array([earlier(now, *delays) if delays else math.nextafter(float(now), math.inf)])
    return int(floor_quotients(moment, Fraction(0), step)[0])


def time_of_tick(query: BoundQuery, number: int, *delays: Tick) -> Tick:
    """The first moment whose passing decides a tick."""
    assert query.update is not None
    at = number * in_units(query.update.length, unit_of(query))
    if not is_real(query):
        return max(min(math.ceil(at) - 1 + sum(int(delay) for delay in delays), INT64.max), INT64.min)
    return float(at) + math.fsum(map(float, delays)) * (1 + ROUNDING)


def in_order(values: Int64, low: int | None, high: int | None) -> Bool:
    """Which numbers lie after `low` and not after `high`; None is no bound."""
    found = np.ones(values.size, np.bool_)
    if low is not None:
        found &= values > low
    if high is not None:
        found &= values <= high
    return found
