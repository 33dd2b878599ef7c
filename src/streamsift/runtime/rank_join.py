"""A pattern with a monotone score and the events of one window in, the matches that can be among its k best out.

The rank join of the CPR thesis (section 3.2, "Nonlinear Preference Sequence Ranking"): each variable's candidates form
queues, best part first. Matches of the events that were taken from the queues so far are found by the ordinary search.
A match with an event that was not taken is no better than the corner: the best that is left in that queue beside the
best of all others. As soon as the k-th score is above every corner, the rest is never looked at; until then the queues
whose corners are in the way are read on, twice as far each time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from streamsift.physical.choices import Choices, PlanShape
from streamsift.physical.plan import JoinPlan
from streamsift.runtime.candidates import candidates, step_rows
from streamsift.runtime.codes import codes
from streamsift.runtime.columns import Columns
from streamsift.runtime.detect import match_rows
from streamsift.runtime.evaluate import evaluate
from streamsift.runtime.events import Events
from streamsift.runtime.kernels import UNKNOWN, Bool, Float64, Int32, Int64
from streamsift.runtime.scores import match_columns, merged_scores, objective_score, objective_values, scores

LOOK_AHEAD = Choices(plan=PlanShape.LEFT)  # a window's few best events are not worth a choice of trees
FIRST_READ = 8  # events that are taken from each queue at first, and at least the k that are asked for
TOLERANCE = 1e-9  # corners are raised by it, for functions whose last bit is not monotone
MOST_KEPT = 1 << 18  # matches, before those below the k-th score are dropped


@dataclass(frozen=True, slots=True)
class Queue:
    """The candidates [n] of one step by one objective's part: codes rise with the score, UNKNOWN where it is null."""

    step: int
    objective: int
    codes: Int64


def window_events(events: Events, low: int, high: int) -> Events:
    """The events at the places [low, high), all of which are in one window: it need not be tested again."""
    rows = pa.array(events.rows[low:high])
    columns = Columns(
        events.columns.table.take(rows), {name: array.take(rows) for name, array in events.columns.arrays().items()}
    )
    every = np.arange(high - low, dtype=np.int32)
    return replace(
        events,
        columns=columns,
        rows=every,
        rank=events.rank[low:high],
        window_position=every,
        ticks=events.ticks[low:high],
        window=None,
        width=0,
        in_input_order=True,
    )


class RankJoin:
    """One run of a plan over events."""

    def __init__(self, plan: JoinPlan, events: Events, limit: int) -> None:
        self.plan, self.events, self.limit = plan, events, limit
        alternative = plan.alternative
        self.places = candidates(alternative, events)
        self.inside = [np.ones(part.size, np.bool_) for part in self.places]
        step_of = {step.variable: number for number, step in enumerate(alternative.steps)}
        self.queues: list[Queue] = []
        for number, objective in enumerate(plan.objectives):
            for part in objective.parts:
                step = step_of[part.variable]
                rows = step_rows(alternative, events, events.rows_at(self.places[step]))
                (ordered,) = codes([evaluate(part.expression, rows)])
                rising = ordered if part.rises else np.where(ordered == UNKNOWN, UNKNOWN, -ordered)
                self.queues.append(Queue(step, number, rising))
                if not objective.skips_nulls:  # no match with such an event has a score
                    self.inside[step] &= ordered != UNKNOWN

    def best(self) -> Int32:
        """Matches [steps, m] as places, among which are the k best."""
        if not all(part.any() for part in self.inside):
            return np.empty((len(self.places), 0), np.int32)
        queued = {queue.step for queue in self.queues}
        taken = [np.zeros_like(part) if step in queued else part for step, part in enumerate(self.inside)]
        read, corners, worst = max(FIRST_READ, self.limit), np.full(len(self.places), np.inf), -np.inf
        while True:
            for queue in self.queues:
                if corners[queue.step] >= worst:
                    _take(taken[queue.step], self.inside[queue.step], queue.codes, read)
            found, worst = self._matches(taken)
            corners = self._corners(taken)
            if worst > corners.max() or corners.max() == -np.inf:
                return found
            read *= 2

    def _matches(self, taken: list[Bool]) -> tuple[Int32, float]:
        """The best matches of the events that were taken (for whatever step), and the k-th score."""
        alternative = self.plan.alternative
        query = alternative.query
        assert query.ranking is not None
        places = np.unique(np.concatenate([part[seen] for part, seen in zip(self.places, taken, strict=True)]))
        some = replace(self.events, rows=self.events.rows_at(places), in_input_order=False)
        some = replace(some, rank=self.events.rank[places], ticks=self.events.ticks[places])
        some = replace(some, window_position=np.arange(places.size, dtype=np.int32))
        place_of_row = np.empty(self.events.columns.table.num_rows, np.int32)
        place_of_row[self.events.rows] = np.arange(self.events.rows.size, dtype=np.int32)
        kept, score, worst = np.empty((len(self.places), 0), np.int32), np.empty(0), -np.inf
        for rows in match_rows(alternative, some, LOOK_AHEAD):
            more = scores(query.ranking, objective_values(query, match_columns(alternative, self.events, rows)))
            stays = more >= worst  # NaN does not
            kept = np.concatenate([kept, place_of_row[rows[:, stays]]], axis=1)
            score = np.concatenate([score, more[stays]])
            if score.size >= self.limit:
                worst = float(np.partition(score, score.size - self.limit)[score.size - self.limit])
            if score.size > MOST_KEPT:
                kept, score = kept[:, score >= worst], score[score >= worst]
        return kept[:, score >= worst], worst

    def _corners(self, taken: list[Bool]) -> Float64:
        """For each step a bound on the scores of matches with an event of it that was not taken; -inf if all were."""
        ranking = self.plan.alternative.query.ranking
        assert ranking is not None
        steps = len(self.places)
        left = [inside & ~seen for inside, seen in zip(self.inside, taken, strict=True)]
        bounds = []
        for number, objective in enumerate(self.plan.objectives):
            queues = [queue for queue in self.queues if queue.objective == number]
            if objective.skips_nulls and any((queue.codes == UNKNOWN).any() for queue in queues):
                bounds.append(np.full(steps, np.inf))
                continue
            # Row s of a corner is for step s: its best event that was not taken, beside the best of all others.
            corner = np.zeros((steps, steps), np.int32)
            for queue in queues:
                corner[queue.step] = self.places[queue.step][_top(queue.codes, self.inside[queue.step])]
                if left[queue.step].any():
                    corner[queue.step, queue.step] = self.places[queue.step][_top(queue.codes, left[queue.step])]
            seen = match_columns(self.plan.alternative, self.events, self.events.rows_at(corner))
            value = evaluate(ranking.objectives[number].expression, seen)
            bound = objective_score(ranking.objectives[number], value)
            bounds.append(np.where(np.isnan(bound), np.inf, bound))
        merged = merged_scores(ranking, bounds)
        raised = merged + TOLERANCE * (np.abs(merged) + 1)
        raised[np.isnan(raised)] = np.inf
        return np.where([part.any() for part in left], raised, -np.inf)


def _top(ordered: Int64, where: Bool) -> int:
    return int(np.where(where, ordered, UNKNOWN).argmax())


def _take(taken: Bool, inside: Bool, ordered: Int64, count: int) -> None:
    """Marks the `count` best as taken, and all whose order is unknown."""
    which = np.flatnonzero(inside)
    if which.size > count:
        best = np.argpartition(ordered[which], which.size - count)[which.size - count :]
        taken[which[ordered[which] == UNKNOWN]] = True
        which = which[best]
    taken[which] = True
