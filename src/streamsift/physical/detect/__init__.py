"""Plan the search for single events and negated sub-patterns.

- `steps`: plan the steps and negations of one scope, and the cache keys of negations;
- `equalities`: compare equal columns with the one that is bound first;
- `definition_windows`: express definition windows as comparisons;
- `keys`: derive the columns that are equal in all events of a match;
- `partial_keys`: derive a partial key, shared by some variables; events of the others are replicated;
- `cost`: estimate rows, and find the cheapest join tree.

Patterns with negations or two events use a left-deep tree; otherwise `cost.cheapest` chooses by measured statistics.
"""

from streamsift.physical.detect.cost import OPEN_NS, CostModel, Statistics, cheapest
from streamsift.physical.detect.definition_windows import (
    PLACE,
    WindowBound,
    since,
    until,
    upper_edge,
    window_bound,
    window_predicates,
)
from streamsift.physical.detect.equalities import Equalities
from streamsift.physical.detect.keys import shared_columns
from streamsift.physical.detect.partial_keys import PartialKey, partial_key
from streamsift.physical.detect.steps import Bounded, Scope, bounded_negations, step_of, value_reads, with_caching
