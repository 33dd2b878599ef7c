"""Find the matches that can be among the k best of a monotone score, with a rank join of the best events of a window.

This is the rank join of the CPR thesis (section 3.2, "Nonlinear Preference Sequence Ranking"; section 3.3 on
boundaries). Each variable's candidates form a queue (`join_queues`). The ordinary search finds the matches of the
events read from the queues so far. Events whose bound is below the k-th score cannot be in a better match; the first
such event in a queue is its boundary. Each round reads the queues twice as far, until all have reached their boundary.

When the window moves, joined matches stay in a top-k buffer, which holds all matches down to a threshold score. Matches
that begin too early are dropped, and matches with a new event that reach the threshold are added. If too few are left,
the window is joined again.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from streamsift.physical.plan import JoinPlan, PlannerOptions, PlanShape
from streamsift.runtime.arrays.dtypes import Bool, Float64, Int32
from streamsift.runtime.arrays.grouping import distinct
from streamsift.runtime.detect import match_places
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.update_ticks import UpdateTicks
from streamsift.runtime.expressions.columns import Columns, take
from streamsift.runtime.matches import match_columns, objective_values, scores
from streamsift.runtime.paths import GaveUp, Loaded, Reserve, tick_windows, ticks_with_events
from streamsift.runtime.rank.join_queues import JoinQueues
from streamsift.runtime.resources import FEWER_TIES, reserve

LEFT_DEEP = PlannerOptions(plan=PlanShape.LEFT)  # choosing a join tree does not pay for the few best events of a window
FIRST_READ = 8  # events to read from each queue at first; at least k
RESERVE = Reserve(4)  # of joined matches, if windows overlap
MAX_KEPT = 1 << 18  # matches to collect before those below the k-th score are dropped


def events_at(events: Events, places: Int32) -> Events:
    """Return the events at these ascending places."""
    rows, columns = pa.array(events.rows_at(places)), events.columns
    names = columns.table.column_names
    table = pa.table({name: take(columns.whole(name), rows) for name in names})
    others = {name: take(array, rows) for name, array in columns.arrays().items() if name not in names}
    every = np.arange(places.size, dtype=np.int32)
    return replace(
        events,
        columns=Columns(table, others),
        rows=every,
        rank=events.rank[places],
        window_position=every,
        ticks=events.ticks[places],
        in_input_order=True,
        by_class={},
    )


class RankJoin:
    """Run a rank join window by window; the windows of `ticks`, if given, replace that of each match."""

    error = 0.0  # scores are exact

    def __init__(self, plan: JoinPlan, events: Events, ticks: UpdateTicks | None) -> None:
        self.events = events if ticks is None else replace(events, window=None, width=0)
        self.plan, self.queues, self.windows = plan, JoinQueues(plan, events), ticks
        self.ticks = np.zeros(1, np.int64) if ticks is None else ticks_with_events(ticks)
        self.reserve = 1
        self.low = self.high = self.wanted = self.loaded = self.first_load = 0
        self.is_open = False  # True if `places` has all matches of the window with at least the threshold score
        self.threshold = -np.inf
        self.places, self.score = self._no_matches()

    def _no_matches(self) -> tuple[Int32, Float64]:
        return np.empty((len(self.plan.alternative.steps), 0), np.int32), np.empty(0)

    @property
    def is_complete(self) -> bool:
        """Return True if the buffer has all matches of the window."""
        return self.is_open and self.threshold == -np.inf

    def open(self, tick: int) -> None:
        """Move to the window of a tick."""
        self.first_load, self.loaded = max(self.loaded, self.first_load // 2), 0
        first, since, low, high = self.low, self.high, 0, self.events.rank.size
        if self.windows is not None:
            low, high = map(int, tick_windows(self.windows, tick))
        self.low, self.high = low, high
        overlaps = first <= low < since <= high
        self.reserve = RESERVE.filled if overlaps else 1
        self.is_open = self.is_open and overlaps
        if not self.is_open:
            return
        self._keep(self.places.min(axis=0, initial=high) >= low)
        self.is_open = self.is_complete or self.score.size >= self.wanted
        if self.is_open and high > since and not self.queues.is_empty:
            self._add_matches_from(since)

    def best(self, limit: int) -> tuple[Int32, Float64]:
        """Return the k best matches, and all that tie with the k-th, as places [steps, m], and their scores."""
        if not self.is_open or (self.score.size < limit and not self.is_complete):
            self._join(self.reserve * limit)
        self.wanted = limit
        if self.score.size <= limit:
            return self.places, self.score
        among = self.score >= _kth(self.score, limit)
        return self.places[:, among], self.score[among]

    def load(self, count: int) -> Loaded | GaveUp:
        """Return about `count` more matches; the first call loads as many as the previous window did (iNNLPS)."""
        places, score = self.best(max(self.loaded + count, self.first_load))
        if not np.isfinite(score).all():  # sums with an infinite component cannot be ranked by components
            return GaveUp.NO_SUMS
        order = np.lexsort([*places[::-1], -score])[self.loaded :]
        self.loaded = score.size
        return Loaded(places[:, order].T, score[order], self.is_complete and score.size == self.score.size)

    def _keep(self, which: Bool) -> None:
        self.places, self.score = self.places[:, which], self.score[which]

    def _join(self, limit: int) -> None:
        """Find all matches of the window down to the k-th score from scratch."""
        self.threshold, self.is_open = -np.inf, True
        self.places, self.score = self._no_matches()
        queues, steps = self.queues.queues, range(len(self.queues.queues))
        if self.queues.is_empty or not all(self.queues.has_some(step, self.low, self.high) for step in steps):
            return
        tops = self.queues.tops([self.low] * len(queues), self.high)
        # In a queue of equal bounds no candidate is best: read all of it.
        most = [self.high - self.low + 1 if queue.is_flat else max(FIRST_READ, limit) for queue in queues]
        while True:
            taken = [queues[step].read(self.low, self.high, self.threshold, most[step]) for step in steps]
            self.places, self.score, self.threshold = self._matches(self._reaching(taken, tops), limit)
            is_read = [
                taken[step].size < most[step] or self.queues.is_below(step, taken[step][-1], tops, self.threshold)
                for step in steps
            ]
            if all(is_read):
                return
            most = [count if done else 2 * count for count, done in zip(most, is_read, strict=True)]

    def _reaching(self, taken: list[Int32], tops: Int32) -> list[Int32]:
        """Return the candidates that can be in a match above the threshold, given the best of the other variables."""
        if self.threshold == -np.inf:
            return taken
        return [part[self.queues.bounds(step, part, tops) >= self.threshold] for step, part in enumerate(taken)]

    def _add_matches_from(self, since: int) -> None:
        """Add matches that reach the threshold and have an event at `since` or later."""
        queues, high, worst, taken = self.queues.queues, self.high, self.threshold, []
        # If a sequence has a new event, its last event is new.
        for new in range(len(queues) - 1 if self.plan.alternative.is_sequence else 0, len(queues)):
            if not self.queues.has_some(new, since, high, worst):
                continue
            lows = [since if step == new else self.low for step in range(len(queues))]
            candidates = [queue.read(low, high, worst, high) for queue, low in zip(queues, lows, strict=True)]
            if all(part.size for part in candidates):
                candidates = self._reaching(candidates, self.queues.tops(lows, high))
            if all(part.size for part in candidates):
                taken += candidates
        if not taken:
            return
        filled = max(RESERVE.filled * self.wanted, 1)
        places, score, self.threshold = self._matches(taken, RESERVE.max_filled * filled)
        new_ones = places.max(axis=0, initial=-1) >= since
        self.places = np.concatenate([self.places, places[:, new_ones]], axis=1)
        self.score = np.concatenate([self.score, score[new_ones]])
        if self.score.size > RESERVE.max_filled * filled:
            self.threshold = _kth(self.score, filled)
        self._keep(self.score >= self.threshold)

    def _matches(self, taken: list[Int32], limit: int) -> tuple[Int32, Float64, float]:
        """Return the matches of these places down to the threshold, and the threshold, raised to the k-th score."""
        alternative = self.plan.alternative
        query = alternative.query
        assert query.ranking is not None
        places = distinct(np.concatenate(taken))
        some = events_at(self.events, places)
        (kept, score), threshold = self._no_matches(), self.threshold
        for matches in match_places(alternative, some, LEFT_DEEP):
            more = scores(query.ranking, objective_values(query.ranking, match_columns(alternative, some, matches)))
            stays = more >= threshold  # False for NaN
            kept = np.concatenate([kept, places[matches[:, stays]]], axis=1)
            score = np.concatenate([score, more[stays]])
            reserve(3 * (kept.nbytes + score.nbytes), "matches that tie with the last rank", FEWER_TIES)
            if score.size >= limit:
                threshold = _kth(score, limit)
            if score.size > MAX_KEPT:
                kept, score = kept[:, score >= threshold], score[score >= threshold]
        return kept[:, score >= threshold], score[score >= threshold], threshold


def _kth(score: Float64, number: int) -> float:
    return float(np.partition(score, score.size - number)[score.size - number])
