"""A ranking plan and events in, the k best matches of each group and tick out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import factorial

import numpy as np
import pyarrow as pa

from streamsift.errors import BadInputError
from streamsift.physical.plan import Alternative, JoinPlan, MergePlan, PathPlan, RankBy, RankPlan
from streamsift.physical.rank import FEW_MATCHES
from streamsift.runtime.arrays.dtypes import Bool, Int32, Int64
from streamsift.runtime.arrays.grouping import distinct
from streamsift.runtime.detect import match_places
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.owned import EVERYTHING, Owned
from streamsift.runtime.events.ties import tie_levels
from streamsift.runtime.events.update_ticks import UpdateTicks, each_tick, ticks_of
from streamsift.runtime.expressions.codes import group_codes
from streamsift.runtime.matches import match_columns, objective_values, scores
from streamsift.runtime.paths import path_candidates, ticks_with_events
from streamsift.runtime.rank.best import Best, Scored
from streamsift.runtime.rank.groups import GroupRanking
from streamsift.runtime.rank.join import RankJoin
from streamsift.runtime.rank.merge import RankMerge
from streamsift.runtime.rank.output import Leaderboard, variable_rows
from streamsift.runtime.resources import found_matches

MOST_BUCKETS = 1 << 62
JOINED_MATCHES = 1 << 14  # that are scored at a time: every call has its price


def rank(
    plan: RankPlan,
    events: Events,
    *,
    ties: bool = False,
    wanted: Callable[[UpdateTicks], UpdateTicks] | None = None,
    owned: Owned = EVERYTHING,
) -> Iterator[pa.RecordBatch]:
    """The ranking as result rows, in batches; with `ties`, beside them what ties are broken by.

    Of a stream only the `wanted` ticks are ranked: it is given all, and leaves them between the others' first and last.
    """
    found = Ranking.of(plan, events, wanted, owned)
    if any(alternative.groups is not None for alternative in plan.alternatives):
        yield from GroupRanking(plan, found.leaderboard(), found.groups, found.starts).batches(ties=ties)
        return
    best = found.best()
    if best is not None:
        yield from found.leaderboard().batches(best, ties=ties)


@dataclass(frozen=True, slots=True)
class Ranking:
    """One run of a plan over events."""

    plan: RankPlan
    events: Events
    ticks: UpdateTicks | None
    first_tick: int
    tick_count: int
    groups: Int32  # [places] the GROUP BY value; empty without GROUP BY
    starts: Bool | None = None  # [places] where matches may start, if not anywhere

    @staticmethod
    def of(
        plan: RankPlan,
        events: Events,
        wanted: Callable[[UpdateTicks], UpdateTicks] | None = None,
        owned: Owned = EVERYTHING,
    ) -> Ranking:
        query = plan.query
        groups, group_count = np.empty(0, np.int32), 1
        if query.group_by:
            (groups,), group_count = group_codes([[events.columns.at(key, events.rows)] for key in query.group_by])
        ticks = ticks_of(query, events) if query.update else None
        if ticks is not None and wanted is not None:
            ticks = wanted(ticks)
        if ticks is not None and owned.ticks is not None:
            ticks = owned.ticks.of(ticks)
        starts = None if owned.rows is None else owned.rows[events.rows]
        first, count = 0, 1
        if ticks is not None and ticks.first.size:
            first = int(ticks.first.min())
            count = max(1, int(ticks.last.max()) - first + 1)
        if count * max(1, group_count) >= MOST_BUCKETS:
            raise BadInputError("The ticks of UPDATE do not fit 64 bits: update less often.")
        return Ranking(plan, events, ticks, first, count, groups, starts)

    def leaderboard(self) -> Leaderboard:
        plan = self.plan
        return Leaderboard(plan.query, plan.alternatives, self.events, self.ticks, self.first_tick, self.tick_count)

    def best(self) -> Scored | None:
        """The k best of each bucket, by bucket, best first."""
        ranking = self.plan.query.ranking
        assert ranking is not None
        best = Best(ranking.limit, tie_levels(self.events))
        for number, branch in enumerate(self.plan.branches):
            paths = None
            if branch is None:
                continue
            if isinstance(branch, MergePlan | JoinPlan) and (
                self.starts is not None or self._has_few_matches(branch.alternative)
            ):
                branch = branch.alternative
            if isinstance(branch, PathPlan):
                paths = path_candidates(branch, self.events, self.ticks, self.groups, ranking.limit, self.starts)
            elif isinstance(branch, MergePlan):
                paths = RankMerge(branch, self.events, self.ticks, ranking.limit).best()
            if isinstance(branch, JoinPlan):
                for matches in self._joined(number, branch, ranking.limit):
                    best.add(matches)
            elif paths is not None:
                best.add(self._scored(number, paths.places, paths.tick - self.first_tick * (self.ticks is not None)))
            else:
                for matches in self._enumerated(number):
                    best.add(matches)
        return best.settle()

    def _has_few_matches(self, alternative: Alternative) -> bool:
        """Whether windows hold so few matches that finding all costs less than looking for the best one by one."""
        if self.ticks is None or self.plan.detection.choices.rank is not RankBy.AUTO:
            return False
        ticks = distinct(np.concatenate([self.ticks.first, self.ticks.last]))
        low = np.searchsorted(self.ticks.last, ticks, side="left")
        high = np.searchsorted(self.ticks.first, ticks, side="right")
        matches = np.ones(ticks.size)
        for part in candidates(alternative, self.events):
            matches *= np.maximum(np.searchsorted(part, high) - np.searchsorted(part, low), 0)
        orders = factorial(len(alternative.steps)) if alternative.is_sequence else 1
        return bool(ticks.size == 0 or matches.mean() / orders <= FEW_MATCHES)

    def _joined(self, number: int, branch: JoinPlan, limit: int) -> Iterator[Scored]:
        """The matches that can be among the best, window by window."""
        ticks, lows, highs = self._windows()
        join = RankJoin(branch, self.events, ticks=self.ticks is not None)
        waiting, count = [], 0
        for tick, low, high in zip(ticks.tolist(), lows.tolist(), highs.tolist(), strict=True):
            join.move(low, high)
            found, _ = join.best(limit)
            waiting.append((found, np.full(found.shape[1], tick - self.first_tick, np.int64)))
            count += found.shape[1]
            if count >= JOINED_MATCHES:
                yield self._scored(number, *(np.concatenate(part, axis=-1) for part in zip(*waiting, strict=True)))
                waiting, count = [], 0
        if waiting:
            yield self._scored(number, *(np.concatenate(part, axis=-1) for part in zip(*waiting, strict=True)))

    def _windows(self) -> tuple[Int64, Int64, Int64]:
        """The ticks that have events, and the places [low, high) of each."""
        if self.ticks is None:
            return np.full(1, self.first_tick), np.zeros(1, np.int64), np.full(1, self.events.rank.size)
        ticks = ticks_with_events(self.ticks)
        lows = np.searchsorted(self.ticks.last, ticks, side="left")
        return ticks, lows, np.searchsorted(self.ticks.first, ticks, side="right")

    def _enumerated(self, number: int) -> Iterator[Scored]:
        """All matches of an alternative, once for each tick whose window holds them."""
        for places in match_places(self.plan.alternatives[number], self.events, self.plan.detection.choices):
            if self.starts is not None:
                places = places[:, self.starts[places.min(axis=0)]]
            found_matches(places.shape[1])
            matches = self._scored(number, places, np.zeros(places.shape[1], np.int64))
            if self.ticks is None:
                yield matches
            elif matches.score.size:
                bound = np.where(matches.places < 0, self.events.rank.size, matches.places).min(axis=0)
                first = self.ticks.first[matches.places.max(axis=0)]
                yield from self._by_tick(matches, first, self.ticks.last[bound])

    def _scored(self, number: int, places: Int32, tick: Int64) -> Scored:
        """Those of the matches [steps, m] that have a score, in the buckets of these ticks."""
        query, alternative = self.plan.query, self.plan.alternatives[number]
        assert query.ranking is not None
        seen = match_columns(alternative, self.events, places)
        score = scores(query.ranking, objective_values(query.ranking, seen))
        keep = np.flatnonzero(~np.isnan(score))
        of_variable = np.full((sum(v.positive for v in query.variables), keep.size), -1, np.int32)
        of_variable[variable_rows(alternative)] = places[:, keep]
        bucket = tick[keep]
        if self.groups.size:
            bucket = bucket + self.groups[places[0, keep]].astype(np.int64) * self.tick_count
        return Scored(bucket, score[keep], of_variable, np.full(keep.size, number, np.int32))

    def _by_tick(self, matches: Scored, first: Int64, last: Int64) -> Iterator[Scored]:
        for which, tick in each_tick(first, last):
            chosen = matches.at(which)
            yield Scored(chosen.bucket + tick - self.first_tick, chosen.score, chosen.places, chosen.alternative)
