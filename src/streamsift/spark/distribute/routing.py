"""Filter events in the JVM, assign them to shards, and shuffle them.

Batch, streaming and shared queries use the same functions, so that all of them keep the same rows and hash keys alike.

A shard is numbered by the hash of a key, by a time slice, by both, or by a task. An event is sent to a range of shards:
the shard of its key; two shards if a neighboring slice needs it; all shards if every task needs it. One of them owns
the event. Shards are assigned to tasks round-robin.

Contract: all bad rows (null time or order) are kept and sent to one partition, so that one worker can count and show
them (tests/spark/batch/test_batch.py).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from operator import and_, or_
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

from streamsift.logical import bound as b
from streamsift.physical import AggregatePlan, Plan
from streamsift.spark.columns import all_or_none, can_be_bound, can_matter, column, is_bad
from streamsift.spark.distribute.distribution import Distribution, shuffle_keys
from streamsift.spark.distribute.slices import slices_around

# Columns that are added to the events. Only SHARD, SHARD_OFFSETS and _PLACEMENT remain after the shuffle.
BAD, _KEY = "$streamsift_bad", "$streamsift_key"
_FIRST, _OWNER, _LAST = "$streamsift_first", "$streamsift_owner", "$streamsift_last"
_PLACEMENT = "$streamsift_placement"  # the placement whose queries need this replica
SHARD = "$streamsift_shard"  # of this replica; null for bad rows
# Only if events can be replicated: the distances from the first shard of the range to the owner and to this shard.
SHARD_OFFSETS = "$streamsift_shard_offsets"
OFFSET_BITS = 31  # of each of the two distances


def task_count(df: DataFrame) -> int:
    """Return the number of tasks of a shuffle, before Spark coalesces small ones."""
    return int(df.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)


# --- which rows ------------------------------------------------------------------------------------------------------


def can_matter_to(plans: Iterable[Plan]) -> SparkColumn | None:
    """Return a condition for rows that a step of some plan can bind and that have the keys its matches need.

    None stands for all rows. Plans with the same condition share it.
    """
    return all_or_none(or_, {condition_key(plan): _can_matter_with_keys(plan) for plan in plans}.values())


def _can_matter_with_keys(plan: Plan) -> SparkColumn | None:
    conditions = [column(key).isNotNull() for key in _needed_keys(plan)]
    matters = can_matter(plan)
    if matters is not None:
        conditions.append(matters)
    return reduce(and_, conditions) if conditions else None


def condition_key(plan: Plan) -> Hashable:
    """Return a value that is equal for plans that read the same rows."""
    bound_by = frozenset(
        (a.query.variables[step.variable].event_class, step.local) for a in plan.alternatives for step in a.all_steps()
    )
    return _needed_keys(plan), can_matter(plan) is None or bound_by


def _needed_keys(plan: Plan) -> tuple[str, ...]:
    """Return the keys that must not be null for a row to be in a match."""
    in_all = (*plan.query.partition_by, *plan.query.group_by)
    are_several = all(alternative.least_events > 1 for alternative in plan.alternatives)
    return tuple(key for key in shuffle_keys(plan) if are_several or key in in_all)


# --- which shards ----------------------------------------------------------------------------------------------------


def key_hash(keys: Iterable[str], query: b.BoundQuery, below: int | None = 1 << 31) -> SparkColumn:
    """Return a hash of the keys, 0 without keys. Equal values, such as -0.0 and 0.0, have equal hashes.

    It is a 64-bit integer, reduced modulo `below` if that is given.

    Do not change it: checkpoints store the state of a stream by this number.
    """

    def normal(key: str) -> SparkColumn:
        is_float = pa.types.is_floating(query.schema.field(key).type)
        return column(key) + F.lit(0.0) if is_float else column(key)

    normal_keys = [normal(key) for key in keys]
    if not normal_keys:
        return F.lit(0).cast("bigint")
    return F.xxhash64(*normal_keys) if below is None else F.pmod(F.xxhash64(*normal_keys), F.lit(below))


@dataclass(frozen=True, slots=True)
class Placement:
    """A distribution, and the plans that use it."""

    distribution: Distribution
    plans: dict[str, Plan]


class ShardRange(NamedTuple):
    """The shards of an event, from `first` to `last`, and its owner. If `last` is None, `first` is the only shard."""

    first: SparkColumn
    owner: SparkColumn
    last: SparkColumn | None = None


def shuffled(
    events: DataFrame, query: b.BoundQuery, placements: Sequence[Placement], tasks: int, observation: Observation | None
) -> DataFrame:
    """Shuffle bad rows and the events that can affect a result.

    Added columns: the number of the placement if there are several, then SHARD, then SHARD_OFFSETS if events can be
    replicated.
    """
    events = events.withColumn(BAD, is_bad(query))
    if observation is not None:
        events = events.observe(observation, F.count(F.lit(1)).alias("rows"), F.count_if(BAD).alias("bad_rows"))
    conditions = [can_matter_to(placement.plans.values()) for placement in placements]
    if len(placements) > 1:
        useful = [F.lit(True) if condition is None else condition for condition in conditions]
        numbers = F.array_compact(F.array(*(F.when(condition, number) for number, condition in enumerate(useful))))
        # Not `explode`: Spark would add a filter that evaluates all conditions again.
        used_by = F.explode_outer(F.when(F.col(BAD), F.array(F.lit(0))).otherwise(numbers))
        events = events.withColumn(_PLACEMENT, used_by).where(F.col(_PLACEMENT).isNotNull())
        ranges = [_shards_of_placement(each, number, tasks) for number, each in enumerate(placements)]
        ends = zip(*ranges, strict=True)  # for all placements: the first shards, the owners, the last shards
        shards = [F.coalesce(*(F.when(F.col(_PLACEMENT) == n, c) for n, c in enumerate(columns))) for columns in ends]
        return _routed(events, ShardRange(*shards), tasks)
    if conditions[0] is not None:
        events = events.where(conditions[0] | F.col(BAD))
    (plan, *_), how = placements[0].plans.values(), placements[0].distribution
    events = events.withColumn(_KEY, key_hash(how.keys, query))  # a column, because it is used more than once
    return _routed(events, _shards_of(plan, how, tasks, F.col(_KEY)), tasks)


def _shards_of_placement(placement: Placement, number: int, tasks: int) -> ShardRange:
    """Return the shards of an event in a placement. Placements for a single task use different shards if possible."""
    how, plan = placement.distribution, next(iter(placement.plans.values()))
    key = key_hash(how.keys, plan.query) if how.keys or how.is_replicated else F.lit(number)
    shards = _shards_of(plan, how, tasks, key)
    return shards._replace(last=shards.first) if shards.last is None else shards


def _shards_of(plan: Plan, distribution: Distribution, tasks: int, key: SparkColumn) -> ShardRange:
    """Return the shards of an event: that of its key, all tasks, or the slices around it, offset by its key."""
    if distribution.partial is not None:
        replicated = zip(plan.alternatives, distribution.partial.copied, strict=True)
        is_copied = can_be_bound([(step, a.query) for a, steps in replicated for step in steps])
        task = F.pmod(key, F.lit(tasks))
        if is_copied is None:
            return ShardRange(F.lit(0), task, F.lit(tasks - 1))
        return ShardRange(F.when(is_copied, 0).otherwise(task), task, F.when(is_copied, tasks - 1).otherwise(task))
    if distribution.slices is None:
        return ShardRange(key, key)
    # Slices of aggregates begin at the same times for all keys, so that Python can compute them from the time alone.
    moved_by = key if distribution.keys and not isinstance(plan, AggregatePlan) else None
    return ShardRange(*(number + key for number in slices_around(plan.query, distribution.slices, moved_by)))


def _routed(events: DataFrame, shards: ShardRange, tasks: int) -> DataFrame:
    """Replicate events to the shards that need them, add SHARD and SHARD_OFFSETS, and shuffle by shard."""
    good = ~F.col(BAD)
    if shards.last is None:
        replicas = events.withColumn(SHARD, F.when(good, shards.first.cast("bigint")))
    else:
        # Not `explode`: Spark would add a filter that computes the shards again.
        ends = {_FIRST: shards.first, _OWNER: shards.owner, _LAST: shards.last}
        to_owner, to_shard = F.col(_OWNER) - F.col(_FIRST), F.col(SHARD) - F.col(_FIRST)
        replicas = (
            events.withColumns({name: F.when(good, number.cast("bigint")) for name, number in ends.items()})
            .withColumn(SHARD, F.explode_outer(F.when(good, F.sequence(_FIRST, _LAST))))
            .withColumn(SHARD_OFFSETS, to_owner * F.lit(1 << OFFSET_BITS) + to_shard)
        )
    # Spark hashes the partitioning column. These numbers are hashed to one partition each.
    names = F.array(*(F.lit(name) for name in bucket_numbers(tasks)))
    task = F.pmod(F.col(SHARD), F.lit(tasks)).cast("int") + 1
    return replicas.repartition(F.element_at(names, task)).drop(BAD, _KEY, _FIRST, _OWNER, _LAST)


def bucket_numbers(count: int) -> tuple[int, ...]:
    """Return `count` numbers, one for each partition, that Spark's hash partitioning maps to different partitions."""
    return tuple(number for (number,) in stacked_numbers(count, 1))


@cache
def stacked_numbers(count: int, each: int) -> tuple[tuple[int, ...], ...]:
    """Return for each of `count` partitions the first numbers that Spark's hash partitioning maps to it."""
    stacks: list[list[int]] = [[] for _ in range(count)]
    candidate, missing = 0, count * each
    while missing:
        stack = stacks[_spark_hash(candidate) % count]
        if len(stack) < each:
            stack.append(candidate)
            missing -= 1
        candidate += 1
    return tuple(map(tuple, stacks))


def _spark_hash(value: int, seed: int = 42) -> int:
    """Return the Murmur3 hash of a 32-bit integer, as Spark computes it."""
    word = 2**32 - 1

    def rotated(x: int, by: int) -> int:
        return ((x << by) | (x >> (32 - by))) & word

    mixed = rotated(value * 0xCC9E2D51 & word, 15) * 0x1B873593 & word
    hashed = (rotated(seed ^ mixed, 13) * 5 + 0xE6546B64) & word
    hashed ^= 4  # the length in bytes
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        hashed = (hashed ^ (hashed >> shift)) * factor & word
    return hashed - 2**32 if hashed >= 2**31 else hashed
