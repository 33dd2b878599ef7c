"""Run queries over unbounded events and return each row once it is final.

- `engine`: the events and the state of several queries as the watermark advances
- `intake`: admit pushed events, drop late ones
- `horizon`: which events and windows the horizon has reached or passed, and which matches that makes final
- `watermark`: a step of the watermark, and which times, windows and ticks it makes final
- `decider`: what the engine asks of one query, and the rows that share a key with a finalizing event
- `matches`: the matches of detection
- `rows`: the rows of aggregation and ranking, computed again from the events of their window
- `totals`: the rows of aggregation over a time window or none, from totals that are updated incrementally
- `shared`: the rows of several queries over a window, from counters that they share
- `merging`: the rows of totals and rankings over all keys, from parts that have some of the keys
- `process`: the stream of a program: micro-batches in this process, with their watermark
- `moments`: the times that a program gives, as ticks
- `retention`: which rows later results may still read, and how many each partition has had

`physical/stream` says which decider a plan has: running totals if no event must be kept, window totals if nothing
forces a recount, rows for every other aggregation and for rankings, matches for detection.
"""

from streamsift.runtime.stream.engine import ManyEngine
from streamsift.runtime.stream.merging import merged_rows
from streamsift.runtime.stream.moments import moment_of
from streamsift.runtime.stream.process import ProcessStream
