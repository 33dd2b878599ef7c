"""Run a ranking plan: find the k best matches of each group and tick."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import factorial

import numpy as np
import pyarrow as pa

from streamsift.physical.plan import Alternative, JoinPlan, MergePlan, PathPlan, RankBy, RankPlan
from streamsift.physical.rank import FEW_MATCHES
from streamsift.runtime.arrays.dtypes import Int32, Int64
from streamsift.runtime.arrays.grouping import distinct
from streamsift.runtime.detect import match_places
from streamsift.runtime.events.candidates import candidates
from streamsift.runtime.events.events import Events, tie_levels
from streamsift.runtime.events.owned import EVERYTHING, Owned
from streamsift.runtime.events.update_ticks import UpdateTicks, each_tick
from streamsift.runtime.matches import GroupMatches, match_columns, objective_values, scores
from streamsift.runtime.paths import GaveUp, path_candidates, tick_windows
from streamsift.runtime.rank.best import Best, RankRun, Scored
from streamsift.runtime.rank.groups import rank_groups
from streamsift.runtime.rank.join import RankJoin
from streamsift.runtime.rank.merge import RankMerge
from streamsift.runtime.rank.output import rank_batches, variable_rows
from streamsift.runtime.resources import add_to_match_count

JOINED_MATCHES = 1 << 14  # matches scored at a time, because each call has a fixed cost


def rank(
    plan: RankPlan,
    events: Events,
    *,
    ties: bool = False,
    wanted: Callable[[UpdateTicks], UpdateTicks] | None = None,
    owned: Owned = EVERYTHING,
) -> Iterator[pa.RecordBatch]:
    """Yield the ranking as batches of result rows; with `ties`, add columns with the tie breakers.

    A stream ranks only the ticks that `wanted` selects. A task ranks only the ticks it owns, or the matches that begin
    with a row it owns.
    """
    run = RankRun.of(plan, events, wanted, owned)
    if any(alternative.groups is not None for alternative in plan.alternatives):
        yield from rank_groups(run, ties=ties)
        return
    best = Best(run.ranking.limit, tie_levels(events))
    for number in range(len(plan.branches)):
        for matches in _candidates(run, number):
            best.add(matches)
    kept = best.settle()

    def matches_of(number: int, places: Int32) -> tuple[int, GroupMatches]:
        return number, GroupMatches.of_places(places[variable_rows(plan.alternatives[number])])

    if kept is not None:
        yield from rank_batches(run, kept, matches_of, ties=ties)


def _candidates(run: RankRun, number: int) -> Iterator[Scored]:
    """Yield matches of an alternative that include the k best of each bucket; all matches if its strategy gives up."""
    branch, ticks, limit = run.plan.branches[number], run.ticks, run.ranking.limit
    if isinstance(branch, MergePlan | JoinPlan) and (run.starts is not None or _has_few(run, branch.alternative)):
        branch = branch.alternative
    match branch:
        case None:  # no match can have a score
            return
        case JoinPlan():
            yield from _joined(run, number, branch)
            return
        case PathPlan():
            matches = path_candidates(branch, run.events, ticks, run.groups, limit, run.starts)
        case MergePlan():
            matches = RankMerge(branch, run.events, ticks, limit).best()
        case Alternative():
            matches = GaveUp.TOO_MANY
    if isinstance(matches, GaveUp):
        yield from _enumerated(run, number)
    else:
        yield _scored(run, number, matches.places, matches.tick - run.first_tick * (ticks is not None))


def _has_few(run: RankRun, alternative: Alternative) -> bool:
    """Return True if windows have so few matches that finding all costs less than reading the best one by one."""
    if run.ticks is None or run.plan.detection.choices.rank is not RankBy.AUTO:
        return False
    ticks = distinct(np.concatenate([run.ticks.first, run.ticks.last]))
    low, high = tick_windows(run.ticks, ticks)
    matches = np.ones(ticks.size)
    for part in candidates(alternative, run.events):
        matches *= np.maximum(np.searchsorted(part, high) - np.searchsorted(part, low), 0)
    orders = factorial(len(alternative.steps)) if alternative.is_sequence else 1
    return bool(ticks.size == 0 or matches.mean() / orders <= FEW_MATCHES)


def _joined(run: RankRun, number: int, branch: JoinPlan) -> Iterator[Scored]:
    """Yield the matches of a rank join that can be among the best, window by window."""
    join = RankJoin(branch, run.events, run.ticks)
    pending, count = list[tuple[Int32, Int64]](), 0
    for window, tick in enumerate(join.ticks.tolist(), start=1):
        join.open(tick)
        places, _ = join.best(run.ranking.limit)
        pending.append((places, np.full(places.shape[1], tick - run.first_tick, np.int64)))
        count += places.shape[1]
        if window == join.ticks.size or count >= JOINED_MATCHES:
            yield _scored(run, number, *(np.concatenate(part, axis=-1) for part in zip(*pending, strict=True)))
            pending, count = [], 0


def _enumerated(run: RankRun, number: int) -> Iterator[Scored]:
    """Yield all matches of an alternative, once per tick whose window contains them."""
    for places in match_places(run.plan.alternatives[number], run.events, run.plan.detection.choices):
        if run.starts is not None:
            places = places[:, run.starts[places.min(axis=0)]]
        add_to_match_count(places.shape[1])
        matches = _scored(run, number, places, np.zeros(places.shape[1], np.int64))
        if run.ticks is None:
            yield matches
        elif matches.score.size:
            bound = np.where(matches.places < 0, run.events.rank.size, matches.places).min(axis=0)
            for which, tick in each_tick(run.ticks.first[matches.places.max(axis=0)], run.ticks.last[bound]):
                some = matches.at(which)
                yield Scored(some.bucket + tick - run.first_tick, some.score, some.places, some.alternative)


def _scored(run: RankRun, number: int, places: Int32, tick: Int64) -> Scored:
    """Return the matches [steps, m] that have a score, in the buckets of the given ticks."""
    query, alternative = run.plan.query, run.plan.alternatives[number]
    score = scores(run.ranking, objective_values(run.ranking, match_columns(alternative, run.events, places)))
    keep = np.flatnonzero(~np.isnan(score))
    of_variable = np.full((sum(v.positive for v in query.variables), keep.size), -1, np.int32)
    of_variable[variable_rows(alternative)] = places[:, keep]
    return Scored(
        run.buckets(tick[keep], places[0, keep]), score[keep], of_variable, np.full(keep.size, number, np.int32)
    )
