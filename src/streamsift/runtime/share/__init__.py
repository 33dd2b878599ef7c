"""Run several queries together and compute their common parts once.

- `run`: run a sharing plan
- `prefixes`: count queries with a common prefix on one prefix tree
- `incremental`: the totals of a prefix tree, updated batch by batch on a stream
- `chop`, `chop_kernels`: count queries with other common parts by chop-connect

The plan (`physical/share`) names the queries that share a tree, that are chopped and that run alone. If sharing would
cost too much on the given events, the queries run one by one.
"""

from streamsift.runtime.share.incremental import SharedTotals
from streamsift.runtime.share.run import Report, execute_many
