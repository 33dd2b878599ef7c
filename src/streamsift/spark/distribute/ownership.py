"""State which results the task that has some shards owns: each result belongs to one shard.

A match belongs to the owner shard of its first event, or with a partial key to that of the step that has the key; a
tick of UPDATE to the slice it lies in. A row of totals belongs to the sum of its slice and its group's number. That
number is a hash that only the JVM makes; but the owner of an event of the group is the sum of the event's own slice and
the number, so it is known from that.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import BoundQuery
from streamsift.physical import AggregatePlan, Plan
from streamsift.runtime.arrays.dtypes import Int64
from streamsift.runtime.events.owned import EVERYTHING, Owned, OwnedTicks
from streamsift.runtime.expressions.codes import group_codes
from streamsift.spark.distribute.distribution import Distribution
from streamsift.spark.distribute.sharding import NO_OWNER, ShardedEvents, is_in
from streamsift.spark.distribute.slices import Slices, slice_numbers


def owned_results(plan: Plan, distribution: Distribution, sharded: ShardedEvents) -> Owned:
    slices = distribution.slices
    if distribution.partial is not None:
        return Owned(rows=sharded.owned, steps=distribution.partial.owners)
    if slices is None:
        return EVERYTHING
    if isinstance(plan, AggregatePlan):
        return Owned(totals=_owned_totals(plan.query, slices, sharded))
    if plan.query.update is not None:
        return Owned(ticks=OwnedTicks(sharded.shards, slices.ticks_each))
    return Owned(rows=sharded.owned)


def _owned_totals(
    query: BoundQuery, slices: Slices, sharded: ShardedEvents
) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    groups, numbers = _groups(query, slices, sharded)

    def owned(totals: pa.RecordBatch) -> pa.RecordBatch:
        shards = slice_numbers(totals.column("time"), query, slices)
        if query.group_by:
            columns = [totals.column(name) for name in query.group_names]
            of_group, of_row = group_codes(list(zip(groups, columns, strict=True)))[0]
            by_code = np.zeros(max(of_group.max(initial=0), of_row.max(initial=0)) + 1, np.int64)
            by_code[of_group] = numbers
            shards = shards + by_code[of_row]
        return totals.filter(pa.array(is_in(shards, sharded.shards)))

    return owned


def _groups(query: BoundQuery, slices: Slices, sharded: ShardedEvents) -> tuple[list[pa.Array], Int64]:
    """Return the groups' values, one array for each column, and their numbers."""
    if not query.group_by:
        return [], np.zeros(1, np.int64)
    good = np.flatnonzero(sharded.owner != NO_OWNER)
    columns = [sharded.events.column(name).combine_chunks().take(pa.array(good)) for name in query.group_by]
    (codes,), _ = group_codes([[column] for column in columns])
    code, some = np.unique(codes, return_index=True)  # an event of each
    some = some[code >= 0]  # what equals nothing is in no group
    times = sharded.events.column(query.binding.time).combine_chunks().take(pa.array(good[some]))
    numbers = sharded.owner[good[some]] - slice_numbers(times, query, slices)
    return [column.take(pa.array(some)) for column in columns], numbers
