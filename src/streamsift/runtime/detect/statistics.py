"""Measure the statistics of the cost model on the candidates of a slice.

Counts are exact. Selectivities are measured on a sample: evenly spaced candidates of one step, each paired with a
candidate of the other step in its window.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from streamsift.logical.bound import WindowKind
from streamsift.physical.detect import PLACE, Statistics, until
from streamsift.physical.plan import Alternative
from streamsift.runtime.arrays.dtypes import UNKNOWN, Int32, Int64
from streamsift.runtime.arrays.grouping import entries_from
from streamsift.runtime.detect.relations import Comparison, Relations
from streamsift.runtime.events.candidates import step_rows
from streamsift.runtime.events.events import Events
from streamsift.runtime.expressions.codes import codes
from streamsift.runtime.expressions.compare import NUMPY
from streamsift.runtime.expressions.evaluate import evaluate

SAMPLES = 512
LARGEST = 2.0**63 - 1024  # the largest double that fits in a 64-bit integer
TINY = 1e-12  # lower bound of a share, so that it is not zero
MIN_SELECTIVITY = 1.0 / (4 * SAMPLES)  # lower bound: a predicate that no sample satisfies is not impossible


def window_ends(events: Events, starts: Int32 | Int64) -> Int64:
    """Return approximately where the windows of these places end, which is enough for estimates."""
    count, ticks = events.rank.size, events.ticks
    if events.window is None:
        return np.full(starts.size, count, np.int64)
    if events.window.kind is WindowKind.COUNT:
        keys = np.count_nonzero(events.window_position == 0)  # 1 without PARTITION BY
        return np.minimum(starts + int(events.width) * keys, count)
    with np.errstate(over="ignore", invalid="ignore"):
        bounds = ticks[starts].astype(np.float64) + float(events.width)
    if ticks.dtype != np.float64:
        bounds = bounds.clip(-LARGEST, LARGEST)
    ends = np.searchsorted(ticks, bounds.astype(ticks.dtype), side="right").astype(np.int64)
    return np.maximum(ends, starts + 1)  # rounded or infinite bounds may lie before the start


def window_places(events: Events) -> float:
    """Return the average number of places in a window."""
    some = np.linspace(0, events.rank.size - 1, min(events.rank.size, 256)).astype(np.int64)
    return float(np.mean(window_ends(events, some) - some))


@dataclass(frozen=True, slots=True)
class Measure:
    """Measure slices of one alternative's events; `places` are the candidates of each step."""

    alternative: Alternative
    events: Events
    places: Sequence[Int32]
    relations: Relations
    codes_at: Callable[[Comparison, tuple[Int32, Int32]], list[Int64] | None] = lambda *_: None  # reuses codes

    def slice(self, low: int, high: int) -> Statistics:
        """Return the statistics for matches that start in [low, high)."""
        ordered = self.alternative.is_sequence
        firsts = np.linspace(low, high - 1, min(high - low, 64)).astype(np.int64)
        ends = window_ends(self.events, firsts)
        reached = int(ends[-1])
        ranges = [entries_from(places, [low, high, reached]) for places in self.places]
        counts = tuple(float(stop - start) for start, stop, _ in ranges)
        # The share of the events within reach of the slice that lie in the window of one event.
        share = float(np.mean(ends - firsts)) / (reached - low) * (1 if ordered else 2)
        in_window = tuple(float(far - start) * share for start, _, far in ranges)
        within = [(start, far) for start, _, far in ranges]
        equal: list[dict[tuple[int, int], float]] = []
        for sides in self.relations.equal:
            equal.append({})
            for left, right in combinations(sides, 2):
                self._multiply(equal[-1], (left, "=", right), within)
        other: dict[tuple[int, int], float] = {}
        alike = 0.0
        limited = {max(left, right) for (left, _), _, (right, _) in self.relations.windows}
        for comparison in self.relations.comparisons:
            codes_of_sides = self._multiply(other, comparison, within)
            if max(comparison[0][0], comparison[2][0]) in limited:
                continue  # a definition window leaves few events to compare
            for (step, _), values in zip(comparison[::2], codes_of_sides, strict=False):
                alike = max(alike, in_window[step] * _alike(values))
        limits = self._limits(firsts, ends)
        return Statistics(counts, in_window, tuple(equal), other, ordered, alike, limits)

    def _limits(self, firsts: Int64, ends: Int64) -> tuple[tuple[frozenset[int], float], ...]:
        """Return for each definition with a window its steps and the ratio of its window to that of the query."""
        limits = []
        rows = self.events.rows[firsts]
        for name, steps in self.relations.definitions.items():
            last, first = (self.events.columns.at(column, rows).to_numpy() for column in (until(name), PLACE))
            share = np.mean(last - first + 1) / max(1.0, np.mean(ends - firsts))
            limits.append((frozenset(steps), float(np.clip(share, TINY, 1.0))))
        return tuple(limits)

    def _multiply(
        self, selectivity: dict[tuple[int, int], float], comparison: Comparison, ranges: Sequence[tuple[int, int]]
    ) -> list[Int64]:
        """Multiply the selectivity of a comparison into that of its pair; return the codes of the samples."""
        (left, _), op, (right, _) = comparison
        pairs = None if left == right else self._drawn(left, right, ranges)
        if pairs is None:
            return []
        both = self.codes_at(comparison, pairs)
        if both is None:
            rows = (step_rows(self.alternative, self.events, self.events.rows_at(places)) for places in pairs)
            both = codes([evaluate(side, sample) for (_, side), sample in zip(comparison[::2], rows, strict=True)])
        left_codes, right_codes = both
        if op == "=":
            share = _equal_share(left_codes, right_codes)
        else:
            has_both = (left_codes != UNKNOWN) & (right_codes != UNKNOWN)
            share = float(np.mean(NUMPY[op](left_codes, right_codes) & has_both))
        key = (min(left, right), max(left, right))
        selectivity[key] = selectivity.get(key, 1.0) * max(share, MIN_SELECTIVITY)
        return both

    def _drawn(self, left: int, right: int, ranges: Sequence[tuple[int, int]]) -> tuple[Int32, Int32] | None:
        """Sample pairs of places of both steps, the second in the window of the first; None if there are none."""
        first, second = min(left, right), max(left, right)
        (low, high), others = ranges[first], self.places[second]
        if low == high or ranges[second][0] == ranges[second][1]:
            return None
        chosen = self.places[first][np.linspace(low, high - 1, min(SAMPLES, high - low)).astype(np.int64)]
        begin = np.searchsorted(others, chosen, side="right")
        end = entries_from(others, window_ends(self.events, chosen))
        some = end > begin
        if not some.any():
            return None
        chosen, begin, end = chosen[some], begin[some], end[some]
        # Pick a different position in each window, spread by the golden ratio: like random, but deterministic.
        spread = (np.arange(chosen.size) * 0.6180339887498949) % 1.0
        partners = others[begin + ((end - begin) * spread).astype(np.int64)]
        return (chosen, partners) if left == first else (partners, chosen)


def _equal_share(left: Int64, right: Int64) -> float:
    """Return the share of equal pairs among all pairs of the two samples, which are many more than the samples."""
    values, inverse = np.unique(np.concatenate([left, right]), return_inverse=True)
    of_left, of_right = (np.bincount(part, minlength=values.size) for part in np.split(inverse, [left.size]))
    return float((of_left * of_right)[values != UNKNOWN].sum() / (left.size * right.size))


def _alike(values: Int64) -> float:
    """Return the share of equal pairs among all pairs of the values."""
    _, counts = np.unique(values, return_counts=True)
    return float((counts * (counts - 1)).sum() / max(1, values.size * (values.size - 1)))
