"""A pattern with a monotone score and the events of one window in, the matches that can be among its k best out.

The rank join of the CPR thesis (section 3.2, "Nonlinear Preference Sequence Ranking"; section 3.3 on boundaries). Each
variable's candidates form a queue, by the best score that a match with the event could have: its own part beside the
best part of every other variable. Matches of the events that were taken from the queues so far are found by the
ordinary search. Those below the k-th score in a queue cannot be in a better match: where they begin is the boundary.
Queues are read on, twice as far each time but never past their boundary, until all of them have reached it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from streamsift.errors import BadInputError
from streamsift.logical.bound import Objective
from streamsift.physical.choices import Choices, PlanShape
from streamsift.physical.plan import JoinPlan
from streamsift.runtime.candidates import candidates, step_rows
from streamsift.runtime.codes import codes
from streamsift.runtime.columns import Columns
from streamsift.runtime.detect import match_rows
from streamsift.runtime.evaluate import evaluate
from streamsift.runtime.events import Events
from streamsift.runtime.kernels import UNKNOWN, Bool, Float64, Int32
from streamsift.runtime.scores import match_columns, merged_scores, objective_score, objective_values, scores

LOOK_AHEAD = Choices(plan=PlanShape.LEFT)  # a window's few best events are not worth a choice of trees
FIRST_READ = 8  # events that are taken from each queue at first, and at least the k that are asked for
TOLERANCE = 1e-9  # bounds are raised by it, for functions whose last bit is not monotone
MOST_KEPT = 1 << 18  # matches, before those below the k-th score are dropped


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

    def __init__(self, plan: JoinPlan, events: Events) -> None:
        self.plan, self.events = plan, events
        self.places = candidates(plan.alternative, events)
        self.bounds = [np.empty(0)] * len(self.places)
        if all(part.size for part in self.places):
            self.bounds = self._bounds()

    def best(self, limit: int) -> Int32:
        """Matches [steps, m] as places, among which are the k best."""
        if not all((bound > -np.inf).any() for bound in self.bounds):
            return np.empty((len(self.places), 0), np.int32)
        orders = [np.argsort(-bound, kind="stable") for bound in self.bounds]
        boundary = np.array([np.count_nonzero(bound > -np.inf) for bound in self.bounds])
        # A queue of equal bounds has no best: it is read whole.
        flat = np.array([bound.max() == bound[bound > -np.inf].min() for bound in self.bounds])
        read = np.where(flat, boundary, np.minimum(boundary, max(FIRST_READ, limit)))
        while True:
            taken = [part[order[:n]] for part, order, n in zip(self.places, orders, read, strict=True)]
            found, worst = self._matches(taken, limit)
            boundary = np.array([np.count_nonzero((bound >= worst) & (bound > -np.inf)) for bound in self.bounds])
            if (read >= boundary).all():
                return found
            read = np.maximum(read, np.minimum(2 * read, boundary))

    def _matches(self, taken: list[Int32], limit: int) -> tuple[Int32, float]:
        """The best matches of the places that were taken (for whatever step), and the k-th score."""
        alternative = self.plan.alternative
        query = alternative.query
        assert query.ranking is not None
        places = np.unique(np.concatenate(taken))
        some = replace(self.events, rows=self.events.rows_at(places), in_input_order=False)
        some = replace(some, rank=self.events.rank[places], ticks=self.events.ticks[places])
        some = replace(some, window_position=np.arange(places.size, dtype=np.int32))
        place_of_row = np.empty(self.events.columns.table.num_rows, np.int32)
        place_of_row[self.events.rows] = np.arange(self.events.rows.size, dtype=np.int32)
        kept, score, worst = np.empty((len(self.places), 0), np.int32), np.empty(0), -np.inf
        for rows in match_rows(alternative, some, LOOK_AHEAD):
            more = scores(query.ranking, objective_values(query.ranking, match_columns(alternative, self.events, rows)))
            stays = more >= worst  # NaN does not
            kept = np.concatenate([kept, place_of_row[rows[:, stays]]], axis=1)
            score = np.concatenate([score, more[stays]])
            if score.size >= limit:
                worst = float(np.partition(score, score.size - limit)[score.size - limit])
            if score.size > MOST_KEPT:
                kept, score = kept[:, score >= worst], score[score >= worst]
        return kept[:, score >= worst], worst

    def _bounds(self) -> list[Float64]:
        """For each candidate of each step a bound on the scores of its matches; -inf if they have none."""
        ranking = self.plan.alternative.query.ranking
        assert ranking is not None
        alternative = self.plan.alternative
        step_of = {step.variable: number for number, step in enumerate(alternative.steps)}
        by_step: list[list[Float64]] = [[] for _ in self.places]
        hopeless = [np.zeros(part.size, np.bool_) for part in self.places]
        for objective, written in zip(self.plan.objectives, ranking.objectives, strict=True):
            tops = [int(part[0]) for part in self.places]
            knows_all = True
            for part in objective.parts:
                step = step_of[part.variable]
                rows = step_rows(alternative, self.events, self.events.rows_at(self.places[step]))
                (ordered,) = codes([evaluate(part.expression, rows)])
                unknown = ordered == UNKNOWN
                if objective.skips_nulls:
                    knows_all = knows_all and not unknown.any()
                else:
                    hopeless[step] |= unknown
                best = np.where(unknown, UNKNOWN, ordered if part.rises else -ordered).argmax()
                tops[step] = int(self.places[step][best])
            for step, places in enumerate(self.places):
                if not knows_all:  # a null part may be better than all others
                    by_step[step].append(np.full(places.size, np.inf))
                    continue
                corner = np.repeat(np.array(tops, np.int32)[:, None], places.size, axis=1)
                corner[step] = places
                by_step[step].append(self._corner_scores(written, corner))
        return self._merged(by_step, hopeless)

    def _corner_scores(self, objective: Objective, corner: Int32) -> Float64:
        """The scores [m] of what need be no matches [steps, m]; inf where there is none."""
        seen = match_columns(self.plan.alternative, self.events, self.events.rows_at(corner))
        try:
            bound = objective_score(objective, evaluate(objective.expression, seen))
        except BadInputError:  # an overflow that no match need have
            return np.full(corner.shape[1], np.inf)
        return np.where(np.isnan(bound), np.inf, bound)

    def _merged(self, by_step: list[list[Float64]], hopeless: list[Bool]) -> list[Float64]:
        ranking = self.plan.alternative.query.ranking
        assert ranking is not None
        found = []
        for step, bounds in enumerate(by_step):
            merged = merged_scores(ranking, bounds)
            with np.errstate(invalid="ignore"):
                merged = merged + TOLERANCE * (np.abs(merged) + 1)
            merged[np.isnan(merged)] = np.inf
            merged[hopeless[step]] = -np.inf
            found.append(merged)
        return found
