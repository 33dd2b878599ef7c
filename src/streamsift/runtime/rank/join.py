"""A pattern with a monotone score and windows of its events in, the matches that can be among the k best of each out.

The rank join of the CPR thesis (section 3.2, "Nonlinear Preference Sequence Ranking"; section 3.3 on boundaries). Each
variable's candidates form a queue (`rank_queues`). Matches of the events that were taken from the queues so far are
found by the ordinary search. Those below the k-th score in a queue cannot be in a better match: where they begin is the
boundary. Queues are read on, twice as far each time, until all of them have reached it.

When the window moves, what was joined is kept: all matches from a floor on. Those that begin too early are dropped, and
matches with a new event that reach the floor are added; if too few are left, the window is joined anew.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from streamsift.physical.plan import JoinPlan, PlannerOptions, PlanShape
from streamsift.runtime.arrays.dtypes import Bool, Float64, Int32
from streamsift.runtime.arrays.grouping import distinct
from streamsift.runtime.detect import match_rows
from streamsift.runtime.events.events import Events
from streamsift.runtime.expressions.columns import Columns, take
from streamsift.runtime.matches import match_columns, objective_values, scores
from streamsift.runtime.rank.join_queues import Queues
from streamsift.runtime.resources import FEWER_TIES, reserve

LOOK_AHEAD = PlannerOptions(plan=PlanShape.LEFT)  # a window's few best events are not worth a choice of trees
FIRST_READ = 8  # events that are taken from each queue at first, and at least the k that are asked for
RESERVE = 4  # times what is asked for: the matches that are joined, where windows overlap
MOST_RESERVES = 4  # times that, before the worst are dropped
MOST_KEPT = 1 << 18  # matches, before those below the k-th score are dropped


def events_at(events: Events, places: Int32) -> Events:
    """The events at these places, ascending."""
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
        self.plan, self.queues = plan, Queues(plan, events)
        self.reserve = 1
        self.low = self.high = self.asked = 0
        self.is_open = False  # all matches of the window are here whose score is at least the floor
        self.floor = -np.inf
        self.places, self.score = self._no_matches()

    def _no_matches(self) -> tuple[Int32, Float64]:
        return np.empty((len(self.plan.alternative.steps), 0), np.int32), np.empty(0)

    @property
    def is_complete(self) -> bool:
        """Whether all matches of the window are here."""
        return self.is_open and self.floor == -np.inf

    def move(self, low: int, high: int) -> None:
        """To the window of the places [low, high)."""
        first, since, self.low, self.high = self.low, self.high, low, high
        overlaps = first <= low < since <= high
        self.reserve = RESERVE if overlaps else 1
        self.is_open = self.is_open and overlaps
        if not self.is_open:
            return
        self._keep(self.places.min(axis=0, initial=high) >= low)
        self.is_open = self.is_complete or self.score.size >= self.asked
        if self.is_open and high > since and not self.queues.is_empty:
            self._add_matches_from(since)

    def best(self, limit: int) -> tuple[Int32, Float64]:
        """Matches [steps, m] as places and their scores, among which are the k best, and all that tie with the k-th."""
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
        """All matches of the window down to the k-th, found anew."""
        self.floor, self.is_open = -np.inf, True
        self.places, self.score = self._no_matches()
        queues, steps = self.queues.queues, range(len(self.queues.queues))
        if self.queues.is_empty or not all(self.queues.has_some(step, self.low, self.high) for step in steps):
            return
        tops = self.queues.tops([self.low for _ in steps], self.high)
        # A queue of equal bounds has no best: it is read whole.
        most = [self.high - self.low + 1 if queue.is_flat else max(FIRST_READ, limit) for queue in queues]
        while True:
            taken = [queues[step].read(self.low, self.high, self.floor, most[step]) for step in steps]
            self.places, self.score, self.floor = self._matches(self._reaching(taken, tops), limit)
            is_read = [
                taken[step].size < most[step] or self.queues.is_below(step, taken[step][-1], tops, self.floor)
                for step in steps
            ]
            if all(is_read):
                return
            most = [count if done else 2 * count for count, done in zip(most, is_read, strict=True)]

    def _reaching(self, taken: list[Int32], tops: Int32) -> list[Int32]:
        """Those of the candidates that may be in a match above the floor, given the best of the others."""
        if self.floor == -np.inf:
            return taken
        return [part[self.queues.bounds(step, part, tops) >= self.floor] for step, part in enumerate(taken)]

    def _add_matches_from(self, since: int) -> None:
        """Matches that reach the floor and have an event from this place on."""
        queues, taken = self.queues.queues, []
        last = len(queues) - 1
        # The last event of a sequence with a new event is new.
        for new in [last] if self.plan.alternative.is_sequence else range(len(queues)):
            lows = [since if step == new else self.low for step in range(len(queues))]
            if not self.queues.has_some(new, since, self.high, self.floor):
                continue
            found = [queue.read(low, self.high, self.floor, self.high) for queue, low in zip(queues, lows, strict=True)]
            if all(part.size for part in found):
                found = self._reaching(found, self.queues.tops(lows, self.high))
            if all(part.size for part in found):
                taken += found
        if not taken:
            return
        reserve = max(RESERVE * self.asked, 1)
        places, score, self.floor = self._matches(taken, MOST_RESERVES * reserve)
        new_ones = places.max(axis=0, initial=-1) >= since
        self.places = np.concatenate([self.places, places[:, new_ones]], axis=1)
        self.score = np.concatenate([self.score, score[new_ones]])
        if self.score.size > MOST_RESERVES * reserve:
            self.floor = _kth(self.score, reserve)
        self._keep(self.score >= self.floor)

    def _matches(self, taken: list[Int32], limit: int) -> tuple[Int32, Float64, float]:
        """The matches of the places that were taken (for whatever step) from the floor on, and what it is then.

        The k-th score raises it.
        """
        alternative = self.plan.alternative
        query = alternative.query
        assert query.ranking is not None
        places = distinct(np.concatenate(taken))
        some = events_at(self.events, places)
        (kept, score), floor = self._no_matches(), self.floor
        for rows in match_rows(alternative, some, LOOK_AHEAD):
            more = scores(query.ranking, objective_values(query.ranking, match_columns(alternative, some, rows)))
            stays = more >= floor  # NaN does not
            kept = np.concatenate([kept, places[rows[:, stays]]], axis=1)
            score = np.concatenate([score, more[stays]])
            reserve(3 * (kept.nbytes + score.nbytes), "matches that tie for the last of the best", FEWER_TIES)
            if score.size >= limit:
                floor = _kth(score, limit)
            if score.size > MOST_KEPT:
                kept, score = kept[:, score >= floor], score[score >= floor]
        return kept[:, score >= floor], score[score >= floor], floor


def _kth(score: Float64, number: int) -> float:
    return float(np.partition(score, score.size - number)[score.size - number])
