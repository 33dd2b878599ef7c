"""Run plans on a streaming DataFrame, with their state in Spark's state store.

- `run`: pack, shuffle by bucket, run the engines in a stateful operator, unpack; set the watermark; explain.
- `buckets`: choose the number of buckets, and read the number of a running stream in its tasks.
- `placing`: the keys that events are hashed by, the buckets of each key, and what is merged.
- `merging`: merge the rows that buckets have computed for the same tick.
- `packing`: pack rows into Arrow messages per bucket, and unpack result messages.
- `stateful`: run the engine of a bucket, write its header and chunks, and read them again after a failure.
- `deferred`: import the engine in a worker only once it has rows.
- `identity`: reject a checkpoint that a different query has written.
- `metrics`: report what the last triggers did.

Keys that all plans have in common are hashed into buckets, one per partition of Spark's state store. Plans without a
common key are placed by their own keys, with a copy of the events for each. Plans without a key share one bucket.
"""

from streamsift.spark.stream.buckets import check_buckets
from streamsift.spark.stream.metrics import Metrics, Trigger, metrics
from streamsift.spark.stream.packing import message_of, messages_of, unpack
from streamsift.spark.stream.run import many_placement, run_combined, run_stream, stream_placement
