"""Run many queries on one DataFrame.

- `run`: run all queries with one scan and one shuffle of a batch, or one pass over a stream with one state.
- `placements`: group the queries of a batch by the distribution of their events.

On a batch, results come from one persisted pass, and common work of queries is done once. On a stream, the caller
starts the combined result or individual ones.
"""

from streamsift.spark.share.run import SharedFrames, SharedStream, many_batch_placement, run_batch_many, run_stream_many
