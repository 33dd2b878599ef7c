"""Hold what one run of a ranking plan has in common: its events, ticks, GROUP BY values, and the buckets they make.

A bucket is a group at a tick, numbered `group * tick_count + (tick - first_tick)`; it has k best matches of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from streamsift.errors import BadInputError
from streamsift.logical.bound import Ranking
from streamsift.physical.plan import RankPlan
from streamsift.runtime.arrays.dtypes import Bool, Float64, Int32, Int64
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.owned import Owned
from streamsift.runtime.events.update_ticks import UpdateTicks, ticks_of
from streamsift.runtime.expressions.codes import group_codes

MAX_BUCKETS = 1 << 62


@dataclass(frozen=True, slots=True)
class RankRun:
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
            raise BadInputError("The ticks of UPDATE do not fit 64 bits: update less often.")
        return RankRun(plan, events, ticks, first, count, groups, starts)

    @property
    def ranking(self) -> Ranking:
        assert self.plan.query.ranking is not None
        return self.plan.query.ranking

    def buckets(self, tick: Int64, places: Int32) -> Int64:
        """Return the buckets of matches by their ticks, counted from the first, and the place of any event of each."""
        return tick + self.groups[places].astype(np.int64) * self.tick_count if self.groups.size else tick

    def tick_of(self, buckets: Int64) -> Int64:
        return buckets % self.tick_count + self.first_tick

    def output_order(self, buckets: Int64) -> Int64:
        """Return the order of result rows whose buckets ascend: by tick, then as they are."""
        if self.ticks is None:
            return np.arange(buckets.size)
        ticks = self.tick_of(buckets)
        return np.argsort(self.ticks.row_places[ticks] if self.ticks.row_places.size else ticks, kind="stable")


def not_below_kth(bucket: Int64, score: Float64, limit: int) -> Int64:
    """Return the matches not below the k-th score of their bucket, by bucket, greatest scores first."""
    order = np.lexsort([-score, bucket])
    bucket, score = bucket[order], score[order]
    start, end = (np.searchsorted(bucket, bucket, side=side) for side in ("left", "right"))
    return order[score >= score[np.minimum(start + limit, end) - 1]]


def ranks(bucket: Int64) -> Int64:
    """Return the rank from 1 of each match in its bucket; buckets ascend, and the best of each come first."""
    return np.arange(1, bucket.size + 1) - np.searchsorted(bucket, bucket, side="left")
