"""Join the best events of each window first, to find the matches that can be among the k best of a monotone score.

The rank join of the CPR thesis (section 3.2, "Nonlinear Preference Sequence Ranking"; section 3.3 on boundaries). Each
variable's candidates form a queue (`join_queues`). Matches of the events that were taken from the queues so far are
found by the ordinary search. Those below the k-th score in a queue cannot be in a better match: where they begin is the
boundary. Queues are read on, twice as far each time, until all of them have reached it.

When the window moves, what was joined is kept in a top-k buffer: all matches from a threshold score on. Matches that
begin too early are dropped, and those with a new event that reach the threshold are added; if too few are left, the
window is joined anew.
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
from streamsift.runtime.expressions.columns import Columns, take
from streamsift.runtime.matches import match_columns, objective_values, scores
from streamsift.runtime.paths import Reserve
from streamsift.runtime.rank.join_queues import JoinQueues
from streamsift.runtime.resources import FEWER_TIES, reserve

LOOK_AHEAD = PlannerOptions(plan=PlanShape.LEFT)  # a window's few best events are not worth a choice of trees
FIRST_READ = 8  # events that are taken from each queue at first, and at least the k that are asked for
RESERVE = Reserve(4)  # of the matches that are joined, where windows overlap
MAX_KEPT = 1 << 18  # matches, before those below the k-th score are dropped


def events_at(events: Events, places: Int32) -> Events:
    """Return the events at these places, ascending."""
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
    """One run of a plan over events, window by window; with `ticks`, these hold matches whole: they have no other."""

    def __init__(self, plan: JoinPlan, events: Events, *, ticks: bool) -> None:
        self.events = replace(events, window=None, width=0) if ticks else events
        self.plan, self.queues = plan, JoinQueues(plan, events)
        self.reserve = 1
        self.low = self.high = self.asked = 0
        self.is_open = False  # all matches of the window are here whose score is at least the threshold
        self.threshold = -np.inf
        self.places, self.score = self._no_matches()

    def _no_matches(self) -> tuple[Int32, Float64]:
        return np.empty((len(self.plan.alternative.steps), 0), np.int32), np.empty(0)

    @property
    def is_complete(self) -> bool:
        """Return True if all matches of the window are here."""
        return self.is_open and self.threshold == -np.inf

    def move(self, low: int, high: int) -> None:
        """Move to the window of the places [low, high)."""
        first, since, self.low, self.high = self.low, self.high, low, high
        overlaps = first <= low < since <= high
        self.reserve = RESERVE.filled if overlaps else 1
        self.is_open = self.is_open and overlaps
        if not self.is_open:
            return
        self._keep(self.places.min(axis=0, initial=high) >= low)
        self.is_open = self.is_complete or self.score.size >= self.asked
        if self.is_open and high > since and not self.queues.is_empty:
            self._add_matches_from(since)

    def best(self, limit: int) -> tuple[Int32, Float64]:
        """Return matches [steps, m] as places and their scores: the k best, and all that tie with the k-th."""
        if not self.is_open or (self.score.size < limit and not self.is_complete):
            self._join(self.reserve * limit)
        self.asked = limit
        if self.score.size <= limit:
            return self.places, self.score
        among = self.score >= _kth(self.score, limit)
        return self.places[:, among], self.score[among]

    def _keep(self, which: Bool) -> None:
        self.places, self.score = self.places[:, which], self.score[which]

    def _join(self, limit: int) -> None:
        """Find all matches of the window down to the k-th anew."""
        self.threshold, self.is_open = -np.inf, True
        self.places, self.score = self._no_matches()
        queues, steps = self.queues.queues, range(len(self.queues.queues))
        if self.queues.is_empty or not all(self.queues.has_some(step, self.low, self.high) for step in steps):
            return
        tops = self.queues.tops([self.low for _ in steps], self.high)
        # A queue of equal bounds has no best: it is read whole.
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
        """Return those of the candidates that may be in a match above the threshold, given the best of the others."""
        if self.threshold == -np.inf:
            return taken
        return [part[self.queues.bounds(step, part, tops) >= self.threshold] for step, part in enumerate(taken)]

    def _add_matches_from(self, since: int) -> None:
        """Add matches that reach the threshold and have an event from this place on."""
        queues, taken = self.queues.queues, []
        last = len(queues) - 1
        # The last event of a sequence with a new event is new.
        for new in [last] if self.plan.alternative.is_sequence else range(len(queues)):
            lows = [since if step == new else self.low for step in range(len(queues))]
            if not self.queues.has_some(new, since, self.high, self.threshold):
                continue
            high, worst = self.high, self.threshold
            candidates = [queue.read(low, high, worst, high) for queue, low in zip(queues, lows, strict=True)]
            if all(part.size for part in candidates):
                candidates = self._reaching(candidates, self.queues.tops(lows, self.high))
            if all(part.size for part in candidates):
                taken += candidates
        if not taken:
            return
        filled = max(RESERVE.filled * self.asked, 1)
        places, score, self.threshold = self._matches(taken, RESERVE.max_filled * filled)
        new_ones = places.max(axis=0, initial=-1) >= since
        self.places = np.concatenate([self.places, places[:, new_ones]], axis=1)
        self.score = np.concatenate([self.score, score[new_ones]])
        if self.score.size > RESERVE.max_filled * filled:
            self.threshold = _kth(self.score, filled)
        self._keep(self.score >= self.threshold)

    def _matches(self, taken: list[Int32], limit: int) -> tuple[Int32, Float64, float]:
        """Return the matches of the places that were taken (for whatever step) from the threshold on, and the new one.

        The k-th score raises it.
        """
        alternative = self.plan.alternative
        query = alternative.query
        assert query.ranking is not None
        places = distinct(np.concatenate(taken))
        some = events_at(self.events, places)
        (kept, score), threshold = self._no_matches(), self.threshold
        for found in match_places(alternative, some, LOOK_AHEAD):
            more = scores(query.ranking, objective_values(query.ranking, match_columns(alternative, some, found)))
            stays = more >= threshold  # NaN does not
            kept = np.concatenate([kept, places[found[:, stays]]], axis=1)
            score = np.concatenate([score, more[stays]])
            reserve(3 * (kept.nbytes + score.nbytes), "matches that tie for the last of the best", FEWER_TIES)
            if score.size >= limit:
                threshold = _kth(score, limit)
            if score.size > MAX_KEPT:
                kept, score = kept[:, score >= threshold], score[score >= threshold]
        return kept[:, score >= threshold], score[score >= threshold], threshold


def _kth(score: Float64, number: int) -> float:
    return float(np.partition(score, score.size - number)[score.size - number])
