"""Distribute the events of a plan over Spark tasks, such that one task owns each result and has all of its events.

- `distribution`: choose the keys, time slices or partial key by which events are co-located, and say why for explain.
- `slices`: cut time into slices, and number in the JVM the slices that need an event.
- `routing`: filter rows in the JVM and shuffle them by shards, for batch, streams and shared queries alike.
- `ownership`: in a task, drop the replicas of an event, and state which results the task owns, given its shards.

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
from streamsift.spark.distribute.ownership import ShardedEvents, owned_results, owned_totals, sharded_events
from streamsift.spark.distribute.routing import Placement, bucket_numbers, can_matter_to, key_hash, shuffled, task_count
from streamsift.spark.distribute.slices import Slices, tick_distance
