"""Read each variable's candidates of any window, best first, for a monotone score.

The bound of a candidate is the best score that a match with it could have: its component of the score combined with the
best component of every other variable. A queue is sorted once for all events: by component if there is one objective,
else by bound. A window costs only the candidates that are read from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamsift.errors import BadInputError
from streamsift.logical.bound import BoundObjective
from streamsift.physical.plan import JoinPlan
from streamsift.runtime.arrays.dtypes import UNKNOWN, Float64, Int32, Int64
from streamsift.runtime.arrays.range_tree import NOTHING, greatest, tree_of
from streamsift.runtime.events.candidates import candidates, step_rows
from streamsift.runtime.events.events import Events
from streamsift.runtime.expressions.codes import codes
from streamsift.runtime.expressions.evaluate import evaluate
from streamsift.runtime.matches import match_columns, merged_scores, objective_score

TOLERANCE = 1e-9  # added to bounds, because some functions are not monotone in their last bit


@dataclass(frozen=True, slots=True)
class Queue:
    """The candidates of one variable. Their numbers are their positions in the queue; the best has the largest."""

    places: Int32  # [n] ascending
    tree: Int64  # segment tree of the candidates' numbers
    limits: Float64  # [m] by number, the largest bound up to that number, given all events
    is_flat: bool  # True if all bounds are equal, so that no candidate is best

    def read(self, low: int, high: int, worst: float, most: int) -> Int32:
        """Return up to `most` of the best candidates at [low, high) that can be in a match with score `worst`."""
        first, last = np.searchsorted(self.places, [low, high])
        return self.places[greatest(self.tree, first, last, int(np.searchsorted(self.limits, worst)), most)]


class JoinQueues:
    """The queues of a plan over all events."""

    def __init__(self, plan: JoinPlan, events: Events) -> None:
        ranking = plan.alternative.query.ranking
        assert ranking is not None
        self.plan, self.events, self.ranking = plan, events, ranking
        self.places = candidates(plan.alternative, events)
        self.is_empty = not all(part.size for part in self.places)
        # With one objective, the order of a queue does not depend on the best candidates of other variables.
        self.is_one = len(plan.objectives) == 1
        self.hopeless = [np.zeros(part.size, np.bool_) for part in self.places]
        self.parts: list[dict[int, Int64]] = []  # for each objective, the candidates' components by step
        self.knows_all: list[bool] = []
        self.queues: list[Queue] = []
        if not self.is_empty:
            self._read_parts()
            self._order_queues()

    def _read_parts(self) -> None:
        step_of = {step.variable: number for number, step in enumerate(self.plan.alternative.steps)}
        for objective in self.plan.objectives:
            by_step, knows_all = {}, True
            for part in objective.parts:
                step = step_of[part.variable]
                rows = step_rows(self.plan.alternative, self.events, self.events.rows_at(self.places[step]))
                (ordered,) = codes([evaluate(part.expression, rows)])
                unknown = ordered == UNKNOWN
                if objective.skips_nulls:
                    knows_all = knows_all and not unknown.any()
                else:
                    self.hopeless[step] |= unknown
                by_step[step] = np.where(unknown, NOTHING, ordered if part.rises else -ordered)
            self.parts.append(by_step)
            self.knows_all.append(knows_all)
        self.part_trees = [{step: tree_of(part) for step, part in parts.items()} for parts in self.parts]

    def _order_queues(self) -> None:
        tops = self.tops([0] * len(self.places), self.events.rank.size)
        for step, places in enumerate(self.places):
            bound, equal = self.bounds(step, places, tops), np.zeros(places.size, np.int64)
            order = np.argsort(self.parts[0].get(step, equal) if self.is_one else bound, kind="stable")
            order = order[~self.hopeless[step][order]]
            number = np.full(places.size, NOTHING, np.int64)
            number[order] = np.arange(order.size)
            limits = np.maximum.accumulate(bound[order])
            is_flat = order.size == 0 or bool(limits[0] == limits[-1])
            self.queues.append(Queue(places, tree_of(number), limits, is_flat))

    def has_some(self, step: int, low: int, high: int, worst: float = -np.inf) -> bool:
        """Return True if a candidate of this step at [low, high) can be in a match with score `worst`."""
        return self.queues[step].read(low, high, worst, 1).size > 0

    def is_below(self, step: int, place: int, tops: Int32, worst: float) -> bool:
        """Return True if neither this candidate nor any after it in its queue can be in a match with score `worst`."""
        if not self.has_some(step, place, place + 1, worst):
            return True
        # With several objectives, later candidates may have a higher bound in the window.
        return self.is_one and bool(self.bounds(step, np.array([place], np.int32), tops)[0] < worst)

    def tops(self, lows: Sequence[int], high: int) -> Int32:
        """Return the place of the best component [objectives, steps]; every step has a candidate."""
        tops = np.empty((len(self.part_trees), len(self.places)), np.int32)
        for step, places in enumerate(self.places):
            first, last = np.searchsorted(places, [lows[step], high])
            for objective, trees in enumerate(self.part_trees):
                best = greatest(trees[step], first, last, NOTHING, 1).tolist() if step in trees else []
                tops[objective, step] = places[best[0] if best else first]
        return tops

    def bounds(self, step: int, places: Int32, tops: Int32) -> Float64:
        """Return for each candidate an upper bound on the scores of its matches, given the best of the other steps."""
        by_objective = []
        for written, knows_all, best in zip(self.ranking.objectives, self.knows_all, tops, strict=True):
            if not knows_all:  # a null component may be better than any value
                by_objective.append(np.full(places.size, np.inf))
                continue
            corner = np.repeat(best[:, None], places.size, axis=1)
            corner[step] = places
            by_objective.append(self._corner_scores(written, corner))
        merged = merged_scores(self.ranking, by_objective)
        with np.errstate(invalid="ignore"):
            merged = merged + TOLERANCE * (np.abs(merged) + 1)
        return np.where(np.isnan(merged), np.inf, merged)

    def _corner_scores(self, objective: BoundObjective, corner: Int32) -> Float64:
        """Return the scores [m] of combinations [steps, m], which need not be matches; inf if there is no score."""
        columns = match_columns(self.plan.alternative, self.events, corner)
        try:
            bound = objective_score(objective, evaluate(objective.expression, columns))
        except BadInputError:  # an overflow in a combination that need not be a match
            return np.full(corner.shape[1], np.inf)
        return np.where(np.isnan(bound), np.inf, bound)
