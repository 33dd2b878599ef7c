"""Keep the k best scored matches of each bucket, whatever the order of arrival.

A bucket is a group at a tick, numbered `group * tick_count + (tick - first_tick)` in one run of a ranking plan.

Contract: matches are ranked by score, then by the times of their events variable by variable, then by `order`, then by
input order (tests/runtime/rank/test_best.py). Memory is a few times k per bucket plus one chunk, whatever the number of
matches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from streamsift.errors import BadInputError
from streamsift.logical.bound import Ranking
from streamsift.physical.plan import RankPlan
from streamsift.runtime.arrays.dtypes import Bool, Float64, Int32, Int64
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.owned import Owned
from streamsift.runtime.events.update_ticks import UpdateTicks, ticks_of
from streamsift.runtime.expressions.codes import group_codes
from streamsift.runtime.paths import not_below_kth
from streamsift.runtime.resources import reserve

MAX_BUCKETS = 1 << 62
KEPT_BYTES = 100  # per match, for sorting, besides its places
PENDING = 1 << 17  # minimum number of matches to collect before they are sorted


@dataclass(frozen=True, slots=True)
class RankRun:
    """One run of a plan over events."""

    plan: RankPlan
    events: Events
    ticks: UpdateTicks | None
    first_tick: int
    tick_count: int
    groups: Int32  # [places] code of the GROUP BY value; empty without GROUP BY
    starts: Bool | None = None  # [places] mask of allowed first events; None for all

    @staticmethod
    def of(
        plan: RankPlan, events: Events, wanted: Callable[[UpdateTicks], UpdateTicks] | None, owned: Owned
    ) -> RankRun:
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
        if count * max(1, group_count) >= MAX_BUCKETS:
            raise BadInputError("ticks of UPDATE do not fit in 64 bits\nHint: use a longer UPDATE interval.")
        return RankRun(plan, events, ticks, first, count, groups, starts)

    @property
    def ranking(self) -> Ranking:
        assert self.plan.query.ranking is not None
        return self.plan.query.ranking

    def buckets(self, tick: Int64, places: Int32) -> Int64:
        """Return the buckets of matches, given their ticks (counted from the first) and one of their events."""
        return tick + self.groups[places].astype(np.int64) * self.tick_count if self.groups.size else tick

    def tick_of(self, buckets: Int64) -> Int64:
        return buckets % self.tick_count + self.first_tick

    def output_order(self, buckets: Int64) -> Int64:
        """Return the order of result rows with ascending buckets: a stable sort by tick."""
        if self.ticks is None:
            return np.arange(buckets.size)
        ticks = self.tick_of(buckets)
        return np.argsort(self.ticks.row_places[ticks] if self.ticks.row_places.size else ticks, kind="stable")


def ranks(bucket: Int64) -> Int64:
    """Return the rank of each match in its bucket, from 1; matches are sorted by bucket, best first."""
    return np.arange(1, bucket.size + 1) - np.searchsorted(bucket, bucket, side="left")


@dataclass(frozen=True, slots=True)
class Scored:
    """m matches with their scores, and the places [variables, m] of their events, -1 for none.

    For Kleene matches, `alternative` is the number of their chunk instead, and `places` [1, m] their number in it.
    """

    bucket: Int64
    score: Float64
    places: Int32
    alternative: Int32

    def at(self, which: np.ndarray) -> Scored:
        return Scored(self.bucket[which], self.score[which], self.places[:, which], self.alternative[which])


@dataclass(slots=True)
class Best:
    """The k best matches of each bucket so far."""

    limit: int
    levels: Sequence[Int32]
    kept: Scored | None = None
    pending: list[Scored] = field(default_factory=list)
    waiting: int = 0

    def add(self, matches: Scored) -> None:
        if self.kept is not None:  # drop matches below the k-th of their bucket
            last = np.searchsorted(self.kept.bucket, matches.bucket, side="right") - 1
            first = last - (self.limit - 1)
            is_full = (first >= 0) & (self.kept.bucket[np.maximum(first, 0)] == matches.bucket)
            matches = matches.at(~is_full | (matches.score >= self.kept.score[np.maximum(last, 0)]))
        if not matches.score.size:
            return
        self.pending.append(matches)
        self.waiting += matches.score.size
        # Collect as many as are kept, so that each match is sorted a logarithmic number of times.
        if self.waiting >= max(PENDING, 0 if self.kept is None else self.kept.score.size):
            self.settle()

    def settle(self) -> Scored | None:
        """Return the k best of each bucket, sorted by bucket, best first; None if there is no match at all."""
        if self.pending:
            parts = self.pending if self.kept is None else [self.kept, *self.pending]
            columns = zip(*((part.bucket, part.score, part.places, part.alternative) for part in parts), strict=True)
            matches = Scored(*(np.concatenate(column, axis=-1) for column in columns))
            reserve(KEPT_BYTES * matches.score.size + 4 * matches.places.nbytes, "the best of each group and tick")
            self.pending, self.waiting = [], 0
            # Filter by score alone first, so that ties are broken only among matches that may be kept.
            matches = matches.at(not_below_kth(matches.bucket, matches.score, self.limit))
            places = self.tie_places(matches)
            keys: list[np.ndarray] = [level[row] for level in self.levels for row in places]
            matches = matches.at(np.lexsort([*reversed(keys), -matches.score, matches.bucket]))
            self.kept = matches.at(ranks(matches.bucket) <= self.limit)
        return self.kept

    def tie_places(self, matches: Scored) -> Sequence[Int32]:
        """Return the places [matches] that break ties, the most significant first; -1 for none."""
        return list(matches.places)
