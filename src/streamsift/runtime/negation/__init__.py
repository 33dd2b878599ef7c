"""Find matches of patterns with AND or negations, and test which matches a negation forbids.

- `search`: drive the search stage by stage, and evaluate predicates that no kernel can test by Arrow, in batches
- `packing`: pack an alternative, its candidates and its caches into arrays
- `layout`: name the columns of these arrays
- `kernel`: search depth first, with intervals, cached results and backjumping

A negation that kernels can decide is tested inside the enumeration. One with a predicate that needs Arrow is tested
after the stage that binds its last outer step, in rounds: the search of a partial match halts where it needs a result.
`Cache` chooses whether results of negations are cached; `AUTO` abandons a ring with few hits.
"""

from streamsift.runtime.negation.search import NestedSearch
