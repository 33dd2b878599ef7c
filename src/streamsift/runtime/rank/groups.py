"""A ranking plan with Kleene variables and events in, the k best matches of each group and tick out.

Every match is found and scored. Those that may still be among the best are held as ranges of elements, a few times k of
each bucket; ties are settled among them at the end, groups element by element.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import TIME, TimeKind
from streamsift.physical.plan import Alternative, RankPlan
from streamsift.runtime.arrays.dtypes import Bool, Float64, Int32, Int64
from streamsift.runtime.detect import group_matches
from streamsift.runtime.events.ties import tie_levels
from streamsift.runtime.events.update_ticks import each_tick
from streamsift.runtime.matches import GroupMatches, GroupValues, match_schema, objective_values, result_batches, scores
from streamsift.runtime.rank.output import Leaderboard, cast_to, rank_schema, tie_names
from streamsift.runtime.resources import FEWER_TIES, found_matches, reserve

PENDING = 1 << 16  # scored matches that may wait until those that cannot be among the best are dropped


@dataclass(frozen=True, slots=True)
class Entries:
    """Matches in buckets: match[i] of chunk[i], once for each tick whose window holds it."""

    bucket: Int64
    score: Float64
    chunk: Int64
    match: Int64

    def at(self, which: Int64 | Bool) -> Entries:
        return Entries(self.bucket[which], self.score[which], self.chunk[which], self.match[which])


@dataclass(slots=True)
class GroupBest:
    """The matches that may be among the best, and those that wait to be compared with them."""

    limit: int
    chunks: list[tuple[int, GroupMatches]] = field(default_factory=list)  # with the number of their alternative
    parts: list[Entries] = field(default_factory=list)
    waiting: int = 0

    def add(self, alternative: int, found: GroupMatches, bucket: Int64, score: Float64, match: Int64) -> None:
        self.chunks.append((alternative, found))
        self.parts.append(Entries(bucket, score, np.full(match.size, len(self.chunks) - 1, np.int64), match))
        self.waiting += match.size
        if self.waiting >= PENDING:
            self.settle()

    def settle(self) -> Entries:
        """Those not below the k-th score of their bucket, by bucket, greatest scores first."""
        parts = self.parts
        if not parts:
            return Entries(np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))
        names = ("bucket", "score", "chunk", "match")
        every = Entries(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
        every = every.at(np.lexsort([-every.score, every.bucket]))
        start = np.searchsorted(every.bucket, every.bucket, side="left")
        last = np.minimum(start + self.limit, np.searchsorted(every.bucket, every.bucket, side="right")) - 1
        every = every.at(every.score >= every.score[last])
        chunks: list[tuple[int, GroupMatches]] = []
        number, match = every.chunk.copy(), every.match.copy()
        for chunk in np.unique(every.chunk):
            own = every.chunk == chunk
            used, match[own] = np.unique(every.match[own], return_inverse=True)
            number[own] = len(chunks)
            alternative, found = self.chunks[chunk]
            chunks.append((alternative, compacted(found, used)))
        self.chunks, self.waiting = chunks, 0
        kept = sum(found.singles.nbytes + found.places.nbytes + 3 * found.first.nbytes for _, found in chunks)
        reserve(2 * kept + 8 * every.score.nbytes, "matches that tie for the last of the best", FEWER_TIES)
        settled = Entries(every.bucket, every.score, number, match)
        self.parts = [settled]
        return settled


def compacted(found: GroupMatches, which: Int64) -> GroupMatches:
    """These matches with their own elements only."""
    some = found.only(which)
    sizes = some.sizes.reshape(-1)
    stop = np.cumsum(sizes)
    places = some.places[np.repeat(some.first.reshape(-1) - (stop - sizes), sizes) + np.arange(sizes.sum())]
    shape = some.first.shape
    return GroupMatches(some.singles, places, (stop - sizes).reshape(shape), stop.reshape(shape), some.origins)


@dataclass(frozen=True, slots=True)
class GroupRanking:
    """One run of a plan over events."""

    plan: RankPlan
    board: Leaderboard
    groups: Int32  # [places] the GROUP BY value; empty without GROUP BY
    starts: Bool | None = None  # [places] where matches may start, if not anywhere

    def batches(self, *, ties: bool) -> Iterator[pa.RecordBatch]:
        query = self.plan.query
        assert query.ranking is not None
        best = GroupBest(query.ranking.limit)
        for number, alternative in enumerate(self.plan.alternatives):
            for found in group_matches(alternative, self.board.events, self.plan.detection.choices):
                self._add(best, number, alternative, found)
        entries = best.settle()
        if entries.score.size:
            yield from self._ranked(best, entries, ties=ties)

    def _values(self, alternative: Alternative, found: GroupMatches) -> GroupValues:
        assert alternative.groups is not None
        return GroupValues(alternative.query, alternative.groups, self.board.events, found)

    def _add(self, best: GroupBest, number: int, alternative: Alternative, found: GroupMatches) -> None:
        """The matches of a chunk that have a score, once for each tick."""
        ranking, ticks = self.plan.query.ranking, self.board.ticks
        assert ranking is not None
        score = scores(ranking, objective_values(ranking, self._values(alternative, found).rows()))
        events = found.events()
        found_matches(len(found))
        has_score = ~np.isnan(score)
        if self.groups.size:
            has_score &= self.groups[events[0]] >= 0
        if self.starts is not None:
            has_score &= self.starts[events.min(axis=0)]
        scored = np.flatnonzero(has_score)
        buckets: Iterable[tuple[Int64, Int64]] = [(scored, np.zeros(scored.size, np.int64))]
        if ticks is not None and scored.size:
            first, last = ticks.first[events[:, scored].max(axis=0)], ticks.last[events[:, scored].min(axis=0)]
            buckets = ((scored[which], tick - self.board.first_tick) for which, tick in each_tick(first, last))
        for which, bucket in buckets:
            if self.groups.size:
                bucket = bucket + self.groups[events[0, which]].astype(np.int64) * self.board.tick_count
            if which.size:
                best.add(number, found, bucket, score[which], which)

    # --- output ----------------------------------------------------------------------------------------------------

    def _ranked(self, best: GroupBest, entries: Entries, *, ties: bool) -> Iterator[pa.RecordBatch]:
        query, board = self.plan.query, self.board
        assert query.ranking is not None
        keys: list[np.ndarray] = [*reversed(self._tie_keys(best, entries)), -entries.score, entries.bucket]
        entries = entries.at(np.lexsort(keys))
        rank = np.arange(1, entries.bucket.size + 1) - np.searchsorted(entries.bucket, entries.bucket, side="left")
        keep = rank <= query.ranking.limit
        entries, rank = entries.at(keep), rank[keep]
        order = np.lexsort([rank, entries.bucket, board.tick_order(entries.bucket)])
        entries, rank = entries.at(order), rank[order]
        parts, places = [], []
        for number, (which_alternative, found) in enumerate(best.chunks):
            own = np.flatnonzero(entries.chunk == number)
            if own.size:
                places.append(own)
                parts.append(self._part(which_alternative, found.only(entries.match[own]), ties=ties))
        back = pa.array(np.argsort(np.concatenate(places), kind="stable"))
        table = pa.concat_tables(parts).take(back)
        leading = board.leading(entries.bucket, rank, entries.score, np.asarray(table.column("$first"), np.int32))
        schema = rank_schema(query)
        columns = [*leading, *(column.combine_chunks() for column in table.drop_columns(["$first"]).columns)]
        known = [cast_to(array, one.type) for array, one in zip(columns, schema, strict=False)]
        names = [*schema.names, *(tie_names(query) if ties else [])]
        yield pa.RecordBatch.from_arrays([*known, *columns[len(known) :]], names=names)

    def _part(self, number: int, found: GroupMatches, *, ties: bool) -> pa.Table:
        """Objectives, the match and what ties are broken by, and the row of one event, for matches of a chunk."""
        query, alternative, events = self.plan.query, self.plan.alternatives[number], self.board.events
        assert query.ranking is not None
        schema = rank_schema(query)
        values = self._values(alternative, found)
        written = objective_values(query.ranking, values.rows())
        matches = pa.Table.from_batches(result_batches(alternative, match_schema(query), events, found))
        arrays = [*written, *(column.combine_chunks() for column in matches.columns)]
        first = len(schema) - len(arrays)
        arrays = [cast_to(array, one.type) for array, one in zip(arrays, list(schema)[first:], strict=True)]
        names = schema.names[first:]
        if ties:
            arrays += self._tie_columns(values)
            names += tie_names(query)
        rows = pa.array(events.rows_at(found.events()[0]))
        # By number: objectives and columns of the match may share names.
        return pa.Table.from_arrays([*arrays, rows], [*(f"{n} {name}" for n, name in enumerate(names)), "$first"])

    def _tie_columns(self, values: GroupValues) -> list[pa.Array]:
        binding = self.plan.query.binding
        time = TIME if binding.time_kind is TimeKind.TEXT else binding.time
        arrays = []
        for name in (time, *([binding.order] if binding.order else [])):
            whole = self.board.events.columns.whole(name)
            for variable in (v for v in self.plan.query.variables if v.positive):
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

    def _tie_keys(self, best: GroupBest, entries: Entries) -> list[Int32]:
        """What ties are broken by, [entries] each, the most important first: absent elements before all others."""
        levels = tie_levels(self.board.events)
        variables = [variable.index for variable in self.plan.query.variables if variable.positive]
        padded = [self._padded(best, entries, variable) for variable in variables]
        return [level[row] for level in levels for rows in padded for row in rows]

    def _padded(self, best: GroupBest, entries: Entries, variable: int) -> Sequence[Int32]:
        """The places of a variable's elements, [entries] each, -1 where there are fewer."""
        found: list[Int32] = []
        for number, (which_alternative, matches) in enumerate(best.chunks):
            own = np.flatnonzero(entries.chunk == number)
            values = self._values(self.plan.alternatives[which_alternative], matches)
            if not own.size or not values.is_bound(variable):
                continue
            if values.is_group(variable):
                places, offsets = values.elements(variable)
            else:
                places = matches.singles[values.singles[variable]]
                offsets = np.arange(places.size + 1, dtype=np.int64)
            first, size = offsets[entries.match[own]], np.diff(offsets)[entries.match[own]]
            while len(found) < size.max(initial=0):
                found.append(np.full(entries.score.size, -1, np.int32))
            for element in range(int(size.max(initial=0))):
                has = size > element
                found[element][own[has]] = places[first[has] + element]
        return found
