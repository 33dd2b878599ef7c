"""The parts of a pattern in, each ranked by its own best paths, the matches that can be among the k best of all out.

The top-k merge of the CPR thesis (sections 3.3 and 3.4), for all windows at once: the best paths of each part are read,
those that fit together are matches. A match with a path that was not read is no better than the last path read of its
part beside the best of the other parts. Windows whose k-th score is above that are done; in the others the parts that
bound it are read on, four times as far each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from streamsift.physical.plan import Component, MergePlan
from streamsift.runtime.candidates import candidates, step_rows
from streamsift.runtime.codes import codes
from streamsift.runtime.evaluate import evaluate, mask
from streamsift.runtime.events import Events
from streamsift.runtime.kernels import UNKNOWN, Bool, Float64, Int32, Int64
from streamsift.runtime.path_ranking import SLACK, Paths, path_candidates
from streamsift.runtime.scores import match_columns, objective_values, scores
from streamsift.runtime.ticks import Ticks

FIRST_READ = 32
READ_ON = 4
TOLERANCE = 1e-9
CHUNK_PATHS = 1 << 8  # of the first part that are merged at a time: each chunk has a better k-th score to reach
_MERGED = {"MIN": np.minimum, "MAX": np.maximum, "SUM": np.add, "AVG": np.add}
_COMPARED = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


@dataclass(frozen=True, slots=True)
class Read:
    """What was read of one part in one window: paths [steps, m] as places, best first."""

    places: Int32
    score: Float64
    next: float  # no path that was not read scores more; -inf if all were


@dataclass(frozen=True, slots=True)
class Crossing:
    """A comparison between two steps of different parts; codes [places] of both sides."""

    earlier: int
    this: int
    op: str
    earlier_codes: Int64
    this_codes: Int64


class RankMerge:
    """One run of a plan over events."""

    def __init__(self, plan: MergePlan, events: Events, ticks: Ticks | None, limit: int) -> None:
        self.plan, self.events, self.ticks, self.limit = plan, events, ticks, limit
        self.crossing = self._crossing()

    def best(self) -> Paths | None:
        """Matches among which are the k best of every window; None if a part has too many paths to look at."""
        found: list[Int32] = []
        of_tick: list[Int64] = []
        undecided: Int64 | None = None
        read = max(FIRST_READ, self.limit)
        while undecided is None or undecided.size:
            parts = []
            for component in self.plan.components:
                paths = path_candidates(component.plan, self.events, self.ticks, np.empty(0, np.int32), read, undecided)
                if paths is None:
                    return None
                parts.append(self._by_tick(component, paths, read))
            left = []
            for tick in sorted(set.intersection(*(set(part) for part in parts))):
                matches, decided = self._merged([part[tick] for part in parts])
                if decided:
                    found.append(matches)
                    of_tick.append(np.full(matches.shape[1], tick, np.int64))
                else:
                    left.append(tick)
            undecided = np.array(left, np.int64)
            read *= READ_ON
        steps = len(self.plan.alternative.steps)
        return Paths(
            np.concatenate([np.empty((steps, 0), np.int32), *found], axis=1),
            np.concatenate([np.empty(0, np.int64), *of_tick]),
        )

    def _by_tick(self, component: Component, paths: Paths, limit: int) -> dict[int, Read]:
        """What was read of a part, window by window."""
        if not paths.tick.size:
            return {}
        alternative = component.plan.alternative
        seen = match_columns(alternative, self.events, self.events.rows_at(paths.places))
        score = scores(component.ranking, objective_values(component.ranking, seen))
        order = np.lexsort([-score, paths.tick])
        ticks, starts = np.unique(paths.tick[order], return_index=True)
        found = {}
        for tick, which in zip(ticks.tolist(), np.split(order, starts[1:]), strict=True):
            own = score[which]
            last = own[limit - 1] + SLACK * paths.error if which.size >= limit else -np.inf
            found[tick] = Read(
                paths.places[:, which], own, last + TOLERANCE * (abs(last) + 1) if last > -np.inf else last
            )
        return found

    def _merge(self, parts: Sequence[Float64 | float]) -> Float64:
        merged = reduce(_MERGED[self.plan.function], [np.asarray(part, np.float64) for part in parts])
        return merged / len(parts) if self.plan.function == "AVG" else merged

    def _merged(self, reads: list[Read]) -> tuple[Int32, bool]:
        """The matches [steps, m] that may be among the k best, and whether no others can be."""
        tops = [float(read.score[0]) for read in reads]
        bounds = [
            float(self._merge([*tops[:number], read.next, *tops[number + 1 :]]))
            for number, read in enumerate(reads)
            if read.next > -np.inf
        ]
        kept, score, worst = np.empty((len(self.plan.alternative.steps), 0), np.int32), np.empty(0), -np.inf
        first = self._placed(0, reads[0].places)
        for begin in range(0, first.shape[1], CHUNK_PATHS):
            some = slice(begin, begin + CHUNK_PATHS)
            found, more = self._scored(self._joined(reads, tops, first[:, some], reads[0].score[some], worst))
            kept, score = np.concatenate([kept, found], axis=1), np.concatenate([score, more])
            if score.size >= self.limit:
                worst = float(np.partition(score, score.size - self.limit)[score.size - self.limit])
                kept, score = kept[:, score >= worst], score[score >= worst]
        return kept, not bounds or worst > max(bounds)

    def _placed(self, component: int, places: Int32) -> Int32:
        """The paths of a part as rows of a whole match, -1 elsewhere."""
        whole = np.full((len(self.plan.alternative.steps), places.shape[1]), -1, np.int32)
        whole[list(self.plan.components[component].steps)] = places
        return whole

    def _joined(self, reads: list[Read], tops: list[float], found: Int32, score: Float64, worst: float) -> Int32:
        """The paths of the first part, each with those of the others that fit and may reach the k-th score."""
        scored = [score]
        for number in range(1, len(reads)):
            left = np.repeat(np.arange(found.shape[1]), reads[number].score.size)
            right = np.tile(np.arange(reads[number].score.size), found.shape[1])
            reach = self._merge([*(part[left] for part in scored), reads[number].score[right], *tops[number + 1 :]])
            near = reach >= worst - TOLERANCE * (abs(worst) + 1) if worst > -np.inf else slice(None)
            left, right = left[near], right[near]
            steps = list(self.plan.components[number].steps)
            joined = found[:, left]
            joined[steps] = reads[number].places[:, right]
            fits = self._fits(joined, steps)
            found = joined[:, fits]
            scored = [*(part[left][fits] for part in scored), reads[number].score[right][fits]]
        return found

    def _fits(self, places: Int32, new: list[int]) -> Bool:
        """Whether the events of the new steps go with those of the steps that were there."""
        rank, before = self.events.rank, self.plan.before
        bound = [
            step for step in range(places.shape[0]) if step not in new and places.shape[1] and places[step, 0] >= 0
        ]
        keep = np.ones(places.shape[1], np.bool_)
        for one in new:
            for other in bound:
                if (other, one) in before:
                    keep &= rank[places[other]] < rank[places[one]]
                elif (one, other) in before:
                    keep &= rank[places[one]] < rank[places[other]]
                else:
                    keep &= places[one] != places[other]
        for pair in self.crossing:
            if (pair.earlier in new and pair.this in bound) or (pair.this in new and pair.earlier in bound):
                left, right = pair.earlier_codes[places[pair.earlier]], pair.this_codes[places[pair.this]]
                keep &= (left != UNKNOWN) & (right != UNKNOWN) & _COMPARED[pair.op](left, right)
        return keep

    def _scored(self, places: Int32) -> tuple[Int32, Float64]:
        """Those that pass the predicates of more than two events and have a score, and their scores."""
        alternative = self.plan.alternative
        assert alternative.query.ranking is not None
        seen = match_columns(alternative, self.events, self.events.rows_at(places))
        score = scores(alternative.query.ranking, objective_values(alternative.query.ranking, seen))
        keep = ~np.isnan(score)
        for step in alternative.steps:
            for predicate in step.filters:
                keep &= mask(predicate, seen)
        return places[:, keep], score[keep]

    def _crossing(self) -> list[Crossing]:
        """The comparisons between events of different parts, as codes by place."""
        alternative = self.plan.alternative
        owner = {step: number for number, c in enumerate(self.plan.components) for step in c.steps}
        own = candidates(alternative, self.events)
        found = []
        for this, step in enumerate(alternative.steps):
            for pair in (*step.lookup, *step.pairs):
                if owner[this] == owner[pair.earlier]:
                    continue
                sides = [
                    evaluate(side, step_rows(alternative, self.events, self.events.rows_at(own[number])))
                    for side, number in ((pair.earlier_side, pair.earlier), (pair.this_side, this))
                ]
                coded = [np.full(self.events.rank.size, UNKNOWN, np.int64) for _ in sides]
                values = codes(sides, ordered=pair.op not in ("=", "!="))
                for column, number, value in zip(coded, (pair.earlier, this), values, strict=True):
                    column[own[number]] = value
                found.append(Crossing(pair.earlier, this, pair.op, coded[0], coded[1]))
        return found
