"""Run many queries on one DataFrame.

- `batch`: one scan and one shuffle for all queries; what they share is counted once.
- `placements`: group the queries of a batch by the distribution of their events.
- `stream`: one pass over a stream for all queries, with one state of events, or a stream for each.

On a batch, results come from one persisted pass. On a stream, the caller starts the combined result or single ones.
"""

from streamsift.spark.share.batch import SharedFrames, many_batch_placement, run_batch_many
from streamsift.spark.share.stream import SharedStream, run_stream_many
