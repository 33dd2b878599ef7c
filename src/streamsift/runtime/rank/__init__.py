"""Rank the matches of a query: find the k best of each group and tick.

- `run`: find candidates with the strategy of each alternative, and keep the best
- `best`: keep the k best scored matches of each bucket (group at a tick)
- `groups`: rank matches with Kleene variables
- `output`: build the record batches of the result
- `join`: find matches with a rank join, best events first; provide sorted access to a component
- `join_queues`: read each variable's candidates of a window, best first
- `parts`: rank the matches of different keys together
- `merge`: merge components of a pattern that are ranked separately; report the accesses of each schedule
- `merge_queues`: fill the queues of a merge, and keep joined matches for the next window
- `merge_schedules`: bound the scores of unread matches, and choose the queue to read next
- `merge_kernel`: run the top-k merge (TA or NRA)

The first strategy that applies is used: best paths for linear scores of sequences (`runtime/paths`), a merge if the
score decomposes into components, a rank join if it is monotone, else enumeration of all matches. Merges and joins are
replaced by enumeration if windows contain few matches; paths and merges, if they would read too much. A merge uses
`nra` or `ta`, and one of four schedules (`wabs`, `round-robin`, `gradient`, `statistics`).
"""

from streamsift.runtime.rank.merge import merge_accesses
from streamsift.runtime.rank.output import rank_schema, tie_names
from streamsift.runtime.rank.parts import merged_ranks
from streamsift.runtime.rank.run import rank
