"""Rank matches with Kleene variables: find the k best of each group and tick.

Every match is found and scored. Those that may still be among the best are held as ranges of elements, a few times k of
each bucket; ties are settled among them at the end, groups element by element.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from streamsift.physical.plan import Alternative
from streamsift.runtime.arrays.dtypes import Float64, Int32, Int64
from streamsift.runtime.detect import group_matches
from streamsift.runtime.events.ties import tie_levels
from streamsift.runtime.events.update_ticks import each_tick
from streamsift.runtime.matches import GroupMatches, GroupValues, match_schema, objective_values, result_batches, scores
from streamsift.runtime.rank.best import Scored, joined
from streamsift.runtime.rank.buckets import RankRun, not_below_kth, ranks
from streamsift.runtime.rank.output import ColumnsOf, rank_batches, tie_columns
from streamsift.runtime.resources import FEWER_TIES, found_matches, reserve

PENDING = 1 << 16  # scored matches that may wait until those that cannot be among the best are dropped


@dataclass(slots=True)
class GroupBest:
    """The matches that may be among the best, and those that wait to be compared with them."""

    limit: int
    chunks: list[tuple[int, GroupMatches]] = field(default_factory=list)  # with the number of their alternative
    pending: list[Scored] = field(default_factory=list)
    waiting: int = 0

    def add(self, alternative: int, matches: GroupMatches, bucket: Int64, score: Float64, which: Int64) -> None:
        self.chunks.append((alternative, matches))
        chunk = np.full(which.size, len(self.chunks) - 1, np.int32)
        self.pending.append(Scored(bucket, score, which[np.newaxis].astype(np.int32), chunk))
        self.waiting += which.size
        if self.waiting >= PENDING:
            self.settle()

    def settle(self) -> Scored | None:
        """Return those not below the k-th score of their bucket, by bucket, greatest scores first, if there are any."""
        if not self.pending:
            return None
        every = joined(self.pending)
        every = every.at(not_below_kth(every.bucket, every.score, self.limit))
        chunks: list[tuple[int, GroupMatches]] = []
        number, match = every.alternative.copy(), every.places.copy()
        for chunk in np.unique(every.alternative):
            here = every.alternative == chunk
            used, match[0, here] = np.unique(every.places[0, here], return_inverse=True)
            number[here] = len(chunks)
            alternative, matches = self.chunks[chunk]
            chunks.append((alternative, compacted(matches, used)))
        self.chunks, self.waiting = chunks, 0
        kept = sum(matches.singles.nbytes + matches.places.nbytes + 3 * matches.first.nbytes for _, matches in chunks)
        reserve(2 * kept + 8 * every.score.nbytes, "matches that tie for the last of the best", FEWER_TIES)
        self.pending = [Scored(every.bucket, every.score, match, number)]
        return self.pending[0]


def compacted(matches: GroupMatches, which: Int64) -> GroupMatches:
    """Return these matches with their own elements only."""
    some = matches.only(which)
    sizes = some.sizes.reshape(-1)
    stop = np.cumsum(sizes)
    places = some.places[np.repeat(some.first.reshape(-1) - (stop - sizes), sizes) + np.arange(sizes.sum())]
    shape = some.first.shape
    return GroupMatches(some.singles, places, (stop - sizes).reshape(shape), stop.reshape(shape), some.origins)


def rank_groups(run: RankRun, *, ties: bool) -> Iterator[pa.RecordBatch]:
    best = GroupBest(run.ranking.limit)
    for number, alternative in enumerate(run.plan.alternatives):
        for matches in group_matches(alternative, run.events, run.plan.detection.choices):
            _add(run, best, number, matches)
    kept = best.settle()
    if kept is not None:
        keys: list[np.ndarray] = [*reversed(_tie_keys(run, best.chunks, kept)), -kept.score, kept.bucket]
        kept = kept.at(np.lexsort(keys))
        kept = kept.at(ranks(kept.bucket) <= run.ranking.limit)
        yield from rank_batches(run, kept, _columns_of_groups(run, best.chunks), ties=ties)


def _values(run: RankRun, alternative: Alternative, matches: GroupMatches) -> GroupValues:
    assert alternative.groups is not None
    return GroupValues(alternative.query, alternative.groups, run.events, matches)


def _add(run: RankRun, best: GroupBest, number: int, matches: GroupMatches) -> None:
    """Add the matches of a chunk that have a score, once for each tick."""
    values = _values(run, run.plan.alternatives[number], matches)
    score = scores(run.ranking, objective_values(run.ranking, values.rows()))
    events = matches.events()
    found_matches(len(matches))
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
            best.add(number, matches, run.buckets(tick, events[0, which]), score[which], which)


# --- output


def _columns_of_groups(run: RankRun, chunks: Sequence[tuple[int, GroupMatches]]) -> ColumnsOf:
    """Return the columns of matches of a chunk, given as their numbers [1, m] in it."""

    def columns(chunk: int, numbers: Int32, ties: bool) -> list[pa.Array]:
        alternative, matches = run.plan.alternatives[chunks[chunk][0]], chunks[chunk][1].only(numbers[0])
        values = _values(run, alternative, matches)
        batches = result_batches(alternative, match_schema(run.plan.query), run.events, matches)
        arrays = [*objective_values(run.ranking, values.rows()), *pa.Table.from_batches(batches).columns]
        rows = pa.array(run.events.rows_at(matches.events()[0]))
        return [*arrays, *(_tie_columns(run, values) if ties else []), rows]

    return columns


def _tie_columns(run: RankRun, values: GroupValues) -> list[pa.Array]:
    arrays = []
    for name in tie_columns(run.plan.query):
        whole = run.events.columns.whole(name)
        for variable in (v for v in run.plan.query.variables if v.positive):
            if not values.is_group(variable.index):
                kind = pa.list_(whole.type) if variable.quantifier is not None else whole.type
                is_bound = values.is_bound(variable.index)
                column = values.column(variable.index, name) if is_bound else pa.nulls(len(values.found), kind)
                arrays.append(column)
                continue
            offsets = values.elements(variable.index)[1]
            empty = np.append(np.diff(offsets) == 0, False)  # no group comes first, as no event does
            starts = pa.array(offsets.astype(np.int32), mask=empty)
            arrays.append(pa.ListArray.from_arrays(starts, values.column(variable.index, name)))
    return arrays


def _tie_keys(run: RankRun, chunks: Sequence[tuple[int, GroupMatches]], best: Scored) -> list[Int32]:
    """Return what ties are broken by, [matches] each, the most important first: absent elements before all others."""
    elements: list[Int32] = []
    for variable in (variable.index for variable in run.plan.query.variables if variable.positive):
        padded: list[Int32] = []  # the places of its elements, -1 where there are fewer
        for number, (alternative, matches) in enumerate(chunks):
            here = np.flatnonzero(best.alternative == number)
            values = _values(run, run.plan.alternatives[alternative], matches)
            if not here.size or not values.is_bound(variable):
                continue
            if values.is_group(variable):
                places, offsets = values.elements(variable)
            else:
                places = matches.singles[values.singles[variable]]
                offsets = np.arange(places.size + 1, dtype=np.int64)
            which = best.places[0, here]
            first, size = offsets[which], np.diff(offsets)[which]
            while len(padded) < size.max(initial=0):
                padded.append(np.full(best.score.size, -1, np.int32))
            for element in range(int(size.max(initial=0))):
                has = size > element
                padded[element][here[has]] = places[first[has] + element]
        elements += padded
    return [level[row] for level in tie_levels(run.events) for row in elements]
