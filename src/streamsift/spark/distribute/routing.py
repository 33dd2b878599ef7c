"""Filter and number events in the JVM, before the shuffle: which rows can affect a result, and which shards they go to.

Batch, stream and shared queries call the same functions, so that a row is kept, and a key hashed, in one way.

Contract: every row that cannot be used (null time) is kept, and goes to ONE partition, whatever its key, so that one
worker can count and show them all (tests/spark/batch/test_batch.py).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import reduce
from operator import and_, or_

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name that every Spark user knows)

from streamsift.logical import bound as b
from streamsift.physical import AggregatePlan, Plan
from streamsift.spark.columns import can_be_bound, can_matter, column, is_bad
from streamsift.spark.distribute.distribution import Distribution, shuffle_keys
from streamsift.spark.distribute.sharding import ShardRange
from streamsift.spark.distribute.slices import slices_around

BAD = "$streamsift_bad"  # a column beside the events until the shuffle is done


def task_count(df: DataFrame) -> int:
    """Return how many tasks a shuffle has, before Spark puts small ones together."""
    return int(df.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)


def with_bad_rows_marked(df: DataFrame, query: b.BoundQuery) -> DataFrame:
    """Return the columns of a query, and BAD beside them."""
    return df.select(*(column(name) for name in query.schema.names)).withColumn(BAD, is_bad(query))


# --- which rows ------------------------------------------------------------------------------------------------------


def can_matter_to(plans: Iterable[Plan]) -> SparkColumn | None:
    """Return the rows that a step of some plan could bind and that have the keys its matches need; None: all rows.

    Many plans have the same condition: each is evaluated once.
    """
    conditions = list({condition_key(plan): _can_matter_with_keys(plan) for plan in plans}.values())
    needed = [condition for condition in conditions if condition is not None]
    return reduce(or_, needed) if len(needed) == len(conditions) else None


def _can_matter_with_keys(plan: Plan) -> SparkColumn | None:
    conditions = [column(key).isNotNull() for key in _needed_keys(plan)]
    matters = can_matter(plan)
    if matters is not None:
        conditions.append(matters)
    return reduce(and_, conditions) if conditions else None


def condition_key(plan: Plan) -> Hashable:
    """Return what is equal for plans on the same events to which the same rows can matter."""
    bound_by = frozenset(
        (a.query.variables[step.variable].event_class, step.local) for a in plan.alternatives for step in a.all_steps()
    )
    return _needed_keys(plan), can_matter(plan) is None or bound_by


def _needed_keys(plan: Plan) -> tuple[str, ...]:
    """Return the keys without which a row is in no match: it must equal another, or be in a partition or group."""
    in_all = (*plan.query.partition_by, *plan.query.group_by)
    are_several = all(alternative.least_events > 1 for alternative in plan.alternatives)
    return tuple(key for key in shuffle_keys(plan) if are_several or key in in_all)


# --- which shards ----------------------------------------------------------------------------------------------------


def key_hash(keys: Iterable[str], query: b.BoundQuery, below: int = 1 << 31) -> SparkColumn:
    """Return a number for the values of the keys: 0 without keys. Values that are equal, as -0.0 and 0.0 are, have one.

    A checkpoint depends on it: the state of a stream is kept by bucket, which is this number.
    """

    def normal(key: str) -> SparkColumn:
        is_float = pa.types.is_floating(query.schema.field(key).type)
        return column(key) + F.lit(0.0) if is_float else column(key)

    normal_keys = [normal(key) for key in keys]
    return F.pmod(F.xxhash64(*normal_keys), F.lit(below)) if normal_keys else F.lit(0).cast("bigint")


def shards_of(plan: Plan, distribution: Distribution, tasks: int, key: SparkColumn) -> ShardRange:
    """Return the shards of an event: that of its key, all tasks, or those of the slices around it from its key's on."""
    if distribution.partial is not None:
        replicated = zip(plan.alternatives, distribution.partial.copied, strict=True)
        is_copied = can_be_bound([(step, a.query) for a, steps in replicated for step in steps])
        task = F.pmod(key, F.lit(tasks))
        if is_copied is None:
            return ShardRange(F.lit(0), task, F.lit(tasks - 1))
        return ShardRange(F.when(is_copied, 0).otherwise(task), task, F.when(is_copied, tasks - 1).otherwise(task))
    if distribution.slices is None:
        return ShardRange(key, key)
    # The slices of totals begin at the same time for all keys: in Python, too, they are known from the time alone.
    moved_by = key if distribution.keys and not isinstance(plan, AggregatePlan) else None
    low, own, high = slices_around(plan.query, distribution.slices, moved_by)
    return ShardRange(low + key, own + key, high + key)
