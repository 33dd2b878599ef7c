"""Run many queries on one DataFrame.

- `run`: one scan and one shuffle of a batch for all queries; one pass over a stream, with one state of events.
- `placements`: group the queries of a batch by the distribution of their events.

On a batch, results come from one persisted pass, and what queries share is counted once. On a stream, the caller starts
the combined result or single ones.
"""

from streamsift.spark.share.run import SharedFrames, SharedStream, many_batch_placement, run_batch_many, run_stream_many
