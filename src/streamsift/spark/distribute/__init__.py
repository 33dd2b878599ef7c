"""Distribute the events of a plan over Spark tasks. One task owns each result and has all events that it depends on.

- `distribution`: choose keys, time slices or a partial key to co-locate events by, with the reasons for explain.
- `slices`: split time into slices, and compute in the JVM which slices need an event.
- `routing`: filter rows in the JVM and shuffle them by shard, for batch, streams and shared queries.
- `ownership`: in a task, drop duplicate replicas and determine which results its shards own.

If all variables share a column, events are distributed by that key; with WITHIN, also by time slice, so that a hot key
does not become a straggler. Without a key they are distributed by time slice, or by a partial key if that makes fewer
replicas. Otherwise one task gets all events.
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
from streamsift.spark.distribute.routing import (
    Placement,
    bucket_numbers,
    can_matter_to,
    key_hash,
    shuffled,
    stacked_numbers,
    task_count,
)
from streamsift.spark.distribute.slices import Slices, tick_distance
