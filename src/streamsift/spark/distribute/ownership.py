"""Drop duplicate replicas of a table's events, and determine which results the table's shards own.

Spark coalesces small tasks into one partition, and an in-memory table has the events of many shards
(`spark/batch/spill.py`), so replicas of an event can meet in a table. The first replica is kept.

Each result belongs to one shard. A match belongs to the owner shard of its first event; with a partial key, to that of
the event with the key. A tick of UPDATE belongs to its slice. A row of aggregates belongs to the shard numbered by its
slice plus its group's hash. The hash is computed in the JVM only; here it is derived from the owner shard of an event
of the group, which is the event's slice plus the same hash.

Contract: a shard is in one table. A table has each of its events once, and an event is owned in one table, however
shards are combined (tests/spark/distribute/test_slices.py, test_partial_keys.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streamsift.logical.bound import BoundQuery
from streamsift.physical import AggregatePlan, Plan
from streamsift.runtime.arrays.dtypes import Bool, Int64
from streamsift.runtime.arrays.grouping import distinct
from streamsift.runtime.events.owned import EVERYTHING, Owned
from streamsift.runtime.events.update_ticks import OwnedTicks
from streamsift.runtime.expressions.codes import group_codes
from streamsift.spark.distribute.distribution import Distribution
from streamsift.spark.distribute.routing import OFFSET_BITS
from streamsift.spark.distribute.slices import Slices, slice_numbers, tick_distance

_NO_OWNER = np.iinfo(np.int64).min  # of a bad row


@dataclass(frozen=True, slots=True)
class ShardedEvents:
    """The events of a table without duplicates, which of them the table owns, and its shards in ascending order."""

    events: pa.Table
    owned: Bool  # [rows]
    owner: Int64  # [rows], a shard of this or another table
    shards: Int64

    def take(self, rows: Int64) -> ShardedEvents:
        return ShardedEvents(self.events.take(pa.array(rows)), self.owned[rows], self.owner[rows], self.shards)


def sharded_events(table: pa.Table, columns: int) -> ShardedEvents:
    """Split a table into `columns` columns of events, SHARD and, if events can be replicated, SHARD_OFFSETS."""
    events = table.select(range(columns))
    if table.num_columns == columns + 1:
        return ShardedEvents(
            events, np.ones(len(table), np.bool_), np.zeros(len(table), np.int64), np.zeros(1, np.int64)
        )
    arrived, offsets = (table.column(columns + nth).combine_chunks() for nth in (0, 1))
    shard, offset = (each.fill_null(0).to_numpy(zero_copy_only=False) for each in (arrived, offsets))
    shards = distinct(arrived.drop_null().to_numpy(zero_copy_only=False))
    # Distances from the first shard of an event's range. Most events have one shard, so both are 0.
    to_shard, to_owner = offset & ((1 << OFFSET_BITS) - 1), offset >> OFFSET_BITS
    owner = shard + to_owner - to_shard
    owned = np.ones(shard.size, np.bool_)
    away = np.flatnonzero(to_shard != to_owner)
    owned[away] = np.isin(owner[away], shards)
    owner[arrived.is_null().to_numpy(zero_copy_only=False)] = _NO_OWNER
    # If the table has an earlier shard of the event, it already has the event.
    later = np.flatnonzero(to_shard)
    again = later[shards[np.searchsorted(shards, shard[later] - to_shard[later])] < shard[later]]
    if not again.size:
        return ShardedEvents(events, owned, owner, shards)
    kept = np.ones(shard.size, np.bool_)
    kept[again] = False
    return ShardedEvents(events.filter(pa.array(kept)), owned[kept], owner[kept], shards)


def owned_results(plan: Plan, distribution: Distribution, sharded: ShardedEvents) -> Owned:
    """Return which matches or ticks the engine returns."""
    slices = distribution.slices
    if distribution.partial is not None:
        return Owned(rows=sharded.owned, steps=distribution.partial.owners)
    if slices is None or isinstance(plan, AggregatePlan):
        return EVERYTHING
    if plan.query.update is not None:
        return Owned(ticks=OwnedTicks(sharded.shards, int(slices.length / tick_distance(plan.query))))
    return Owned(rows=sharded.owned)


def owned_totals(
    plan: Plan, distribution: Distribution, sharded: ShardedEvents
) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """Return a function that keeps the owned rows of aggregates; it does not change the rows of other plans."""
    query, slices = plan.query, distribution.slices
    if slices is None or not isinstance(plan, AggregatePlan):
        return lambda rows: rows
    groups, numbers = _groups(query, slices, sharded)

    def owned(totals: pa.RecordBatch) -> pa.RecordBatch:
        shards = slice_numbers(totals.column("time"), query, slices)
        if query.group_by:
            columns = [totals.column(name) for name in query.group_names]
            of_group, of_row = group_codes(list(zip(groups, columns, strict=True)))[0]
            by_code = np.zeros(max(of_group.max(initial=0), of_row.max(initial=0)) + 1, np.int64)
            by_code[of_group] = numbers
            shards = shards + by_code[of_row]
        return totals.filter(pa.array(np.isin(shards, sharded.shards)))

    return owned


def _groups(query: BoundQuery, slices: Slices, sharded: ShardedEvents) -> tuple[list[pa.Array], Int64]:
    """Return the groups, as one array per column, and their hashes as the JVM computes them."""
    if not query.group_by:
        return [], np.zeros(1, np.int64)
    good = np.flatnonzero(sharded.owner != _NO_OWNER)
    columns = [sharded.events.column(name).combine_chunks().take(pa.array(good)) for name in query.group_by]
    (codes,), _ = group_codes([[column] for column in columns])
    code, some = np.unique(codes, return_index=True)  # one event per group
    some = some[code >= 0]  # a key that equals nothing, such as null, is in no group
    times = sharded.events.column(query.binding.time).combine_chunks().take(pa.array(good[some]))
    numbers = sharded.owner[good[some]] - slice_numbers(times, query, slices)
    return [column.take(pa.array(some)) for column in columns], numbers
