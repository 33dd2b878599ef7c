"""Rank matches with Kleene variables: find the k best of each group and tick.

All matches are found and scored. The k best so far are kept as ranges of elements; ties are broken element by element.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from streamsift.runtime.arrays.dtypes import Float64, Int32, Int64
from streamsift.runtime.detect import group_matches
from streamsift.runtime.events.events import tie_levels
from streamsift.runtime.events.update_ticks import each_tick
from streamsift.runtime.matches import GroupMatches, GroupValues, objective_values, scores
from streamsift.runtime.rank.best import Best, RankRun, Scored
from streamsift.runtime.rank.output import rank_batches
from streamsift.runtime.resources import FEWER_TIES, add_to_match_count, reserve

PENDING = 1 << 16  # scored matches to collect before those that cannot be among the best are dropped


class GroupBest(Best):
    """The k best so far, each given by its number in one of the chunks of matches."""

    def __init__(self, run: RankRun) -> None:
        super().__init__(run.ranking.limit, tie_levels(run.events))
        self.run, self.unsettled = run, 0
        self.chunks: list[tuple[int, GroupMatches]] = []  # with the number of their alternative

    def add_chunk(self, alternative: int, matches: GroupMatches, bucket: Int64, score: Float64, which: Int64) -> None:
        self.chunks.append((alternative, matches))
        chunk = np.full(which.size, len(self.chunks) - 1, np.int32)
        self.add(Scored(bucket, score, which[np.newaxis].astype(np.int32), chunk))
        self.unsettled += which.size
        if self.unsettled >= PENDING:
            self.settle()

    def settle(self) -> Scored | None:
        """Return the k best of each bucket; drop all other matches from the chunks."""
        best, self.unsettled = super().settle(), 0
        if best is None:
            self.chunks = []
            return None
        chunks: list[tuple[int, GroupMatches]] = []
        number, match = best.alternative.copy(), best.places.copy()
        for chunk in np.unique(best.alternative):
            here = best.alternative == chunk
            used, match[0, here] = np.unique(best.places[0, here], return_inverse=True)
            number[here] = len(chunks)
            alternative, matches = self.chunks[chunk]
            chunks.append((alternative, compacted(matches, used)))
        self.chunks, self.kept = chunks, Scored(best.bucket, best.score, match, number)
        kept = sum(matches.singles.nbytes + matches.places.nbytes + 3 * matches.first.nbytes for _, matches in chunks)
        reserve(2 * kept + 8 * best.score.nbytes, "matches that tie with the last rank", FEWER_TIES)
        return self.kept

    def tie_places(self, matches: Scored) -> list[Int32]:
        """Return the places of the elements of each variable, one by one; a missing element sorts first."""
        elements: list[Int32] = []
        for variable in (variable.index for variable in self.run.plan.query.variables if variable.positive):
            padded: list[Int32] = []  # the places of its elements, -1 if there are fewer
            for chunk in np.unique(matches.alternative):
                here = np.flatnonzero(matches.alternative == chunk)
                number, of_chunk = self.chunks[chunk]
                alternative = self.run.plan.alternatives[number]
                values = GroupValues(alternative.query, alternative, self.run.events, of_chunk)
                if not values.is_bound(variable):
                    continue
                if values.is_group(variable):
                    places, offsets = values.elements(variable)
                else:
                    places = of_chunk.singles[values.singles[variable]]
                    offsets = np.arange(places.size + 1, dtype=np.int64)
                which = matches.places[0, here]
                first, size = offsets[which], np.diff(offsets)[which]
                for element in range(int(size.max())):
                    if element == len(padded):
                        padded.append(np.full(matches.score.size, -1, np.int32))
                    has = size > element
                    padded[element][here[has]] = places[first[has] + element]
            elements += padded
        return elements


def compacted(matches: GroupMatches, which: Int64) -> GroupMatches:
    """Return these matches without the elements of other matches."""
    some = matches.only(which)
    sizes = some.sizes.reshape(-1)
    ends = np.cumsum(sizes)
    places = some.places[np.repeat(some.first.reshape(-1) - (ends - sizes), sizes) + np.arange(sizes.sum())]
    shape = some.first.shape
    return GroupMatches(some.singles, places, (ends - sizes).reshape(shape), ends.reshape(shape), some.origins)


def rank_groups(run: RankRun, *, ties: bool) -> Iterator[pa.RecordBatch]:
    best = GroupBest(run)
    for number, alternative in enumerate(run.plan.alternatives):
        for matches in group_matches(alternative, run.events, run.plan.detection.choices):
            _add(run, best, number, matches)
    kept = best.settle()

    def matches_of(chunk: int, numbers: Int32) -> tuple[int, GroupMatches]:
        alternative, matches = best.chunks[chunk]
        return alternative, matches.only(numbers[0])

    if kept is not None:
        yield from rank_batches(run, kept, matches_of, ties=ties)


def _add(run: RankRun, best: GroupBest, number: int, matches: GroupMatches) -> None:
    """Add the matches of a chunk that have a score, once per tick."""
    alternative = run.plan.alternatives[number]
    values = GroupValues(alternative.query, alternative, run.events, matches)
    score = scores(run.ranking, objective_values(run.ranking, values.rows()))
    events = matches.events()
    add_to_match_count(len(matches))
    has_score = ~np.isnan(score)
    if run.groups.size:
        has_score &= run.groups[events[0]] >= 0
    if run.starts is not None:
        has_score &= run.starts[events.min(axis=0)]
    scored = np.flatnonzero(has_score)
    by_tick: Iterable[tuple[Int64, Int64]] = [(scored, np.zeros(scored.size, np.int64))]
    if run.ticks is not None and scored.size:
        first, last = run.ticks.first[events[:, scored].max(axis=0)], run.ticks.last[events[:, scored].min(axis=0)]
        by_tick = ((scored[which], tick - run.first_tick) for which, tick in each_tick(first, last))
    for which, tick in by_tick:
        if which.size:
            best.add_chunk(number, matches, run.buckets(tick, events[0, which]), score[which], which)
