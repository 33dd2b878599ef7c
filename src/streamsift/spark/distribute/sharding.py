"""Route events to shards: each once to every shard whose results it affects, one of which owns it.

Shards are numbered: by a hash of a key, by time slices, by both, by tasks. An event goes to a range of them: to that of
its key; to two if a slice that needs it borders on its own; to all if every task needs it. Shards are assigned to tasks
round-robin. Replicas of an event may meet again: Spark puts small tasks into one partition, and a table in memory has
the events of many shards (`spark/batch/spill.py`). The first replica of an event in a table is kept.

Contract: a shard is in one table; a table has each of its events once, and an event is owned in one table, however
shards are put together (tests/spark/distribute/test_slices.py, test_partial_keys.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

from streamsift.runtime.arrays.dtypes import Bool, Int64
from streamsift.runtime.arrays.grouping import distinct

SHARD = "$streamsift_shard"  # a column beside the events: where this replica goes; null for rows that cannot be used
# One more column if events may be replicated: the distances from the first shard to the owner and to this one.
SHARD_OFFSETS = "$streamsift_shard_offsets"
OFFSET_BITS = 31  # of each of the two distances
_FIRST, _OWNER, _LAST = "$streamsift_first", "$streamsift_owner", "$streamsift_last"
NO_OWNER = np.iinfo(np.int64).min  # of a row that cannot be used


@dataclass(frozen=True, slots=True)
class ShardRange:
    """Where an event goes: the shards from `first` to `last`, one of them its owner; None: to `first` alone."""

    first: SparkColumn
    owner: SparkColumn
    last: SparkColumn | None = None


def routed(events: DataFrame, shards: ShardRange, tasks: int, good: SparkColumn) -> DataFrame:
    """Shuffle the events into partitions, with SHARD, and if they may be replicated SHARD_OFFSETS, beside them."""
    if shards.last is None:
        replicas = events.withColumn(SHARD, F.when(good, shards.first.cast("bigint")))
    else:
        # Not `explode`: Spark would make the shards once more in a filter, to drop rows that have none.
        ends = {_FIRST: shards.first, _OWNER: shards.owner, _LAST: shards.last}
        to_owner, to_shard = F.col(_OWNER) - F.col(_FIRST), F.col(SHARD) - F.col(_FIRST)
        replicas = (
            events.withColumns({name: F.when(good, number.cast("bigint")) for name, number in ends.items()})
            .withColumn(SHARD, F.explode_outer(F.when(good, F.sequence(_FIRST, _LAST))))
            .withColumn(SHARD_OFFSETS, to_owner * F.lit(1 << OFFSET_BITS) + to_shard)
        )
    # Spark hashes what it partitions by: these numbers are hashed to one partition each.
    names = F.array(*(F.lit(name) for name in bucket_numbers(tasks)))
    task = F.pmod(F.col(SHARD), F.lit(tasks)).cast("int") + 1
    return replicas.repartition(F.element_at(names, task)).drop(_FIRST, _OWNER, _LAST)


@dataclass(frozen=True, slots=True)
class ShardedEvents:
    """The events of a table, each once, which of them are owned there, and its shards, in ascending order."""

    events: pa.Table
    owned: Bool  # [rows]
    owner: Int64  # [rows], a shard here or elsewhere
    shards: Int64

    def take(self, rows: Int64) -> ShardedEvents:
        return ShardedEvents(self.events.take(pa.array(rows)), self.owned[rows], self.owner[rows], self.shards)


def sharded_events(table: pa.Table) -> ShardedEvents:
    """Return the events of a table whose last columns are SHARD and SHARD_OFFSETS."""
    arrived, offsets = (table.column(table.num_columns - nth).combine_chunks() for nth in (2, 1))
    shard, offset = (each.fill_null(0).to_numpy(zero_copy_only=False) for each in (arrived, offsets))
    shards = distinct(arrived.drop_null().to_numpy(zero_copy_only=False))
    # How far a shard is from the first one of its event, and the owner from there. Most have one shard: both are 0.
    to_shard, to_owner = offset & ((1 << OFFSET_BITS) - 1), offset >> OFFSET_BITS
    owner = shard + to_owner - to_shard
    owned = np.ones(shard.size, np.bool_)
    away = np.flatnonzero(to_shard != to_owner)
    owned[away] = is_in(owner[away], shards)
    owner[arrived.is_null().to_numpy(zero_copy_only=False)] = NO_OWNER
    events = table.select(range(table.num_columns - 2))
    # Does the table have an earlier shard of the event? Then it has the event already.
    later = np.flatnonzero(to_shard)
    again = later[shards[np.searchsorted(shards, shard[later] - to_shard[later])] < shard[later]]
    if not again.size:
        return ShardedEvents(events, owned, owner, shards)
    kept = np.ones(shard.size, np.bool_)
    kept[again] = False
    return ShardedEvents(events.filter(pa.array(kept)), owned[kept], owner[kept], shards)


def is_in(numbers: Int64, ascending: Int64) -> Bool:
    """Return for each of these numbers whether it is among those."""
    near = np.searchsorted(ascending, numbers)
    are_equal: Bool = ascending[np.minimum(near, ascending.size - 1)] == numbers
    return are_equal


def bucket_numbers(count: int) -> tuple[int, ...]:
    """Return names for buckets such that Spark's hash partitioning gives each partition one of `count` buckets."""
    names: dict[int, int] = {}
    candidate = 0
    while len(names) < count:
        names.setdefault(_spark_hash(candidate) % count, candidate)
        candidate += 1
    return tuple(names[partition] for partition in range(count))


def _spark_hash(value: int, seed: int = 42) -> int:
    """Return the Murmur3 hash of a 32-bit integer, as Spark partitions by it."""
    word = 2**32 - 1

    def rotated(x: int, by: int) -> int:
        return ((x << by) | (x >> (32 - by))) & word

    mixed = rotated(value * 0xCC9E2D51 & word, 15) * 0x1B873593 & word
    hashed = (rotated(seed ^ mixed, 13) * 5 + 0xE6546B64) & word
    hashed ^= 4  # the length in bytes
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        hashed = (hashed ^ (hashed >> shift)) * factor & word
    return hashed - 2**32 if hashed >= 2**31 else hashed
