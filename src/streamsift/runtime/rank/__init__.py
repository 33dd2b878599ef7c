"""Rank the matches of a query: return the k best of each group and tick.

- `run`: find candidates by the strategy of each alternative, and keep the best.
- `best`: keep the k best scored matches of each bucket (group at a tick) of a run.
- `groups`: rank matches with Kleene variables.
- `output`: write the best matches as record batches.
- `join`: rank join, events best first; sorted access to a component by it.
- `join_queues`: each variable's candidates, best first, of any window.
- `merge`: merge components of a pattern that are ranked separately; report what each schedule reads.
- `merge_queues`: fill the queues that a merge reads, and remember joins for the next window.
- `merge_schedules`: bound what was not read, and choose the queue to read next.
- `merge_kernel`: the top-k merge itself, TA and NRA.

Variants, the first that applies: best paths for linear scores of sequences (`runtime/paths`), a merge if the score
decomposes into components, a rank join if it is monotone, and enumeration of all matches. Merges and joins give way to
enumeration if windows hold few matches; paths and merges do so if they would read too much. A merge reads by `nra` or
`ta`, in the order of one of four schedules (`wabs`, `round-robin`, `gradient`, `statistics`).
"""

from streamsift.runtime.rank.merge import merge_accesses
from streamsift.runtime.rank.output import rank_schema, tie_names
from streamsift.runtime.rank.run import rank
