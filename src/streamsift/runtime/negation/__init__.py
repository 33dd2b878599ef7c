"""Find matches of patterns with AND or negations, and test which matches a negation forbids.

- `search`: run the search stage by stage; evaluate predicates that kernels do not support with Arrow, in batches
- `packing`: pack an alternative, its candidates and its caches into arrays
- `layout`: name the columns of these arrays
- `kernel`: search depth first, with intervals, cached results and backjumping

A negation is checked inside the kernel if possible. If one of its predicates needs Arrow, it is checked after the stage
that binds its last outer step, in rounds: the search of a partial match pauses where it needs a result.
`Cache` chooses whether results of negations are cached; `AUTO` abandons a cache with few hits.
"""

from streamsift.runtime.negation.search import NestedSearch
