"""Distribute the events of a plan over Spark tasks, such that one task owns each result and has all of its events.

- `distribution`: choose the keys, time slices or partial key by which events are co-located, and say why for explain.
- `slices`: cut time into slices, and number in the JVM the slices that need an event.
- `sharding`: route events to numbered shards, and shards to tasks; in a task, drop the replicas of an event.
- `routing`: filter rows in the JVM and compute the shards that they go to, for batch, streams and shared queries alike.
- `ownership`: state which results a task owns, given its shards.

By keys, if all variables share a column; with WITHIN, time slices of each key as well, so that a hot key does not
become a straggler. Without keys: by time slices, or by a partial key if that makes fewer replicas. Else in one task.
"""

from streamsift.spark.distribute.distribution import (
    Distribution,
    describe_distribution,
    distribution_of,
    needs_merge,
    shuffle_keys,
    why_one_task,
)
from streamsift.spark.distribute.ownership import owned_results
from streamsift.spark.distribute.routing import (
    BAD,
    can_matter_to,
    key_hash,
    shards_of,
    task_count,
    with_bad_rows_marked,
)
from streamsift.spark.distribute.sharding import (
    SHARD,
    SHARD_OFFSETS,
    ShardedEvents,
    ShardRange,
    bucket_numbers,
    routed,
    sharded_events,
)
from streamsift.spark.distribute.slices import Slices
