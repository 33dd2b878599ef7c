"""Run queries over unbounded events and return each row once it is final.

- `engine`: the events and the state of several queries as the watermark advances
- `watermark`: a step of the watermark, and which times, windows and ticks it makes final
- `decider`: what the engine asks of one query
- `matches`: the matches of detection
- `rows`: the rows of aggregation and ranking, computed again from the events of their window
- `window_totals`: the rows of aggregation over a time window, updated incrementally
- `running_totals`: the rows of aggregation without a window, from totals alone
- `affected_rows`: the rows that share a key with a finalizing event
- `retention`: which rows later results may still read
- `row_counts`: how many rows each partition has had, for UPDATE n EVENTS

`physical/stream` says which decider a plan has: running totals if no event must be kept, window totals if nothing
forces a recount, rows for every other aggregation and for rankings, matches for detection.
"""

from streamsift.runtime.stream.engine import ManyEngine
