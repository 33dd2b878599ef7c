"""Run several queries at once and count what they have in common once.

- `run`: run a sharing plan
- `prefixes`: queries that begin alike, on one tree of prefixes
- `chop`, `chop_kernels`: queries with inner parts in common, by chop-connect

The plan (`physical/share`) says which queries share a tree, which are chopped and which run alone. A tree or a chopped
workload that would cost too much on the given events falls back to single runs.
"""

from streamsift.runtime.share.run import Report, execute_many
